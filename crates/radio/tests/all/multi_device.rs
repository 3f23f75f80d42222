//! Tests of several devices with one time, whose channels are received together.

use std::time::{Duration, Instant};

use crate::common::group::{finish_rx, receive_group};
use crate::common::{PATIENCE, patient, radio};
use millstream_emulator::{RadioConfig, RunningRadio};
use millstream_radio::{Cause, Complex32, DeviceSet, RadioError, RxArgs, RxError, RxEvent};

/// Returns two radios whose seconds are a quarter as long, at 400 kHz, and the set of them.
fn two(other: RadioConfig) -> (Vec<RunningRadio>, DeviceSet) {
    let one = RadioConfig { time_scale: 4.0, serial: "ONE".into(), ..patient() };
    let (radios, args): (_, Vec<_>) = [one, other].into_iter().map(radio).unzip();
    let mut set = DeviceSet::open(args).unwrap();
    assert_eq!(set.set_rate(4e5).unwrap(), 4e5);
    (radios, set)
}

fn alike() -> RadioConfig {
    RadioConfig { time_scale: 4.0, serial: "TWO".into(), ..patient() }
}

#[test]
fn devices_take_one_time_at_the_same_edge() {
    let (_radios, set) = two(alike());
    let [one, two] = set.devices() else { panic!("two devices") };
    // The radios were not started at the same moment, nor were their times set.
    for ticks in [7_000_000_000, 0, 0] {
        set.sync_at_pps(ticks, PATIENCE).unwrap();
        let since = one.time_last_pps().unwrap() - ticks;
        assert!(since % 400_000 == 0, "{since}");
        let (before, middle, after) =
            (one.time_ticks().unwrap(), two.time_ticks().unwrap(), one.time_ticks().unwrap());
        assert!((before..=after).contains(&middle), "{before} {middle} {after}");
    }
}

#[test]
fn four_channels_of_two_devices_bring_the_same_moments() {
    let (radios, set) = two(alike());
    set.sync_at_pps(1_000_000, PATIENCE).unwrap();
    let channels = [0, 1].map(|device| [0, 1].map(|channel| (device, RxArgs::new(channel))));
    let mut group = set.rx_group(channels.as_flattened()).unwrap();
    let at = set.devices()[0].time_ticks().unwrap() + 200_000;
    group.start_finite(100_000, Some(at)).unwrap();
    let brought = receive_group(&mut group, u64::MAX);
    assert!(brought.ended && brought.events.is_empty(), "{brought:?}");
    assert_eq!((brought.samples, brought.first_ticks), (100_000, Some(at)));
    for ledger in finish_rx(group) {
        assert_eq!((ledger.expected, ledger.lost_total()), (100_000, 0));
    }
    drop(set);
    assert!(radios.into_iter().all(|radio| radio.stop().rx_overruns == 0));
}

#[test]
fn a_device_with_another_pps_is_named() {
    for time_scale in [8.0, 5.0] {
        let (_radios, set) = two(RadioConfig { time_scale, serial: "FAST".into(), ..patient() });
        let error = set.sync_at_pps(0, PATIENCE).unwrap_err();
        let text = error.to_string();
        let differs =
            matches!(error, RadioError::PpsDiffers { .. } | RadioError::TimesDiffer { .. });
        assert!(differs && text.contains("the device at 127.0.0.1 has the time"), "{text}");
    }
}

#[test]
fn a_pps_that_does_not_come_is_one_clear_error() {
    let (_radio, args) = radio(RadioConfig { time_scale: 1e-6, ..patient() });
    let set = DeviceSet::open([args]).unwrap();
    let text = set.sync_at_pps(0, Duration::from_millis(50)).unwrap_err().to_string();
    assert!(text.contains("127.0.0.1 saw no PPS edge in 50 ms"), "{text}");
}

