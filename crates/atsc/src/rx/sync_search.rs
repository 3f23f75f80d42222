//! The search for the segment sync.
//!
//! Symbols are added up over 16 segments, by their position modulo 832: data averages out, the sync
//! remains. Such a sum is a look. Three consecutive looks whose positions agree give the sync's
//! position to a fraction of a symbol and the error of the symbol clock. Real and imaginary parts
//! are added up, because an echo may rotate the strongest path relative to the pilot, and so may a
//! carrier loop during pull-in.

use super::symbol_block::SymbolBlock;
use crate::Sample;
use crate::params::{DATA_POWER, SEGMENT_SYMBOLS};
use std::ops::RangeInclusive;

/// Segments of one look.
const LOOK_SEGMENTS: usize = 16;

/// Symbols of one look.
pub const LOOK_SYMBOLS: usize = LOOK_SEGMENTS * SEGMENT_SYMBOLS;

/// Correlation of a clean signal.
const NOMINAL: f32 = 20.0;

/// The least correlation of a valid look: data alone has a deviation of 2.3 in each part.
const THRESHOLD: f32 = 10.0;

/// Share of the strongest position's power from which the position of the previous look is
/// preferred: of two paths about as strong, the search follows one.
const KEEP_SHARE: f32 = 0.4;

/// The advance, in symbols, at which a path not much weaker than the strongest one is followed
/// instead: the equaliser spans more behind its main path than ahead of it. (A path further ahead
/// looks like one behind in the previous segment.)
const LEAD: RangeInclusive<isize> = 100..=390;

/// The largest move of the sync from look to look, symbols (130 ppm), and the largest difference of
/// two such moves.
const MAX_MOVE: f64 = 1.75;
const MAX_MOVE_CHANGE: f64 = 0.75;

/// The position of the segment sync.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SyncPlace {
    /// Symbols from the end of the last look to the next sync, 0 to 832, with fraction.
    pub ahead: f64,
    /// Error of the symbol clock: the delay of the sync per symbol.
    pub rate: f64,
    /// Correlation at this position; 1 is nominal.
    pub value: Sample,
}

/// The result of a look.
#[derive(Clone, Copy, Debug)]
struct Look {
    place: f64,
    value: Sample,
}

type Sums = [f32; SEGMENT_SYMBOLS];

/// Finds the segment sync in symbols of unknown alignment.
#[derive(Clone, Debug)]
pub struct SyncSearch {
    /// Sums of real and imaginary parts.
    sums: Box<[Sums; 2]>,
    filled: usize,
    /// The last looks, newest last; `None` for a look without result.
    looks: [Option<Look>; 3],
    count: u32,
}

impl SyncSearch {
    /// Creates a search in its initial state.
    #[must_use]
    pub fn new() -> Self {
        Self { sums: Box::new([[0.0; SEGMENT_SYMBOLS]; 2]), filled: 0, looks: [None; 3], count: 0 }
    }

    /// Returns the number of looks so far.
    #[must_use]
    pub fn looks(&self) -> u32 {
        self.count
    }

    /// Takes symbols; returns the sync's position when it is found.
    pub fn push(&mut self, block: &SymbolBlock) -> Option<SyncPlace> {
        let at = self.filled % SEGMENT_SYMBOLS;
        for (sums, row) in self.sums.iter_mut().zip([&block.re, &block.im]) {
            let sums = &mut sums[at..at + row.len()];
            sums.iter_mut().zip(row).for_each(|(sum, x)| *sum += x / LOOK_SEGMENTS as f32);
        }
        self.filled += block.re.len();
        if self.filled < LOOK_SYMBOLS {
            return None;
        }
        self.looks.rotate_left(1);
        self.looks[2] = find(&self.sums, self.looks[1].map(|look| look.place));
        self.sums.as_flattened_mut().fill(0.0);
        self.filled = 0;
        self.count += 1;
        place(self.looks)
    }
}

impl Default for SyncSearch {
    fn default() -> Self {
        Self::new()
    }
}

