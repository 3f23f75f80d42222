//! The loopback: the samples that one channel transmits and another one receives, later.

use crate::antenna::Sc16;

/// Samples by position in an endless stream, of which the latest are stored.
#[derive(Debug)]
pub(super) struct Ring(Box<[Sc16]>);

impl Ring {
    /// Returns a ring of zeros with memory for at least `samples` positions.
    pub fn new(samples: usize) -> Self {
        Self(vec![[0; 4]; samples.next_power_of_two()].into())
    }

    /// Takes all of the memory from the kernel, which otherwise gives each page at its first use.
    pub fn touch(&mut self) {
        const PAGE: usize = 4096 / size_of::<Sc16>();
        for page in self.0.chunks_mut(PAGE) {
            *std::hint::black_box(&mut page[0]) = Sc16::default();
        }
    }

    /// Returns the memory of `count` positions from `at` on, or its first contiguous part.
    fn piece(&mut self, at: u64, count: usize) -> &mut [Sc16] {
        let start = at as usize & (self.0.len() - 1);
        let count = count.min(self.0.len() - start);
        &mut self.0[start..start + count]
    }

    /// Writes `samples` from position `at` on; returns the position behind them.
    pub fn write(&mut self, at: u64, samples: &[Sc16]) -> u64 {
        let (mut at, mut rest) = (at, samples);
        while !rest.is_empty() {
            let piece = self.piece(at, rest.len());
            let (now, later) = rest.split_at(piece.len());
            piece.copy_from_slice(now);
            (at, rest) = (at + now.len() as u64, later);
        }
        at
    }

    /// Reads samples from position `at` on; returns the position behind them.
    pub fn read(&mut self, at: u64, out: &mut [Sc16]) -> u64 {
        let (mut at, mut rest) = (at, out);
        while !rest.is_empty() {
            let piece = self.piece(at, rest.len());
            let (now, later) = rest.split_at_mut(piece.len());
            now.copy_from_slice(piece);
            (at, rest) = (at + now.len() as u64, later);
        }
        at
    }
}

/// The latest transmitted samples of a channel, by tick, with zeros for ticks without transmission.
#[derive(Debug)]
pub(crate) struct TransmittedSamples {
    ring: Ring,
    /// Ticks before this one are known.
    until: u64,
    /// All ticks from this one on are silent.
    silent_from: u64,
}

impl TransmittedSamples {
    /// Returns the silence before the first sample, with a memory of at least `samples` ticks.
    pub fn new(samples: usize) -> Self {
        Self { ring: Ring::new(samples), until: 0, silent_from: 0 }
    }

    /// Transmits `samples` from tick `tick` on, with silence before them.
    pub fn send(&mut self, tick: u64, samples: &[Sc16]) {
        self.pass(tick);
        let at = self.ring.write(tick, samples);
        self.until = self.until.max(at);
        self.silent_from = self.silent_from.max(at);
    }

    /// Advances to tick `now` in silence.
    pub fn pass(&mut self, now: u64) {
        // After a whole ring of silence, all its samples are zero.
        let end = now.min(self.silent_from + self.ring.0.len() as u64);
        let mut at = self.until;
        while at < end {
            let piece = self.ring.piece(at, (end - at) as usize);
            piece.fill([0; 4]);
            at += piece.len() as u64;
        }
        self.until = self.until.max(now);
    }

    /// Restores the silence before tick 0.
    pub fn restart(&mut self) {
        self.ring.0.fill([0; 4]);
        (self.until, self.silent_from) = (0, 0);
    }

    /// Writes the samples transmitted from tick `from - delay` on; zeros for unknown ones.
    pub fn read(&mut self, from: u64, delay: u64, out: &mut [Sc16]) {
        let oldest = self.until.saturating_sub(self.ring.0.len() as u64);
        let unknown = (oldest + delay).saturating_sub(from).min(out.len() as u64);
        let (before, rest) = out.split_at_mut(unknown as usize);
        before.fill([0; 4]);
        self.ring.read((from + unknown).wrapping_sub(delay), rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn samples(first: u32, count: usize) -> Vec<Sc16> {
        (first..).take(count).map(u32::to_le_bytes).collect()
    }

    fn heard(air: &mut TransmittedSamples, from: u64, delay: u64, count: usize) -> Vec<u32> {
        let mut out = vec![[9; 4]; count];
        air.read(from, delay, &mut out);
        out.into_iter().map(u32::from_le_bytes).collect()
    }

    #[test]
    fn silence_is_zeros_on_both_sides_of_a_burst_and_before_time_began() {
        let mut air = TransmittedSamples::new(64);
        air.send(10, &samples(1, 3));
        air.pass(20);
        assert_eq!(heard(&mut air, 8, 0, 7), [0, 0, 1, 2, 3, 0, 0]);
        assert_eq!(heard(&mut air, 13, 5, 6), [0, 0, 1, 2, 3, 0]);
        assert_eq!(heard(&mut air, 3, 5, 4), [0; 4], "before tick 0");
    }

    #[test]
    fn what_lies_too_far_back_is_silence() {
        let mut air = TransmittedSamples::new(16);
        air.send(0, &samples(1, 16));
        air.pass(20);
        assert_eq!(heard(&mut air, 2, 0, 4), [0, 0, 5, 6]);
        air.pass(1 << 40);
        assert_eq!(heard(&mut air, (1 << 40) - 16, 0, 16), [0; 16]);
    }

    proptest! {
        /// Bursts and gaps of any length, received with any delay: tick by tick the sent samples.
        #[test]
        fn every_tick_is_heard_delay_later(
            bursts in prop::collection::vec((0u64..40, 0usize..40), 1..40),
            delay in 0u64..100,
        ) {
            let mut air = TransmittedSamples::new(256);
            let (mut sent, mut got) = (Vec::new(), Vec::new());
            for (gap, count) in bursts {
                let from = sent.len() as u64;
                sent.resize(sent.len() + gap as usize, 0);
                let burst = samples(sent.len() as u32 + 1, count);
                air.send(sent.len() as u64, &burst);
                sent.extend(burst.into_iter().map(u32::from_le_bytes));
                air.pass(sent.len() as u64);
                got.extend(heard(&mut air, from, delay, sent.len() - from as usize));
            }
            let silence = vec![0; delay as usize];
            let want: Vec<_> = silence.into_iter().chain(sent.clone()).take(sent.len()).collect();
            prop_assert_eq!(got, want);
        }
    }
}
