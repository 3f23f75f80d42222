//! Tests of the ends of bursts: all packets that the device still had to send are in the ledger,
//! once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::common::{
    Action, Meddler, PATIENCE, SPP, args, device, is_data, meddled, patient, radio, receive,
};
use millstream_radio::{Cause, Complex32, Device, DeviceSet, RxArgs, RxEvent, RxStreamer};

/// Waits until the device's time is past `ticks`; returns that time.
fn pass(device: &Device, ticks: u64) -> u64 {
    loop {
        let now = device.time_ticks().unwrap();
        if now > ticks {
            return now;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Receives until the stream has ended.
fn drain(stream: &mut RxStreamer) {
    while stream.is_running() {
        receive(stream, u64::MAX);
    }
}

#[test]
fn a_stop_behind_a_stall_waits_for_the_end_of_the_new_run() {
    let cut = Arc::new(AtomicBool::new(false));
    let is_cut = Arc::clone(&cut);
    // Every report of received packets arrives, so the lost packets keep the window closed.
    let meddler = Meddler::new(move |packet| {
        let stream = is_data(packet) || packet.get(6).is_some_and(|byte| byte >> 5 == 2);
        if stream && is_cut.load(Ordering::Relaxed) { Action::Drop } else { Action::Pass }
    });
    let (_radio, mut args_of) = radio(patient());
    args_of.open_port = Some(meddler.open_port());
    args_of.silence_max = Duration::from_millis(400);
    let mut device = Device::open(args_of).unwrap();
    device.set_rate(2e6).unwrap();
    let mut stream = device.rx_stream(args().with_recv_queue_bytes(128 << 10)).unwrap();
    stream.start_continuous(None).unwrap();
    let first = receive(&mut stream, 50_000).first_ticks.unwrap();
    cut.store(true, Ordering::Relaxed);
    let mut buffer = vec![Complex32::default(); 4096];
    while stream.recv(&mut buffer, Duration::from_millis(100)).unwrap().event != RxEvent::Timeout {}
    cut.store(false, Ordering::Relaxed);
    while stream.counters().stalls == 0 {
        stream.recv(&mut buffer, Duration::from_millis(1)).unwrap();
    }
    // The recovery is completed, and the first packets wait.
    stream.recv(&mut [] as &mut [Complex32], PATIENCE).unwrap();
    // The delayed packets of the device come first, with a separate end.
    let now = device.time_ticks().unwrap();
    let now = pass(&device, now + 400_000);
    stream.stop().unwrap();
    while stream.is_running() {
        stream.recv(&mut buffer, PATIENCE).unwrap();
    }
    assert!(
        stream.ledger().expected >= now - first,
        "{} of {now}",
        first + stream.ledger().expected
    );
    assert_eq!(stream.finish().balance(), Ok(()));
}

#[test]
fn a_stop_in_a_chain_waits_for_the_end_of_the_capture_it_ends() {
    let (_radio, device) = device(2e6);
    let mut stream = device.rx_stream(args()).unwrap();
    let at = device.time_ticks().unwrap() + 200_000;
    stream.start_finite(20 * SPP, Some(at)).unwrap();
    stream.queue_finite(5_000_000, None).unwrap();
    stream.queue_finite(SPP, None).unwrap();
    pass(&device, at + 100_000);
    stream.stop().unwrap();
    drain(&mut stream);
    let ledger = stream.ledger().clone();
    // Far beyond the first capture; a busy radio may stop slightly before its last reported time.
    assert!((50_000..5_000_000).contains(&ledger.expected), "{ledger}");
    // A capture that had not begun is not waited for.
    let at = device.time_ticks().unwrap() + 200_000;
    stream.start_finite(20 * SPP, Some(at)).unwrap();
    stream.queue_finite(SPP, Some(at + 20_000_000)).unwrap();
    // A busy radio stops before its last reported time.
    pass(&device, at + 20 * SPP + 400_000);
    stream.stop().unwrap();
    let brought = receive(&mut stream, u64::MAX);
    assert!(brought.ended && brought.samples == 20 * SPP && !stream.is_running(), "{brought:?}");
    let last = stream.finish();
    assert_eq!((last.expected - ledger.expected, last.lost_total()), (20 * SPP, 0));
}

#[test]
fn a_late_capture_behind_a_lost_end_is_told_behind_it() {
    let meddler = Meddler::data(|n, _| if n == 9 { Action::Drop } else { Action::Pass });
    let (_radio, device) = meddled(meddler, 2e6);
    let mut stream = device.rx_stream(args()).unwrap();
    let at = device.time_ticks().unwrap() + 500_000;
    stream.start_finite(10 * SPP, Some(at)).unwrap();
    stream.queue_finite(3 * SPP, Some(at + 5 * SPP)).unwrap();
    let gap = RxEvent::SequenceGap { packets: 1, samples: SPP };
    assert_eq!(receive(&mut stream, u64::MAX).events, [gap]);
    assert_eq!(receive(&mut stream, u64::MAX).events, [RxEvent::LateCommand]);
    let ledger = stream.finish();
    assert_eq!((ledger.expected, ledger.delivered), (13 * SPP, 9 * SPP));
    assert_eq!((ledger.lost(Cause::LateCommand), ledger.balance()), (3 * SPP, Ok(())));
}

#[test]
fn a_lost_end_is_booked_once() {
    let meddler =
        Meddler::data(|n, _| if (97..101).contains(&n) { Action::Drop } else { Action::Pass });
    let (_radio, device) = meddled(meddler, 2e6);
    let mut stream = device.rx_stream(args()).unwrap();
    stream.start_finite(100 * SPP, None).unwrap();
    let gap = |packets| RxEvent::SequenceGap { packets, samples: packets * SPP };
    assert_eq!(receive(&mut stream, u64::MAX).events, [gap(3)]);
    // The first packet of this one is lost.
    stream.start_finite(100 * SPP, None).unwrap();
    assert_eq!(receive(&mut stream, u64::MAX).events, [gap(1)]);
    let ledger = stream.finish();
    assert_eq!((ledger.expected, ledger.delivered), (200 * SPP, 196 * SPP));
    assert_eq!((ledger.lost(Cause::NetworkLoss), ledger.balance()), (4 * SPP, Ok(())));
}

#[test]
fn an_end_that_overtakes_is_put_in_order() {
    let meddler = Meddler::data(|n, _| match n % 20 {
        18 => Action::Later(1),
        _ => Action::Pass,
    });
    let (_radio, device) = meddled(meddler, 2e6);
    let mut stream = device.rx_stream(args()).unwrap();
    for _ in 0..3 {
        stream.queue_finite(20 * SPP, None).unwrap();
        let brought = receive(&mut stream, u64::MAX);
        assert_eq!((brought.samples, brought.events.len()), (20 * SPP, 0), "{brought:?}");
    }
    assert_eq!(stream.finish().lost_total(), 0);
}

#[test]
fn what_came_before_the_device_died_is_handed_out_first() {
    let (radio, device) = device(2e6);
    let mut stream = device.rx_stream(args()).unwrap();
    stream.start_continuous(None).unwrap();
    receive(&mut stream, 20_000);
    radio.stop();
    let mut buffer = vec![Complex32::default(); 1 << 22];
    let (mut got, before) = (0, stream.ledger().delivered);
    let error = loop {
        match stream.recv(&mut buffer, PATIENCE) {
            Ok(meta) => got += meta.samples as u64,
            Err(error) => break error,
        }
    };
    assert!(error.to_string().contains("stopped answering"), "{error}");
    assert_eq!(stream.ledger().delivered - before, got);
}

#[test]
fn a_group_hands_out_what_came_before_its_device_died() {
    let (radio, device) = device(2e6);
    let mut group = device.rx_group(&[RxArgs::new(0), RxArgs::new(1)]).unwrap();
    group.start_continuous(None).unwrap();
    let (mut one, mut two) = (vec![Complex32::default(); 999], vec![Complex32::default(); 999]);
    let mut got = group.recv_all(&mut [&mut one, &mut two], PATIENCE).unwrap().samples as u64;
    radio.stop();
    one.resize(1 << 22, Complex32::default());
    two.resize(1 << 22, Complex32::default());
    let error = loop {
        match group.recv_all(&mut [&mut one, &mut two], PATIENCE) {
            Ok(meta) => got += meta.samples as u64,
            Err(error) => break error,
        }
    };
    assert!(error.to_string().contains("stopped answering"), "{error}");
    assert!(group.ledgers().all(|ledger| ledger.delivered == got));
}

#[test]
fn a_packet_that_is_too_long_to_wait_is_not_waited_for() {
    let meddler = Meddler::data(|n, packet| match n {
        5 => Action::Drop,
        6 => {
            let mut long = packet.to_vec();
            long.resize(20_000, 0);
            long[2..4].copy_from_slice(&20_000u16.to_le_bytes());
            Action::Replace(long)
        }
        _ => Action::Pass,
    });
    let (_radio, device) = meddled(meddler, 2e6);
    let mut stream = device.rx_stream(args()).unwrap();
    stream.start_continuous(None).unwrap();
    let mut buffer = vec![Complex32::default(); 4096];
    while stream.ledger().delivered < 20_000 {
        assert_ne!(stream.recv(&mut buffer, PATIENCE).unwrap().event, RxEvent::Timeout);
    }
    assert_eq!(stream.finish().balance(), Ok(()));
}

#[test]
fn time_in_which_nobody_looked_is_no_silence() {
    let (_radio, device) = device(2e6);
    let mut stream = device.rx_stream(args()).unwrap();
    // Stopped before it began, it has no end: that must be detected by a check of the device.
    stream.start_continuous(Some(device.time_ticks().unwrap() + 20_000_000)).unwrap();
    stream.stop().unwrap();
    std::thread::sleep(Duration::from_secs(1));
    let mut buffer = vec![Complex32::default(); 10];
    let meta = stream.recv(&mut buffer, Duration::ZERO).unwrap();
    assert!(meta.event == RxEvent::Timeout && stream.is_running(), "{meta:?}");
    let meta = stream.recv(&mut buffer, PATIENCE).unwrap();
    assert!(meta.end_of_burst && !stream.is_running(), "{meta:?}");
}

#[test]
fn a_wait_without_end_is_no_panic() {
    let (_radio, mut args_of) = radio(patient());
    args_of.claim_wait = Duration::MAX;
    let set = DeviceSet::open([args_of]).unwrap();
    set.sync_at_pps(0, Duration::MAX).unwrap();
}
