//! Own addresses: probed, announced, defended, given up (RFC 5227).

use super::*;

const S: u64 = 1000 * MS;

fn claiming(last: u8, claim: AddressClaim) -> Stack {
    Stack::new(StackConfig { claim, ..config(last) }).unwrap()
}

/// Returns (time in ms, is it a probe) of every packet that one station sends.
fn said(claim: AddressClaim) -> Vec<(u64, bool)> {
    let mut stack = claiming(1, claim);
    let mut said = Vec::new();
    let mut now_ns = 5 * S;
    while stack.due_ns() != u64::MAX {
        for frame in due(&mut stack, now_ns) {
            let (to, arp) = arp_of(&frame);
            assert_eq!((to, arp.op, arp.target), (Mac::BROADCAST, Op::Request, ip("10.0.0.1")));
            assert_ne!(arp.is_probe(), arp.is_announcement());
            said.push(((now_ns - 5 * S) / MS, arp.is_probe()));
        }
        now_ns = stack.due_ns().max(now_ns);
    }
    assert!(stack.is_settled() && stack.is_ours(ip("10.0.0.1")));
    said
}

#[test]
fn three_probes_and_two_announcements_with_the_times_of_rfc_5227() {
    let said = said(AddressClaim::Standard);
    let kinds: Vec<bool> = said.iter().map(|(_, probe)| *probe).collect();
    assert_eq!(kinds, [true, true, true, false, false]);
    let gaps: Vec<u64> = said.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    assert!(said[0].0 <= 1000, "{said:?}");
    assert!(gaps[..2].iter().all(|gap| (1000..=2000).contains(gap)), "{said:?}");
    assert_eq!(gaps[2..], [2000, 2000]);
}

#[test]
fn a_quick_claim_is_settled_in_a_quarter_of_a_second() {
    let said = said(AddressClaim::Quick);
    assert!(said.len() == 5 && said[3].0 <= 250, "{said:?}");
    assert_eq!(said[..3].iter().filter(|(_, probe)| *probe).count(), 3);
}

#[test]
fn an_address_that_is_only_announced_is_in_use_at_once() {
    let stack = claiming(1, AddressClaim::Announce);
    assert!(stack.is_settled() && stack.is_ours(ip("10.0.0.1")));
    assert_eq!(said(AddressClaim::Announce), [(0, false), (2000, false)]);
}

#[test]
fn an_address_being_probed_is_not_used() {
    let mut stack = claiming(1, AddressClaim::Standard);
    due(&mut stack, S);
    stack.open_port(6000);
    assert!(!stack.is_settled());
    let request = arp(Op::Request, 7, "10.0.0.7", "10.0.0.1");
    assert_eq!(answer(&mut stack, &request, S), None);
    assert_eq!(receive(&mut stack, &datagram(), S), Inbound::Done);
    assert_eq!(stack.counters().not_ours, 1);
    let mut frame = [0; 42];
    let sent = stack.emit(at("10.0.0.1:1"), at("10.0.0.7:1"), &mut frame, &[], S);
    assert_eq!(sent, Err(EmitError::Pending));
}

#[test]
fn an_address_that_another_station_holds_is_not_taken() {
    let mut taken = config(2);
    taken.addresses[0].address = ip("10.0.0.1");
    taken.claim = AddressClaim::Quick;
    let mut wire = Wire::new(vec![stack(1), Stack::new(taken).unwrap()]);
    wire.run(10 * S);
    let address = ip("10.0.0.1");
    assert_eq!(wire.stacks[1].counters().addresses_lost, 1);
    assert!(wire.stacks[1].is_settled() && !wire.stacks[1].is_ours(address));
    assert!(wire.stacks[0].is_ours(address), "the one that holds it is not disturbed");
    assert_eq!(wire.stacks[0].counters().arp_conflicts, 0);
    let to = ("0.0.0.0:1", "10.0.0.3:1");
    let error = wire.emit(1, to, b"").unwrap_err();
    assert!(error.to_string().contains("choose another"), "{error}");
}

#[test]
fn of_two_that_probe_at_once_neither_takes_it() {
    let mut stack = claiming(1, AddressClaim::Standard);
    due(&mut stack, S);
    let probe = arp(Op::Request, 2, "0.0.0.0", "10.0.0.1");
    assert_eq!(receive(&mut stack, &probe, S), Inbound::Done);
    assert!(!stack.is_ours(ip("10.0.0.1")));
    assert_eq!(stack.counters().addresses_lost, 1);
    assert_eq!(due(&mut stack, 100 * S).len(), 0);
}

#[test]
fn a_probe_for_an_address_in_use_is_answered_and_remembers_nobody() {
    let mut stack = stack(1);
    due(&mut stack, 0);
    let probe = arp(Op::Request, 2, "0.0.0.0", "10.0.0.1");
    let (to, reply) = arp_of(&answer(&mut stack, &probe, 0).unwrap());
    assert_eq!((to, reply.op), (Mac([2, 0, 0, 0, 0, 2]), Op::Reply));
    assert_eq!((reply.sender, reply.target), (ip("10.0.0.1"), ip("0.0.0.0")));
    assert_eq!(stack.counters().arp_conflicts, 0);
    assert_eq!(stack.wants().count(), 0);
}

#[test]
fn a_conflict_is_reported_and_the_address_defended_once_in_ten_seconds() {
    let mut wire = Wire::new(vec![stack(1)]);
    wire.run(10 * S);
    let intruder = arp(Op::Request, 9, "10.0.0.1", "10.0.0.5");
    let mut defences = 0;
    for _ in 0..25 {
        assert_eq!(receive(&mut wire.stacks[0], &intruder, wire.now_ns), Inbound::Done);
        let said = wire.run(S - 1);
        assert!(said.iter().all(|frame| arp_of(frame).1.is_announcement()));
        defences += said.len();
        wire.run(1);
    }
    assert_eq!(defences, 3);
    assert_eq!(wire.stacks[0].counters().arp_conflicts, 25);
    assert_eq!(wire.stacks[0].counters().addresses_lost, 0);
    assert!(wire.stacks[0].is_ours(ip("10.0.0.1")), "it is kept");
}

#[test]
fn our_own_words_coming_back_are_no_conflict() {
    let mut stack = claiming(1, AddressClaim::Standard);
    let mut now_ns = S;
    while stack.due_ns() != u64::MAX {
        for frame in due(&mut stack, now_ns) {
            assert_eq!(receive(&mut stack, &frame, now_ns), Inbound::Done);
        }
        now_ns = stack.due_ns();
    }
    assert!(stack.is_ours(ip("10.0.0.1")));
    assert_eq!(stack.counters().arp_conflicts, 0);
}
