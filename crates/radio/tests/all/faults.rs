//! Tests of receive streams with lost, repeated, reordered and invented packets: the ledger has
//! every sample, and the stream continues.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::common::{Action, Meddler, SPP, args, device, meddled, patient, radio, receive};
use millstream_emulator::RadioConfig;
use millstream_link::fault::{FaultEffect, FaultRule, FaultSwitch};
use millstream_link::open;
use millstream_radio::{Cause, Complex32, Device, RxError, RxEvent};

#[test]
fn lost_packets_are_gaps_of_exactly_their_samples() {
    let lost = |n| matches!(n, 3 | 10..15 | 100);
    let meddler = Meddler::data(move |n, _| if lost(n) { Action::Drop } else { Action::Pass });
    let (_radio, device) = meddled(meddler, 2e6);
    let mut stream = device.rx_stream(args()).unwrap();
    stream.start_finite(200 * SPP, None).unwrap();
    let brought = receive(&mut stream, u64::MAX);
    let gap = |packets| RxEvent::SequenceGap { packets, samples: packets * SPP };
    assert_eq!(brought.events, [gap(1), gap(5), gap(1)]);
    assert!(brought.ended);
    let ledger = stream.finish();
    assert_eq!((ledger.expected, ledger.delivered), (200 * SPP, 193 * SPP));
    assert_eq!(ledger.lost(Cause::NetworkLoss), 7 * SPP);
}

#[test]
fn the_first_and_the_last_packet_may_be_lost_too() {
    let meddler = Meddler::data(|n, _| if n == 0 || n >= 97 { Action::Drop } else { Action::Pass });
    let (_radio, device) = meddled(meddler, 2e6);
    let mut stream = device.rx_stream(args()).unwrap();
    stream.start_finite(100 * SPP, None).unwrap();
    let brought = receive(&mut stream, u64::MAX);
    let gap = |packets| RxEvent::SequenceGap { packets, samples: packets * SPP };
    assert_eq!(brought.events, [gap(1), gap(3)]);
    let ledger = stream.finish();
    assert_eq!((ledger.expected, ledger.lost(Cause::NetworkLoss)), (100 * SPP, 4 * SPP));
    assert_eq!(ledger.balance(), Ok(()));
}

#[test]
fn copies_are_passed_over_and_a_packet_that_is_too_late_stays_lost() {
    let meddler = Meddler::data(|n, _| match n {
        5 | 50 => Action::Twice,
        20 => Action::Later(1),
        30 => Action::Later(40),
        _ => Action::Pass,
    });
    let (_radio, device) = meddled(meddler, 2e6);
    let mut stream = device.rx_stream(args()).unwrap();
    stream.start_finite(100 * SPP, None).unwrap();
    let brought = receive(&mut stream, u64::MAX);
    let gap = RxEvent::SequenceGap { packets: 1, samples: SPP };
    // A packet one place late is waited for, one forty places late is not.
    assert_eq!(brought.events, [gap]);
    let counters = stream.counters();
    assert_eq!((counters.duplicates, counters.late, counters.packets), (2, 1, 99));
    assert!((1 + 1..=1 + 32).contains(&counters.reordered), "{counters:?}");
    let ledger = stream.finish();
    assert_eq!((ledger.expected, ledger.delivered), (100 * SPP, 99 * SPP));
    assert_eq!((ledger.lost(Cause::NetworkLoss), ledger.lost_total()), (SPP, SPP));
    assert_eq!(ledger.balance(), Ok(()));
}

#[test]
fn packets_out_of_order_are_put_in_order() {
    let meddler = Meddler::data(|n, _| match n % 10 {
        3 if n % 200 < 160 => Action::Later(1 + (n / 10 % 20) as usize),
        7 => Action::Later(1),
        _ => Action::Pass,
    });
    let (_radio, device) = meddled(meddler, 2e6);
    let mut stream = device.rx_stream(args()).unwrap();
    for _ in 0..2 {
        stream.start_finite(200 * SPP, None).unwrap();
        let brought = receive(&mut stream, u64::MAX);
        assert_eq!((brought.samples, brought.events.len()), (200 * SPP, 0), "{brought:?}");
    }
    assert!(stream.counters().reordered >= 80 && stream.counters().late == 0);
    assert_eq!(stream.finish().lost_total(), 0);
}