/// Combines three looks.
fn place(looks: [Option<Look>; 3]) -> Option<SyncPlace> {
    let [Some(a), Some(b), Some(Look { place: c, value })] = looks else { return None };
    let (a, b) = (a.place, b.place);
    let (first, second) = (wrap(b - a), wrap(c - b));
    let plausible = first.abs() <= MAX_MOVE && second.abs() <= MAX_MOVE;
    if !plausible || (first - second).abs() > MAX_MOVE_CHANGE {
        return None;
    }
    let each = (first + second) / 2.0;
    // A look gives the position of the sync in the middle of the look.
    let ahead = (c + each / 2.0).rem_euclid(SEGMENT_SYMBOLS as f64);
    Some(SyncPlace { ahead, rate: each / LOOK_SYMBOLS as f64, value })
}

/// Wraps a distance to half a segment on either side.
pub(super) fn wrap(distance: f64) -> f64 {
    let len = SEGMENT_SYMBOLS as f64;
    distance - len * (distance / len).round()
}

/// Returns the position of the sync in summed segments, if it is above the noise; `near` is its
/// previous position.
fn find(sums: &[Sums; 2], near: Option<f64>) -> Option<Look> {
    let rows = sums
        .each_ref()
        .map(|row| move |i: isize| row[i.rem_euclid(SEGMENT_SYMBOLS as isize) as usize]);
    let part = |x: &dyn Fn(isize) -> f32, i: isize| x(i) - x(i + 1) - x(i + 2) + x(i + 3);
    let power = |i: isize| Sample::new(part(&rows[0], i), part(&rows[1], i)).norm_sqr();
    let strongest =
        |places: RangeInclusive<isize>| places.max_by(|a, b| power(*a).total_cmp(&power(*b)));
    let mut best = strongest(0..=SEGMENT_SYMBOLS as isize - 1)?;
    let near = near.map(|near| near.round() as isize);
    let kept = near.and_then(|near| strongest(near - 3..=near + 3));
    if let Some(kept) = kept.filter(|kept| power(*kept) > KEEP_SHARE * power(best)) {
        best = kept;
    }
    let leader = strongest(best - LEAD.end()..=best - LEAD.start());
    if let Some(leader) = leader.filter(|leader| power(*leader) > KEEP_SHARE * power(best)) {
        best = leader;
    }
    let fine = (-8..=8).map(|n| f64::from(n) / 16.0).map(|fraction| {
        let between = |i: isize| rows.each_ref().map(|x| interpolate(x, best + i, fraction));
        let [a, b, c, d] = [between(0), between(1), between(2), between(3)];
        let [re, im] = std::array::from_fn(|i| (a[i] - b[i] - c[i] + d[i]) as f32);
        (Sample::new(re, im), fraction)
    });
    let (value, fraction) = fine.max_by(|a, b| a.0.norm_sqr().total_cmp(&b.0.norm_sqr()))?;
    let look = Look { place: best as f64 + fraction, value: value / NOMINAL };
    // Input stronger than data, such as a line that is not a pilot, must match better.
    let power = sums.as_flattened().iter().map(|x| x * x).sum::<f32>() / SEGMENT_SYMBOLS as f32;
    let louder = (power / (2.0 * DATA_POWER / LOOK_SEGMENTS as f32)).max(1.0);
    (value.norm_sqr() > THRESHOLD * THRESHOLD * louder).then_some(look)
}

/// Returns the value `fraction` symbols after position `i`, by a short windowed sinc.
fn interpolate(at: &impl Fn(isize) -> f32, i: isize, fraction: f64) -> f64 {
    const REACH: isize = 8;
    let term = |n: isize| {
        let t = fraction - n as f64;
        let sinc = if t.abs() < 1e-9 {
            1.0
        } else {
            (std::f64::consts::PI * t).sin() / (std::f64::consts::PI * t)
        };
        let window = (std::f64::consts::FRAC_PI_2 * t / (REACH as f64 + 1.0)).cos();
        f64::from(at(i + n)) * sinc * window
    };
    (-REACH..=REACH).map(term).sum()
}

#[cfg(test)]
mod tests {
    use super::super::symbol_block::BLOCK_SYMBOLS;
    use super::*;
    use crate::field::SEGMENT_SYNC;

