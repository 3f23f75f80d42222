//! The forward filter: groups of taps, wherever they do some good.

use super::channel::EARLY;
use super::feedback::GROUP;
use crate::params::SEGMENT_SYMBOLS;
use millstream_dsp::fir::correlate;

/// Most groups in use.
pub const GROUPS_MAX: usize = 8;

/// Most forward taps.
pub const FORWARD_MAX: usize = GROUPS_MAX * GROUP;

/// Taps on received symbols around the one wanted.
#[derive(Clone, Debug)]
pub struct Forward {
    taps: [f32; FORWARD_MAX],
    /// The symbol that each group's first tap is on.
    starts: [isize; GROUPS_MAX],
    groups: usize,
}

impl Forward {
    /// A filter of one group from `start` on that passes symbols unchanged.
    ///
    /// # Panics
    /// If the group does not hold the symbol wanted.
    pub fn straight(start: isize) -> Self {
        let mut taps = [0.0; FORWARD_MAX];
        taps[..GROUP][start.unsigned_abs()] = 1.0;
        Self { taps, starts: [start; GROUPS_MAX], groups: 1 }
    }

    /// Takes groups that start on these symbols, in rising order, with their taps in turn.
    pub fn set(&mut self, starts: &[isize], taps: impl Iterator<Item = f32>) {
        self.groups = starts.len();
        self.starts[..starts.len()].copy_from_slice(starts);
        self.taps.iter_mut().zip(taps).for_each(|(tap, value)| *tap = value);
    }

    /// Every tap with the symbol that it is on.
    pub fn taps(&self) -> impl Iterator<Item = (isize, f32)> + '_ {
        let groups = self.starts[..self.groups].iter().zip(self.taps.as_chunks::<GROUP>().0);
        groups.flat_map(|(start, taps)| (*start..).zip(taps.iter().copied()))
    }

    /// Filters a segment, which is preceded by [`EARLY`] symbols and followed by the next one.
    pub fn filter(&self, symbols: &[f32], out: &mut [f32; SEGMENT_SYMBOLS]) {
        let mut part = [0.0; SEGMENT_SYMBOLS];
        for (g, (start, taps)) in self.groups().enumerate() {
            if g == 0 {
                correlate(taps, &symbols[start..], out);
            } else {
                correlate(taps, &symbols[start..], &mut part);
                out.iter_mut().zip(&part).for_each(|(out, part)| *out += part);
            }
        }
    }

    /// Moves the taps against the errors of the segment.
    pub fn adapt(&mut self, errors: &[f32; SEGMENT_SYMBOLS], symbols: &[f32], step: f32) {
        let mut slope = [0.0; GROUP];
        for g in 0..self.groups {
            correlate(errors, &symbols[place(self.starts[g])..], &mut slope);
            let taps = self.taps[g * GROUP..].iter_mut();
            taps.zip(&slope).for_each(|(tap, slope)| *tap -= step * slope);
        }
    }

    fn groups(&self) -> impl Iterator<Item = (usize, &[f32; GROUP])> {
        let starts = self.starts[..self.groups].iter().map(|start| place(*start));
        starts.zip(self.taps.as_chunks().0)
    }
}

/// Where the symbols for a tap on `start` begin, for the first symbol of a segment.
fn place(start: isize) -> usize {
    (EARLY as isize + start) as usize
}
