//! A rule: which datagrams, and the effect on them. It has no clock and no randomness of its own.

use std::ops::Range;

use millstream_stats::Random;

use super::text::MS;
use crate::options;
use crate::options::{Parsed, maybe, number};

/// Examines a datagram's untrusted bytes, and returns whether the rule concerns it.
pub type Predicate = Box<dyn Fn(&[u8]) -> bool + Send>;

/// The effect on a datagram.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FaultEffect {
    /// It never arrives.
    Lose,
    /// It arrives, and this many copies arrive directly behind it.
    Duplicate {
        /// Copies in addition to the original.
        copies: u32,
    },
    /// It arrives behind this many later datagrams that match the rule, or
    /// [`REORDER_NS_MAX`](super::REORDER_NS_MAX) later if they do not come. Matches that the rule
    /// delays too are counted, but do not overtake it: the datagrams of one rule stay in order.
    Reorder {
        /// Datagrams that overtake it.
        datagrams: u32,
    },
    /// It is delayed by `ns`.
    Delay {
        /// The delay, nanoseconds.
        ns: u64,
    },
    /// Bits of it are flipped, at places determined by the rule's seed.
    Corrupt {
        /// The number of bits; two flips of one bit cancel each other.
        bits: u32,
        /// The bytes that may be hit; bytes beyond the datagram's end are ignored.
        bytes: Range<usize>,
    },
    /// Its tail is cut off.
    Truncate {
        /// The most bytes that remain.
        bytes: usize,
    },
}

/// A probability.
const CHANCE: Parsed<f64> = Parsed {
    looks: "0-1",
    wants: "wants a probability from 0 to 1",
    read: |text| text.parse().ok().filter(|chance| (0.0..=1.0).contains(chance)),
    write: f64::to_string,
};

options! {
    /// The selection of hits among the matching datagrams: behind the first `skip` every `every`th,
    /// at most `count`, each with `probability`, from `from_ns` on for `for_ns`, nanoseconds of the
    /// switch's clock. Outside of that time nothing is hit and nothing is counted.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Select {
        /// matches that pass first
        skip: u64 = 0, number("packets", 0..=u64::MAX);
        /// 1 hits all, 3 the third, the sixth and so on
        every: u64 = 1, number("packets", 1..=u64::MAX);
        /// most hits; no limit without it
        count: Option<u64> = None, maybe(number("packets", 1..=u64::MAX));
        /// probability of each hit
        probability as "p": f64 = 1.0, CHANCE;
        /// seed of hits and of the places of inverted bits
        seed: u64 = 1, number("a seed", 0..=u64::MAX);
        /// milliseconds until the fault begins
        from_ns as "after_ms": u64 = 0, MS;
        /// milliseconds from then until it ends; it does not end without them
        for_ns as "for_ms": Option<u64> = None, maybe(MS);
    }
}

impl Select {
    /// Returns the end of the rule's action.
    fn until_ns(&self) -> u64 {
        self.for_ns.map_or(u64::MAX, |for_ns| self.from_ns.saturating_add(for_ns))
    }
}

/// The counts of a rule.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuleCounts {
    /// Datagrams that matched while the rule could act.
    pub matched: u64,
    /// Datagrams that were hit.
    pub hit: u64,
    /// Datagrams and copies that are delayed now.
    pub held: u64,
    /// Delayed datagrams and copies that were lost: too many were delayed, or the port refused
    /// them.
    pub overflowed: u64,
    /// The rule cannot act any more: its count is reached or its time is over, and nothing is
    /// delayed.
    pub done: bool,
}

/// A rule: which datagrams, and the effect on them.
pub struct FaultRule {
    matches: Predicate,
    effect: FaultEffect,
    select: Select,
    random: Random,
    pub(super) tally: RuleCounts,
}

impl FaultRule {
    /// Creates a rule for every datagram that `matches`.
    pub fn new(matches: impl Fn(&[u8]) -> bool + Send + 'static, effect: FaultEffect) -> Self {
        let select = Select::default();
        let random = Random::new(select.seed);
        Self { matches: Box::new(matches), effect, select, random, tally: RuleCounts::default() }
    }

    /// Restricts the rule to some of the matching datagrams.
    #[must_use]
    pub fn select(self, select: Select) -> Self {
        Self { random: Random::new(select.seed), select, ..self }
    }

    /// Whether the rule concerns a datagram; counts the match.
    pub(super) fn take(&mut self, bytes: &[u8], now_ns: u64) -> bool {
        let in_time = (self.select.from_ns..self.select.until_ns()).contains(&now_ns);
        let takes = !self.tally.done && in_time && (self.matches)(bytes);
        self.tally.matched += u64::from(takes);
        takes
    }