#[test]
fn after_an_overrun_of_one_device_both_go_on_at_one_time() {
    // Only the first device has a small buffer, so only it overruns by itself.
    let one = RadioConfig { time_scale: 4.0, rx_buffer_samples: 1 << 16, ..patient() };
    let (radios, args): (Vec<_>, Vec<_>) = [one, alike()].into_iter().map(radio).unzip();
    let mut set = DeviceSet::open(args).unwrap();
    set.set_rate(4e5).unwrap();
    set.sync_at_pps(1_000_000, PATIENCE).unwrap();
    let of = RxArgs::new(0).with_recv_queue_bytes(256 << 10);
    let mut group = set.rx_group(&[(0, of), (1, of)]).unwrap();
    group.start_continuous(None).unwrap();
    let mut sums = (0, 0);
    for round in 1..=3 {
        let before = receive_group(&mut group, 50_000);
        sums = (sums.0 + before.samples, sums.1 + before.missing);
        // A second is 1.6 million samples, of which queue and buffer hold a tenth. On a busy
        // machine the radio may lag behind its clock, or have overrun already, and then does not
        // again: there must be an overrun that the group has not come to.
        let until = Instant::now() + PATIENCE;
        while radios[0].counters().rx_overruns <= group.members()[0].counters().overruns {
            assert!(Instant::now() < until, "it does not overrun");
            std::thread::sleep(Duration::from_millis(400));
            // A restart that is under way goes on with a call only.
            let more = receive_group(&mut group, 1);
            sums = (sums.0 + more.samples, sums.1 + more.missing);
        }
        let after = receive_group(&mut group, 400_000);
        sums = (sums.0 + after.samples, sums.1 + after.missing);
        assert!(group.members()[0].counters().overruns >= round);
        assert!(after.events.iter().all(|event| matches!(event, RxEvent::Overrun { .. })));
    }
    group.stop().unwrap();
    let rest = receive_group(&mut group, u64::MAX);
    assert!(rest.ended);
    for (index, ledger) in finish_rx(group).into_iter().enumerate() {
        println!("{ledger}");
        assert_eq!(ledger.balance(), Ok(()));
        assert_eq!(ledger.delivered, sums.0 + rest.samples);
        let gaps = ledger.lost(Cause::DeviceOverrun) + ledger.lost(Cause::Alignment);
        assert_eq!(ledger.lost_total(), gaps);
        // Besides the gaps, the samples that one sent beyond the end of the other.
        assert!(gaps >= sums.1 + rest.missing);
        assert_eq!(ledger.lost(Cause::DeviceOverrun) > 0, index == 0, "{ledger}");
    }
    drop(set);
    let overruns: Vec<_> = radios.into_iter().map(|radio| radio.stop().rx_overruns).collect();
    assert!(overruns[0] >= 3 && overruns[1] == 0, "{overruns:?}");
}

#[test]
fn a_device_that_dies_is_named_and_the_ledgers_balance() {
    let (mut radios, set) = two(alike());
    set.sync_at_pps(0, PATIENCE).unwrap();
    let mut group = set.rx_group(&[(0, RxArgs::new(0)), (1, RxArgs::new(0))]).unwrap();
    group.start_continuous(None).unwrap();
    receive_group(&mut group, 50_000);
    let gone = radios.pop().unwrap();
    let address = gone.chdr_addr().to_string();
    gone.stop();
    let (mut one, mut two) = (vec![Complex32::default(); 999], vec![Complex32::default(); 999]);
    let error = loop {
        match group.recv_all(&mut [&mut one, &mut two], Duration::from_millis(100)) {
            Ok(meta) => assert!(meta.samples > 0 || meta.event != RxEvent::None),
            Err(error) => break error.to_string(),
        }
    };
    assert!(error.contains(&address) && error.contains("stopped answering"), "{error}");
    for ledger in finish_rx(group) {
        assert_eq!(ledger.balance(), Ok(()));
    }
}

#[test]
fn a_device_that_is_not_in_the_set_is_refused() {
    let (_radios, set) = two(alike());
    let error = set.rx_group(&[(0, RxArgs::new(0)), (2, RxArgs::new(0))]).unwrap_err();
    assert!(matches!(error, RxError::BadGroup { .. }), "{error}");
    // The channels opened for it are free again.
    set.rx_group(&[(0, RxArgs::new(0)), (1, RxArgs::new(0))]).unwrap();
}
