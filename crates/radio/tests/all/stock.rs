//! Tests against a stock image: a DDC and a DUC between the host and the radio.

use std::time::Duration;

use crate::common::group::finish_rx;
use crate::common::{PATIENCE, patient, radio_with};
use millstream_emulator::{DeviceKind, RadioConfig};
use millstream_radio::{
    Complex32, Device, RxArgs, RxEvent, RxStreamer, TuneRequest, TxArgs, TxEvent, TxMetadata,
};

fn stock() -> RadioConfig {
    RadioConfig { device: DeviceKind::E320, ..patient() }
}

/// Receives until the end of the burst; returns the samples and the time of the first.
fn receive(stream: &mut RxStreamer) -> (Vec<Complex32>, Option<u64>) {
    let (mut all, mut first) = (Vec::new(), None);
    let mut block = vec![Complex32::default(); 4096];
    while stream.is_running() {
        let meta = stream.recv(&mut block, PATIENCE).unwrap();
        assert_eq!(meta.event, RxEvent::None);
        let expected = first.map(|first| first + stream.rate().ticks(all.len() as u64));
        assert!(all.is_empty() || meta.time_ticks == expected || meta.samples == 0);
        first = first.or(meta.time_ticks);
        all.extend_from_slice(&block[..meta.samples]);
    }
    (all, first)
}

/// Returns the share of the power at a frequency, cycles per sample.
fn share(samples: &[Complex32], frequency: f32) -> f32 {
    let turn = -std::f32::consts::TAU * frequency;
    let parts = (0u32..).zip(samples).map(|(n, x)| x * Complex32::cis(turn * (n % 1000) as f32));
    let power: f32 = samples.iter().map(Complex32::norm_sqr).sum();
    parts.sum::<Complex32>().norm_sqr() / (samples.len() as f32 * power)
}

#[test]
fn a_fraction_of_the_clock_is_received_and_times_count_ticks() {
    let (_radio, args) = radio_with(stock());
    let mut device = Device::open(args).unwrap();
    assert_eq!(device.set_rate(1e6).unwrap(), 1e6);
    assert_eq!(device.tick_rate_hz(), 16e6, "the clock has this rate as a fraction");
    let mut stream = device.rx_stream(RxArgs::new(1)).unwrap();
    let at = device.time_ticks().unwrap() + 4_000_000;
    stream.start_finite(12_345, Some(at)).unwrap();
    let (samples, first) = receive(&mut stream);
    assert_eq!((samples.len(), first), (12_345, Some(at)));
    let ledger = stream.finish();
    assert_eq!((ledger.expected, ledger.delivered), (12_345, 12_345));

    assert_eq!(device.set_rate(6.25e6).unwrap(), 6.25e6);
    assert_eq!(device.tick_rate_hz(), 25e6, "the clock becomes a multiple");
}

#[test]
fn channels_behind_their_own_filters_are_aligned() {
    let (_radio, args) = radio_with(stock());
    let mut device = Device::open(args).unwrap();
    device.set_rate(500e3).unwrap();
    let mut group = device.rx_group(&[RxArgs::new(0), RxArgs::new(1)]).unwrap();
    group.start_finite(10_000, None).unwrap();
    let mut blocks = [vec![[0i16; 2]; 4096], vec![[0i16; 2]; 4096]];
    let (mut samples, mut next) = (0, None);
    while group.is_running() {
        let mut outs = blocks.each_mut().map(Vec::as_mut_slice);
        let meta = group.recv_all(&mut outs, PATIENCE).unwrap();
        assert_eq!(meta.event, RxEvent::None);
        let due = next.or(meta.time_ticks);
        assert!(meta.samples == 0 || meta.time_ticks == due);
        next = due.map(|due: u64| due + 32 * meta.samples as u64);
        samples += meta.samples;
    }
    assert_eq!(samples, 10_000);
    assert!(finish_rx(group).iter().all(|ledger| ledger.delivered == 10_000));
}

#[test]
fn a_carrier_is_where_the_tuning_puts_it() {
    let (_radio, args) = radio_with(stock());
    let mut device = Device::open(args).unwrap();
    device.set_rate(1e6).unwrap();
    // The scene has a carrier at 1 GHz.
    for (freq_hz, offset_hz, cycles) in
        [(999.75e6, 0.0, 0.25), (999.75e6, 3e6, 0.25), (1000.125e6, -2e6, -0.125)]
    {
        let request = TuneRequest::new(freq_hz).with_lo_offset(offset_hz);
        let result = device.tune_rx(0, request).unwrap();
        assert!((result.freq_hz - freq_hz).abs() < 2.0, "{result:?}");
        device.set_gain(millstream_radio::graph::StreamDirection::Rx, 0, 40.0).unwrap();
        let mut stream = device.rx_stream(RxArgs::new(0)).unwrap();
        stream.start_finite(9_000, None).unwrap();
        let (samples, _) = receive(&mut stream);
        let share = share(&samples[1000..], cycles);
        assert!(share > 0.9, "{share} of the power at {cycles}, {result:?}");
    }
}

#[test]
fn a_burst_through_a_duc_is_accounted_to_its_last_sample() {
    let (_radio, args) = radio_with(stock());
    let mut device = Device::open(args).unwrap();
    device.set_rate(500e3).unwrap();
    let mut stream = device.tx_stream(TxArgs::new(0)).unwrap();
    let at = stream.time_ticks().unwrap() + 4_800_000;
    let samples = vec![Complex32::new(0.5, 0.0); 10_001];
    let sent = stream.send(&samples, TxMetadata::at(at).ending(), PATIENCE).unwrap();
    assert_eq!((sent.samples, sent.end_of_burst), (10_001, true));
    let event = loop {
        let event = stream.next_event(Duration::from_secs(5)).unwrap();
        let (_, event) = event.expect("it is acknowledged");
        if matches!(event, TxEvent::BurstAck { .. }) {
            break event;
        }
    };
    // The radio transmits two ticks later.
    assert_eq!(event, TxEvent::BurstAck { time_ticks: at + 32 * 10_001 - 1 + 2 });
    let ledger = stream.finish();
    assert_eq!((ledger.transmitted, ledger.unknown), (10_001, Default::default()));
}
