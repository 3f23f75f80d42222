//! Segments out of symbols: search, then track.

use super::carrier::{BLOCK_SYMBOLS, SymbolBlock};
use super::sync_search::{SyncPlace, SyncSearch};
use super::timing::{Timing, TimingChange};
use crate::params::SEGMENT_SYMBOLS;

/// Weight of one segment in the smoothed sync correlation.
const QUALITY_WEIGHT: f32 = 1.0 / 16.0;

/// Smoothed correlation (nominally 1) below which the sync is lost.
const QUALITY_LOST: f32 = 0.45;

/// Looks of the search without result after which there is no sync here (about 60 ms).
const MAX_LOOKS: u32 = 48;

/// The symbols of a segment.
#[derive(Clone, Copy, Debug)]
pub struct SegmentRows<'a> {
    /// Real parts: the levels.
    pub re: &'a [f32; SEGMENT_SYMBOLS],
    /// Imaginary parts.
    pub im: &'a [f32; SEGMENT_SYMBOLS],
}

/// What comes out of the segment sync.
#[derive(Debug)]
pub enum SyncOutput<'a> {
    /// The sync was found: take the following symbols so.
    Found(TimingChange),
    /// A segment, and how to take the following symbols.
    Segment(SegmentRows<'a>, TimingChange),
    /// The sync went away; a new search has begun.
    Lost,
    /// The search found nothing for long; it goes on.
    Absent,
}

#[derive(Clone, Debug)]
enum State {
    Searching(SyncSearch),
    Tracking { timing: Timing, quality: f32 },
}

/// Cuts symbols into segments and recovers their timing.
#[derive(Clone, Debug)]
pub struct SegmentSync {
    state: State,
    /// Symbols not yet cut, and the segment that was put out last before them.
    symbols: [[f32; SEGMENT_SYMBOLS + BLOCK_SYMBOLS]; 2],
    filled: usize,
    /// Symbols to drop before the first segment.
    skip: usize,
}

impl SegmentSync {
    /// Before the first symbol.
    #[must_use]
    pub fn new() -> Self {
        Self {
            state: State::Searching(SyncSearch::new()),
            symbols: [[0.0; SEGMENT_SYMBOLS + BLOCK_SYMBOLS]; 2],
            filled: 0,
            skip: 0,
        }
    }

    /// Whether segments come out.
    #[must_use]
    pub fn is_tracking(&self) -> bool {
        matches!(self.state, State::Tracking { .. })
    }

    /// The symbol clock's error: positive if the sender's symbols are longer than nominal.
    #[must_use]
    pub fn clock_rate(&self) -> f64 {
        match &self.state {
            State::Tracking { timing, .. } => timing.rate(),
            State::Searching(_) => 0.0,
        }
    }

    /// Takes a block of symbols; gives at most one output, before which no further symbols may be
    /// taken at the old timing.
    pub fn push(&mut self, block: &SymbolBlock) -> Option<SyncOutput<'_>> {
        match &mut self.state {
            State::Searching(search) => {
                if let Some(place) = search.push(&block.re) {
                    return Some(SyncOutput::Found(self.begin(place)));
                }
                if search.looks() == MAX_LOOKS {
                    *search = SyncSearch::new();
                    return Some(SyncOutput::Absent);
                }
                None
            }
            State::Tracking { timing, quality } => {
                let dropped = self.skip.min(BLOCK_SYMBOLS);
                self.skip -= dropped;
                if self.filled >= SEGMENT_SYMBOLS {
                    self.symbols.iter_mut().for_each(|x| x.copy_within(SEGMENT_SYMBOLS.., 0));
                    self.filled -= SEGMENT_SYMBOLS;
                }
                let end = self.filled + BLOCK_SYMBOLS - dropped;
                for (row, block) in self.symbols.iter_mut().zip([&block.re, &block.im]) {
                    row[self.filled..end].copy_from_slice(&block[dropped..]);
                }
                self.filled = end;
                let [re, im] = &self.symbols;
                let (Some(re), Some(im)) =
                    (re.first_chunk::<SEGMENT_SYMBOLS>(), im.first_chunk::<SEGMENT_SYMBOLS>())
                else {
                    unreachable!("rows are longer than a segment")
                };
                if end < SEGMENT_SYMBOLS {
                    return None;
                }
                let [a, b, c, d, ..] = *re;
                *quality += QUALITY_WEIGHT * ((a - b - c + d) / 20.0 - *quality);
                if *quality < QUALITY_LOST {
                    self.state = State::Searching(SyncSearch::new());
                    return Some(SyncOutput::Lost);
                }
                Some(SyncOutput::Segment(SegmentRows { re, im }, timing.update(re)))
            }
        }
    }

    fn begin(&mut self, place: SyncPlace) -> TimingChange {
        let whole = place.ahead.round();
        self.state = State::Tracking { timing: Timing::new(place.rate), quality: 1.0 };
        self.filled = 0;
        self.skip = whole as usize % SEGMENT_SYMBOLS;
        TimingChange { shift: place.ahead - whole, rate: place.rate }
    }
}

impl Default for SegmentSync {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::SEGMENT_SYNC;

    fn symbol(n: usize) -> f32 {
        let hash = (n as u64 + 7).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let data = (hash >> 61) as f32 * 2.0 - 7.0;
        SEGMENT_SYNC.get((n + 100) % SEGMENT_SYMBOLS).copied().unwrap_or(data)
    }

    /// The imaginary part is the real part's negative.
    fn block(start: usize, symbol: impl Fn(usize) -> f32) -> SymbolBlock {
        let re = std::array::from_fn(|k| symbol(start + k));
        SymbolBlock { re, im: re.map(|x| -x) }
    }

    #[test]
    fn segments_start_with_the_sync_until_it_goes_away() {
        let mut sync = SegmentSync::new();
        let mut segments = 0;
        for n in 0..2000 {
            match sync.push(&block(n * BLOCK_SYMBOLS, symbol)) {
                Some(SyncOutput::Segment(segment, change)) => {
                    assert_eq!(segment.re[..4], SEGMENT_SYNC);
                    assert_eq!(*segment.im, segment.re.map(|x| -x));
                    assert!(change.rate.abs() < 1e-4);
                    segments += 1;
                }
                Some(SyncOutput::Found(_)) | None => {}
                other => panic!("{other:?}"),
            }
        }
        assert!(segments > 195, "{segments}");
        let lost =
            (0..400).any(|_| matches!(sync.push(&SymbolBlock::default()), Some(SyncOutput::Lost)));
        assert!(lost && !sync.is_tracking());
    }

    #[test]
    fn a_signal_without_sync_is_reported_again_and_again() {
        let mut sync = SegmentSync::new();
        let data = |n: usize| symbol(n * 3 + n / 7);
        let mut absent = 0;
        for n in 0..128 * 100 {
            absent += usize::from(matches!(
                sync.push(&block(n * BLOCK_SYMBOLS, data)),
                Some(SyncOutput::Absent)
            ));
        }
        assert_eq!(absent, 2);
    }
}
