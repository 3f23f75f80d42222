//! Faults on any link: missing frames are counted, and no frame leaves its memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use millstream_link::fault::{FaultEffect, FaultRule, FaultSwitch, Select};

use crate::wire::{ETHERNET_BYTES, ETHERTYPE, PATIENCE, Wire, number, numbered, numbers};

/// Long enough for frames in flight to arrive.
const SETTLED: Duration = Duration::from_millis(30);

const SEED: u64 = 7;

/// Both directions of one end, on a clock that the test advances.
struct Faults {
    received: FaultSwitch,
    sent: FaultSwitch,
    clock: Arc<AtomicU64>,
}

impl Faults {
    /// Wraps the sending end, or else the receiving one.
    fn around(wire: &mut Wire, sender: bool) -> Self {
        let clock = Arc::new(AtomicU64::new(0));
        let switch = || {
            let hands = Arc::clone(&clock);
            FaultSwitch::new(move || hands.load(Ordering::Relaxed))
        };
        let (received, sent) = (switch(), switch());
        wire.wrap(sender, |end| FaultSwitch::wrap_frames(end, &received, &sent));
        Self { received, sent, clock }
    }

    /// Adds a rule for our frames; the kernel sends some of its own.
    fn add(
        switch: &FaultSwitch,
        effect: FaultEffect,
        select: Select,
    ) -> millstream_link::fault::RuleId {
        let ours = |frame: &[u8]| frame.get(12..14) == Some(&ETHERTYPE.to_be_bytes()[..]);
        switch.add(FaultRule::new(ours, effect).select(select)).unwrap()
    }
}

/// Checks that exactly `count` frames arrive.
#[track_caller]
fn exactly(wire: &mut Wire, count: usize) -> Vec<Vec<u8>> {
    let mut got = wire.collect(count);
    got.extend(wire.collect_for(1, SETTLED));
    got
}

/// A rule that could act on every frame and never does changes only the path of the frames.
pub fn rules_that_hit_nothing_change_nothing(wire: &mut Wire) {
    for sender in [true, false] {
        let faults = Faults::around(wire, sender);
        let never = Select { probability: 0.0, ..Select::default() };
        Faults::add(&faults.received, FaultEffect::Lose, never.clone());
        Faults::add(&faults.sent, FaultEffect::Lose, never);
    }
    crate::delivery::every_size_arrives_whole(wire);
    crate::delivery::order_is_kept_in_batches_of_every_size(wire);
    crate::delivery::counters_count_frames_and_bytes(wire);
    crate::ownership::what_does_not_fit_stays_with_the_caller(wire);
    crate::ownership::buffers_run_out_and_come_back(wire);
    crate::ownership::steady_state_allocates_nothing(wire);
    crate::pressure::a_sender_that_does_not_flush_fills_the_ring(wire);
}

pub fn what_is_missing_is_what_faults_took(wire: &mut Wire) {
    let (tx, rx) = (Faults::around(wire, true), Faults::around(wire, false));
    let chance = Select { probability: 0.2, seed: SEED, ..Select::default() };
    let sent_rule = Faults::add(&tx.sent, FaultEffect::Lose, chance);
    let third = Select { every: 3, ..Select::default() };
    let received_rule = Faults::add(&rx.received, FaultEffect::Lose, third);
    let (mut got, most) = (0, wire.frame_bytes_max());
    for (first, bytes) in (0..600).step_by(60).zip([60, 200, most].into_iter().cycle()) {
        wire.send(first..first + 60, bytes);
        let (until, left) = (Instant::now() + PATIENCE, tx.sent.tally(sent_rule).unwrap().hit);
        loop {
            let seen = rx.received.tally(received_rule).unwrap().matched;
            got += wire.collect_for(60, SETTLED).len() as u64;
            if seen == first + 60 - left {
                break;
            }
            assert!(Instant::now() < until, "seed {SEED}: {seen} came");
        }
        wire.balanced();
    }
    let tallies = [tx.sent.tally(sent_rule).unwrap(), rx.received.tally(received_rule).unwrap()];
    assert_eq!(tallies[0].matched, 600);
    assert!((80..160).contains(&tallies[0].hit), "seed {SEED}: {tallies:?}");
    assert_eq!(tallies[1].hit, tallies[1].matched / 3);
    assert_eq!(got + tallies[0].hit + tallies[1].hit, 600, "seed {SEED}: {tallies:?}");
    let counted = wire.fault_lost();
    assert_eq!(counted, tallies[0].hit + tallies[1].hit);
}

