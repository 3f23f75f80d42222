//! Tests of several channels of one device, received together: samples are aligned in time whatever
//! is lost, and every ledger balances.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::common::group::{finish_rx, receive_group};
use crate::common::{Action, HostIds, Meddler, SPP, device, is_data, meddled, patient, radio};
use millstream_emulator::RadioConfig;
use millstream_radio::{Cause, Complex32, Device, RxArgs, RxError, RxEvent, RxStreamer};

fn of(channel: usize) -> RxArgs {
    RxArgs::new(channel).with_samples_per_packet(SPP as u32)
}

fn both(device: &Device) -> RxStreamer {
    device.rx_group(&[of(0), of(1)]).unwrap()
}

/// Calls `script` for data packets with the channel and their number on it.
fn by_channel(mut script: impl FnMut(usize, u64) -> Action + Send + 'static) -> Meddler {
    let (mut counts, ids) = ([0; 2], HostIds::default());
    Meddler::new(move |packet| {
        ids.note(packet);
        if !is_data(packet) {
            return Action::Pass;
        }
        let channel = ids.channel(packet, 0).expect("a stream of this host");
        counts[channel] += 1;
        script(channel, counts[channel] - 1)
    })
}

#[test]
fn two_channels_bring_the_same_moments() {
    let (radio, device) = device(2e6);
    let mut group = both(&device);
    let at = device.time_ticks().unwrap() + 400_000;
    group.start_finite(300_000, Some(at)).unwrap();
    assert!(matches!(group.start_finite(1, None), Err(RxError::Running)));
    let brought = receive_group(&mut group, u64::MAX);
    assert!(brought.ended && brought.events.is_empty(), "{brought:?}");
    assert_eq!((brought.samples, brought.first_ticks), (300_000, Some(at)));
    assert!(!group.is_running());
    // Without a time they also start together, also the second time.
    group.start_finite(10_007, None).unwrap();
    assert_eq!(receive_group(&mut group, u64::MAX).samples, 10_007);
    for ledger in finish_rx(group) {
        assert_eq!((ledger.expected, ledger.delivered, ledger.lost_total()), (310_007, 310_007, 0));
    }
    drop(device);
    assert_eq!(radio.stop().rx_overruns, 0);
}

#[test]
fn a_start_without_a_time_is_tried_again_if_the_commands_were_late() {
    let (radio, device) = device(2e6);
    let mut group = both(&device);
    // Longer than the lead of the first start, as for a thread that gets no CPU.
    radio.faults().add("delay to_device control ms=80 count=4").unwrap();
    group.start_finite(10_000, None).unwrap();
    let brought = receive_group(&mut group, u64::MAX);
    assert!(brought.ended && brought.events.is_empty(), "{brought:?}");
    for ledger in finish_rx(group) {
        assert_eq!((ledger.expected, ledger.delivered, ledger.lost_total()), (10_000, 10_000, 0));
    }
}

#[test]
fn what_one_channel_loses_the_other_gives_up() {
    let meddler = by_channel(|channel, n| match (channel, n) {
        (0, 3 | 10..15 | 50) | (1, 12..17 | 80 | 199) => Action::Drop,
        _ => Action::Pass,
    });
    let (_radio, device) = meddled(meddler, 2e6);
    let mut group = both(&device);
    group.start_finite(200 * SPP, None).unwrap();
    let brought = receive_group(&mut group, u64::MAX);
    let gap = |packets, samples| RxEvent::SequenceGap { packets, samples: samples * SPP };
    // Packets 10 to 16 are missing on one or the other: ten packets, seven packets' time.
    assert_eq!(brought.events, [gap(1, 1), gap(10, 7), gap(1, 1), gap(1, 1), gap(1, 1)]);
    assert_eq!(brought.channels, [0, 0, 0, 1, 1]);
    assert!(brought.ended);
    let ledgers = finish_rx(group);
    for (ledger, own) in ledgers.iter().zip([7, 7]) {
        assert_eq!(ledger.balance(), Ok(()));
        assert_eq!((ledger.expected, ledger.delivered), (200 * SPP, 189 * SPP));
        assert_eq!(ledger.lost(Cause::NetworkLoss), own * SPP);
        assert_eq!(ledger.lost(Cause::Alignment), (11 - own) * SPP);
    }
}

#[test]
fn random_losses_on_both_channels_leave_them_aligned() {
    let seed = std::process::id();
    println!("seed {seed}");
    let mut state = u64::from(seed) | 1;
    let meddler = by_channel(move |_, _| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        match state >> 59 {
            0 => Action::Drop,
            1 => Action::Twice,
            2 => Action::Later((state >> 50 & 7) as usize),
            _ => Action::Pass,
        }
    });
    let (_radio, device) = meddled(meddler, 2e6);
    let mut group = both(&device);
    group.start_finite(500 * SPP, None).unwrap();
    let brought = receive_group(&mut group, u64::MAX);
    assert_eq!(brought.samples + brought.missing, 500 * SPP);
    for ledger in finish_rx(group) {
        assert_eq!((ledger.expected, ledger.delivered), (500 * SPP, brought.samples));
        assert_eq!(ledger.balance(), Ok(()));
        assert!(ledger.lost(Cause::Alignment) > 0);
    }
}

