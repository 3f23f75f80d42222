//! The equaliser on synthetic channels.

use super::*;
use crate::field::Parity;
use crate::params::{FIELD_DATA_SEGMENTS, FIELD_SEGMENTS};
use crate::tx::FrameBuilder;
use bytemuck::Zeroable;
use millstream_dsp::noise::Noise;

/// Returns the levels and the kind of each segment of a stream of fields.
fn stream(segments: usize) -> Vec<(SegmentKind, [f32; SEGMENT_SYMBOLS])> {
    let mut frame = FrameBuilder::new();
    let mut noise = Noise::new(5);
    let mut packet = |packet: &mut [u8; 188]| packet.fill_with(|| noise.bits() as u8);
    (0..segments)
        .map(|n| {
            let mut symbols = [0.0; SEGMENT_SYMBOLS];
            frame.next_segment(&mut packet, &mut symbols);
            let [field, place] = [n / FIELD_SEGMENTS, n % FIELD_SEGMENTS];
            let parity = [Parity::First, Parity::Second][field % 2];
            let kind = match place {
                0 => SegmentKind::FieldSync(parity),
                _ => SegmentKind::Data(place - 1),
            };
            (kind, symbols)
        })
        .collect()
}

/// Passes the stream through a channel; returns the error power of data after the first field sync,
/// relative to the data.
fn residual_db(echoes: &[(usize, f32)]) -> f64 {
    let sent = stream(40);
    let flat: Vec<f32> = sent.iter().flat_map(|(_, s)| *s).collect();
    let received: Vec<f32> = (0..flat.len())
        .map(|n| echoes.iter().map(|(d, g)| if n >= *d { flat[n - d] * g } else { 0.0 }).sum())
        .collect();
    let mut equalizer = Equalizer::new();
    let mut out = Segment::zeroed();
    let mut errors = Vec::new();
    for (n, (kind, _)) in sent.iter().enumerate() {
        let symbols = received[n * SEGMENT_SYMBOLS..][..SEGMENT_SYMBOLS].try_into().unwrap();
        if equalizer.process(&Segment::new(*kind, n == 0, symbols), &mut out) {
            assert_eq!(out.kind(), sent[n - 1].0);
            if n > 2 {
                errors.extend(out.symbols.iter().zip(sent[n - 1].1).map(|(a, b)| a - b));
            }
        }
    }
    let power = errors.iter().map(|e| f64::from(e * e)).sum::<f64>() / errors.len() as f64;
    10.0 * (power / 21.0).log10()
}

#[test]
fn a_straight_channel_stays_clean() {
    assert!(residual_db(&[(0, 1.0)]) < -45.0, "{}", residual_db(&[(0, 1.0)]));
}

#[test]
fn echoes_within_reach_are_removed() {
    for echo in [(3, 0.5), (11, -0.3), (40, 0.25)] {
        let residual = residual_db(&[(0, 1.0), echo]);
        assert!(residual < -24.0, "echo {echo:?}: {residual:.1} dB");
    }
}

#[test]
fn a_field_sync_that_was_missed_does_not_spoil_the_taps() {
    let mut sent = stream(330);
    // Other data replaces the second field sync.
    sent[FIELD_DATA_SEGMENTS + 1].1 = sent[100].1;
    let mut equalizer = Equalizer::new();
    let mut out = Segment::zeroed();
    for (n, (kind, symbols)) in sent.iter().enumerate() {
        let mut segment = Segment::new(*kind, n == 0, symbols);
        segment.set_presumed(n == FIELD_DATA_SEGMENTS + 1);
        if !equalizer.process(&segment, &mut out) {
            continue;
        }
        for (a, b) in out.symbols.iter().zip(sent[n - 1].1) {
            assert!((a - b).abs() < 0.3, "segment {}: {a} for {b}", n - 1);
        }
    }
}

#[test]
fn gain_and_sign_are_corrected() {
    assert!(residual_db(&[(0, -0.7)]) < -45.0);
}

