//! Transmitting through a cable to the same radio.

use millstream_client::{
    ClientRadio, RxOptions, StatusKind, StreamDirection, StreamStart, TimeMoment, TxOptions,
};

use crate::common::{PATIENCE, radio, reader};

/// The delay of the cable, samples.
const DELAY: i64 = 100;

fn with_cable() -> ClientRadio {
    let radio = radio(&format!(",antenna=loopback:0;delay={DELAY}"), 1e6);
    assert_eq!(radio.set_rate(StreamDirection::Tx, 0, 1e6).unwrap(), 1e6);
    radio
}

#[test]
fn a_burst_leaves_at_its_time_and_is_acknowledged() {
    let radio = with_cable();
    let length = 20_000;
    let samples: Vec<[i16; 2]> = (0..length).map(|n| [n as i16 + 1, -(n as i16)]).collect();
    let writer = radio.writer(&[0], TxOptions::default()).unwrap();
    let reader = reader(&radio, RxOptions::default());
    let start_ns = radio.time_ns(TimeMoment::Now).unwrap() / 1000 * 1000 + 300_000_000;
    let receive = StreamStart { time_ns: Some(start_ns + DELAY * 1000), samples: Some(length) };
    reader.start(receive).unwrap();
    writer.start(StreamStart::default()).unwrap();
    let mut sent = 0;
    while sent < samples.len() {
        // The end counts with the last sample, and the time in the burst is not repeated exactly.
        let time_ns = start_ns + sent as i64 * 1000 + 1;
        let part = &samples[sent..samples.len().min(sent + 7001)];
        let ends = sent + part.len() == samples.len();
        let done = writer.write(&[part], Some(time_ns), ends, PATIENCE).unwrap();
        assert_eq!((done.samples, done.end_of_burst), (part.len(), ends));
        sent += done.samples;
    }
    let mut got = vec![[0_i16; 2]; length as usize];
    let read = reader.read(&mut [&mut got], PATIENCE).unwrap();
    assert_eq!((read.samples as u64, read.time_ns), (length, start_ns + DELAY * 1000));
    assert!(got == samples);
    assert_eq!(writer.take_status(PATIENCE).unwrap().kind, StatusKind::BurstEnd);
    writer.stop().unwrap();
    drop(writer);
    drop(reader);
}

#[test]
fn late_and_missing_samples_are_events() {
    let radio = with_cable();
    let writer = radio.writer(&[0], TxOptions::default()).unwrap();
    let samples = vec![[1000_i16; 2]; 4000];
    // A stream that was not started takes none.
    assert_eq!(writer.write(&[&samples], None, false, PATIENCE).unwrap().samples, 0);
    // Not one whose first burst could only come too late.
    let past = StreamStart { time_ns: Some(1000), samples: None };
    let refused = writer.start(past).unwrap_err().to_string();
    assert!(refused.contains("its time was 1, and the time of the device is already"), "{refused}");
    assert!(!writer.is_active());
    writer.start(StreamStart::default()).unwrap();
    writer.write(&[&samples], Some(1000), true, PATIENCE).unwrap();
    let late = writer.take_status(PATIENCE).unwrap();
    assert_eq!(late.kind, StatusKind::Late);
    writer.write(&[&samples], None, false, PATIENCE).unwrap();
    let kinds: Vec<_> = (0..2).filter_map(|_| writer.take_status(PATIENCE / 5)).collect();
    assert!(kinds.iter().any(|status| status.kind == StatusKind::Underflow), "{kinds:?}");
    writer.stop().unwrap();
    let ledger = radio.tx_ledger(0).unwrap();
    assert_eq!(ledger.accepted, 8000);
}

#[test]
fn a_start_with_a_length_ends_the_burst() {
    let radio = with_cable();
    let writer = radio.writer(&[0], TxOptions::default()).unwrap();
    let samples = vec![[1000_i16; 2]; 3000];
    writer.start(StreamStart { time_ns: None, samples: Some(6000) }).unwrap();
    assert!(!writer.write(&[&samples], None, false, PATIENCE).unwrap().end_of_burst);
    assert!(writer.write(&[&samples], None, false, PATIENCE).unwrap().end_of_burst);
    assert!(!writer.is_active());
    assert_eq!(writer.take_status(PATIENCE).unwrap().kind, StatusKind::BurstEnd);
}
