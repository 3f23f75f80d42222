//! The rates of a stream: samples, and ticks of the radio's time.

use std::num::NonZeroU32;

/// The rate of a stream's samples, as a fraction of the radio's ticks.
///
/// A radio without a rate change has a tick per sample. Behind a DDC or before a DUC, times remain
/// in ticks of the radio, so a sample lasts as many ticks as the block's factor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StreamRate {
    /// Ticks per second.
    pub ticks_hz: f64,
    /// Ticks from one sample to the next.
    pub ticks_per_sample: NonZeroU32,
}

impl StreamRate {
    /// Returns the rate of a stream without a rate change.
    #[must_use]
    pub fn of_radio(rate_hz: f64) -> Self {
        Self { ticks_hz: rate_hz, ticks_per_sample: NonZeroU32::MIN }
    }

    /// Returns the samples per second.
    #[must_use]
    pub fn samples_hz(&self) -> f64 {
        self.ticks_hz / f64::from(self.ticks_per_sample.get())
    }

    /// Returns the ticks of `samples` samples, modulo 2⁶⁴.
    #[must_use]
    pub fn ticks(&self, samples: u64) -> u64 {
        samples.wrapping_mul(self.ticks_per_sample.get().into())
    }

    /// Returns the whole samples in `ticks` ticks. It divides, so it has no place in the path of
    /// every packet.
    #[must_use]
    pub fn samples(&self, ticks: u64) -> u64 {
        ticks / u64::from(self.ticks_per_sample.get())
    }

    /// Returns the first time not before `ticks` at which a sample of a stream begins that has one
    /// at `sample`. Times wrap modulo 2⁶⁴.
    pub(crate) fn align(&self, ticks: u64, sample: u64) -> u64 {
        next_on_grid(ticks, sample, self.ticks_per_sample)
    }

    /// Returns the first time not before `start` at which a stream whose next sample is `due` would
    /// have one, and its radio begins a cycle of `cycle` samples, as it did at its time `now`: then
    /// whole samples are missing.
    pub(crate) fn align_cycle(
        &self,
        start: u64,
        due: Option<u64>,
        now: u64,
        cycle: NonZeroU32,
    ) -> u64 {
        let start = due.map_or(start, |due| self.align(start, due));
        let mut starts = (0..cycle.get()).map(|n| start.wrapping_add(self.ticks(n.into())));
        // There is none where the clock was set meanwhile.
        let found = starts.find(|at| next_on_grid(*at, now, cycle) == *at);
        found.unwrap_or_else(|| next_on_grid(start, now, cycle))
    }

    /// Returns the fewest samples of a stream that are whole cycles of its radio, which processes
    /// `cycle` samples in each.
    pub(crate) fn whole_cycles(&self, cycle: NonZeroU32) -> NonZeroU32 {
        let (mut a, mut b) = (cycle.get(), self.ticks_per_sample.get());
        while b != 0 {
            (a, b) = (b, a % b);
        }
        NonZeroU32::new(cycle.get() / a).unwrap_or(NonZeroU32::MIN)
    }
}

/// Returns the first time not before `ticks` of a grid with the time `origin`. Times wrap modulo
/// 2⁶⁴.
pub(crate) fn next_on_grid(ticks: u64, origin: u64, step: NonZeroU32) -> u64 {
    let ahead = ticks.wrapping_sub(origin) as i64;
    ticks.wrapping_add((-i128::from(ahead)).rem_euclid(step.get().into()) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_aligned_to_the_samples_of_a_stream() {
        let ticks_per_sample = NonZeroU32::new(16).unwrap();
        let rate = StreamRate { ticks_hz: 16e6, ticks_per_sample };
        assert_eq!((rate.samples_hz(), rate.ticks(3), rate.samples(50)), (1e6, 48, 3));
        for (ticks, sample, aligned) in [
            (100, 100, 100),
            (101, 100, 116),
            (116, 100, 116),
            (90, 100, 100),
            (84, 100, 84),
            (83, 100, 84),
            (5, u64::MAX, 15),
        ] {
            assert_eq!(rate.align(ticks, sample), aligned, "{ticks} {sample}");
        }
        assert_eq!(StreamRate::of_radio(5e6).align(7, 3), 7);
    }

    #[test]
    fn a_length_in_cycles_depends_on_the_ticks_of_a_sample() {
        let number = |number| NonZeroU32::new(number).unwrap();
        for (cycle, ticks, whole) in
            [(1, 1, 1), (4, 1, 4), (4, 2, 2), (4, 6, 2), (8, 16, 1), (6, 4, 3), (4, 3, 4)]
        {
            let rate = StreamRate { ticks_hz: 1e6, ticks_per_sample: number(ticks) };
            assert_eq!(rate.whole_cycles(number(cycle)).get(), whole, "{cycle} {ticks}");
        }
    }
}