#[test]
fn random_faults_leave_every_sample_in_one_place() {
    let seed = std::process::id();
    println!("seed {seed}");
    let mut state = u64::from(seed) | 1;
    let meddler = Meddler::data(move |_, packet| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        match state >> 58 {
            0 => Action::Drop,
            1 => Action::Twice,
            2 => Action::Later((state >> 50 & 63) as usize),
            3 => Action::Replace(packet[..packet.len() / 2].to_vec()),
            4 => Action::Before(packet[..12].to_vec()),
            _ => Action::Pass,
        }
    });
    let (_radio, device) = meddled(meddler, 2e6);
    let mut stream = device.rx_stream(args()).unwrap();
    stream.start_finite(1000 * SPP, None).unwrap();
    let brought = receive(&mut stream, u64::MAX);
    let counters = stream.counters();
    let ledger = stream.finish();
    println!("{counters:?}\n{ledger}");
    assert_eq!(ledger.balance(), Ok(()));
    assert_eq!((ledger.expected, ledger.delivered), (1000 * SPP, brought.samples));
    assert_eq!(brought.missing, ledger.lost_total());
    assert!(counters.malformed > 0 && counters.duplicates > 0 && counters.late > 0);
    assert!(ledger.lost(Cause::Malformed) > 0 && ledger.lost(Cause::NetworkLoss) > 0);
}

#[test]
fn lost_management_and_control_packets_are_repeated() {
    // At uneven distances, because even ones could align with the repetitions.
    fn every_fifth() -> impl FnMut(&[u8]) -> Action + Send + 'static {
        let mut turn = 0u64;
        move |packet| {
            if packet.starts_with(b"MPM-ECHO") {
                return Action::Pass;
            }
            turn += 1;
            if matches!(turn % 31, 3 | 8 | 14 | 18 | 21 | 27) { Action::Drop } else { Action::Pass }
        }
    }
    let mut received = every_fifth();
    let meddler =
        Meddler::new(
            move |packet| {
                if crate::common::is_data(packet) { Action::Pass } else { received(packet) }
            },
        )
        .sent(every_fifth());
    let (_radio, device) = meddled(meddler, 2e6);
    let mut stream = device.rx_stream(args()).unwrap();
    stream.start_finite(100 * SPP, None).unwrap();
    let brought = receive(&mut stream, u64::MAX);
    assert_eq!((brought.samples, brought.events.len()), (100 * SPP, 0));
    assert!(device.control().counters().retries.load(Ordering::Relaxed) > 0);
}

#[test]
fn a_device_that_dies_is_named_and_nothing_hangs() {
    let (radio, device) = device(2e6);
    let address = radio.chdr_addr().to_string();
    let mut stream = device.rx_stream(args()).unwrap();
    stream.start_continuous(None).unwrap();
    receive(&mut stream, 20_000);
    radio.stop();
    let mut buffer = vec![Complex32::default(); 4096];
    let error = loop {
        match stream.recv(&mut buffer, Duration::from_millis(100)) {
            Ok(meta) => assert!(meta.samples > 0 || meta.event == RxEvent::Timeout),
            Err(error) => break error,
        }
    };
    let RxError::DeviceSilent { silent_ms, .. } = error else { panic!("{error}") };
    assert!(silent_ms >= 500, "{silent_ms}");
    let text = error.to_string();
    assert!(text.contains(&address) && text.contains("stopped answering"), "{text}");
    assert_eq!(stream.finish().balance(), Ok(()));
}

#[test]
fn a_radio_slower_than_it_says_is_waited_for() {
    // A packet takes half a second, five times the normal silence limit.
    let (_radio, mut args_of) = radio(RadioConfig { time_scale: 1e-3, ..patient() });
    args_of.silence_max = Duration::from_millis(100);
    let mut device = Device::open(args_of).unwrap();
    device.set_rate(1e6).unwrap();
    let mut stream = device.rx_stream(args()).unwrap();
    stream.start_finite(2 * SPP, None).unwrap();
    let brought = receive(&mut stream, u64::MAX);
    assert_eq!((brought.samples, brought.events.len()), (2 * SPP, 0), "{brought:?}");
    let at = device.time_ticks().unwrap() + SPP;
    stream.start_finite(SPP, Some(at)).unwrap();
    let brought = receive(&mut stream, u64::MAX);
    assert_eq!((brought.first_ticks, brought.events.len()), (Some(at), 0), "{brought:?}");
    let ledger = stream.finish();
    assert_eq!((ledger.expected, ledger.delivered), (3 * SPP, 3 * SPP));
}

