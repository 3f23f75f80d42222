//! Tests of receive streams from an emulated radio over loopback, without faults.

use std::time::Duration;

use crate::common::{PATIENCE, device, ramp, receive};
use millstream_radio::convert::SC16_SCALE;
use millstream_radio::{Cause, Complex32, RadioError, RxArgs, RxError, RxEvent};

#[test]
fn a_million_samples_arrive_one_by_one() {
    let (radio, device) = device(4e6);
    let mut stream = device.rx_stream(RxArgs::new(0)).unwrap();
    stream.start_finite(1_000_000, None).unwrap();
    let brought = receive(&mut stream, u64::MAX);
    assert!(brought.ended && brought.events.is_empty(), "{brought:?}");
    assert_eq!(brought.samples, 1_000_000);
    let ledger = stream.finish();
    assert_eq!((ledger.expected, ledger.delivered, ledger.lost_total()), (1_000_000, 1_000_000, 0));
    drop(device);
    assert_eq!(radio.stop().rx_overruns, 0);
}

#[test]
fn a_capture_of_any_length_ends_exactly() {
    let (_radio, device) = device(4e6);
    let mut stream = device.rx_stream(RxArgs::new(0).with_samples_per_packet(100)).unwrap();
    assert_eq!(stream.samples_per_packet(), 100);
    let mut expected = 0;
    for length in [1, 99, 100, 101, 12_345] {
        stream.start_finite(length, None).unwrap();
        let mut rest = receive_rest(&mut stream);
        assert_eq!(rest.len() as u64, length);
        rest.dedup();
        assert_eq!(rest.len() as u64, length, "no sample twice");
        expected += length;
    }
    let ledger = stream.finish();
    assert_eq!((ledger.expected, ledger.lost_total()), (expected, 0));
}

/// Receives all samples of a burst, in one buffer that is always large enough.
fn receive_rest(stream: &mut millstream_radio::RxStreamer) -> Vec<u32> {
    let mut buffer = vec![Complex32::default(); 20_000];
    let meta = stream.recv(&mut buffer, PATIENCE).unwrap();
    assert!(meta.end_of_burst && meta.event == RxEvent::None, "{meta:?}");
    buffer[..meta.samples].iter().map(|sample| ramp(*sample)).collect()
}

#[test]
fn a_timed_capture_starts_at_its_time() {
    let (_radio, device) = device(4e6);
    let mut stream = device.rx_stream(RxArgs::new(0)).unwrap();
    let at = device.time_ticks().unwrap() + 2_000_000;
    stream.start_finite(10_000, Some(at)).unwrap();
    let mut none = [Complex32::default(); 8];
    let early = stream.recv(&mut none, Duration::ZERO).unwrap();
    assert_eq!((early.event, early.samples), (RxEvent::Timeout, 0));
    let brought = receive(&mut stream, u64::MAX);
    assert_eq!((brought.first_ticks, brought.samples), (Some(at), 10_000));
}

#[test]
fn a_late_command_is_an_event_and_its_samples_are_booked() {
    let (_radio, device) = device(4e6);
    let mut stream = device.rx_stream(RxArgs::new(1)).unwrap();
    stream.start_finite(5000, Some(1)).unwrap();
    let brought = receive(&mut stream, u64::MAX);
    assert!(brought.ended);
    assert_eq!(brought.events, [RxEvent::LateCommand]);
    assert_eq!(stream.ledger().lost(Cause::LateCommand), 5000);
    // The stream works as at the beginning.
    stream.start_finite(3000, None).unwrap();
    assert!(receive_rest(&mut stream).len() == 3000);
    let ledger = stream.finish();
    assert_eq!((ledger.expected, ledger.delivered, ledger.balance()), (8000, 3000, Ok(())));
}

