//! When the transmitter of a channel runs, as its receiver sees it.

use std::collections::VecDeque;
use std::ops::Range;

/// The bursts that are remembered; of more the oldest are forgotten.
const BURSTS_MAX: usize = 64;

/// The ticks of the latest bursts of a transmitter.
#[derive(Debug)]
pub(crate) struct Transmissions {
    bursts: VecDeque<Range<u64>>,
}

impl Transmissions {
    /// Returns a transmitter that has not run.
    pub fn new() -> Self {
        Self { bursts: VecDeque::with_capacity(BURSTS_MAX) }
    }

    /// Takes notice of samples that it sends.
    pub fn note(&mut self, ticks: Range<u64>) {
        match self.bursts.back_mut() {
            Some(last) if last.end == ticks.start => last.end = ticks.end,
            _ => {
                if self.bursts.len() == BURSTS_MAX {
                    self.bursts.pop_front();
                }
                self.bursts.push_back(ticks);
            }
        }
    }

    /// Returns the first tick from `tick` on at which it runs, as far as is known.
    pub fn first_from(&self, tick: u64) -> Option<u64> {
        let burst = self.bursts.iter().find(|burst| burst.end > tick)?;
        Some(burst.start.max(tick))
    }

    /// Forgets the bursts that ended before `tick`.
    pub fn forget_before(&mut self, tick: u64) {
        while self.bursts.front().is_some_and(|burst| burst.end < tick) {
            self.bursts.pop_front();
        }
    }
}

#[cfg(test)]
#[path = "later_radio_tests.rs"]
mod tests;
