//! Numbers that are missing and may still come.

use std::collections::VecDeque;

use crate::flow::FlowGap;
use crate::numbered::Numbered;

/// The most gaps whose packets may still come.
const OPEN_GAPS: usize = 1024;

/// The newest gaps of a flow, in their order.
#[derive(Debug, Default)]
pub(crate) struct OpenGaps {
    gaps: VecDeque<OpenGap>,
}

#[derive(Debug, Clone, Copy)]
struct OpenGap {
    first: u16,
    count: u16,
    came: u16,
    /// The number in the list of gaps.
    place: u64,
}

impl OpenGap {
    /// Returns how many of so many numbers from one on it has.
    fn overlap(&self, first: u16, count: u16) -> u16 {
        let begin = i32::from(self.first.wrapping_sub(first) as i16);
        let end = (begin + i32::from(self.count)).min(count.into());
        u16::try_from(end - begin.max(0)).unwrap_or(0)
    }
}

impl OpenGaps {
    /// Adds so many missing numbers from one on; `place` is their number in the list of gaps.
    pub fn push(&mut self, first: u16, count: u16, place: u64) {
        self.push_partly(first, count, 0, place);
    }

    /// The same, where `came` of them are not missing.
    pub fn push_partly(&mut self, first: u16, count: u16, came: u16, place: u64) {
        // Numbers repeat: what has not come by now does not come.
        let is_old = |open: &OpenGap| first.wrapping_sub(open.first) >= 1 << 15;
        while self.gaps.front().is_some_and(is_old) || self.gaps.len() == OPEN_GAPS {
            self.gaps.pop_front();
        }
        self.gaps.push_back(OpenGap { first, count, came, place });
    }

    /// Forgets the gaps that a number is far behind.
    pub fn pass(&mut self, number: u16) {
        let is_old = |open: &OpenGap| number.wrapping_sub(open.first) >= 1 << 15;
        while self.gaps.front().is_some_and(is_old) {
            self.gaps.pop_front();
        }
    }

    pub fn clear(&mut self) {
        self.gaps.clear();
    }

    /// Returns how many of so many numbers from one on are missing yet.
    pub fn missing(&self, first: u16, count: u16) -> u64 {
        let missing = |open: &OpenGap| open.overlap(first, count).saturating_sub(open.came);
        self.gaps.iter().map(|open| u64::from(missing(open))).sum()
    }

    /// Takes so many numbers from one on out of the gaps, for they have come; returns how many of
    /// them were missing. A packet lasts `ticks`, and `samples_in` gives the samples of a time.
    pub fn come(
        &mut self,
        (first, count): (u16, u16),
        found: &mut Numbered<FlowGap>,
        ticks: Option<u64>,
        samples_in: impl Fn(u64) -> Option<u64>,
    ) -> u64 {
        let mut sum = 0;
        for open in self.gaps.iter_mut().rev() {
            let came = open.overlap(first, count).min(open.count - open.came);
            open.came += came;
            let came = u64::from(came);
            sum += came;
            let Some(gap) = found.get_mut(open.place).filter(|_| came > 0) else { continue };
            gap.packets = gap.packets.saturating_sub(came);
            // How much of the time that makes is known where all packets are as long.
            let taken = ticks.map(|ticks| ticks.saturating_mul(came));
            gap.ticks = gap.ticks.zip(taken).map(|(ticks, taken)| ticks.saturating_sub(taken));
            gap.samples = gap.ticks.and_then(&samples_in);
        }
        sum
    }
}
