//! Segments out of symbols: search, tracking, and bridging of interruptions.

use super::segment_splitter::SegmentSplitter;
use super::symbol_block::{Places, SymbolBlock};
use super::sync_search::{SyncPlace, SyncSearch, wrap};
use super::timing::{Timing, TimingChange};
use crate::Sample;
use crate::params::SEGMENT_SYMBOLS;
use crate::segment::WholeSegment;

/// Weight of one segment in the smoothed sync correlation.
const QUALITY_WEIGHT: f32 = 1.0 / 16.0;

/// Magnitude of the smoothed correlation (nominally 1; 0.58 for the first of three equal paths)
/// below which the signal counts as absent. Noise alone has a deviation of 0.12.
const QUALITY_LOST: f32 = 0.35;

/// Magnitude from which the signal counts as present again.
const QUALITY_BACK: f32 = 0.6;

/// Segments for which a newly found sync is trusted: the carrier loop pulls in meanwhile, and the
/// correlation rotates with it.
const SETTLING_SEGMENTS: u32 = 48;

/// Cosine of the angle between the strongest path and its quadrant below which the quadrant
/// changes.
const QUADRANT_LEFT: f32 = 0.2;

/// The largest shift of the sync after an interruption, symbols.
const SLIP_MAX: f64 = 2.5;

/// Looks of the search without result after which the sync counts as absent (about 60 ms).
const MAX_LOOKS: u32 = 48;

/// The output of the segment sync.
#[derive(Debug)]
pub enum SyncOutput<'a> {
    /// The sync was found; sample the following symbols at this timing.
    Found(TimingChange),
    /// A segment whose position is not yet known, and the timing of the following symbols.
    Segment(&'a mut WholeSegment, TimingChange),
    /// The search found nothing for a long time; it continues.
    Absent,
}

/// Cuts symbols into segments and recovers their timing.
///
/// When the sync disappears, segments continue at their interval and are marked as held: a signal
/// that returns at its old position within 60 ms has lost only the symbols in between.
#[derive(Clone, Debug)]
pub struct SegmentSync {
    state: State,
    cutter: SegmentSplitter,
    /// Whether symbols of the current segment are missing.
    gap: bool,
}

#[derive(Clone, Debug)]
enum State {
    Searching(SyncSearch),
    Tracking(Track),
}

impl SegmentSync {
    /// Creates a segment sync in its initial state.
    #[must_use]
    pub fn new() -> Self {
        let state = State::Searching(SyncSearch::new());
        Self { state, cutter: SegmentSplitter::new(0), gap: false }
    }

    /// Returns whether segments are put out.
    #[must_use]
    pub fn is_tracking(&self) -> bool {
        matches!(self.state, State::Tracking(_))
    }

    /// Returns whether the signal is absent and segments only keep the timing.
    #[must_use]
    pub fn is_held(&self) -> bool {
        matches!(&self.state, State::Tracking(track) if track.search.is_some())
    }

    /// Returns the symbols of the next block that need imaginary parts: for the search, and at a
    /// sync.
    #[must_use]
    pub fn imaginary(&self) -> Places {
        let searches = !self.is_tracking() || self.is_held();
        if searches { Places::ALL } else { self.cutter.sync() }
    }

    /// Returns the symbol clock's error: positive if the sender's symbols are longer than nominal.
    #[must_use]
    pub fn clock_rate(&self) -> f64 {
        match &self.state {
            State::Tracking(track) => track.timing.rate(),
            State::Searching(_) => 0.0,
        }
    }

