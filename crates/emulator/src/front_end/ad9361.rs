//! The numbers of an AD9361.

use std::ops::RangeInclusive;

pub(super) const RX_HZ: RangeInclusive<f64> = 70e6..=6e9;
pub(super) const TX_HZ: RangeInclusive<f64> = 47e6..=6e9;
pub(super) const RX_GAIN_DB: RangeInclusive<f64> = 0.0..=76.0;
pub(super) const TX_GAIN_DB: RangeInclusive<f64> = 0.0..=89.75;
pub(super) const BANDWIDTH_HZ: RangeInclusive<f64> = 0.2e6..=56e6;

/// The oscillator's range is an octave from here.
const VCO_HZ: f64 = 6e9;
const REFERENCE_HZ: f64 = 80e6;
const MODULUS: f64 = 8_388_593.0;

/// Returns the frequency of an oscillator that is set to `wanted_hz`: at most one step below. A
/// frequency outside of its range stays as it is.
pub(super) fn oscillator_hz(wanted_hz: f64) -> f64 {
    if !TX_HZ.contains(&wanted_hz) {
        return wanted_hz;
    }
    let mut divider = 2.0;
    while wanted_hz * divider < VCO_HZ {
        divider *= 2.0;
    }
    let ratio = wanted_hz * divider / REFERENCE_HZ;
    let fraction = (ratio.fract() * MODULUS).trunc();
    REFERENCE_HZ * (ratio.trunc() + fraction / MODULUS) / divider
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_oscillator_has_steps_below_ten_hertz_and_is_never_above() {
        assert_eq!(oscillator_hz(2.4e9), 2.4e9);
        assert!((oscillator_hz(2.45e9) - 2.45e9 + 1.19).abs() < 0.01);
        for wanted_hz in [47e6, 70e6, 98.1e6, 433.92e6, 915e6, 1.575_42e9, 5.9e9, 6e9] {
            let below = wanted_hz - oscillator_hz(wanted_hz);
            assert!((-1e-6..9.6).contains(&below), "{wanted_hz}: {below}");
        }
        assert_eq!(oscillator_hz(10e9), 10e9);
    }
}
