//! The forward filter: groups of taps at the positions that matter.

use super::applied_taps::GROUP;
use super::channel::EARLY;
use crate::params::SEGMENT_SYMBOLS;
use millstream_dsp::chunks::Chunks;
use millstream_dsp::pairs::{PairTaps, round};

/// Most groups in use.
pub const GROUPS_MAX: usize = 14;

/// Most forward taps.
pub const FORWARD_MAX: usize = GROUPS_MAX * GROUP;

/// The integer value of 1.0 in filtering: a level of 31 fits, and rounding is 84 dB below the
/// symbols.
const ONE: f32 = 1024.0;

/// The errors of a segment, as taps: a filter with them gives the slopes of the mean square error.
pub type Errors = PairTaps<{ SEGMENT_SYMBOLS / 2 }>;

/// The sum of slopes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Slopes {
    /// The number of slopes.
    pub taps: usize,
    /// The sum of their squares.
    pub power: f32,
}

impl Slopes {
    /// Adds the slopes of a group.
    pub fn add(&mut self, slope: &[f32; GROUP]) {
        self.taps += GROUP;
        let mut lanes = [0.0; 8];
        for slope in slope.in_chunks::<8>().0 {
            lanes.iter_mut().zip(slope).for_each(|(sum, slope)| *sum += slope * slope);
        }
        self.power += lanes.iter().sum::<f32>();
    }
}

/// Taps on received symbols around the one wanted.
#[derive(Clone, Debug)]
pub struct ForwardFilter {
    taps: [f32; FORWARD_MAX],
    /// The position of each group's first tap, symbols relative to the wanted one.
    starts: [isize; GROUPS_MAX],
    groups: usize,
    /// The rounded taps that the filter applies.
    rounded: [PairTaps<{ GROUP / 2 }>; GROUPS_MAX],
    /// The rounded symbols that the filter reads.
    row: Vec<i16>,
}

impl ForwardFilter {
    /// Creates a filter of one group from `start` on that passes symbols unchanged.
    ///
    /// # Panics
    /// If the group does not contain the wanted symbol.
    pub fn straight(start: isize) -> Self {
        let mut taps = [0.0; FORWARD_MAX];
        taps[..GROUP][start.unsigned_abs()] = 1.0;
        let mut forward = Self {
            taps,
            starts: [start; GROUPS_MAX],
            groups: 1,
            rounded: [PairTaps::new(&[[0.0; 2]; GROUP / 2]); GROUPS_MAX],
            row: vec![0; EARLY + 2 * SEGMENT_SYMBOLS],
        };
        forward.round();
        forward
    }

    /// Sets groups that start at these symbols, in ascending order, with their taps in the same
    /// order.
    pub fn set(&mut self, starts: &[isize], taps: impl Iterator<Item = f32>) {
        self.groups = starts.len();
        self.starts[..starts.len()].copy_from_slice(starts);
        self.taps.iter_mut().zip(taps).for_each(|(tap, value)| *tap = value);
        self.round();
    }

    fn round(&mut self) {
        let taps = self.taps.in_chunks::<2>().0.in_chunks().0;
        for (rounded, taps) in self.rounded.iter_mut().zip(taps).take(self.groups) {
            *rounded = PairTaps::new(taps);
        }
    }

    /// Returns every tap with its position.
    pub fn taps(&self) -> impl Iterator<Item = (isize, f32)> + '_ {
        let groups = self.starts[..self.groups].iter().zip(self.taps.in_chunks::<GROUP>().0);
        groups.flat_map(|(start, taps)| (*start..).zip(taps.iter().copied()))
    }

    /// Filters a segment, which is preceded by [`EARLY`] symbols and followed by the next one.
    pub fn filter(&mut self, symbols: &[f32], out: &mut [f32; SEGMENT_SYMBOLS]) {
        let Self { starts, groups, rounded, row, .. } = self;
        let starts = &starts[..*groups];
        let (Some(first), Some(last)) = (starts.first(), starts.last()) else {
            return out.fill(0.0);
        };
        // The range that the taps reach.
        let range = place(*first)..place(*last) + SEGMENT_SYMBOLS + GROUP - 1;
        round(&symbols[range.clone()], ONE, &mut row[range]);
        let mut part = [0.0; SEGMENT_SYMBOLS];
        for (g, (start, taps)) in starts.iter().zip(rounded).enumerate() {
            let row = &row[place(*start)..];
            if g == 0 {
                taps.correlate(row, ONE, out);
            } else {
                taps.correlate(row, ONE, &mut part);
                out.iter_mut().zip(&part).for_each(|(out, part)| *out += part);
            }
        }
    }

    /// Moves the taps against the errors of the segment filtered last; returns the slopes.
    pub fn adapt(&mut self, errors: &Errors, step: f32) -> Slopes {
        let mut slopes = Slopes::default();
        let mut slope = [0.0; GROUP];
        for g in 0..self.groups {
            errors.correlate(&self.row[place(self.starts[g])..], ONE, &mut slope);
            let taps = self.taps[g * GROUP..].iter_mut();
            taps.zip(&slope).for_each(|(tap, slope)| *tap -= step * slope);
            slopes.add(&slope);
        }
        self.round();
        slopes
    }
}

/// Returns the index of the first symbol for a tap at `start`, for the first output of a segment.
fn place(start: isize) -> usize {
    (EARLY as isize + start) as usize
}