    /// Takes a block of symbols; returns at most one output, which the caller must apply before it
    /// samples further symbols. A block of a `gap` replaces lost symbols.
    pub fn push(&mut self, block: &SymbolBlock, gap: bool) -> Option<SyncOutput<'_>> {
        let whole = self.is_tracking() && self.cutter.push(block);
        self.gap |= gap;
        let ahead = self.cutter.ahead() as f64;
        let found = match &mut self.state {
            State::Searching(search) => look(search, block),
            State::Tracking(Track { search: Some(search), .. }) => look(search, block),
            State::Tracking(_) => None,
        };
        match (found, &mut self.state) {
            (Some(Look::Nothing), _) => {
                self.state = State::Searching(SyncSearch::new());
                return Some(SyncOutput::Absent);
            }
            (Some(Look::Found(place)), State::Tracking(track))
                if wrap(place.ahead - ahead).abs() <= SLIP_MAX =>
            {
                track.come_back(&place, wrap(place.ahead - ahead));
            }
            (Some(Look::Found(place)), _) => return Some(SyncOutput::Found(self.begin(&place))),
            (None, _) => {}
        }
        match &mut self.state {
            State::Tracking(track) if whole => {
                let segment = self.cutter.segment();
                let change = track.follow(segment, std::mem::take(&mut self.gap));
                Some(SyncOutput::Segment(segment, change))
            }
            _ => None,
        }
    }

    fn begin(&mut self, place: &SyncPlace) -> TimingChange {
        let whole = place.ahead.round();
        // The search measures the remaining error of the clock.
        let rate = self.clock_rate() + place.rate;
        self.state = State::Tracking(Track::new(place.value, rate));
        self.cutter.restart(whole as usize % SEGMENT_SYMBOLS);
        self.gap = false;
        TimingChange { shift: place.ahead - whole, rate }
    }
}

impl Default for SegmentSync {
    fn default() -> Self {
        Self::new()
    }
}

/// The result of one look of the search.
enum Look {
    Found(SyncPlace),
    /// No sync was found for so long that there is none.
    Nothing,
}

fn look(search: &mut SyncSearch, block: &SymbolBlock) -> Option<Look> {
    match search.push(block) {
        Some(place) => Some(Look::Found(place)),
        None if search.looks() == MAX_LOOKS => Some(Look::Nothing),
        None => None,
    }
}

/// A segment sync that was found.
#[derive(Clone, Debug)]
struct Track {
    timing: Timing,
    /// The smoothed correlation with the sync, in the strongest path's phase.
    quality: Sample,
    /// The search for the returning signal, while it is absent.
    search: Option<SyncSearch>,
    /// The delay of the signal after its return.
    slip: f64,
    /// Remaining segments for which the sync is trusted.
    settling: u32,
    /// The phase of the timing detector.
    quadrant: Sample,
}

impl Track {
    fn new(quality: Sample, rate: f64) -> Self {
        let settling = SETTLING_SEGMENTS;
        let timing = Timing::new(rate);
        Self { timing, quality, search: None, slip: 0.0, settling, quadrant: Sample::ZERO }
    }

    fn come_back(&mut self, place: &SyncPlace, slip: f64) {
        (self.quality, self.slip) = (place.value, slip);
        self.release();
    }

    /// Returns a phase for the timing detector. In a vestigial sideband a delay is almost a phase
    /// rotation: in the path's own phase the detector would have a poor zero, which wanders. So the
    /// phase is fixed to the pilot's, or a quarter or half rotation away when echoes have separated
    /// the two.
    fn reference(&mut self) -> Sample {
        let path = self.quality / self.quality.norm().max(f32::MIN_POSITIVE);
        if (path * self.quadrant.conj()).re < QUADRANT_LEFT {
            self.quadrant = if path.re.abs() > path.im.abs() {
                Sample::new(path.re.signum(), 0.0)
            } else {
                Sample::new(0.0, path.im.signum())
            };
        }
        self.quadrant
    }

    fn release(&mut self) {
        (self.search, self.settling) = (None, SETTLING_SEGMENTS);
    }

    /// Follows the timing of a segment, or marks it as held.
    fn follow(&mut self, whole: &mut WholeSegment, gap: bool) -> TimingChange {
        if !gap {
            self.quality += (correlate(whole) - self.quality) * QUALITY_WEIGHT;
            let quality = self.quality.norm();
            // NaN does not count as a signal.
            let there = quality >= QUALITY_LOST;
            self.settling = self.settling.saturating_sub(1);
            if self.search.is_some() && quality > QUALITY_BACK {
                self.release();
            } else if self.search.is_none() && self.settling == 0 && !there {
                self.search = Some(SyncSearch::new());
            }
        }
        let held = gap || self.search.is_some();
        whole.segment.set_held(held);
        let mut change = if held {
            TimingChange { shift: 0.0, rate: self.timing.rate() }
        } else {
            let reference = self.reference();
            self.timing.update(whole, reference)
        };
        change.shift += std::mem::take(&mut self.slip);
        change
    }
}

