//! A counter, for exact checks.

use super::{Antenna, Sc16};

/// I is the low, Q the high 16 bits of the timestamp.
#[derive(Debug, Default)]
pub struct RampAntenna;

impl Antenna for RampAntenna {
    fn prepare(&mut self, _rate_hz: f64) {}

    fn fill(&mut self, tick: u64, out: &mut [Sc16]) {
        // Each value is computed from its own index, which compilers vectorise.
        for (index, sample) in out.iter_mut().enumerate() {
            *sample = (tick as u32).wrapping_add(index as u32).to_le_bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i_and_q_hold_the_timestamp() {
        let mut out = [[0; 4]; 3];
        RampAntenna.fill(0x1_0001_ffff, &mut out);
        assert_eq!(out, [[0xff, 0xff, 1, 0], [0, 0, 2, 0], [1, 0, 2, 0]]);
    }

    #[test]
    fn the_counter_wraps_at_32_bits() {
        let mut out = [[0; 4]; 2];
        RampAntenna.fill(u64::from(u32::MAX), &mut out);
        assert_eq!(out, [[0xff; 4], [0; 4]]);
    }
}
