//! Tests of captures queued ahead in the radio.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::common::{Action, Meddler, SPP, args, device, is_data, meddled, receive};
use millstream_radio::{Cause, Complex32, RxArgs, RxError, RxEvent, RxStreamer};

/// The samples that the radio misses between two captures.
const PAUSE: u64 = 3;

/// Returns time and length of each burst until the stream ends.
fn bursts(stream: &mut RxStreamer) -> Vec<(Option<u64>, u64)> {
    let mut all = Vec::new();
    while stream.is_running() {
        let brought = receive(stream, u64::MAX);
        assert!(brought.ended && brought.events.is_empty(), "{brought:?}");
        all.push((brought.first_ticks, brought.samples));
    }
    all
}

#[test]
fn captures_behind_each_other_are_bursts_with_the_radio_s_pause_between_them() {
    let (_radio, device) = device(4e6);
    let mut stream = device.rx_stream(RxArgs::new(0)).unwrap();
    let at = device.time_ticks().unwrap() + 2_000_000;
    stream.queue_finite(10_000, Some(at)).unwrap();
    // As soon as the radio can, and as soon as the one before has ended: the same.
    stream.queue_finite(5_003, Some(at + 10_000 + PAUSE)).unwrap();
    stream.queue_finite(1, None).unwrap();
    stream.queue_finite(20_000, None).unwrap();
    stream.queue_finite(7_000, Some(at + 100_000)).unwrap();
    let want = [
        (at, 10_000),
        (at + 10_000 + PAUSE, 5_003),
        (at + 15_003 + 2 * PAUSE, 1),
        (at + 15_004 + 3 * PAUSE, 20_000),
        (at + 100_000, 7_000),
    ];
    assert_eq!(bursts(&mut stream), want.map(|(at, samples)| (Some(at), samples)));
    let ledger = stream.finish();
    assert_eq!((ledger.expected, ledger.delivered), (42_004, 42_004));
    assert_eq!(ledger.balance(), Ok(()));
}

#[test]
fn the_radio_holds_as_many_as_it_has_slots() {
    let (_radio, device) = device(4e6);
    let mut stream = device.rx_stream(args()).unwrap();
    let at = device.time_ticks().unwrap() + 8_000_000;
    for capture in 0..33 {
        stream.queue_finite(1000, Some(at + capture * 2000)).unwrap();
    }
    assert!(matches!(stream.queue_finite(1000, None), Err(RxError::QueueFull)));
    assert_eq!(bursts(&mut stream).len(), 33);
    assert_eq!(stream.finish().delivered, 33_000);
}

#[test]
fn one_that_is_late_does_not_take_the_others_along() {
    let (_radio, device) = device(4e6);
    let mut stream = device.rx_stream(args()).unwrap();
    let at = device.time_ticks().unwrap() + 2_000_000;
    stream.queue_finite(10_000, Some(at)).unwrap();
    // It begins within the one before: too late when the radio reads the command.
    stream.queue_finite(3_000, Some(at + 5_000)).unwrap();
    stream.queue_finite(2_000, Some(at + 6_000)).unwrap();
    // A second later: a busy machine emulates the radio late.
    let last = at + 4_000_000;
    stream.queue_finite(4_000, Some(last)).unwrap();
    let mut seen = Vec::new();
    while stream.is_running() {
        let brought = receive(&mut stream, u64::MAX);
        assert!(brought.ended);
        seen.push((brought.first_ticks, brought.samples, brought.events));
    }
    let late = (None, 0, vec![RxEvent::LateCommand]);
    let first = (Some(at), 10_000, vec![]);
    assert_eq!(seen, [first, late.clone(), late, (Some(last), 4_000, vec![])]);
    let ledger = stream.finish();
    assert_eq!((ledger.expected, ledger.lost(Cause::LateCommand)), (19_000, 5_000));
    assert_eq!(ledger.balance(), Ok(()));
}

