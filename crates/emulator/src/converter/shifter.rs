//! The frequency shifter, with phase increments that wait for their time.

use millstream_dsp::Sample;
use millstream_dsp::nco::Nco;
use std::collections::VecDeque;

/// The increments that can wait.
const WAITING_MAX: usize = 32;

/// The increment of a whole cycle, less the 8 bits that do not count.
const CYCLE: f64 = (1_u32 << 24) as f64;

/// Multiplies by a complex exponential.
#[derive(Debug)]
pub(super) struct Shifter {
    oscillator: Nco,
    waiting: VecDeque<(u64, u32)>,
}

impl Shifter {
    /// Returns a shifter of frequency 0.
    pub fn new() -> Self {
        Self { oscillator: Nco::new(0.0), waiting: VecDeque::with_capacity(WAITING_MAX) }
    }

    /// Restarts the phase, as at the end of a burst.
    pub fn restart(&mut self) {
        self.oscillator.set_phase(0.0);
    }

    /// Sets a phase increment from the next sample on; the phase continues.
    pub fn set(&mut self, increment: u32) {
        self.oscillator.retune_hz(f64::from(increment >> 8), CYCLE);
    }

    /// Sets a phase increment from `time` on, where the phase restarts. Beyond the first 32 that
    /// wait they are lost.
    pub fn set_at(&mut self, time: u64, increment: u32) {
        if self.waiting.len() < WAITING_MAX {
            self.waiting.push_back((time, increment));
        }
    }

    /// Returns whether samples stay as they are, and no increment waits for its time.
    pub fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.oscillator.step() == 0 && self.oscillator.phase() == 0
    }

    /// Returns the cycles per sample by which it shifts at `time`, and forgets the increments that
    /// were due before.
    pub fn cycles_at(&mut self, time: u64) -> f64 {
        self.until_change(time, 1);
        self.cycles()
    }

    /// Returns the cycles per sample by which it shifts now.
    pub fn cycles(&self) -> f64 {
        // An increment beyond half a cycle is a negative frequency.
        self.oscillator.step() as i64 as f64 / 2f64.powi(64)
    }

    /// Shifts samples in place; the first has the time `time`.
    pub fn process(&mut self, time: u64, samples: &mut [Sample], scratch: &mut [Sample]) {
        let (mut time, mut rest) = (time, samples);
        while !rest.is_empty() {
            let count = self.until_change(time, rest.len());
            let (now, later) = rest.split_at_mut(count);
            // Without a shift the samples stay as they are, bit by bit.
            if self.oscillator.step() != 0 || self.oscillator.phase() != 0 {
                let scratch = &mut scratch[..count];
                self.oscillator.rotate(now, scratch);
                now.copy_from_slice(scratch);
            }
            (time, rest) = (time.wrapping_add(count as u64), later);
        }
    }

    /// Applies the increments that are due; returns the samples, up to `most`, before the next one.
    fn until_change(&mut self, time: u64, most: usize) -> usize {
        while let Some(&(at, increment)) = self.waiting.front() {
            // Differences modulo 2^64 are times ahead only below half of that.
            let ahead = at.wrapping_sub(time);
            if ahead != 0 && ahead < 1 << 63 {
                return (most as u64).min(ahead) as usize;
            }
            self.waiting.pop_front();
            self.set(increment);
            self.restart();
        }
        most
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_signals::{power_db, tone};
    use super::*;

    fn shifted(shifter: &mut Shifter, time: u64, count: usize) -> Vec<Sample> {
        let (mut samples, mut scratch) = (tone(0.0, 1.0, count), vec![Sample::default(); count]);
        shifter.process(time, &mut samples, &mut scratch);
        samples
    }

    fn assert_near(got: &[Sample], want: &[Sample]) {
        let error: Vec<_> = got.iter().zip(want).map(|(a, b)| a - b).collect();
        assert!(power_db(&error) < -100.0, "{} dB", power_db(&error));
    }

    #[test]
    fn a_positive_frequency_moves_the_spectrum_up_and_the_last_8_bits_do_not_count() {
        let mut shifter = Shifter::new();
        shifter.set(0x1000_00ff);
        assert_near(&shifted(&mut shifter, 0, 1000), &tone(1.0 / 16.0, 1.0, 1000));
        let mut shifter = Shifter::new();
        shifter.set(0xf000_0000);
        assert_near(&shifted(&mut shifter, 0, 1000), &tone(-1.0 / 16.0, 1.0, 1000));
    }

    #[test]
    fn a_timed_increment_acts_at_its_sample_and_restarts_the_phase() {
        let mut shifter = Shifter::new();
        shifter.set(0x0123_4500);
        shifter.set_at(1_300, 0x2000_0000);
        shifter.set_at(1_500, 0);
        shifter.set_at(100, 0x1000_0000);
        let got = shifted(&mut shifter, 1_000, 1_000);
        assert_near(&got[300..500], &tone(1.0 / 8.0, 1.0, 200));
        // One that is late acts at the next sample.
        assert_near(&got[500..], &tone(1.0 / 16.0, 1.0, 500));
    }

    #[test]
    fn an_untimed_increment_continues_the_phase() {
        let mut shifter = Shifter::new();
        shifter.set(0x4000_0000);
        shifted(&mut shifter, 0, 1);
        shifter.set(0);
        assert_near(&shifted(&mut shifter, 1, 2), &tone(0.25, 1.0, 3)[1..2].repeat(2));
    }
}
