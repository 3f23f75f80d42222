//! Streams with a time and an end.

use std::time::Duration;

use millstream_client::{RxOptions, RxReadEvent, StatusKind, StreamStart, TimeMoment, TxOptions};

use crate::common::{PATIENCE, check_ramp, radio, ramp, reader};

#[test]
fn a_stream_begins_and_ends_as_it_was_asked_to() {
    let radio = ramp("");
    let reader = reader(&radio, RxOptions::default());
    let start_ns = radio.time_ns(TimeMoment::Now).unwrap() / 1000 * 1000 + 200_000_000;
    reader.start(StreamStart { time_ns: Some(start_ns), samples: Some(10_007) }).unwrap();
    let (mut samples, mut count) = (vec![[0_i16; 2]; 4096], 0);
    loop {
        let read = reader.read(&mut [&mut samples], PATIENCE).unwrap();
        assert_eq!(read.time_ns, start_ns + count * 1000);
        check_ramp(&samples[..read.samples], read.time_ticks);
        count += read.samples as i64;
        if read.end_of_burst {
            break;
        }
    }
    assert_eq!(count, 10_007);
    let read = reader.read(&mut [&mut samples], Duration::from_millis(1)).unwrap();
    assert_eq!((read.samples, read.event), (0, RxReadEvent::Timeout));
}

#[test]
fn a_start_that_comes_too_late_is_an_event() {
    let radio = ramp("");
    let reader = reader(&radio, RxOptions::default());
    reader.start(StreamStart { time_ns: Some(1000), samples: None }).unwrap();
    let mut samples = vec![[0_i16; 2]; 4096];
    let read = reader.read(&mut [&mut samples], PATIENCE).unwrap();
    assert_eq!((read.samples, read.event), (0, RxReadEvent::LateStart));
    assert_eq!(reader.take_status(PATIENCE).unwrap().kind, StatusKind::LateStart);
    assert!(!reader.is_active());
    reader.start(StreamStart::default()).unwrap();
    assert!(reader.read(&mut [&mut samples], PATIENCE).unwrap().samples > 0);
}

#[test]
fn a_start_still_to_come_survives_a_change_of_the_rate() {
    use millstream_client::StreamDirection::{Rx, Tx};
    let radio = ramp("");
    let soon = || radio.time_ns(TimeMoment::Now).unwrap() / 1000 * 1000 + 2_000_000_000;
    let reader = reader(&radio, RxOptions::default());
    let start_ns = soon();
    reader.start(StreamStart { time_ns: Some(start_ns), samples: Some(6000) }).unwrap();
    assert_eq!(radio.set_rate(Rx, 0, 2e6).unwrap(), 2e6);
    let mut got = vec![[0_i16; 2]; 6000];
    let read = reader.read(&mut [&mut got], PATIENCE).unwrap();
    assert_eq!((read.samples, read.time_ns), (6000, start_ns));
    reader.close();

    let writer = radio.writer(&[0], TxOptions::default()).unwrap();
    let start_ns = soon();
    writer.start(StreamStart { time_ns: Some(start_ns), samples: Some(1000) }).unwrap();
    assert_eq!(radio.set_rate(Tx, 0, 4e6).unwrap(), 4e6);
    let samples = vec![[1000_i16; 2]; 1000];
    assert!(writer.write(&[&samples], None, false, PATIENCE).unwrap().end_of_burst);
    let sent = writer.take_status(PATIENCE).unwrap();
    assert_eq!(sent.kind, StatusKind::BurstEnd);
    // A radio reads its clock two ticks behind the last sample.
    assert_eq!(sent.time_ns, Some(start_ns + 249_750 + 500));
}

#[test]
fn what_is_left_behind_an_interruption_comes_though_the_radio_makes_several_samples_at_a_time() {
    use millstream_client::{ClientArgs, ClientRadio};
    let args = "radio=emulated,device=x410-400,rx_buffer_samples=67108864,time_scale=0.01";
    let radio = ClientRadio::open(&args.parse::<ClientArgs>().unwrap()).unwrap();
    let clock_hz = radio.tick_rate().unwrap();
    let reader = reader(&radio, RxOptions::default());
    reader.start(StreamStart { time_ns: None, samples: Some(100_000) }).unwrap();
    let mut samples = vec![[0_i16; 2]; 200_000];
    assert_eq!(reader.read(&mut [&mut samples[..1001]], PATIENCE).unwrap().samples, 1001);
    // It interrupts the streams, also where this radio refuses it.
    let _ = radio.set_tick_rate(clock_hz);
    let mut count = 1001;
    loop {
        let read = reader.read(&mut [&mut samples], PATIENCE).unwrap();
        count += read.samples;
        assert_ne!(read.event, RxReadEvent::Timeout, "{count}");
        if read.end_of_burst {
            break;
        }
    }
    assert!((100_001..100_004).contains(&count), "{count}");
}

#[test]
fn the_first_samples_come_without_the_rest() {
    let radio = ramp("");
    let reader = reader(&radio, RxOptions::default());
    reader.start(StreamStart::default()).unwrap();
    let mut samples = vec![[0_i16; 2]; 1 << 20];
    let read = reader.read_some(&mut [&mut samples], PATIENCE).unwrap();
    assert!((1..=500).contains(&read.samples), "{read:?}");
}

