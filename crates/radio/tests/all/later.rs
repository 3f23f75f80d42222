//! What radios of UHD 4.10 and newer have more: captures that begin with a transmission, complex
//! gains, and a null source that ends by itself.

use std::time::Duration;

use crate::common::burst::{sample, send};
use crate::common::{PATIENCE, patient, radio_with};
use millstream_emulator::{DeviceKind, RadioConfig, RunningRadio, UhdGeneration};
use millstream_radio::graph::StreamDirection;
use millstream_radio::noc::NullSrcSink;
use millstream_radio::{Device, DeviceArgs, RxArgs, RxEvent, RxStreamer, TxArgs};

/// Returns a radio whose channels receive what channel 0 transmits.
fn looped(config: RadioConfig) -> (RunningRadio, DeviceArgs) {
    radio_with(RadioConfig { rx_antennas: vec!["loopback:0,delay=0".to_owned()], ..config })
}

/// Receives `count` samples; returns them with the time of the first.
fn receive(stream: &mut RxStreamer, count: usize) -> (u64, Vec<[i16; 2]>) {
    let (mut heard, mut done, mut first) = (vec![[0; 2]; count], 0, None);
    while done < count {
        let meta = stream.recv(&mut heard[done..], PATIENCE).unwrap();
        assert_eq!(meta.event, RxEvent::None);
        first = first.or(meta.time_ticks);
        done += meta.samples;
    }
    (first.unwrap(), heard)
}

#[test]
fn a_capture_waits_for_the_transmission_however_long_it_takes() {
    for uhd in [UhdGeneration::V4_10, UhdGeneration::V4_11] {
        let (_radio, mut args) = looped(RadioConfig { uhd, ..patient() });
        args.silence_max = Duration::from_millis(20);
        let device = Device::open(args).unwrap();
        let mut rx = device.rx_stream(RxArgs::new(0)).unwrap();
        let mut tx = device.tx_stream(TxArgs::new(0)).unwrap();
        for _ in 0..2 {
            rx.start_with_transmitter(Some(1_000)).unwrap();
            // Many times the silence after which a stream asks whether the device is alive.
            let meta = rx.recv(&mut [[0i16; 2]; 1], Duration::from_millis(300)).unwrap();
            assert_eq!((meta.event, meta.samples), (RxEvent::Timeout, 0), "{uhd:?}");
            let at = device.time_ticks().unwrap() + device.tick_rate_hz() as u64 / 4;
            let samples: Vec<_> = (0..1_500).map(sample).collect();
            send(&mut tx, at, &samples, &[usize::MAX], Duration::from_millis(1), |_| ());
            let (first, heard) = receive(&mut rx, 1_000);
            assert_eq!(first, at, "{uhd:?}");
            assert!(heard == samples[..1_000], "{uhd:?}");
            while tx.next_event(Duration::from_millis(100)).unwrap().is_some() {}
        }
        assert_eq!(rx.finish().lost_total(), 0);
    }
}

#[test]
fn an_older_radio_is_told_apart_where_it_lacks_them() {
    let (_radio, args) =
        radio_with(RadioConfig { uhd: UhdGeneration::V4_9, extra_blocks: true, ..patient() });
    let device = Device::open(args).unwrap();
    let mut rx = device.rx_stream(RxArgs::new(0)).unwrap();
    let error = rx.start_with_transmitter(None).unwrap_err().to_string();
    assert!(error.contains("install an image of UHD 4.10 or newer"), "{error}");
    let null = NullSrcSink::open(&device).unwrap();
    let error = null.start_finite(100, 1_000).unwrap_err().to_string();
    assert!(error.contains("install an image of UHD 4.10 or newer"), "{error}");
}

#[test]
fn a_finite_null_source_makes_its_packets_and_ends_the_burst() {
    for uhd in [UhdGeneration::V4_10, UhdGeneration::V4_11] {
        let (_radio, args) = radio_with(RadioConfig { uhd, extra_blocks: true, ..patient() });
        let device = Device::open(args).unwrap();
        let null = NullSrcSink::open(&device).unwrap();
        let mut stream = device.block_receiver(null.place()).unwrap();
        for wanted in [1, 1_000, 10_001] {
            let total = null.start_finite(100, wanted).unwrap();
            assert!((wanted..wanted + 100).contains(&total), "{total} of {wanted}");
            let (mut samples, mut done, mut ended) = (vec![[0i16; 2]; 20_000], 0, false);
            while !ended {
                let got = stream.recv(&mut samples[done..], PATIENCE).unwrap();
                (done, ended) = (done + got.samples, got.end_of_burst);
            }
            assert_eq!(done as u64, total, "{uhd:?}");
            assert_eq!(null.source_counters().unwrap().packets, total.div_ceil(100));
        }
    }
}

#[test]
fn complex_gains_of_both_directions_act_on_the_samples() {
    let config = RadioConfig {
        uhd: UhdGeneration::V4_10,
        device: DeviceKind::N310,
        time_scale: 0.01,
        ..patient()
    };
    let (_radio, args) = looped(config);
    let mut device = Device::open(args).unwrap();
    device.set_rate(1e6).unwrap();
    device.set_complex_gain(StreamDirection::Tx, 0, (0.0, 1.0)).unwrap();
    device.set_complex_gain(StreamDirection::Rx, 0, (0.5, 0.0)).unwrap();
    let mut rx = device.rx_stream(RxArgs::new(0)).unwrap();
    let mut tx = device.tx_stream(TxArgs::new(0)).unwrap();
    let at = device.time_ticks().unwrap() + device.tick_rate_hz() as u64 / 100;
    rx.start_finite(3_000, Some(at)).unwrap();
    send(&mut tx, at, &[[8000, -4000]; 3_000], &[usize::MAX], Duration::from_millis(1), |_| ());
    let (_, heard) = receive(&mut rx, 3_000);
    // The filters take their time at both ends; between them their gain is one within a tenth.
    let mean = |part: usize| {
        let sum: i32 = heard[1_000..2_000].iter().map(|sample| i32::from(sample[part])).sum();
        sum / 1_000
    };
    let (i, q) = (mean(0), mean(1));
    assert!((i - 2000).abs() < 200 && (q - 4000).abs() < 400, "{i} {q}");
}