#[test]
fn silence_before_a_start_does_not_count() {
    const SILENCE_MS: u64 = 1000;
    let (_radio, mut args_of) = radio(patient());
    args_of.silence_max = Duration::from_millis(SILENCE_MS);
    // The device's packets come after the first check of the silence since the command.
    args_of.open_port = Some(Arc::new(|bind, options| {
        let mut port = open("udp", bind, options)?;
        let began = Instant::now();
        let switch = FaultSwitch::new(move || began.elapsed().as_nanos() as u64);
        let late = FaultEffect::Delay { ns: SILENCE_MS * 200_000 };
        switch.add(FaultRule::new(crate::common::is_data, late)).expect("there is room for a rule");
        port.rx = switch.wrap_rx(port.rx);
        Ok(port)
    }));
    let mut device = Device::open(args_of).unwrap();
    device.set_rate(1e6).unwrap();
    let mut stream = device.rx_stream(args()).unwrap();
    let at = device.time_ticks().unwrap() + SILENCE_MS * 950;
    stream.start_finite(10 * SPP, Some(at)).unwrap();
    let brought = receive(&mut stream, u64::MAX);
    assert_eq!((brought.samples, brought.events.len()), (10 * SPP, 0), "{brought:?}");
    assert_eq!(brought.first_ticks, Some(at));
}

#[test]
fn the_last_event_of_a_burst_is_waited_for() {
    let meddler = Meddler::data(|n, packet| {
        if n != 50 {
            return Action::Pass;
        }
        // The device stops half way: EOB.
        let mut last = packet.to_vec();
        last[7] |= 0x02;
        Action::Replace(last)
    });
    let (_radio, device) = meddled(meddler, 2e6);
    let mut stream = device.rx_stream(args()).unwrap();
    stream.start_finite(100 * SPP, None).unwrap();
    let mut events = Vec::new();
    let mut buffer = vec![Complex32::default(); 4096];
    while stream.is_running() {
        let meta = stream.recv(&mut buffer, crate::common::PATIENCE).unwrap();
        events.extend(Some(meta.event).filter(|event| *event != RxEvent::None));
    }
    assert_eq!(events, [RxEvent::Overrun { samples: 49 * SPP }]);
    let ledger = stream.finish();
    assert_eq!((ledger.expected, ledger.delivered), (100 * SPP, 51 * SPP));
    assert_eq!(ledger.balance(), Ok(()));
}

#[test]
fn a_slow_consumer_loses_samples_and_not_the_stream() {
    let (radio, args_of) = radio(RadioConfig { rx_buffer_samples: 1 << 18, ..patient() });
    let mut device = Device::open(args_of).unwrap();
    device.set_rate(4e6).unwrap();
    let mut stream = device.rx_stream(args().with_recv_queue_bytes(256 << 10)).unwrap();
    stream.start_continuous(None).unwrap();
    let first = receive(&mut stream, 50_000);
    // Far longer than the capacity of the queue and of the device's buffer.
    std::thread::sleep(Duration::from_secs(1));
    let after = receive(&mut stream, 800_000);
    let counters = stream.counters();
    let ledger = stream.finish();
    println!("{counters:?}\n{ledger}");
    assert!(after.events.iter().any(|event| matches!(event, RxEvent::Overrun { .. })));
    assert!(counters.overruns >= 1 && after.missing > 0);
    assert_eq!(ledger.lost(Cause::DeviceOverrun), first.missing + after.missing);
    assert_eq!(ledger.lost(Cause::NetworkLoss) + ledger.lost(Cause::HostQueueDrop), 0);
    assert_eq!(ledger.balance(), Ok(()));
    drop(device);
    assert!(radio.stop().rx_overruns >= 1);
}