#[test]
fn a_continuous_stream_ends_when_it_is_stopped() {
    let (_radio, device) = device(2e6);
    let mut stream = device.rx_stream(RxArgs::new(0)).unwrap();
    for _ in 0..2 {
        stream.start_continuous(None).unwrap();
        assert!(matches!(stream.start_continuous(None), Err(RxError::Running)));
        let before = stream.ledger().delivered;
        let mut buffer = vec![Complex32::default(); 300_000];
        let meta = stream.recv(&mut buffer, PATIENCE).unwrap();
        assert_eq!((meta.samples, meta.event), (300_000, RxEvent::None));
        stream.stop().unwrap();
        while stream.is_running() {
            let meta = stream.recv(&mut buffer, PATIENCE).unwrap();
            assert_eq!(meta.event, RxEvent::None);
        }
        assert!(stream.ledger().delivered > before + 300_000);
    }
    let ledger = stream.finish();
    assert_eq!((ledger.lost_total(), ledger.balance()), (0, Ok(())));
}

#[test]
fn what_comes_after_the_consumers_end_is_counted_apart() {
    let (_radio, device) = device(2e6);
    let mut stream = device.rx_stream(RxArgs::new(0)).unwrap();
    stream.start_continuous(None).unwrap();
    let mut buffer = vec![Complex32::default(); 1001];
    assert_eq!(stream.recv(&mut buffer, PATIENCE).unwrap().samples, 1001);
    assert!(stream.ledger().held > 0);
    let ledger = stream.finish();
    assert_eq!((ledger.expected, ledger.delivered, ledger.held), (1001, 1001, 0));
    assert_eq!((ledger.lost_total(), ledger.balance()), (0, Ok(())));
    assert!(ledger.after_end > 0);
}

#[test]
fn raw_and_converted_samples_agree() {
    let (_radio, device) = device(4e6);
    let mut stream = device.rx_stream(RxArgs::new(0)).unwrap();
    let start = device.time_ticks().unwrap() + 2_000_000;
    stream.start_finite(4000, Some(start)).unwrap();
    let mut raw = vec![[0i16; 2]; 2500];
    let meta = stream.recv(&mut raw, PATIENCE).unwrap();
    assert_eq!((meta.samples, meta.time_ticks), (2500, Some(start)));
    let mut floats = vec![Complex32::default(); 2500];
    let meta = stream.recv(&mut floats, PATIENCE).unwrap();
    assert_eq!((meta.samples, meta.time_ticks), (1500, Some(start + 2500)));
    assert!(meta.end_of_burst);
    let words = |tick: u64| [tick as u16 as i16, (tick >> 16) as u16 as i16];
    for (tick, sample) in (start..).zip(&raw) {
        assert_eq!(*sample, words(tick));
    }
    for (tick, sample) in (start + 2500..).zip(&floats[..1500]) {
        let [re, im] = words(tick);
        assert_eq!(
            (sample.re, sample.im),
            (f32::from(re) * SC16_SCALE, f32::from(im) * SC16_SCALE)
        );
    }
}

#[test]
fn two_channels_stream_side_by_side() {
    let (_radio, device) = device(2e6);
    assert_eq!(device.rx_channels(), 2);
    let at = device.time_ticks().unwrap() + 2_000_000;
    let mut streams: Vec<_> =
        (0..2).map(|channel| device.rx_stream(RxArgs::new(channel)).unwrap()).collect();
    for stream in &mut streams {
        stream.start_finite(200_000, Some(at)).unwrap();
    }
    for stream in &mut streams {
        let brought = receive(stream, u64::MAX);
        assert_eq!((brought.first_ticks, brought.samples), (Some(at), 200_000));
    }
    let busy = device.rx_stream(RxArgs::new(1)).unwrap_err();
    assert!(matches!(busy, RadioError::ChannelBusy { channel: 1, .. }), "{busy}");
    streams.pop();
    device.rx_stream(RxArgs::new(1)).expect("the channel is free again");
    let none = device.rx_stream(RxArgs::new(2)).unwrap_err();
    assert!(matches!(none, RadioError::NoSuchChannel { channel: 2, available: 2, .. }));
}

#[test]
fn impossible_captures_and_rates_are_refused() {
    let (_radio, mut device) = device(2e6);
    for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(device.set_rate(rate), Err(RadioError::BadRate { .. })));
    }
    let mut stream = device.rx_stream(RxArgs::new(0)).unwrap();
    for samples in [0, 1 << 48, u64::MAX] {
        assert!(matches!(stream.start_finite(samples, None), Err(RxError::BadLength { .. })));
    }
    assert_eq!(stream.finish().expected, 0);
}
