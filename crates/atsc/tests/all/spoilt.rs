//! Impairments by radios and neighbouring channels.

use crate::common::{Channel, check_numbered, receive, receiver, signal};
use millstream_atsc::Sample;
use millstream_atsc::monitor::{LockState, ReceiverStatus};

/// Receives a signal, and checks every packet.
fn run(name: &str, seed: u64, rate_hz: f64, samples: &[Sample]) -> ReceiverStatus {
    let mut receiver = receiver(rate_hz);
    let packets = receive(&mut receiver, samples);
    let status = receiver.monitor().status();
    println!("{name}: {} packets, {status:?}", packets.len());
    assert_eq!((status.state, status.relocks), (LockState::Locked, 0), "{name}");
    assert!(packets.len() > 500, "{name}: {} packets", packets.len());
    check_numbered(seed, &packets);
    status
}

#[test]
fn a_radio_with_offset_imbalance_and_eight_bits_is_corrected() {
    let channel = Channel { cn_db: Some(20.0), ..Channel::default() };
    let mut samples = signal(40, 0.12, channel);
    for x in &mut samples {
        // 1 dB and 5 degrees, an offset as strong as a tenth of the signal, 8 bits.
        let skewed = Sample::new(x.re + 0.045, 0.89 * (x.im * 0.996 + x.re * 0.087) - 0.045);
        let bits = |part: f32| (part * 128.0).round().clamp(-128.0, 127.0) / 128.0;
        *x = Sample::new(bits(skewed.re), bits(skewed.im));
    }
    let status = run("radio", 40, 6.25e6, &samples);
    assert!(status.mer_db.unwrap() > 18.0, "{status:?}");
}

#[test]
fn a_neighbour_20_db_stronger_on_either_side_does_not_matter() {
    for (seed, side_hz) in [(41, 6e6), (42, -6e6)] {
        let rate_hz = 12.5e6;
        let channel = Channel { sample_rate_hz: rate_hz, cn_db: Some(20.0), ..Channel::default() };
        let mut samples = signal(seed, 0.12, channel);
        let neighbour = Channel { offset_hz: side_hz, gain: 10.0, cn_db: None, ..channel };
        for (x, y) in samples.iter_mut().zip(signal(seed + 100, 0.12, neighbour)) {
            *x += y;
        }
        let status = run("neighbour", seed, rate_hz, &samples);
        assert!(status.mer_db.unwrap() > 18.0, "{status:?}");
    }
}

#[test]
fn rates_just_above_the_symbols_carry_the_signal_at_any_offset() {
    for (seed, sample_rate_hz, offset_hz, least_db) in [
        (43, 6.0e6, 59e3, 30.0),
        (44, 6.0e6, -59e3, 30.0),
        (45, 5.6e6, 20e3, 20.0),
        (46, 5.5e6, 0.0, 20.0),
        (47, 5.45e6, 0.0, 17.0),
    ] {
        let samples =
            signal(seed, 0.12, Channel { sample_rate_hz, offset_hz, ..Channel::default() });
        let status = run(&format!("{sample_rate_hz} {offset_hz}"), seed, sample_rate_hz, &samples);
        assert!(status.mer_db.unwrap() > least_db, "{status:?}");
    }
}

#[test]
fn a_signal_that_comes_on_30_db_stronger_is_corrected_anew() {
    let mut samples = signal(48, 0.25, Channel::default());
    let (weak, strong) = samples.split_at_mut(200_000);
    weak.iter_mut().for_each(|x| *x *= 0.03);
    // From here on 1 dB and 5 degrees, and an offset.
    for x in strong {
        *x = Sample::new(x.re + 0.02, 0.89 * (x.im * 0.996 + x.re * 0.087) - 0.02);
    }
    let mut receiver = receiver(6.25e6);
    receive(&mut receiver, &samples);
    let status = receiver.monitor().status();
    assert_eq!(status.state, LockState::Locked, "{status:?}");
    // The image alone would leave 24 dB.
    assert!(status.snr_db.unwrap() > 30.0, "{status:?}");
}
