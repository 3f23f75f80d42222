//! Streams with a time and an end.

use std::time::Duration;

use millstream_client::{
    ClientError, DeviceTime, Radio, RxOptions, StatusKind, StreamStart, TxOptions,
};

use crate::common::{PATIENCE, check_ramp, is_empty, radio, ramp, soon, stream, ticks};

#[test]
fn a_stream_begins_and_ends_as_it_was_asked_to() {
    let radio = ramp("");
    let reader = stream(&radio, RxOptions::default());
    let start = soon(&radio, 200);
    reader.start(StreamStart::at(start).with_samples(10_007)).unwrap();
    let (mut samples, mut count) = (vec![[0_i16; 2]; 4096], 0);
    loop {
        let read = reader.read(&mut [&mut samples], PATIENCE).unwrap();
        assert_eq!(read.time, Some(start + Duration::from_micros(count)));
        check_ramp(&samples[..read.samples], ticks(&read));
        count += read.samples as u64;
        if read.end_of_burst {
            break;
        }
    }
    assert_eq!(count, 10_007);
    let read = reader.read(&mut [&mut samples], Duration::from_millis(1)).unwrap();
    assert!(is_empty(&read), "{read:?}");
}

#[test]
fn a_start_that_comes_too_late_is_an_error() {
    let radio = ramp("");
    let reader = stream(&radio, RxOptions::default());
    let past = DeviceTime::from_ns(1000);
    reader.start(StreamStart::at(past)).unwrap();
    let mut samples = vec![[0_i16; 2]; 4096];
    let late = reader.read(&mut [&mut samples], PATIENCE).unwrap_err();
    assert!(matches!(late, ClientError::LateStart { time } if time == past), "{late:?}");
    assert_eq!(reader.take_status(PATIENCE).unwrap().kind, StatusKind::LateStart);
    assert!(!reader.is_active());
    reader.start(StreamStart::now()).unwrap();
    assert!(reader.read(&mut [&mut samples], PATIENCE).unwrap().samples > 0);
}

#[test]
fn a_start_still_to_come_survives_a_change_of_the_rate() {
    let radio = ramp("");
    let reader = stream(&radio, RxOptions::default());
    let start = soon(&radio, 2000);
    reader.start(StreamStart::at(start).with_samples(6000)).unwrap();
    assert_eq!(radio.rx(0).set_rate(2e6).unwrap(), 2e6);
    let mut got = vec![[0_i16; 2]; 6000];
    let read = reader.read(&mut [&mut got], PATIENCE).unwrap();
    assert_eq!((read.samples, read.time), (6000, Some(start)));
    reader.close(PATIENCE);

    let writer = radio.tx(0).stream(TxOptions::default()).unwrap();
    let start = soon(&radio, 2000);
    writer.start(StreamStart::at(start).with_samples(1000)).unwrap();
    assert_eq!(radio.tx(0).set_rate(4e6).unwrap(), 4e6);
    let samples = vec![[1000_i16; 2]; 1000];
    assert!(writer.write(&[&samples], None, false, PATIENCE).unwrap().end_of_burst);
    let sent = writer.take_status(PATIENCE).unwrap();
    assert_eq!(sent.kind, StatusKind::BurstEnd);
    // A radio reads its clock two ticks behind the last sample.
    assert_eq!(sent.time, Some(start + Duration::from_nanos(249_750 + 500)));
}

#[test]
fn what_is_left_behind_an_interruption_comes_though_the_radio_makes_several_samples_at_a_time() {
    let args = "radio=emulated,device=x410-400,rx_buffer_samples=67108864,time_scale=0.01";
    let radio = Radio::open(&args.parse().unwrap()).unwrap();
    let clock_hz = radio.tick_rate().unwrap();
    let reader = stream(&radio, RxOptions::default());
    reader.start(StreamStart::now().with_samples(100_000)).unwrap();
    let mut samples = vec![[0_i16; 2]; 200_000];
    assert_eq!(reader.read(&mut [&mut samples[..1001]], PATIENCE).unwrap().samples, 1001);
    // It interrupts the streams, also where this radio refuses it.
    let _ = radio.set_tick_rate(clock_hz);
    let mut count = 1001;
    loop {
        let read = reader.read(&mut [&mut samples], PATIENCE).unwrap();
        count += read.samples;
        assert!(!is_empty(&read), "{count}");
        if read.end_of_burst {
            break;
        }
    }
    assert!((100_001..100_004).contains(&count), "{count}");
}

#[test]
fn the_first_samples_come_without_the_rest() {
    let radio = ramp("");
    let reader = stream(&radio, RxOptions::default());
    reader.start(StreamStart::now()).unwrap();
    let mut samples = vec![[0_i16; 2]; 1 << 20];
    let read = reader.read_some(&mut [&mut samples], PATIENCE).unwrap();
    assert!((1..=500).contains(&read.samples), "{read:?}");
}