/// Returns [`residual_db`] of both fields, with the segments cut `shift` symbols later and noise of
/// this deviation before the equaliser.
fn residual_of_late_cut_db(echoes: &[(usize, f32)], shift: usize, deviation: f32) -> f64 {
    let sent = stream(340);
    let flat: Vec<f32> = sent.iter().flat_map(|(_, s)| *s).collect();
    let mut noise = Noise::new(9);
    let at = |n: usize, d: usize, g: f32| {
        if n >= d && n - d < flat.len() { flat[n - d] * g } else { 0.0 }
    };
    let mut received = |n: usize| {
        let sum: f32 = echoes.iter().map(|(d, g)| at(n + shift, *d, *g)).sum();
        sum + deviation * noise.gaussian()
    };
    let mut equalizer = Equalizer::new();
    let mut out = Segment::zeroed();
    let (mut power, mut count) = (0.0, 0);
    for (n, (kind, _)) in sent.iter().enumerate() {
        let symbols = std::array::from_fn(|k| received(n * SEGMENT_SYMBOLS + k));
        if equalizer.process(&Segment::new(*kind, n == 0, &symbols), &mut out) && n > 2 {
            let errors = out.symbols.iter().zip(sent[n - 1].1).map(|(a, b)| f64::from(a - b));
            power += errors.map(|e| e * e).sum::<f64>();
            count += SEGMENT_SYMBOLS;
        }
    }
    10.0 * (power / count as f64 / 21.0).log10()
}

#[test]
fn echoes_as_strong_as_the_signal_are_removed_wherever_they_are() {
    for (delay, shift) in [(11, 0), (60, 0), (420, 0), (24, 24), (60, 60), (110, 110)] {
        // With an early echo the later path counts as the signal: it is 1 dB stronger.
        let (first, second) = if shift == 0 { (1.0, 0.89) } else { (0.89, 1.0) };
        let echoes = [(0, first), (delay, second)];
        // 28 dB for the two paths together.
        let residual = residual_of_late_cut_db(&echoes, shift, 0.243);
        println!("delay {delay}, cut {shift} later: {residual:.1} dB");
        assert!(residual < -20.0, "delay {delay}, cut {shift} later: {residual:.1} dB");
    }
}

#[test]
fn noise_alone_costs_next_to_nothing() {
    let residual = residual_of_late_cut_db(&[(0, 1.0)], 0, 0.8);
    let noise = 20.0 * (0.8 / 21f64.sqrt()).log10();
    assert!((noise..noise + 0.2).contains(&residual), "{residual:.2} dB for {noise:.2} dB");
}

/// Counts the cost: with an echo, every tap in use costs a product a symbol, and another one when
/// taps are adapted.
#[test]
fn once_settled_an_echo_moves_the_taps_seldom_and_uses_few() {
    // Segments before the count: twice the two windows that convergence takes.
    const SETTLED: usize = 1300;
    const COUNTED: usize = 400;
    let sent = stream(SETTLED + COUNTED);
    let flat: Vec<f32> = sent.iter().flat_map(|(_, s)| *s).collect();
    for (delay, gain) in [(60, 0.3), (420, 0.3), (60, 0.7)] {
        let mut noise = Noise::new(11);
        let mut equalizer = Equalizer::new();
        let (mut out, mut moved, mut symbol) = (Segment::zeroed(), 0, 0);
        for (n, (kind, _)) in sent.iter().enumerate() {
            let symbols = std::array::from_fn(|_| {
                let echo = if symbol >= delay { gain * flat[symbol - delay] } else { 0.0 };
                symbol += 1;
                flat[symbol - 1] + echo + 0.243 * noise.gaussian()
            });
            let before = equalizer.feedback.taps;
            equalizer.process(&Segment::new(*kind, n == 0, &symbols), &mut out);
            moved += usize::from(n >= SETTLED && equalizer.feedback.taps != before);
        }
        let groups = equalizer.feedback.groups();
        println!("echo of {gain} after {delay}: moved {moved} times, {groups} groups of taps");
        assert!(equalizer.has_feedback && groups > 0, "there is an echo");
        assert!(moved > 0, "a channel that moves is still seen");
        assert!(moved <= COUNTED / 4, "taps moved with {moved} of {COUNTED} segments");
        assert!(groups <= 8, "{groups} groups of taps for one echo, where 18 are all");
    }
}
