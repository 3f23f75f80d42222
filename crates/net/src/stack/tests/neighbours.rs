//! The neighbour table: requests, confirmation, ageing, limits.

use super::*;

const PEER: &str = "10.0.0.2";
const PEER_MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];
const S: u64 = 1000 * MS;

fn alone() -> Wire {
    let mut wire = Wire::new(vec![stack(1)]);
    wire.run(10 * S);
    wire
}

/// Returns the stack of station 1, which has just learnt station 2.
fn acquainted() -> Wire {
    let mut wire = alone();
    let _ = wire.stacks[0].resolve(ip(PEER), wire.now_ns);
    wire.run(0);
    let reply = arp(Op::Reply, 2, PEER, "10.0.0.1");
    receive(&mut wire.stacks[0], &reply, wire.now_ns);
    assert_eq!(hop(&mut wire), EmitHop::Known(PEER_MAC));
    wire
}

fn hop(wire: &mut Wire) -> EmitHop<[u8; 6]> {
    let now_ns = wire.now_ns;
    wire.stacks[0].resolve(ip(PEER), now_ns)
}

#[test]
fn an_absent_neighbour_is_asked_for_three_times_a_second_apart() {
    let mut wire = alone();
    assert_eq!(hop(&mut wire), EmitHop::Pending);
    let first = wire.run(0);
    let (to, request) = arp_of(&first[0]);
    assert_eq!((to, request.op, request.target), (Mac::BROADCAST, Op::Request, ip(PEER)));
    assert_eq!(request.sender, ip("10.0.0.1"));
    assert_eq!(wire.run(S - 1).len(), 0);
    assert_eq!(wire.run(S).len(), 1);
    assert_eq!(wire.run(10 * S).len(), 1);
    assert_eq!(hop(&mut wire), EmitHop::Pending, "after its rest it is asked for anew");
    assert_eq!(wire.stacks[0].counters().neighbours_lost, 1);
}

#[test]
fn one_that_does_not_answer_is_left_alone_longer_each_time() {
    let mut wire = alone();
    for rest_s in [1, 2, 4, 4] {
        assert_eq!(hop(&mut wire), EmitHop::Pending);
        assert_eq!(wire.run(3 * S).len(), 3);
        assert_eq!(hop(&mut wire), EmitHop::Unreachable(Unreachable::NoAnswer));
        wire.run(rest_s * S - 1);
        assert_eq!(hop(&mut wire), EmitHop::Unreachable(Unreachable::NoAnswer));
        wire.run(1);
    }
    // A station that sends is present again.
    assert_eq!(hop(&mut wire), EmitHop::Pending);
    let reply = arp(Op::Reply, 2, PEER, "10.0.0.1");
    receive(&mut wire.stacks[0], &reply, wire.now_ns);
    assert_eq!(hop(&mut wire), EmitHop::Known(PEER_MAC));
}

#[test]
fn an_old_one_in_use_is_asked_alone_and_stays_known_meanwhile() {
    let mut wire = acquainted();
    assert_eq!(wire.run(60 * S).len(), 0, "one that is fresh is not asked");
    assert_eq!(wire.run(100 * S).len(), 0, "nor one that nobody uses");
    assert_eq!(hop(&mut wire), EmitHop::Known(PEER_MAC));
    let asked = wire.run(0);
    assert_eq!(arp_of(&asked[0]).0, Mac(PEER_MAC), "not everybody is asked");
    assert_eq!(hop(&mut wire), EmitHop::Known(PEER_MAC));
    let reply = arp(Op::Reply, 2, PEER, "10.0.0.1");
    receive(&mut wire.stacks[0], &reply, wire.now_ns);
    assert_eq!(wire.run(59 * S).len(), 0);
}

#[test]
fn an_old_one_that_is_gone_is_asked_for_everywhere_and_then_lost() {
    let mut wire = acquainted();
    wire.run(61 * S);
    assert_eq!(hop(&mut wire), EmitHop::Known(PEER_MAC));
    let asked: Vec<_> = wire.run(10 * S).iter().map(|frame| arp_of(frame).0).collect();
    let (alone, all) = (Mac(PEER_MAC), Mac::BROADCAST);
    assert_eq!(asked, [alone, alone, alone, all, all, all]);
    assert_eq!(wire.stacks[0].counters().neighbours_lost, 1);
}

#[test]
fn an_old_one_that_nobody_uses_is_forgotten() {
    let mut wire = acquainted();
    assert_eq!(wire.run(661 * S).len(), 0);
    assert_eq!(hop(&mut wire), EmitHop::Pending);
}