pub fn copies_come_directly_behind(wire: &mut Wire) {
    let (tx, rx) = (Faults::around(wire, true), Faults::around(wire, false));
    let copies = |copies| FaultEffect::Duplicate { copies };
    Faults::add(&tx.sent, copies(1), Select { every: 4, ..Select::default() });
    Faults::add(&rx.received, copies(2), Select { skip: 1, count: Some(1), ..Select::default() });
    for bytes in [60, wire.frame_bytes_max()] {
        wire.send(0..8, bytes);
        let want = if bytes == 60 {
            vec![0, 1, 1, 1, 2, 3, 3, 4, 5, 6, 7, 7]
        } else {
            vec![0, 1, 2, 3, 3, 4, 5, 6, 7, 7]
        };
        let got = exactly(wire, want.len());
        assert_eq!(numbers(&got).collect::<Vec<_>>(), want);
        assert!(
            got.iter().all(|frame| frame[ETHERNET_BYTES..] == numbered(number(frame), bytes - 14))
        );
    }
    wire.balanced();
}

/// A user who takes a batch at a time keeps up with the frames that faults add.
pub fn copies_do_not_pile_up(wire: &mut Wire) {
    let rx = Faults::around(wire, false);
    let rule = Faults::add(&rx.received, FaultEffect::Duplicate { copies: 7 }, Select::default());
    wire.send(0..480, 60);
    let got = wire.collect(8 * 480);
    assert!(numbers(&got).eq((0..8 * 480).map(|at| at / 8)), "{} came", got.len());
    assert_eq!(rx.received.tally(rule).unwrap().overflowed, 0);
    wire.at_rest();
}

pub fn what_is_kept_back_comes_later_and_stays_in_the_census(wire: &mut Wire) {
    for sender in [true, false] {
        let faults = Faults::around(wire, sender);
        let switch = if sender { &faults.sent } else { &faults.received };
        let one = |skip| Select { skip, count: Some(1), ..Select::default() };
        let bytes = wire.frame_bytes_max();
        let rule = Faults::add(switch, FaultEffect::Reorder { datagrams: 2 }, one(1));
        wire.send(0..6, bytes);
        let got = exactly(wire, 6);
        assert_eq!(numbers(&got).collect::<Vec<_>>(), [0, 2, 3, 1, 4, 5], "sender {sender}");
        switch.remove(rule).unwrap();
        let rule = Faults::add(switch, FaultEffect::Delay { ns: 1000 }, one(0));
        wire.send(10..12, bytes);
        let got = exactly(wire, 1);
        assert_eq!(numbers(&got).collect::<Vec<_>>(), [11]);
        assert_eq!(switch.tally(rule).unwrap().held, 1);
        wire.at_rest();
        faults.clock.fetch_add(1000, Ordering::Relaxed);
        wire.tx().flush().unwrap();
        let got = wire.collect_for(1, PATIENCE);
        assert_eq!(numbers(&got).collect::<Vec<_>>(), [10], "nothing more had to be sent");
        assert_eq!(got[0][ETHERNET_BYTES..], numbered(10, bytes - ETHERNET_BYTES));
    }
    assert_eq!(wire.fault_lost(), 0);
}

pub fn damage_is_done_where_frames_lie(wire: &mut Wire) {
    let (tx, rx) = (Faults::around(wire, true), Faults::around(wire, false));
    let all = Select { seed: SEED, ..Select::default() };
    let bytes = wire.frame_bytes_max();
    // In the payload behind its number, far into the last part.
    let flips = FaultEffect::Corrupt { bits: 1, bytes: bytes - 20..bytes };
    let rule = Faults::add(&rx.received, flips, all.clone());
    wire.send(0..20, bytes);
    for frame in wire.collect(20) {
        let right = numbered(number(&frame), bytes - ETHERNET_BYTES);
        let pairs = frame[ETHERNET_BYTES..].iter().zip(&right);
        let wrong: u32 = pairs.map(|(got, want)| (got ^ want).count_ones()).sum();
        assert_eq!((frame.len(), wrong), (bytes, 1), "seed {SEED}");
    }
    rx.received.remove(rule);
    Faults::add(&tx.sent, FaultEffect::Truncate { bytes: 100 }, all);
    wire.send(20..30, bytes);
    let got = wire.collect(10);
    assert!(got.iter().all(|frame| frame.len() == 100) && numbers(&got).eq(20..30));
    wire.balanced();
}