    /// Returns random data levels from a counter.
    fn data(n: usize) -> f32 {
        let hash = (n as u64 + 7).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (hash >> 61) as f32 * 2.0 - 7.0
    }

    /// Returns symbols rotated by 120 degrees.
    fn block(start: usize, symbol: impl Fn(usize) -> f32) -> SymbolBlock {
        let x: [f32; BLOCK_SYMBOLS] = std::array::from_fn(|k| symbol(start + k));
        SymbolBlock { re: x.map(|x| -0.5 * x), im: x.map(|x| 0.866 * x) }
    }

    fn search(start: usize, symbol: impl Fn(usize) -> f32) -> (SyncPlace, usize) {
        let mut search = SyncSearch::new();
        for n in (start..).step_by(BLOCK_SYMBOLS) {
            if let Some(place) = search.push(&block(n, &symbol)) {
                return (place, n + BLOCK_SYMBOLS - start);
            }
            assert!(search.looks() < 30, "nothing was found");
        }
        unreachable!("the search ends")
    }

    fn synced(n: usize) -> f32 {
        SEGMENT_SYNC.get(n % SEGMENT_SYMBOLS).copied().unwrap_or_else(|| data(n))
    }

    #[test]
    fn the_sync_is_found_after_three_looks_whatever_the_phase() {
        let (place, symbols) = search(532, synced);
        assert_eq!(symbols, 3 * LOOK_SYMBOLS);
        assert!((place.ahead - 300.0).abs() < 0.3, "{place:?}");
        assert!(place.rate.abs() < 2e-5, "{place:?}");
        assert!((place.value.re + 0.5).abs() < 0.2 && (place.value.im - 0.87).abs() < 0.3);
    }

    #[test]
    fn one_of_two_paths_that_are_about_as_strong_is_followed() {
        for start in 0..20 {
            let echo = |n: usize| 0.7 * (synced(n + 832) + 0.95 * synced(n + 832 - 57));
            let (place, symbols) = search(start * 10_000, echo);
            let place = (start as f64 * 10_000.0 + symbols as f64 + place.ahead) % 832.0;
            let off = [0.0, 57.0, 832.0].map(|path| (place - path).abs());
            assert!(off.iter().any(|off| *off < 0.6), "{place}");
            assert!(symbols <= 5 * LOOK_SYMBOLS, "{symbols}");
        }
    }

    #[test]
    fn of_paths_far_apart_the_earlier_one_is_followed() {
        for (start, late) in [(0, 0.8), (3, 0.95), (7, 1.1), (13, 1.25)] {
            let echo = |n: usize| 0.7 * (synced(n + 832) + late * synced(n + 832 - 215));
            let (place, symbols) = search(start * 10_000, echo);
            let place = (start as f64 * 10_000.0 + symbols as f64 + place.ahead) % 832.0;
            let off = [0.0, 832.0].map(|path| (place - path).abs());
            assert!(off.iter().any(|off| *off < 0.6), "{late}: {place}");
            assert!(symbols <= 8 * LOOK_SYMBOLS, "{late}: {symbols}");
        }
    }

    #[test]
    fn data_without_sync_is_not_taken_for_one() {
        let mut search = SyncSearch::new();
        for start in (0..100 * LOOK_SYMBOLS).step_by(BLOCK_SYMBOLS) {
            assert_eq!(search.push(&block(start, data)), None);
        }
        assert_eq!(search.looks(), 100);
    }

    #[test]
    fn looks_that_wander_are_joined_across_the_segment_edge() {
        let looks = |places: [f64; 3]| {
            places.map(|place| Some(Look { place, value: Sample::new(1.0, 0.0) }))
        };
        let joined = place(looks([831.0, 831.8, 0.6])).unwrap();
        assert!((joined.ahead - 1.0).abs() < 1e-9, "{joined:?}");
        assert!((joined.rate - 0.8 / LOOK_SYMBOLS as f64).abs() < 1e-12);
        assert_eq!(place(looks([1.0, 5.0, 9.0])), None);
        let [first, _, last] = looks([1.0, 1.0, 1.0]);
        assert_eq!(place([first, None, last]), None);
    }
}
