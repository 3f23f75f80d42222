//! Transmitting through a cable to the same radio.

use std::time::Duration;

use millstream_client::{DeviceTime, Radio, RxOptions, StatusKind, StreamStart, TxOptions};

use crate::common::{PATIENCE, radio, soon, stream};

/// The delay of the cable, samples.
const DELAY: u64 = 100;

fn with_cable() -> Radio {
    let radio = radio(&format!(",antenna=loopback:0;delay={DELAY}"), 1e6);
    assert_eq!(radio.tx(0).set_rate(1e6).unwrap(), 1e6);
    radio
}

#[test]
fn a_burst_leaves_at_its_time_and_is_acknowledged() {
    let radio = with_cable();
    let length = 20_000;
    let samples: Vec<[i16; 2]> = (0..length).map(|n| [n as i16 + 1, -(n as i16)]).collect();
    let writer = radio.tx(0).stream(TxOptions::default()).unwrap();
    let reader = stream(&radio, RxOptions::default());
    let start = soon(&radio, 300);
    let comes = start + Duration::from_micros(DELAY);
    reader.start(StreamStart::at(comes).with_samples(length)).unwrap();
    writer.start(StreamStart::now()).unwrap();
    let mut sent = 0;
    while sent < samples.len() {
        // The end counts with the last sample, and the time in the burst is not repeated exactly.
        let time = start + Duration::from_nanos(sent as u64 * 1000 + 1);
        let part = &samples[sent..samples.len().min(sent + 7001)];
        let ends = sent + part.len() == samples.len();
        let done = writer.write(&[part], Some(time), ends, PATIENCE).unwrap();
        assert_eq!((done.samples, done.end_of_burst), (part.len(), ends));
        sent += done.samples;
    }
    let mut got = vec![[0_i16; 2]; length as usize];
    let read = reader.read(&mut [&mut got], PATIENCE).unwrap();
    assert_eq!((read.samples as u64, read.time), (length, Some(comes)));
    assert!(got == samples);
    assert_eq!(writer.take_status(PATIENCE).unwrap().kind, StatusKind::BurstEnd);
    writer.stop().unwrap();
    drop(writer);
    drop(reader);
}

#[test]
fn late_and_missing_samples_are_events() {
    let radio = with_cable();
    let writer = radio.tx(0).stream(TxOptions::default()).unwrap();
    let samples = vec![[1000_i16; 2]; 4000];
    // A stream that was not started takes none.
    assert_eq!(writer.write(&[&samples], None, false, PATIENCE).unwrap().samples, 0);
    // Not one whose first burst could only come too late.
    let past = DeviceTime::from_ns(1000);
    let refused = writer.start(StreamStart::at(past)).unwrap_err().to_string();
    assert!(refused.contains("its time was 1, and the time of the device is already"), "{refused}");
    assert!(!writer.is_active());
    writer.start(StreamStart::now()).unwrap();
    writer.write(&[&samples], Some(past), true, PATIENCE).unwrap();
    let late = writer.take_status(PATIENCE).unwrap();
    assert_eq!(late.kind, StatusKind::Late);
    writer.write(&[&samples], None, false, PATIENCE).unwrap();
    let kinds: Vec<_> = (0..2).filter_map(|_| writer.take_status(PATIENCE / 5)).collect();
    assert!(kinds.iter().any(|status| status.kind == StatusKind::Underflow), "{kinds:?}");
    writer.stop().unwrap();
    let ledger = radio.tx(0).ledger().unwrap();
    assert_eq!(ledger.accepted, 8000);
}

#[test]
fn a_start_with_a_length_ends_the_burst() {
    let radio = with_cable();
    let writer = radio.tx(0).stream(TxOptions::default()).unwrap();
    let samples = vec![[1000_i16; 2]; 3000];
    writer.start(StreamStart::now().with_samples(6000)).unwrap();
    assert!(!writer.write(&[&samples], None, false, PATIENCE).unwrap().end_of_burst);
    assert!(writer.write(&[&samples], None, false, PATIENCE).unwrap().end_of_burst);
    assert!(!writer.is_active());
    assert_eq!(writer.take_status(PATIENCE).unwrap().kind, StatusKind::BurstEnd);
}