#[test]
fn after_an_overrun_all_channels_go_on_at_one_time() {
    let (radio, args_of) = radio(RadioConfig { rx_buffer_samples: 1 << 18, ..patient() });
    let mut device = Device::open(args_of).unwrap();
    device.set_rate(4e6).unwrap();
    let of = |channel| of(channel).with_recv_queue_bytes(256 << 10);
    // Different windows, so that one channel stops well before the other.
    let wide = of(1).with_recv_queue_bytes(1 << 20);
    let mut group = device.rx_group(&[of(0), wide]).unwrap();
    group.start_continuous(None).unwrap();
    let first = receive_group(&mut group, 50_000);
    std::thread::sleep(Duration::from_secs(1));
    let after = receive_group(&mut group, 800_000);
    assert!(after.events.iter().any(|event| matches!(event, RxEvent::Overrun { .. })));
    group.stop().unwrap();
    let rest = receive_group(&mut group, u64::MAX);
    assert!(rest.ended && after.missing > 0);
    let missing = first.missing + after.missing + rest.missing;
    for ledger in finish_rx(group) {
        println!("{ledger}");
        assert_eq!(ledger.balance(), Ok(()));
        assert_eq!(ledger.delivered, first.samples + after.samples + rest.samples);
        let gaps = ledger.lost(Cause::DeviceOverrun) + ledger.lost(Cause::Alignment);
        // Samples of one channel beyond the end of the other are not a gap.
        let tail = gaps - missing;
        assert!(tail < 400_000, "{tail}");
        assert_eq!(ledger.lost_total(), gaps);
    }
    drop(device);
    assert!(radio.stop().rx_overruns >= 1);
}

#[test]
fn a_stopped_group_ends_on_all_channels() {
    let (_radio, device) = device(2e6);
    let mut group = both(&device);
    for _ in 0..2 {
        group.start_continuous(None).unwrap();
        receive_group(&mut group, 100_000);
        group.stop().unwrap();
        let rest = receive_group(&mut group, u64::MAX);
        assert!(rest.ended && rest.events.is_empty(), "{rest:?}");
    }
    for ledger in finish_rx(group) {
        assert_eq!(ledger.balance(), Ok(()));
        // The stop reaches one channel after the other.
        assert_eq!(ledger.lost_total(), ledger.lost(Cause::Alignment));
    }
}

#[test]
fn a_late_start_is_late_for_all() {
    let (_radio, device) = device(2e6);
    let mut group = both(&device);
    group.start_finite(5000, Some(1)).unwrap();
    let brought = receive_group(&mut group, u64::MAX);
    assert_eq!(brought.events, [RxEvent::LateCommand]);
    assert!(brought.ended && brought.samples == 0);
    group.start_finite(5000, None).unwrap();
    assert_eq!(receive_group(&mut group, u64::MAX).samples, 5000);
    for ledger in finish_rx(group) {
        assert_eq!((ledger.expected, ledger.lost(Cause::LateCommand)), (10_000, 5000));
        assert_eq!(ledger.balance(), Ok(()));
    }
}

#[test]
fn a_channel_that_falls_silent_is_brought_back_with_the_others() {
    let cut = Arc::new(AtomicBool::new(false));
    let (received, sent) = (Arc::clone(&cut), Arc::clone(&cut));
    let ids = HostIds::default();
    let known = ids.clone();
    let meddler = Meddler::new(move |packet| {
        ids.note(packet);
        let stream = is_data(packet) || packet.get(6).is_some_and(|byte| byte >> 5 == 2);
        let lost = stream && ids.channel(packet, 0) == Some(0) && received.load(Ordering::Relaxed);
        if lost { Action::Drop } else { Action::Pass }
    })
    .sent(move |packet| {
        let status = packet.get(6).is_some_and(|byte| byte >> 5 == 1);
        let lost = status && known.channel(packet, 8) == Some(0) && sent.load(Ordering::Relaxed);
        if lost { Action::Drop } else { Action::Pass }
    });
    let (_radio, device) = meddled(meddler, 2e6);
    let of = |channel| of(channel).with_recv_queue_bytes(128 << 10);
    let mut group = device.rx_group(&[of(0), of(1)]).unwrap();
    group.start_continuous(None).unwrap();
    receive_group(&mut group, 50_000);
    cut.store(true, Ordering::Relaxed);
    // Longer than the radio's credit lasts, and shorter than the group tries to bring it back.
    let ends = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        cut.store(false, Ordering::Relaxed);
    });
    assert!(receive_group(&mut group, 100_000).missing > 0);
    ends.join().unwrap();
    for ledger in finish_rx(group) {
        println!("{ledger}");
        assert_eq!(ledger.balance(), Ok(()));
    }
}

#[test]
fn a_group_without_members_is_refused_and_waiting_ends() {
    let (_radio, device) = device(2e6);
    let text = device.rx_group(&[]).unwrap_err().to_string();
    assert!(text.contains("cannot form a group: it has no channel"), "{text}");
    let mut group = both(&device);
    let at = device.time_ticks().unwrap() + 2_000_000;
    group.start_finite(1000, Some(at)).unwrap();
    let (mut first, mut second) = ([Complex32::default(); 8], [Complex32::default(); 8]);
    let meta = group.recv_all(&mut [&mut first, &mut second], Duration::ZERO).unwrap();
    assert_eq!((meta.event, meta.samples), (RxEvent::Timeout, 0));
    assert_eq!(receive_group(&mut group, u64::MAX).samples, 1000);
}
