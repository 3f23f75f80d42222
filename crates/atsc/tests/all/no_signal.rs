//! Input without ATSC in it: a clear state, no packet, no panic.

use crate::common::{Random, receive, receiver};
use millstream_atsc::Sample;
use millstream_atsc::monitor::LockState;

/// Returns the states during the reception of 0.25 s of a signal.
fn states(signal: impl FnMut(usize) -> Sample) -> Vec<LockState> {
    let samples: Vec<Sample> = (0..1_600_000).map(signal).collect();
    let mut receiver = receiver(6.25e6);
    let packets = receive(&mut receiver, &samples);
    assert!(packets.is_empty(), "{} packets out of nothing", packets.len());
    receiver.monitor().events_since(0).iter().map(|event| event.state).collect()
}

fn tone(frequency_hz: f64, n: usize) -> Sample {
    let cycles = (frequency_hz / 6.25e6 * n as f64).fract();
    Sample::from_polar(0.3, (cycles * std::f64::consts::TAU) as f32)
}

#[test]
fn noise_has_no_pilot() {
    let mut random = Random::new(1);
    assert_eq!(states(|_| random.noise() * 0.3), [LockState::NoPilot]);
}

#[test]
fn silence_has_no_pilot() {
    assert_eq!(states(|_| Sample::default()), [LockState::NoPilot]);
}

#[test]
fn what_is_no_number_has_no_pilot() {
    let bad = [f32::NAN, f32::INFINITY, f32::MAX, 1e20];
    assert_eq!(states(|n| Sample::new(bad[n % 4], -bad[n / 4 % 4])), [LockState::NoPilot]);
}

#[test]
fn a_tone_elsewhere_has_no_pilot() {
    let mut random = Random::new(2);
    let states = states(|n| tone(1e6, n) + random.noise() * 0.01);
    assert_eq!(states, [LockState::NoPilot]);
}

#[test]
fn a_tone_in_the_pilots_place_has_no_segment_sync() {
    let mut random = Random::new(3);
    for noise in [0.0, 0.1] {
        let states = states(|n| tone(-2.69e6, n) + random.noise() * noise);
        assert_eq!(states[..2], [LockState::Pilot, LockState::NoSegmentSync], "{states:?}");
        assert!(!states.contains(&LockState::SegmentSync), "{states:?}");
    }
}

#[test]
fn a_signal_too_short_to_judge_stays_in_the_first_state() {
    let mut receiver = receiver(6.25e6);
    assert!(receive(&mut receiver, &[Sample::default(); 1000]).is_empty());
    assert_eq!(receiver.monitor().state(), LockState::Starting);
}
