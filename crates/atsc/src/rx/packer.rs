//! Samples to 16 bits: turned, corrected, and at a level that leaves room above and below.

use super::balance::Balance;
use super::carrier::{Carrier, Packing, Seen};
use crate::Sample;
use millstream_dsp::sampler::Pair;
use millstream_dsp::trim::moments;

/// Root mean square of packed samples: 24 dB below the largest, and rounding is 76 dB below.
const RMS: f64 = 2048.0;

/// How far it may be off, and for how many samples it may be further off on either side: what is
/// louder for longer would be cut, while a fade passes.
const LOUD: f64 = 4.0;
const LOUD_SAMPLES: usize = 1 << 13;
const QUIET: f64 = 0.25;
const QUIET_SAMPLES: usize = 1 << 16;

/// Packs samples, and keeps those that are not done with.
#[derive(Clone, Debug)]
pub struct Packer {
    carrier: Carrier,
    balance: Balance,
    row: Vec<Pair>,
    /// What 1.0 becomes; zero before the first sample.
    one: f64,
    /// Samples for which the level has been off.
    off: usize,
}

impl Packer {
    /// Before the first sample.
    #[must_use]
    pub fn new(carrier: Carrier) -> Self {
        Self { carrier, balance: Balance::new(), row: Vec::new(), one: 0.0, off: 0 }
    }

    /// The loop that turns samples.
    #[must_use]
    pub fn carrier(&self) -> &Carrier {
        &self.carrier
    }

    /// Lets the carrier follow quickly again after a break in the signal.
    pub fn reacquire(&mut self) {
        self.carrier.reacquire();
    }

    /// The samples kept, and what 1.0 is among them.
    #[must_use]
    pub fn row(&self) -> (&[Pair], f64) {
        (&self.row, self.one)
    }

    /// Drops the first samples kept.
    pub fn drop_first(&mut self, count: usize) {
        self.row.drain(..count);
    }

    /// Takes samples, with a signal to follow unless `held`; returns how many were not finite
    /// numbers and became zero.
    pub fn push(&mut self, samples: &[Sample], held: bool) -> usize {
        let trim = self.balance.measure(samples);
        if self.one == 0.0 {
            let seen = moments(samples);
            self.set_level(seen.power_re + seen.power_im);
        }
        let start = self.row.len();
        self.row.resize(start + samples.len(), [0; 2]);
        // Before anything was heard the level does not matter.
        let one = if self.one == 0.0 { 1.0 } else { self.one } as f32;
        let packing = Packing { trim, one, held };
        let Seen { bad, power } = self.carrier.turn(samples, packing, &mut self.row[start..]);
        if !held {
            self.watch(f64::from(power), samples.len());
        }
        bad
    }

    /// Changes the level when it has been off for long enough.
    fn watch(&mut self, power: f64, samples: usize) {
        let power = power / samples.max(1) as f64;
        let ratio = power.sqrt() * self.one / RMS;
        let patience = match ratio {
            _ if ratio > LOUD => LOUD_SAMPLES,
            _ if ratio < QUIET => QUIET_SAMPLES,
            _ => return self.off = 0,
        };
        self.off += samples;
        if self.off >= patience {
            self.set_level(power);
        }
    }

    /// Gives samples of this power their level, those kept too.
    fn set_level(&mut self, power: f64) {
        self.off = 0;
        let one = RMS / power.sqrt();
        if !(one.is_finite() && one > 0.0) {
            return;
        }
        let ratio = one / self.one;
        for part in self.row.as_flattened_mut() {
            *part = (f64::from(*part) * ratio).round() as i16;
        }
        self.one = one;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_dsp::noise::Noise;

    fn packer() -> Packer {
        Packer::new(Carrier::new(0.0, 6.25e6))
    }

    fn rms(row: &[Pair]) -> f64 {
        let parts = row.as_flattened().iter().map(|x| f64::from(*x).powi(2));
        (parts.sum::<f64>() / row.len() as f64).sqrt()
    }

    #[test]
    fn the_level_follows_what_lasts_and_nothing_else() {
        let (mut noise, mut packer) = (Noise::new(3), packer());
        let mut run = |level: f32, chunks: usize| {
            for _ in 0..chunks {
                let samples: Vec<Sample> =
                    (0..2048).map(|_| noise.gaussian_pair() * level).collect();
                packer.drop_first(packer.row().0.len());
                packer.push(&samples, false);
            }
            let (row, one) = packer.row();
            (rms(row), one)
        };
        let (level, one) = run(1e-3, 10);
        assert!((level / RMS - 1.0).abs() < 0.1, "{level}");
        // An impulse, and a short fade.
        assert_eq!(run(1.0, 2).1, one);
        assert_eq!(run(1e-3, 1).1, one);
        assert_eq!(run(1e-6, 20).1, one);
        assert_eq!(run(1e-3, 1).1, one);
        for level in [0.5, 1e-5] {
            let (level, _) = run(level, 50);
            assert!((level / RMS - 1.0).abs() < 0.1, "{level}");
        }
    }

    #[test]
    fn samples_kept_change_their_level_too() {
        let mut packer = packer();
        packer.push(&[Sample::new(0.01, 0.0); 64], true);
        packer.set_level(0.04);
        let (row, one) = packer.row();
        let [re, _] = row[10];
        assert!((f64::from(re) / one - 0.01).abs() < 1e-4, "{re} of {one}");
    }

    #[test]
    fn silence_is_no_level() {
        let mut packer = packer();
        packer.push(&[Sample::ZERO; 2048], false);
        assert_eq!(packer.row().1, 0.0);
        packer.push(&[Sample::new(f32::NAN, 0.0); 2048], false);
        packer.push(&[Sample::new(0.5, 0.0); 2048], false);
        assert!(packer.row().1 > 1000.0);
    }
}