#[test]
fn all_sample_types_are_the_same_samples() {
    use num_complex::{Complex32, Complex64};
    let radio = ramp("");
    let reader = reader(&radio, RxOptions::default());
    reader.start(StreamStart::default()).unwrap();
    let parts = |ticks: u64| [ticks as u16 as i16, (ticks >> 16) as u16 as i16];
    let mut floats = vec![Complex32::default(); 9000];
    let read = reader.read(&mut [&mut floats], PATIENCE).unwrap();
    assert_eq!(read.samples, 9000);
    for (ticks, sample) in (read.time_ticks..).zip(&floats) {
        let [i, q] = parts(ticks).map(|part| f32::from(part) * (1.0 / 32767.0));
        assert_eq!((sample.re, sample.im), (i, q));
    }
    let mut doubles = vec![Complex64::default(); 9000];
    let read = reader.read(&mut [&mut doubles], PATIENCE).unwrap();
    assert_eq!(read.samples, 9000);
    for (ticks, sample) in (read.time_ticks..).zip(&doubles) {
        let [i, q] = parts(ticks).map(|part| f64::from(part) / 32767.0);
        assert!((sample.re - i).abs() < 1e-9 && (sample.im - q).abs() < 1e-9);
    }
    let mut bytes = vec![[0_i8; 2]; 9000];
    let read = reader.read(&mut [&mut bytes], PATIENCE).unwrap();
    assert_eq!(read.samples, 9000);
    for (ticks, sample) in (read.time_ticks..).zip(&bytes) {
        let want =
            parts(ticks).map(|part| (f32::from(part) * (127.0 / 32767.0)).round_ties_even() as i8);
        assert_eq!(*sample, want);
    }
    let mut packed = vec![[0_u8; 3]; 9000];
    let read = reader.read(&mut [&mut packed], PATIENCE).unwrap();
    assert_eq!(read.samples, 9000);
    for (ticks, sample) in (read.time_ticks..).zip(&packed) {
        let [i, q] = parts(ticks)
            .map(|part| (f32::from(part) * (2047.0 / 32767.0)).round_ties_even() as i32 & 0xFFF);
        assert_eq!(*sample, [i as u8, (i >> 8 | q << 4) as u8, (q >> 4) as u8]);
    }
}

/// The carrier of the scene at 1 GHz moves in the middle of the reception.
#[test]
fn a_frequency_changes_at_its_sample() {
    use millstream_client::StreamDirection::Rx;
    use num_complex::Complex32;
    let radio = radio("", 1e6);
    radio.set_gain(Rx, 0, 40.0).unwrap();
    radio.set_frequency(Rx, 0, 999.9e6, Some(2e6)).unwrap();
    let reader = reader(&radio, RxOptions::default());
    let start_ns = radio.time_ns(TimeMoment::Now).unwrap() / 1000 * 1000 + 1_000_000_000;
    let length = 100_000_u64;
    reader.start(StreamStart { time_ns: Some(start_ns), samples: Some(length) }).unwrap();
    let change_ns = start_ns + 50_000 * 1000;
    radio.set_command_time_ns(Some(change_ns)).unwrap();
    assert_eq!(radio.command_time_ns().unwrap(), Some(change_ns));
    let tuned = radio.set_frequency(Rx, 0, 999.8e6, Some(0.0)).unwrap();
    assert!((tuned.freq_hz - 999.8e6).abs() < 2.0 && (tuned.rf_hz - 1001.9e6).abs() < 10.0);
    let error = radio.set_rf(Rx, 0, 1e9).unwrap_err().to_string();
    assert!(error.contains("only BB moves at a given time"), "{error}");
    let error = radio.set_frequency(Rx, 0, 2e9, None).unwrap_err().to_string();
    assert!(error.starts_with("frequency 2000000000 Hz is not possible"), "{error}");
    let mut samples = vec![Complex32::default(); length as usize];
    let read = reader.read(&mut [&mut samples], 3 * PATIENCE).unwrap();
    assert_eq!((read.samples as u64, read.time_ns), (length, start_ns));
    let turn = |samples: &[Complex32]| {
        let steps = samples.windows(2).map(|pair| pair[1] * pair[0].conj());
        steps.sum::<Complex32>().arg() / std::f32::consts::TAU
    };
    let (before, after) = (turn(&samples[10_000..49_000]), turn(&samples[51_000..]));
    assert!((before - 0.1).abs() < 1e-3 && (after - 0.2).abs() < 1e-3, "{before} {after}");
    let error = radio.set_frequency(Rx, 0, 999.9e6, None).unwrap_err().to_string();
    assert!(error.contains("give a later time"), "{error}");
    // Without a time the oscillator moves again, at once.
    radio.set_command_time_ns(None).unwrap();
    let tuned = radio.set_frequency(Rx, 0, 2e9, Some(0.0)).unwrap();
    assert!((tuned.rf_hz - 2e9).abs() < 10.0, "{tuned:?}");
}
