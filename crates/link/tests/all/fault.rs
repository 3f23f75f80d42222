//! Real ports behind a fault switch: without a rule nothing is allocated, and with mixtures of
//! rules every datagram is accounted for once.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::{Duration, Instant};

use millstream_link::fault::{FaultEffect, FaultRule, FaultSwitch, Select};
use millstream_link::open;
use millstream_link::port::{Port, PortOptions};
use millstream_testkit::allocations;

const SEGMENT: usize = 1_000;

fn switch() -> FaultSwitch {
    let start = Instant::now();
    FaultSwitch::new(move || start.elapsed().as_nanos() as u64)
}

fn port() -> Port {
    let local = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
    open("udp", local, &PortOptions::default()).unwrap()
}

/// Returns a batch of datagrams that begin with their number.
fn train(first: u32, count: u32) -> Vec<u8> {
    let mut bytes = vec![0x55; SEGMENT * count as usize];
    for (number, datagram) in (first..).zip(bytes.chunks_mut(SEGMENT)) {
        datagram[..4].copy_from_slice(&number.to_le_bytes());
    }
    bytes
}

#[test]
fn without_a_rule_that_can_act_nothing_is_allocated() {
    let switch = switch();
    let (mut a, mut b) = (port(), port());
    a.tx = switch.wrap_tx(a.tx);
    b.rx = switch.wrap_rx(b.rx);
    let spent = Select { count: Some(1), ..Select::default() };
    switch.add(FaultRule::new(|_| true, FaultEffect::Lose).select(spent)).unwrap();
    a.tx.send(b"spent", b.local).unwrap();
    let train = train(0, 12);
    let before = allocations();
    for _ in 0..100 {
        a.tx.send_train(&train, SEGMENT, b.local).unwrap();
        a.tx.send(&train[..100], b.local).unwrap();
        let mut wanted = 13;
        while wanted > 0 {
            let count = b.rx.recv_batch(Duration::from_secs(5)).unwrap();
            assert_ne!(count, 0);
            (0..count).for_each(|index| assert!(!b.rx.datagram(index).payload.is_empty()));
            wanted -= count;
        }
    }
    assert_eq!(allocations(), before);
}

#[test]
fn a_mixture_of_faults_over_real_trains_leaves_every_datagram_in_one_place() {
    let seed = u64::from(std::process::id());
    println!("seed {seed}");
    let (out, back) = (switch(), switch());
    let (mut a, mut b) = (port(), port());
    a.tx = out.wrap_tx(a.tx);
    b.rx = back.wrap_rx(b.rx);
    let chance = |probability, seed| Select { probability, seed, ..Select::default() };
    let mut rules = Vec::new();
    for (switch, seed) in [(&out, seed), (&back, seed ^ 99)] {
        for (effect, probability) in [
            (FaultEffect::Lose, 0.05),
            (FaultEffect::Duplicate { copies: 1 }, 0.05),
            (FaultEffect::Reorder { datagrams: 3 }, 0.05),
            (FaultEffect::Delay { ns: 2_000_000 }, 0.02),
        ] {
            let rule = FaultRule::new(|_| true, effect.clone());
            let id = switch.add(rule.select(chance(probability, seed))).unwrap();
            rules.push((switch, effect, id));
        }
    }
    let total = 16 * 200;
    let mut seen = vec![0u32; total as usize];
    let mut got = 0u64;
    for first in (0..total).step_by(16) {
        a.tx.send_train(&train(first, 16), SEGMENT, b.local).unwrap();
        a.tx.release();
        let mut count = b.rx.recv_batch(Duration::from_millis(1)).unwrap();
        while count > 0 {
            for index in 0..count {
                let payload = b.rx.datagram(index).payload;
                assert!(payload.len() == SEGMENT && payload[4..].iter().all(|&b| b == 0x55));
                seen[u32::from_le_bytes(payload[..4].try_into().unwrap()) as usize] += 1;
                got += 1;
            }
            count = b.rx.recv_batch(Duration::ZERO).unwrap();
        }
    }
    // Delayed datagrams come by themselves.
    let mut quiet = 0;
    while quiet < 3 {
        a.tx.release();
        let count = b.rx.recv_batch(Duration::from_millis(60)).unwrap();
        quiet = if count == 0 { quiet + 1 } else { 0 };
        for index in 0..count {
            let payload = b.rx.datagram(index).payload;
            seen[u32::from_le_bytes(payload[..4].try_into().unwrap()) as usize] += 1;
            got += 1;
        }
    }
    let (mut lost, mut copied) = (0, 0);
    for (switch, effect, id) in rules {
        let tally = switch.tally(id).unwrap();
        println!("{effect:?}: {tally:?}");
        assert!(tally.hit > 0);
        assert_eq!((tally.held, tally.overflowed), (0, 0));
        match effect {
            FaultEffect::Lose => lost += tally.hit,
            FaultEffect::Duplicate { .. } => copied += tally.hit,
            _ => {}
        }
    }
    assert_eq!((b.rx.queue_drops(), got), (0, u64::from(total) + copied - lost));
    assert!(seen.contains(&0) && seen.iter().any(|&n| n > 1));
}