#[test]
fn all_sample_types_are_the_same_samples() {
    use num_complex::{Complex32, Complex64};
    let radio = ramp("");
    let reader = stream(&radio, RxOptions::default());
    reader.start(StreamStart::now()).unwrap();
    let parts = |ticks: u64| [ticks as u16 as i16, (ticks >> 16) as u16 as i16];
    let mut floats = vec![Complex32::default(); 9000];
    let read = reader.read(&mut [&mut floats], PATIENCE).unwrap();
    assert_eq!(read.samples, 9000);
    for (ticks, sample) in (ticks(&read)..).zip(&floats) {
        let [i, q] = parts(ticks).map(|part| f32::from(part) * (1.0 / 32767.0));
        assert_eq!((sample.re, sample.im), (i, q));
    }
    let mut doubles = vec![Complex64::default(); 9000];
    let read = reader.read(&mut [&mut doubles], PATIENCE).unwrap();
    assert_eq!(read.samples, 9000);
    for (ticks, sample) in (ticks(&read)..).zip(&doubles) {
        let [i, q] = parts(ticks).map(|part| f64::from(part) / 32767.0);
        assert!((sample.re - i).abs() < 1e-9 && (sample.im - q).abs() < 1e-9);
    }
    let mut bytes = vec![[0_i8; 2]; 9000];
    let read = reader.read(&mut [&mut bytes], PATIENCE).unwrap();
    assert_eq!(read.samples, 9000);
    for (ticks, sample) in (ticks(&read)..).zip(&bytes) {
        let want =
            parts(ticks).map(|part| (f32::from(part) * (127.0 / 32767.0)).round_ties_even() as i8);
        assert_eq!(*sample, want);
    }
    let mut packed = vec![[0_u8; 3]; 9000];
    let read = reader.read(&mut [&mut packed], PATIENCE).unwrap();
    assert_eq!(read.samples, 9000);
    for (ticks, sample) in (ticks(&read)..).zip(&packed) {
        let [i, q] = parts(ticks)
            .map(|part| (f32::from(part) * (2047.0 / 32767.0)).round_ties_even() as i32 & 0xFFF);
        assert_eq!(*sample, [i as u8, (i >> 8 | q << 4) as u8, (q >> 4) as u8]);
    }
}

/// The carrier of the scene at 1 GHz moves in the middle of the reception.
#[test]
fn a_frequency_changes_at_its_sample() {
    use num_complex::Complex32;
    let radio = radio("", 1e6);
    let channel = radio.rx(0);
    channel.set_gain(40.0).unwrap();
    channel.set_frequency(999.9e6, Some(2e6)).unwrap();
    let reader = stream(&radio, RxOptions::default());
    let start = soon(&radio, 1000);
    let length = 100_000_u64;
    reader.start(StreamStart::at(start).with_samples(length)).unwrap();
    let change = start + Duration::from_millis(50);
    radio.set_command_time(Some(change)).unwrap();
    assert_eq!(radio.command_time().unwrap(), Some(change));
    let tuned = channel.set_frequency(999.8e6, Some(0.0)).unwrap();
    assert!((tuned.freq_hz - 999.8e6).abs() < 2.0 && (tuned.rf_hz - 1001.9e6).abs() < 10.0);
    let error = channel.set_rf(1e9).unwrap_err().to_string();
    assert!(error.contains("only BB moves at a given time"), "{error}");
    let error = channel.set_frequency(2e9, None).unwrap_err().to_string();
    assert!(error.starts_with("frequency 2000000000 Hz is not possible"), "{error}");
    let mut samples = vec![Complex32::default(); length as usize];
    let read = reader.read(&mut [&mut samples], 3 * PATIENCE).unwrap();
    assert_eq!((read.samples as u64, read.time), (length, Some(start)));
    let turn = |samples: &[Complex32]| {
        let steps = samples.windows(2).map(|pair| pair[1] * pair[0].conj());
        steps.sum::<Complex32>().arg() / std::f32::consts::TAU
    };
    let (before, after) = (turn(&samples[10_000..49_000]), turn(&samples[51_000..]));
    assert!((before - 0.1).abs() < 1e-3 && (after - 0.2).abs() < 1e-3, "{before} {after}");
    let error = channel.set_frequency(999.9e6, None).unwrap_err().to_string();
    assert!(error.contains("give a later time"), "{error}");
    // Without a time the oscillator moves again, at once.
    radio.set_command_time(None).unwrap();
    let tuned = channel.set_frequency(2e9, Some(0.0)).unwrap();
    assert!((tuned.rf_hz - 2e9).abs() < 10.0, "{tuned:?}");
}