#[test]
fn a_restart_that_comes_too_late_is_tried_further_ahead() {
    let slow = Arc::new(AtomicBool::new(false));
    let is_slow = Arc::clone(&slow);
    let meddler = Meddler::new(|_| Action::Pass).sent(move |packet| {
        let control = packet.get(6).is_some_and(|byte| byte >> 5 == 4);
        if control && is_slow.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(30));
        }
        Action::Pass
    });
    let (radio, mut args_of) = radio(RadioConfig { rx_buffer_samples: 1 << 18, ..patient() });
    args_of.open_port = Some(meddler.open_port());
    let mut device = Device::open(args_of).unwrap();
    device.set_rate(4e6).unwrap();
    let mut stream = device.rx_stream(args().with_recv_queue_bytes(256 << 10)).unwrap();
    stream.start_continuous(None).unwrap();
    let first = receive(&mut stream, 50_000);
    slow.store(true, Ordering::Relaxed);
    std::thread::sleep(Duration::from_secs(1));
    let after = receive(&mut stream, 800_000);
    slow.store(false, Ordering::Relaxed);
    let ledger = stream.finish();
    assert_eq!(ledger.lost(Cause::DeviceOverrun), first.missing + after.missing);
    assert_eq!(ledger.balance(), Ok(()));
    drop(device);
    let counters = radio.stop();
    assert!(counters.rx_overruns >= 1 && counters.rx_late_commands >= 1, "{counters:?}");
}

#[test]
fn a_stream_that_lost_all_its_credit_is_set_up_anew() {
    let cut = Arc::new(AtomicBool::new(false));
    let is_cut = Arc::clone(&cut);
    // Every report of received packets arrives, so the lost packets keep the window closed.
    let meddler = Meddler::new(move |packet| {
        let stream =
            crate::common::is_data(packet) || packet.get(6).is_some_and(|byte| byte >> 5 == 2);
        if stream && is_cut.load(Ordering::Relaxed) { Action::Drop } else { Action::Pass }
    });
    let (_radio, device) = meddled(meddler, 2e6);
    let mut stream = device.rx_stream(args().with_recv_queue_bytes(128 << 10)).unwrap();
    stream.start_continuous(None).unwrap();
    receive(&mut stream, 50_000);
    cut.store(true, Ordering::Relaxed);
    let mut buffer = vec![Complex32::default(); 4096];
    while stream.recv(&mut buffer, Duration::from_millis(100)).unwrap().event != RxEvent::Timeout {}
    cut.store(false, Ordering::Relaxed);
    let mut missing = receive(&mut stream, 100_000).missing;
    stream.stop().unwrap();
    missing += receive(&mut stream, u64::MAX).missing;
    let counters = stream.counters();
    let ledger = stream.finish();
    println!("{counters:?}\n{ledger}");
    assert!(missing > 0 && counters.stalls == 1);
    assert_eq!(ledger.lost_total(), missing);
    assert_eq!(ledger.balance(), Ok(()));
}

#[test]
fn drops_of_the_hosts_own_queue_are_booked_as_such() {
    for link in ["udp:gro=off", "udp"] {
        let meddler = Meddler::new(|_| Action::Pass).claim_queue_bytes(64 << 20).link(link);
        let (_radio, device) = meddled(meddler, 2e6);
        let mut stream = device.rx_stream(args().with_recv_queue_bytes(64 << 10)).unwrap();
        stream.start_continuous(None).unwrap();
        // A busy machine drops some from the start.
        let before = receive(&mut stream, 50_000).missing;
        std::thread::sleep(Duration::from_millis(200));
        let missing = before + receive(&mut stream, 200_000).missing;
        let drops = stream.members()[0].queue_drops();
        let ledger = stream.finish();
        println!("{link}: {drops} drops\n{ledger}");
        assert!(drops > 0 && missing > 0, "{link}");
        assert_eq!(ledger.lost(Cause::HostQueueDrop), missing, "{link}");
        assert_eq!(ledger.balance(), Ok(()));
    }
}

#[test]
fn the_window_holds_for_small_packets_too() {
    // A packet of ten samples costs the queue a dozen times its length.
    let meddler = Meddler::new(|_| Action::Pass).link("udp:gro=off");
    let (_radio, device) = meddled(meddler, 2e5);
    let small = args().with_samples_per_packet(10).with_recv_queue_bytes(128 << 10);
    let mut stream = device.rx_stream(small).unwrap();
    stream.start_continuous(None).unwrap();
    receive(&mut stream, 1_000);
    std::thread::sleep(Duration::from_millis(500));
    let brought = receive(&mut stream, 150_000);
    assert_eq!(
        (stream.members()[0].queue_drops(), brought.missing),
        (0, 0),
        "{:?}",
        stream.counters()
    );
    assert_eq!(stream.finish().balance(), Ok(()));
}