#[test]
fn lost_packets_around_a_join_are_booked_to_their_own_burst() {
    // Packets 8 to 12 of bursts of 10: the end of one, the beginning of the next.
    let lost = |n| matches!(n, 8..13 | 20..30 | 39);
    let meddler = Meddler::data(move |n, _| if lost(n) { Action::Drop } else { Action::Pass });
    let (_radio, device) = meddled(meddler, 2e6);
    let mut stream = device.rx_stream(args()).unwrap();
    let at = device.time_ticks().unwrap() + 1_000_000;
    for capture in 0..4 {
        let joined =
            (capture % 2 == 0).then_some(at + capture * 10 * SPP + capture / 2 * 4 * PAUSE);
        stream.queue_finite(10 * SPP, joined).unwrap();
    }
    let mut missing = Vec::new();
    while stream.is_running() {
        missing.push(receive(&mut stream, u64::MAX).missing / SPP);
    }
    assert_eq!(missing, [2, 3, 10, 1]);
    let ledger = stream.finish();
    assert_eq!((ledger.expected, ledger.lost(Cause::NetworkLoss)), (40 * SPP, 16 * SPP));
    assert_eq!(ledger.balance(), Ok(()));
}

/// Returns whether a packet is a receive command to channel 0, or its acknowledgement.
fn is_command(packet: &[u8]) -> bool {
    const RX_CMD: u32 = 0x1014;
    let control = packet.get(6).is_some_and(|byte| byte >> 5 == 4);
    let word = packet.get(16..20).map(|bytes| u32::from_le_bytes(bytes.try_into().unwrap()));
    control && word.is_some_and(|word| word & 0xF_FFFF == RX_CMD)
}

#[test]
fn a_start_whose_acknowledgement_is_lost_runs_once() {
    let mut acks = 0;
    let meddler = Meddler::new(move |packet| {
        let lost = !is_data(packet) && is_command(packet) && {
            acks += 1;
            acks % 3 == 1
        };
        if lost { Action::Drop } else { Action::Pass }
    });
    let (_radio, device) = meddled(meddler, 2e6);
    let mut stream = device.rx_stream(args()).unwrap();
    for timed in [false, true, false] {
        let at = device.time_ticks().unwrap() + 4_000_000;
        stream.start_finite(20 * SPP, timed.then_some(at)).unwrap();
        let brought = receive(&mut stream, u64::MAX);
        assert_eq!((brought.samples, brought.events.len()), (20 * SPP, 0), "{brought:?}");
        assert!(!timed || brought.first_ticks == Some(at));
    }
    let ledger = stream.finish();
    assert_eq!((ledger.expected, ledger.delivered), (60 * SPP, 60 * SPP));
}

#[test]
fn a_lost_acknowledgement_queues_nothing_twice_and_nothing_never() {
    let commands = Arc::new(AtomicU64::new(0));
    let (sent, mut acks) = (Arc::clone(&commands), 0);
    let meddler = Meddler::new(move |packet| {
        let lost = !is_data(packet) && is_command(packet) && {
            acks += 1;
            acks % 3 == 0
        };
        if lost { Action::Drop } else { Action::Pass }
    })
    .sent(move |packet| {
        let lost = is_command(packet) && sent.fetch_add(1, Ordering::Relaxed) % 4 == 3;
        if lost { Action::Drop } else { Action::Pass }
    });
    let (_radio, device) = meddled(meddler, 2e6);
    let mut stream = device.rx_stream(args()).unwrap();
    let at = device.time_ticks().unwrap() + 20_000_000;
    for capture in 0..20 {
        stream.queue_finite(SPP, Some(at + capture * (SPP + PAUSE))).unwrap();
    }
    assert!(commands.load(Ordering::Relaxed) > 20, "some were repeated");
    let got = bursts(&mut stream);
    assert!(got.iter().map(|burst| burst.0.unwrap()).eq((0..20).map(|n| at + n * (SPP + PAUSE))));
    let ledger = stream.finish();
    assert_eq!((ledger.expected, ledger.delivered), (20 * SPP, 20 * SPP));
}

#[test]
fn a_stop_ends_the_chain_and_a_continuous_stream_has_no_end_to_queue_behind() {
    let (_radio, device) = device(2e6);
    let mut stream = device.rx_stream(args()).unwrap();
    let at = device.time_ticks().unwrap() + 100_000;
    stream.queue_finite(1_000_000, Some(at)).unwrap();
    stream.queue_finite(1_000_000, None).unwrap();
    receive(&mut stream, 50_000);
    stream.stop().unwrap();
    let mut buffer = vec![Complex32::default(); 4096];
    while stream.is_running() {
        stream.recv(&mut buffer, crate::common::PATIENCE).unwrap();
    }
    assert!(stream.ledger().expected < 1_000_000);
    stream.start_continuous(None).unwrap();
    assert!(matches!(stream.queue_finite(1, None), Err(RxError::Endless)));
    assert_eq!(stream.finish().balance(), Ok(()));
}
