//! Where a recording is cut into parts.
//!
//! ```text
//!   part 1  ├────────────────────────────┼──────┤
//!   part 2          ├──────────┼─────────┼──────────────────────────┤
//!                   │  memory  │ compared       │
//!                 first     settled     cut     end of part 1
//! ```
//!
//! A part begins earlier than its own samples by the memory of the graph, and by some groups of
//! results that are compared with those of the part before. So does that part end later.

use millstream_flow::PathMemory;
use serde::{Deserialize, Serialize};

/// Groups of results before and behind a cut that both parts make and that are compared. One is
/// incomplete at the end of a part.
const GROUPS_BEFORE: u64 = 2;
const GROUPS_BEHIND: u64 = 4;

/// The cuts of a recording.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Cuts {
    /// Samples of the recording.
    pub samples: u64,
    /// Parts that it is long enough for.
    pub parts: usize,
    /// The memory of the graph, samples.
    pub memory: u64,
    /// Samples of a group.
    pub group: u64,
}

/// The samples of a part, counted in the recording.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct PartRange {
    /// The first that it reads; 0 needs no memory.
    pub first: u64,
    /// From here on its results count.
    pub settled: u64,
    /// Where its own samples begin.
    pub cut: u64,
    /// The end of what it reads.
    pub end: u64,
}

impl Cuts {
    /// Cuts into `parts`, or into fewer, so that each is at least as long as two overlaps.
    #[must_use]
    pub fn new(samples: u64, parts: usize, memory: &PathMemory) -> Self {
        let (memory, group) = (memory.items(), memory.group.ceil() as u64);
        let cuts = Self { samples, parts, memory, group };
        let most = samples / (2 * (cuts.before() + cuts.behind())).max(1);
        Self { parts: parts.min(usize::try_from(most).unwrap_or(usize::MAX)).max(1), ..cuts }
    }

    /// Returns the samples that a part reads before its cut.
    #[must_use]
    pub fn before(&self) -> u64 {
        self.memory + GROUPS_BEFORE * self.group
    }

    /// Returns the samples that a part reads behind the next cut.
    #[must_use]
    pub fn behind(&self) -> u64 {
        GROUPS_BEHIND * self.group
    }

    /// Returns a part, counted from 0, with `times` the usual overlap before its cut; `None` if the
    /// recording is too short for so many.
    #[must_use]
    pub fn part(&self, part: usize, times: u64) -> Option<PartRange> {
        if part >= self.parts {
            return None;
        }
        let cut_of = |part: usize| {
            let cut = u128::from(self.samples) * part as u128 / self.parts as u128;
            u64::try_from(cut).unwrap_or(u64::MAX)
        };
        let (cut, next) = (cut_of(part), cut_of(part + 1));
        let end = next.saturating_add(self.behind()).min(self.samples);
        let settled = cut.saturating_sub((GROUPS_BEFORE * self.group).saturating_mul(times));
        let first = cut.saturating_sub(self.before().saturating_mul(times));
        let settled = if first == 0 { 0 } else { settled };
        Some(PartRange { first, settled, cut, end })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cuts(samples: u64, parts: usize) -> Cuts {
        let stage =
            millstream_flow::observe::PathStage { block: "a".to_owned(), what: "taps", items: 100 };
        let (rate_hz, output) = (1.0, "a.out".to_owned());
        let memory = PathMemory { stages: vec![stage], rate_hz, group: 9.5, unit: 1.0, output };
        Cuts::new(samples, parts, &memory)
    }

    #[test]
    fn parts_cover_all_and_overlap() {
        let cuts = cuts(10_001, 3);
        let parts: Vec<_> = (0..3).map(|part| cuts.part(part, 1).unwrap()).collect();
        assert_eq!((parts[0].first, parts[0].settled, parts[0].cut), (0, 0, 0));
        assert_eq!(parts[2].end, 10_001);
        for (before, part) in parts.iter().zip(&parts[1..]) {
            assert_eq!(part.cut - part.first, 100 + 2 * 10);
            assert_eq!(part.cut - part.settled, 2 * 10);
            assert_eq!(before.end - part.cut, 4 * 10);
        }
        assert_eq!(cuts.part(3, 1), None);
        let twice = cuts.part(1, 2).unwrap();
        assert_eq!((twice.cut - twice.first, twice.cut - twice.settled), (240, 40));
        let all = cuts.part(1, u64::MAX).unwrap();
        assert_eq!((all.first, all.settled, all.cut), (0, 0, 3333), "a single pass");
    }

    #[test]
    fn a_short_recording_has_fewer_parts() {
        assert_eq!([319, 639, 640, 99_999].map(|samples| cuts(samples, 4).parts), [1, 1, 2, 4]);
        assert_eq!(cuts(639, 4).part(1, 1), None);
    }
}
