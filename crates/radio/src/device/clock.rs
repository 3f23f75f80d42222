//! The master clock of a device, which is the sample rate of its radios, and the rates that follow
//! from it.

use crate::dsp_block::DspBlock;

/// The master clock rates of the AD936x, Hz; with two channels up to half of it.
const AD936X_HZ: (f64, f64) = (0.22e6, 61.44e6);
const AD936X_PAIR_MAX_HZ: f64 = 30.72e6;

/// The largest difference of two rates that are the same, as a ratio: text and periods are rounded.
const SAME: f64 = 1e-9;

/// Returns whether the device can change its clock while it is open: devices with an AD936x can;
/// others have a few rates, of which `master_clock_rate` names one when the device is opened.
pub(super) fn is_adjustable(device_type: &str) -> bool {
    !matches!(device_type, "n3xx" | "x4xx" | "x300")
}

/// Returns the master clock rate for a stream of `rate_hz`, where the user names none: the present
/// one if the stream's rate is a fraction of it; else the largest multiple by a power of two (so
/// that the CIC filter rolls off least) that both channels of an AD936x may have.
pub(super) fn choose(rate_hz: f64, present_hz: f64, block: &DspBlock) -> f64 {
    let ratio = present_hz / rate_hz;
    let factor = f64::from(block.nearest(ratio).factor());
    if (ratio / factor - 1.0).abs() < SAME {
        return present_hz;
    }
    let powers = (0..=16).map(|power| 1u32 << power);
    let possible = powers.filter(|factor| block.rate(*factor).is_some());
    let mut clocks = possible.map(|factor| rate_hz * f64::from(factor));
    let clock = clocks.rfind(|clock| *clock <= AD936X_PAIR_MAX_HZ);
    clock.unwrap_or(rate_hz).clamp(AD936X_HZ.0, AD936X_HZ.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_suits_the_rate_of_the_stream() {
        let block = DspBlock::for_tests(3, 255);
        for (rate_hz, present_hz, clock_hz) in [
            // A fraction of the present one.
            (1e6, 16e6, 16e6),
            (16e6 / 3.0, 16e6, 16e6),
            (200e3, 20e6, 20e6),
            // The largest multiple by a power of two.
            (6.25e6, 16e6, 25e6),
            (1.92e6, 16e6, 30.72e6),
            (10e3, 16e6, 16e6),
            (7e3, 16e6, 7.168e6),
            (50e6, 16e6, 50e6),
            // The limits of the chip.
            (100e6, 16e6, 61.44e6),
            (100.0, 16e6, 0.22e6),
        ] {
            assert_eq!(choose(rate_hz, present_hz, &block), clock_hz, "{rate_hz}");
        }
        assert!(is_adjustable("e3xx") && !is_adjustable("n3xx"));
    }
}
