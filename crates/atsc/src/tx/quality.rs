//! The quality of a transmission, measured independently of the transmitter's own methods.

use super::CHANNEL_HZ;
use crate::Sample;
use crate::params::{DATA_POWER, PILOT_LEVEL, ROLL_OFF, SYMBOL_RATE_HZ};
use millstream_dsp::band_power::BandPower;
use millstream_dsp::pulse::root_raised_cosine;
use std::ops::Range;

/// Width of the bands of the mask, and their largest distance from the channel.
const BAND_HZ: f64 = 500e3;
const MASK_TO_HZ: f64 = 9e6;

/// Reach of the receiving filter on either side, in pairs of symbols: four times the transmitter's.
const SPAN: f64 = 150.0;

/// Returns the attenuation that 47 CFR 73.622(h) requires of the power in 500 kHz relative to the
/// signal's power, at a distance from the channel's edge.
#[must_use]
pub fn mask_db(from_edge_hz: f64) -> f64 {
    match from_edge_hz / 1e6 {
        ..0.5 => 47.0,
        mhz @ ..6.0 => 11.5 * (mhz + 3.6),
        _ => 110.0,
    }
}

/// Returns the least distance of emissions below the mask, dB; negative where they are too strong.
/// The sample rate limits the range: 25 MS/s reach 9 MHz beyond the channel.
#[must_use]
pub fn mask_room_db(samples: &[Sample], rate_hz: f64) -> f64 {
    let spectrum = BandPower::of(samples, rate_hz);
    let total = spectrum.within(-rate_hz / 2.0..rate_hz / 2.0);
    let (edge, most) = (CHANNEL_HZ / 2.0, (rate_hz / 2.0 - CHANNEL_HZ / 2.0).min(MASK_TO_HZ));
    let bands = (0..).map(|n| f64::from(n) * BAND_HZ).take_while(|at| at + BAND_HZ <= most);
    let room = |at: f64| {
        let low = edge + at;
        // A band that begins at the edge of a stricter rule still falls under the one before.
        let wanted = mask_db(at + BAND_HZ / 2.0);
        let below = |band| 10.0 * (total / spectrum.within(band)).log10();
        (below(low..low + BAND_HZ)).min(below(-low - BAND_HZ..-low)) - wanted
    };
    bands.map(room).fold(f64::INFINITY, f64::min)
}

/// Returns the modulation error ratio, dB, of these symbols of a transmission that begins with the
/// samples, by the filter matched to the standard's pulse. The signal must have no echoes and no
/// offsets.
#[must_use]
pub fn modulation_error_ratio_db(samples: &[Sample], rate_hz: f64, symbols: Range<usize>) -> f64 {
    let values: Vec<f64> = symbols.map(|k| matched(samples, rate_hz, k)).collect();
    let mean_square = values.iter().map(|x| x * x).sum::<f64>() / values.len().max(1) as f64;
    let power = f64::from(DATA_POWER + PILOT_LEVEL * PILOT_LEVEL);
    // A constant gain is not an error: the decided levels give it.
    let mut gain = (power / mean_square.max(f64::MIN_POSITIVE)).sqrt();
    let (mut signal, mut error) = (0.0, 0.0);
    for _ in 0..3 {
        let (mut along, mut square) = (0.0, 0.0);
        (signal, error) = (0.0, 0.0);
        for x in &values {
            let level = decided(gain * x);
            signal += level * level;
            error += (gain * x - level).powi(2);
            along += x * level;
            square += x * x;
        }
        gain = along / square;
    }
    10.0 * (signal / error).log10()
}

/// Returns the nearest level, with the pilot.
fn decided(x: f64) -> f64 {
    let pilot = f64::from(PILOT_LEVEL);
    2.0 * ((x - pilot - 1.0) / 2.0).round().clamp(-4.0, 3.0) + 1.0 + pilot
}

/// Returns a symbol, by the filter that matches the standard's pulse.
fn matched(samples: &[Sample], rate_hz: f64, symbol: usize) -> f64 {
    let per_pair = 2.0 * rate_hz / SYMBOL_RATE_HZ;
    let middle = symbol as f64 / 2.0 * per_pair;
    let first = (middle - SPAN * per_pair).max(0.0) as usize;
    let end = ((middle + SPAN * per_pair) as usize + 1).min(samples.len());
    // (-j)^k: even symbols in the real part, odd ones in the imaginary part.
    let part = |x: &Sample| match symbol % 4 {
        0 => x.re,
        1 => -x.im,
        2 => -x.re,
        _ => x.im,
    };
    let pulse = |n: usize| root_raised_cosine((n as f64 - middle) / per_pair, ROLL_OFF);
    (first..end).map(|n| f64::from(part(&samples[n])) * pulse(n)).sum()
}
