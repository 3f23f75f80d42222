//! The complex gain of a channel over time, in images of UHD 4.10 and newer.

use super::radio_block::Radios;
use crate::antenna::{Sc16, parts, sc16};
use millstream_wire::regs::radio::{GAIN_ONE, RX_GAIN, TX_GAIN};
use std::collections::VecDeque;

/// The cycles after which a new gain acts. Hosts subtract them.
const LATENCY_CYCLES: u64 = 6;

/// The changes that are remembered; of more the oldest are forgotten.
const CHANGES_MAX: usize = 64;

/// Fraction bits of a gain.
const FRACTION_BITS: u32 = 14;

/// The gains of a channel, each with the tick of the first sample that it multiplies.
#[derive(Debug)]
pub(crate) struct GainTimeline {
    changes: VecDeque<(u64, u32)>,
}

impl GainTimeline {
    /// Returns a gain of one.
    pub fn new() -> Self {
        Self { changes: VecDeque::with_capacity(CHANGES_MAX) }
    }

    /// Returns to a gain of one at all times.
    pub fn reset(&mut self) {
        self.changes.clear();
    }

    /// Sets the gain by a write that acts at tick `at`; `cycle` is the ticks of a cycle. Changes
    /// that were to come later are forgotten.
    pub fn set(&mut self, at: u64, cycle: u64, word: u32) {
        let from = at.saturating_add(LATENCY_CYCLES * cycle);
        while self.changes.back().is_some_and(|&(tick, _)| tick >= from) {
            self.changes.pop_back();
        }
        if self.changes.len() == CHANGES_MAX {
            self.changes.pop_front();
        }
        self.changes.push_back((from, word));
    }

    /// Returns whether every sample passes as it is.
    pub fn is_one(&self) -> bool {
        self.changes.is_empty()
    }

    /// Multiplies samples, the first of which is that of tick `first`, and each of the others
    /// `step` ticks later.
    pub fn apply(&self, first: u64, step: u64, samples: &mut [Sc16]) {
        let mut at = 0;
        while at < samples.len() && !self.is_one() {
            let tick = first + at as u64 * step;
            let next = self.changes.iter().find(|&&(from, _)| from > tick);
            let end = next.map_or(u64::MAX, |&(from, _)| (from - first).div_ceil(step));
            let end = usize::try_from(end).unwrap_or(usize::MAX).min(samples.len());
            let now = self.changes.iter().rev().find(|&&(from, _)| from <= tick);
            if let Some(&(_, word)) = now.filter(|&&(_, word)| word != GAIN_ONE) {
                samples[at..end].iter_mut().for_each(|sample| *sample = product(*sample, word));
            }
            at = end;
        }
    }
}

impl Radios {
    /// Has a gain that was written act at tick `at`.
    pub fn note_gain(&mut self, block: usize, address: u32, value: u32, at: u64) {
        let Ok((channel, offset)) = self.locate(block, address) else { return };
        let (channel, cycle) = (&mut self.channels[channel], self.cycle.into());
        match offset {
            RX_GAIN => channel.rx_gain.set(at, cycle, value),
            TX_GAIN => channel.tx_gain.set(at, cycle, value),
            _ => {}
        }
    }
}

/// Returns a sample times the gain of a word, rounded; parts beyond 16 bits saturate.
fn product(sample: Sc16, word: u32) -> Sc16 {
    let [re, im] = parts(sample).map(i64::from);
    let [gain_re, gain_im] = [(word >> 16) as i16, word as i16].map(i64::from);
    let part = |sum: i64| {
        let rounded = (sum + (1 << (FRACTION_BITS - 1))) >> FRACTION_BITS;
        rounded.clamp(i16::MIN.into(), i16::MAX.into()) as i16
    };
    sc16(part(re * gain_re - im * gain_im), part(re * gain_im + im * gain_re))
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_wire::regs::radio::gain_word;

    #[test]
    fn each_sample_has_the_gain_of_its_time_and_saturates() {
        let mut gain = GainTimeline::new();
        gain.set(94, 1, gain_word(0.0, 1.0));
        gain.set(102, 1, gain_word(-0.5, 0.0));
        for (first, step) in [(98, 1), (92, 2)] {
            let mut samples = [sc16(1000, -31); 12];
            gain.apply(first, step, &mut samples);
            for (index, got) in samples.into_iter().enumerate() {
                let want = match first + index as u64 * step {
                    ..100 => sc16(1000, -31),
                    100..108 => sc16(31, 1000),
                    _ => sc16(-500, 16),
                };
                assert_eq!(got, want, "{first} {index}");
            }
        }
        let mut loud = [sc16(i16::MIN, i16::MAX)];
        gain.set(200, 2, gain_word(-1.5, 0.0));
        gain.apply(211, 1, &mut loud);
        assert_eq!(loud, [sc16(16384, -16383)], "not yet");
        gain.apply(212, 1, &mut loud);
        loud = [sc16(i16::MIN, i16::MAX)];
        gain.apply(212, 1, &mut loud);
        assert_eq!(loud, [sc16(i16::MAX, i16::MIN)]);
        gain.reset();
        gain.apply(212, 1, &mut loud);
        assert_eq!(loud, [sc16(i16::MAX, i16::MIN)]);
    }

    #[test]
    fn an_earlier_change_replaces_those_that_were_to_come() {
        let mut gain = GainTimeline::new();
        (0..200).for_each(|at| gain.set(1000 + at, 1, gain_word(0.5, 0.0)));
        gain.set(0, 1, gain_word(0.0, 0.0));
        let mut samples = [sc16(8, 8)];
        gain.apply(5000, 1, &mut samples);
        assert_eq!(samples, [sc16(0, 0)]);
    }
}
