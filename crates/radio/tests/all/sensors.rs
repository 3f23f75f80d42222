//! Tests of sensors, of the sources of clock and time, and of settings at a given time.

use crate::common::{PATIENCE, patient, radio, radio_with};
use millstream_emulator::{DeviceKind, RadioConfig};
use millstream_radio::device::SourceKind;
use millstream_radio::graph::StreamDirection::{Rx, Tx};
use millstream_radio::{Complex32, Device, RadioError, RxArgs, RxEvent, RxStreamer, TuneRequest};

#[test]
fn sensors_are_listed_and_read() {
    let (_radio, args) = radio_with(RadioConfig { device: DeviceKind::E320, ..patient() });
    let device = Device::open(args).unwrap();
    for name in device.sensors().unwrap() {
        assert_eq!(device.sensor(&name).unwrap().name, name);
    }
    for (direction, sensor) in [(Rx, "rssi"), (Tx, "lo_locked")] {
        let names = device.channel_sensors(direction, 1).unwrap();
        assert!(names.iter().any(|name| name == sensor), "{names:?}");
        let reading = device.channel_sensor(direction, 1, sensor).unwrap();
        assert!(reading.as_bool().is_some() || reading.as_f64().is_some(), "{reading:?}");
    }
    let error = device.sensor("mood").unwrap_err().to_string();
    assert!(error.contains("get_mb_sensor"), "{error}");
    assert!(matches!(device.channel_sensors(Rx, 7), Err(RadioError::NoSuchChannel { .. })));
}

#[test]
fn a_source_is_one_that_the_device_has() {
    let (_radio, mut args) = radio(patient());
    args.clock_source = Some("sundial".into());
    let error = Device::open(args.clone()).unwrap_err().to_string();
    let known = "there is no clock source \"sundial\"; the device has internal, external";
    assert!(error.starts_with(known), "{error}");
    args.clock_source = Some("external".into());
    let device = Device::open(args).unwrap();
    device.set_source(SourceKind::Clock, "external").unwrap();
    assert_eq!(device.source(SourceKind::Clock).as_deref(), Some("external"));
    assert!(device.sources(SourceKind::Time).iter().any(|source| source == "internal"));
    device.set_source(SourceKind::Clock, "internal").unwrap();
    assert_eq!(device.source(SourceKind::Clock).as_deref(), Some("internal"));
    let error = device.set_source(SourceKind::Time, "moon").unwrap_err().to_string();
    assert!(error.starts_with("there is no time source \"moon\""), "{error}");
}

/// The samples that a group of two channels receives.
fn receive_both(mut group: RxStreamer) -> [Vec<Complex32>; 2] {
    let (mut all, mut blocks) =
        ([Vec::new(), Vec::new()], vec![vec![Complex32::default(); 4096]; 2]);
    while group.is_running() {
        let mut outs: Vec<&mut [Complex32]> = blocks.iter_mut().map(Vec::as_mut_slice).collect();
        let meta = group.recv_all(&mut outs, PATIENCE).unwrap();
        assert_eq!(meta.event, RxEvent::None);
        for (all, block) in all.iter_mut().zip(&blocks) {
            all.extend_from_slice(&block[..meta.samples]);
        }
    }
    all
}

/// Returns the mean angle between two channels, radians.
fn angle([one, two]: &[&[Complex32]; 2]) -> f32 {
    one.iter().zip(*two).map(|(one, two)| one * two.conj()).sum::<Complex32>().arg()
}

#[test]
fn channels_that_are_tuned_at_one_time_stay_in_phase() {
    let config = RadioConfig { device: DeviceKind::E320, ..patient() };
    let (_radio, args) = radio_with(config);
    let mut device = Device::open(args).unwrap();
    device.set_rate(1e6).unwrap();
    // The scene has a carrier at 1 GHz.
    for channel in 0..2 {
        device.tune_rx(channel, TuneRequest::new(999.9e6).with_lo_offset(2e6)).unwrap();
        device.set_gain(Rx, channel, 40.0).unwrap();
    }
    let mut group = device.rx_group(&[RxArgs::new(0), RxArgs::new(1)]).unwrap();
    let start = device.time_ticks().unwrap() + 16_000_000;
    group.start_finite(100_000, Some(start)).unwrap();
    // In the middle of the reception.
    let change = start + 50_000 * 16;
    let results = device.tune_at(Rx, &[0, 1], 999.8e6, change).unwrap();
    assert!(results.iter().all(|result| (result.freq_hz - 999.8e6).abs() < 2.0), "{results:?}");
    assert_eq!(device.tuned(Rx, 1), Some(results[1]));
    let both = receive_both(group);
    let turn = |samples: &[Complex32]| {
        let steps = samples.windows(2).map(|pair| pair[1] * pair[0].conj());
        steps.sum::<Complex32>().arg() / std::f32::consts::TAU
    };
    for channel in &both {
        let (before, after) = (turn(&channel[10_000..49_000]), turn(&channel[51_000..]));
        assert!((before - 0.1).abs() < 1e-3 && (after - 0.2).abs() < 1e-3, "{before} {after}");
    }
    let [one, two] = &both;
    let before = angle(&[&one[10_000..49_000], &two[10_000..49_000]]);
    let after = angle(&[&one[51_000..], &two[51_000..]]);
    println!("angle {before} before, {after} after");
    assert!(after.abs() < 0.02, "{after}");

    let now = device.time_ticks().unwrap();
    let error = device.tune_at(Rx, &[0, 1], 999.9e6, now).unwrap_err().to_string();
    assert!(error.contains("give a later time"), "{error}");
    let error = device.tune_at(Rx, &[0], 2e9, now + 16_000_000).unwrap_err().to_string();
    assert!(error.starts_with("frequency 2000000000 Hz is not possible"), "{error}");
}

#[test]
fn a_radio_without_a_ddc_cannot_shift_at_a_time() {
    let (_radio, args) = radio(patient());
    let mut device = Device::open(args).unwrap();
    let error = device.tune_at(Rx, &[0], 1e9, 1 << 40).unwrap_err();
    assert!(matches!(error, RadioError::NoSetting { .. }), "{error}");
}
