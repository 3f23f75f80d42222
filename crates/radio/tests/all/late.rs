//! Tests of late packets: reordered if they come soon, and counted if they do not; then their
//! samples stay lost.

use std::sync::Arc;
use std::time::Instant;

use crate::common::{Action, Meddler, SPP, args, meddled, patient, radio, receive};
use millstream_link::fault::{FaultEffect, FaultRule, FaultSwitch, Select};
use millstream_link::open;
use millstream_radio::{Cause, Device, RxEvent};

/// Returns a stream over a path with this fault on its data packets.
fn through(
    effect: FaultEffect,
    every: u64,
    count: u64,
) -> (millstream_emulator::RunningRadio, Device) {
    let began = Instant::now();
    let switch = FaultSwitch::new(move || began.elapsed().as_nanos() as u64);
    let rule = FaultRule::new(crate::common::is_data, effect);
    switch
        .add(rule.select(Select { every, count: Some(count), skip: 20, ..Select::default() }))
        .unwrap();
    let (radio, mut args_of) = radio(patient());
    args_of.open_port = Some(Arc::new(move |bind, options| {
        let mut port = open("udp", bind, options)?;
        port.rx = switch.wrap_rx(port.rx);
        Ok(port)
    }));
    let mut device = Device::open(args_of).unwrap();
    device.set_rate(2e6).unwrap();
    (radio, device)
}

#[test]
fn packets_that_three_or_twenty_overtake_are_put_in_order() {
    for datagrams in [3, 20] {
        let (_radio, device) = through(FaultEffect::Reorder { datagrams }, 30, 32);
        let mut stream = device.rx_stream(args()).unwrap();
        stream.start_finite(1000 * SPP, None).unwrap();
        let brought = receive(&mut stream, u64::MAX);
        let counters = stream.counters();
        assert_eq!((brought.samples, brought.missing), (1000 * SPP, 0), "{counters:?}");
        assert!(counters.reordered >= 32 && counters.late == 0, "{counters:?}");
        assert_eq!(stream.finish().lost_total(), 0);
    }
}

#[test]
fn packets_that_come_three_milliseconds_late_are_put_in_order() {
    let (_radio, device) = through(FaultEffect::Delay { ns: 3_000_000 }, 30, 32);
    let mut stream = device.rx_stream(args()).unwrap();
    stream.start_continuous(None).unwrap();
    let mut missing = receive(&mut stream, 1000 * SPP).missing;
    // The packets are reordered, unless this machine delayed the radio and then got a hundred at
    // once.
    while stream.counters().late * SPP < stream.ledger().lost_total() {
        missing += receive(&mut stream, SPP).missing;
    }
    let counters = stream.counters();
    let ledger = stream.finish();
    assert_eq!((ledger.lost(Cause::NetworkLoss), ledger.lost_total()), (missing, missing));
    assert!(counters.reordered >= 32 && counters.late * SPP == missing, "{counters:?}");
}

#[test]
fn packets_that_come_too_late_stay_lost_and_are_counted() {
    let (_radio, device) = through(FaultEffect::Delay { ns: 60_000_000 }, 50, 20);
    let mut stream = device.rx_stream(args()).unwrap();
    stream.start_continuous(None).unwrap();
    let mut brought = receive(&mut stream, 1000 * SPP);
    // The last of them also comes.
    while stream.counters().late * SPP < stream.ledger().lost_total() {
        brought.missing += receive(&mut stream, SPP).missing;
    }
    let counters = stream.counters();
    let ledger = stream.finish();
    assert_eq!(
        (ledger.lost(Cause::NetworkLoss), ledger.lost_total()),
        (brought.missing, brought.missing)
    );
    assert!(counters.late >= 15 && counters.late * SPP >= brought.missing, "{counters:?}");
}

#[test]
fn a_packet_behind_the_end_of_its_burst_stays_lost_and_is_counted() {
    let meddler = Meddler::data(|n, _| if n == 30 { Action::Later(69) } else { Action::Pass });
    let (_radio, device) = meddled(meddler, 2e6);
    let mut stream = device.rx_stream(args()).unwrap();
    stream.start_finite(100 * SPP, None).unwrap();
    let brought = receive(&mut stream, u64::MAX);
    assert_eq!(brought.events, [RxEvent::SequenceGap { packets: 1, samples: SPP }]);
    assert_eq!((stream.counters().late, stream.counters().stray), (1, 0));
    let ledger = stream.finish();
    assert_eq!((ledger.lost(Cause::NetworkLoss), ledger.lost_total()), (SPP, SPP));
    assert_eq!((ledger.expected, ledger.balance()), (100 * SPP, Ok(())));
}

#[test]
fn a_capture_of_one_packet_that_is_lost_was_lost_on_the_way() {
    let meddler = Meddler::data(|n, _| if n == 0 { Action::Drop } else { Action::Pass });
    let (_radio, device) = meddled(meddler, 2e6);
    let mut stream = device.rx_stream(args()).unwrap();
    // The device acknowledged that start, so it cannot have been too late.
    stream.start_finite(SPP / 2, None).unwrap();
    let brought = receive(&mut stream, u64::MAX);
    assert_eq!(brought.events, [RxEvent::SequenceGap { packets: 1, samples: SPP / 2 }]);
    let ledger = stream.finish();
    assert_eq!((ledger.lost(Cause::NetworkLoss), ledger.lost_total()), (SPP / 2, SPP / 2));
}