    /// Whether the datagram just taken is hit; counts the hit.
    pub(super) fn hit(&mut self) -> bool {
        let Select { skip, every, count, probability, .. } = self.select;
        let Some(behind) = self.tally.matched.checked_sub(skip).filter(|&behind| behind > 0) else {
            return false;
        };
        let open = count.is_none_or(|count| self.tally.hit < count);
        let hit = open && behind % every.max(1) == 0 && self.random.chance(probability);
        self.tally.hit += u64::from(hit);
        hit
    }

    /// Updates whether the rule can still act.
    pub(super) fn apply_due(&mut self, now_ns: u64) {
        let spent = self.select.count.is_some_and(|count| self.tally.hit >= count);
        let over = now_ns >= self.select.until_ns();
        self.tally.done = (spent || over) && self.tally.held == 0;
    }

    pub(super) fn effect(&self) -> &FaultEffect {
        &self.effect
    }

    pub(super) fn draw(&mut self) -> u64 {
        self.random.bits()
    }
}

/// A change of a datagram's bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ByteChange {
    Flip { seed: u64, bits: u32, bytes: Range<usize> },
    Cut { bytes: usize },
}

impl ByteChange {
    /// Changes a datagram.
    pub fn apply(&self, datagram: &mut Vec<u8>) {
        match self {
            Self::Cut { bytes } => datagram.truncate(*bytes),
            Self::Flip { .. } => {
                self.flips(datagram.len()).for_each(|(at, bit)| datagram[at] ^= 1 << bit);
            }
        }
    }

    /// Returns the bits to flip in `length` bytes: which byte, and which bit of it.
    pub fn flips(&self, length: usize) -> impl Iterator<Item = (usize, u32)> + use<> {
        let (seed, bits, bytes) = match self {
            Self::Cut { .. } => (0, 0, 0..0),
            Self::Flip { seed, bits, bytes } => (*seed, *bits, bytes.clone()),
        };
        let (from, room) = (bytes.start, bytes.end.min(length).saturating_sub(bytes.start));
        let mut random = Random::new(seed);
        let bits = if room == 0 { 0 } else { bits };
        (0..bits).map(move |_| {
            let bit = random.below(room * 8);
            (from + bit / 8, (bit % 8) as u32)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hits(select: Select, datagrams: u64) -> Vec<u64> {
        let mut rule = FaultRule::new(|_| true, FaultEffect::Lose).select(select);
        let mut hit = |now| rule.take(b"", now) && rule.hit();
        (0..datagrams).filter(|&now| hit(now)).collect()
    }

    #[test]
    fn skip_every_and_count_choose_exactly() {
        let base = Select::default;
        assert_eq!(hits(base(), 3), [0, 1, 2]);
        assert_eq!(hits(Select { skip: 2, ..base() }, 5), [2, 3, 4]);
        assert_eq!(hits(Select { every: 3, ..base() }, 10), [2, 5, 8]);
        assert_eq!(hits(Select { skip: 1, every: 3, count: Some(2), ..base() }, 20), [3, 6]);
        assert_eq!(hits(Select { every: 0, count: Some(1), ..base() }, 5), [0]);
    }

    #[test]
    fn outside_of_its_time_a_rule_neither_hits_nor_counts() {
        let select = Select { from_ns: 10, for_ns: Some(5), every: 2, ..Select::default() };
        assert_eq!(hits(select, 30), [11, 13]);
    }

    #[test]
    fn chances_repeat_with_their_seed() {
        let select = |seed| Select { probability: 0.25, seed, ..Select::default() };
        let first = hits(select(7), 4_000);
        assert_eq!(first, hits(select(7), 4_000));
        assert_ne!(first, hits(select(8), 4_000));
        assert!((800..1_200).contains(&first.len()), "{}", first.len());
    }

    #[test]
    fn flipped_bits_stay_in_their_range_and_repeat() {
        for length in [0usize, 1, 7, 8, 20] {
            let flip = ByteChange::Flip { seed: 3, bits: 1, bytes: 4..8 };
            let (mut once, mut again) = (vec![0u8; length], vec![0u8; length]);
            flip.apply(&mut once);
            flip.apply(&mut again);
            assert_eq!(once, again);
            let flipped: u32 = once.iter().map(|byte| byte.count_ones()).sum();
            assert_eq!(flipped, u32::from(length > 4), "{length}");
            assert!(once.iter().enumerate().all(|(at, &b)| b == 0 || (4..8).contains(&at)));
        }
        let mut cut = vec![1; 10];
        ByteChange::Cut { bytes: 12 }.apply(&mut cut);
        ByteChange::Cut { bytes: 3 }.apply(&mut cut);
        assert_eq!(cut, [1; 3]);
    }
}