/// Returns the correlation of a segment's beginning with the sync; 1 for a clean signal.
fn correlate(whole: &WholeSegment) -> Sample {
    let [a, b, c, d] =
        std::array::from_fn(|k| Sample::new(whole.segment.symbols[k], whole.quadrature[k]));
    (a - b - c + d) / 20.0
}

#[cfg(test)]
mod tests {
    use super::super::symbol_block::BLOCK_SYMBOLS;
    use super::*;
    use crate::field::SEGMENT_SYNC;

    fn symbol(n: usize) -> f32 {
        let hash = (n as u64 + 7).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let data = (hash >> 61) as f32 * 2.0 - 7.0;
        SEGMENT_SYNC.get((n + 100) % SEGMENT_SYMBOLS).copied().unwrap_or(data)
    }

    /// Returns symbols rotated by 60 degrees, as an echo may leave them.
    fn block(n: usize, symbol: impl Fn(usize) -> f32) -> SymbolBlock {
        let x: [f32; BLOCK_SYMBOLS] = std::array::from_fn(|k| symbol(n * BLOCK_SYMBOLS + k));
        SymbolBlock { re: x.map(|x| 0.5 * x), im: x.map(|x| 0.866 * x) }
    }

    /// Returns the blocks of as many segments.
    fn blocks(segments: std::ops::Range<usize>) -> std::ops::Range<usize> {
        const EACH: usize = SEGMENT_SYMBOLS / BLOCK_SYMBOLS;
        segments.start * EACH..segments.end * EACH
    }

    /// Processes segments; returns how many came, and how many of them were held.
    fn run(
        sync: &mut SegmentSync,
        segments: std::ops::Range<usize>,
        symbol: impl Fn(usize) -> f32,
    ) -> (usize, usize) {
        let mut counts = (0, 0);
        for n in blocks(segments) {
            match sync.push(&block(n, &symbol), false) {
                Some(SyncOutput::Segment(segment, change)) => {
                    counts.0 += 1;
                    counts.1 += usize::from(segment.segment.held());
                    assert!(change.rate.abs() < 1e-4);
                }
                Some(SyncOutput::Found(_)) | None => {}
                Some(SyncOutput::Absent) => break,
            }
        }
        counts
    }

    #[test]
    fn segments_start_with_the_sync_whatever_the_phase() {
        let mut sync = SegmentSync::new();
        let (segments, held) = run(&mut sync, 0..250, symbol);
        assert!(segments > 195 && held == 0, "{segments} {held}");
        assert_eq!(sync.cutter.segment().segment.symbols[..4], [2.5, -2.5, -2.5, 2.5]);
    }

    #[test]
    fn a_signal_that_comes_back_in_its_place_goes_on() {
        let mut sync = SegmentSync::new();
        run(&mut sync, 0..250, symbol);
        let (segments, held) = run(&mut sync, 250..300, |_| 0.0);
        assert!(sync.is_held() && segments == 50 && held > 25, "{segments} {held}");
        let (segments, held) = run(&mut sync, 300..350, symbol);
        assert!(!sync.is_held() && segments == 50 && held < 20, "{segments} {held}");
    }

    #[test]
    fn a_signal_that_comes_back_elsewhere_is_found_there() {
        let mut sync = SegmentSync::new();
        run(&mut sync, 0..250, symbol);
        run(&mut sync, 250..300, |_| 0.0);
        let (segments, _) = run(&mut sync, 300..400, |n| symbol(n + 300));
        assert!(!sync.is_held() && segments > 80, "{segments}");
    }

    #[test]
    fn a_gap_is_marked_and_changes_nothing() {
        let mut sync = SegmentSync::new();
        run(&mut sync, 0..250, symbol);
        for _ in blocks(250..350) {
            if let Some(SyncOutput::Segment(segment, _)) = sync.push(&SymbolBlock::default(), true)
            {
                assert!(segment.segment.held());
            }
        }
        let (segments, held) = run(&mut sync, 350..400, symbol);
        assert!(segments == 50 && held <= 1, "{segments} {held}");
    }

    #[test]
    fn a_signal_without_sync_is_reported_again_and_again() {
        let mut sync = SegmentSync::new();
        let data = |n: usize| symbol(n * 3 + n / 7);
        let mut absent = 0;
        for n in blocks(0..16 * 100) {
            let output = sync.push(&block(n, data), false);
            absent += usize::from(matches!(output, Some(SyncOutput::Absent)));
        }
        assert_eq!(absent, 2);
    }
}