#[test]
fn who_speaks_unasked_changes_an_entry_and_makes_none() {
    let mut wire = alone();
    for op in [Op::Reply, Op::Request] {
        let gratuitous = arp(op, 2, PEER, PEER);
        receive(&mut wire.stacks[0], &gratuitous, wire.now_ns);
        let unasked = arp(Op::Reply, 2, PEER, "10.0.0.1");
        receive(&mut wire.stacks[0], &unasked, wire.now_ns);
    }
    assert_eq!(hop(&mut wire), EmitHop::Pending, "nothing was remembered");
    let mut wire = acquainted();
    let before = wire.stacks[0].generation();
    let moved = arp(Op::Reply, 9, PEER, PEER);
    receive(&mut wire.stacks[0], &moved, wire.now_ns);
    assert_ne!(wire.stacks[0].generation(), before);
    assert_eq!(hop(&mut wire), EmitHop::Known([2, 0, 0, 0, 0, 9]));
    assert_eq!(wire.stacks[0].counters().neighbours_moved, 1);
    assert_eq!(wire.run(0).len(), 1, "and it is asked whether that is true");
}

#[test]
fn a_flood_of_false_questions_costs_counters_and_never_a_neighbour_in_use() {
    let mut wire = acquainted();
    let capacity = wire.stacks[0].neighbours.capacity();
    for n in 0..100_000u32 {
        let mut frame = arp(Op::Request, 9, "10.0.0.9", "10.0.0.1");
        // The sender's addresses: any station of the network.
        frame[31] = (n % 250 + 3) as u8;
        frame[22..26].copy_from_slice(&n.to_le_bytes());
        frame[22] &= 0xFE;
        receive(&mut wire.stacks[0], &frame, wire.now_ns);
    }
    assert_eq!(hop(&mut wire), EmitHop::Known(PEER_MAC));
    assert_eq!(wire.stacks[0].neighbours.capacity(), capacity);
    // A table full of entries in use refuses new ones.
    let mut small = Stack::new(StackConfig { neighbours_max: 2, ..config(1) }).unwrap();
    assert_eq!(small.resolve(ip("10.0.0.2"), 0), EmitHop::Pending);
    assert_eq!(small.resolve(ip("10.0.0.3"), 0), EmitHop::Pending);
    assert_eq!(small.resolve(ip("10.0.0.4"), 0), EmitHop::Unreachable(Unreachable::TableFull));
    let asked = arp(Op::Request, 5, "10.0.0.5", "10.0.0.1");
    assert!(answer(&mut small, &asked, 0).is_some(), "an answer needs no entry");
    assert_eq!(small.counters().neighbours_full, 2);
}

#[test]
fn shared_addresses_ask_the_kernel_and_believe_it() {
    let shared = StackConfig { own_addresses: false, ..config(1) };
    let mut stack = Stack::new(shared).unwrap();
    assert_eq!(stack.resolve(ip(PEER), 0), EmitHop::Pending);
    assert_eq!(stack.poll(0), Some(DueAction::Ask(ip(PEER))));
    assert_eq!((stack.poll(0), stack.due_ns()), (None, S));
    assert!(stack.wants().eq([ip(PEER)]));
    stack.learn(ip(PEER), [0xFF; 6], 0);
    assert_eq!(stack.resolve(ip(PEER), 0), EmitHop::Pending, "no station has that address");
    stack.learn(ip(PEER), PEER_MAC, 0);
    assert_eq!(stack.resolve(ip(PEER), 0), EmitHop::Known(PEER_MAC));
    assert_eq!(stack.wants().count(), 0);
    // It is requested again soon while it is in use, and used meanwhile.
    assert_eq!(stack.poll(5 * S), None);
    assert_eq!(stack.resolve(ip(PEER), 5 * S), EmitHop::Known(PEER_MAC));
    assert_eq!(stack.poll(5 * S), Some(DueAction::Ask(ip(PEER))));
    stack.learn(ip(PEER), [2, 0, 0, 0, 0, 9], 5 * S);
    assert_eq!(stack.resolve(ip(PEER), 5 * S), EmitHop::Known([2, 0, 0, 0, 0, 9]));
    stack.learn(ip(PEER), PEER_MAC, 5 * S);
    stack.forget(ip(PEER), 0);
    assert_eq!(stack.resolve(ip(PEER), 0), EmitHop::Unreachable(Unreachable::NoAnswer));
    assert_eq!(stack.counters().neighbours_lost, 1);
    assert_eq!(stack.resolve(ip(PEER), S), EmitHop::Pending);
}

#[test]
fn what_no_station_can_say_is_not_believed() {
    for (says, target) in
        [("10.0.0.255", "10.0.0.1"), ("10.0.0.0", "10.0.0.1"), ("192.168.0.1", "10.0.0.1")]
    {
        let mut wire = alone();
        let request = arp(Op::Request, 2, says, target);
        assert_eq!(receive(&mut wire.stacks[0], &request, wire.now_ns), Inbound::Done);
        assert_eq!(wire.stacks[0].counters().bad_arp, 1, "{says}");
    }
    let mut wire = alone();
    let mut group = arp(Op::Request, 2, PEER, "10.0.0.1");
    group[22] = 3;
    assert_eq!(receive(&mut wire.stacks[0], &group, wire.now_ns), Inbound::Done);
    assert_eq!(wire.stacks[0].counters().bad_arp, 1);
}
