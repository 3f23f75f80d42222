//! The search for the segment sync.
//!
//! Symbols are added up over 16 segments, by their position modulo 832: data averages out, the
//! sync stays. Three such looks in a row whose positions agree give the sync's place to a fraction
//! of a symbol and the error of the symbol clock.

use crate::params::SEGMENT_SYMBOLS;

/// Segments of one look.
const LOOK_SEGMENTS: usize = 16;

/// Symbols of one look.
pub const LOOK_SYMBOLS: usize = LOOK_SEGMENTS * SEGMENT_SYMBOLS;

/// Correlation that makes a look count: 20 is nominal, and data alone has a deviation of 2.3.
const THRESHOLD: f32 = 11.0;

/// The most that the sync may move from look to look, in symbols (130 ppm), and the most that two
/// such moves may differ.
const MAX_MOVE: f64 = 1.75;
const MAX_MOVE_CHANGE: f64 = 0.75;

/// The segment sync's place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SyncPlace {
    /// Symbols from the end of the last look to the next sync, 0 to 832, with fraction.
    pub ahead: f64,
    /// Error of the symbol clock: the sync comes this much later per symbol.
    pub rate: f64,
}

/// Finds the segment sync in symbols of unknown alignment.
#[derive(Clone, Debug)]
pub struct SyncSearch {
    sums: Box<[f32; SEGMENT_SYMBOLS]>,
    filled: usize,
    /// Places of the last looks, newest last; none where a look found nothing.
    looks: [Option<f64>; 3],
    count: u32,
}

impl SyncSearch {
    /// Before the first symbol.
    #[must_use]
    pub fn new() -> Self {
        Self { sums: Box::new([0.0; SEGMENT_SYMBOLS]), filled: 0, looks: [None; 3], count: 0 }
    }

    /// Looks taken so far.
    #[must_use]
    pub fn looks(&self) -> u32 {
        self.count
    }

    /// Takes symbols, which must fill a whole number of looks.
    pub fn push(&mut self, symbols: &[f32]) -> Option<SyncPlace> {
        let at = self.filled % SEGMENT_SYMBOLS;
        let sums = &mut self.sums[at..at + symbols.len()];
        sums.iter_mut().zip(symbols).for_each(|(sum, x)| *sum += x / LOOK_SEGMENTS as f32);
        self.filled += symbols.len();
        if self.filled < LOOK_SYMBOLS {
            return None;
        }
        self.looks.rotate_left(1);
        self.looks[2] = find(&self.sums);
        self.sums.fill(0.0);
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

/// Joins three looks.
fn place(looks: [Option<f64>; 3]) -> Option<SyncPlace> {
    let [Some(a), Some(b), Some(c)] = looks else { return None };
    let (first, second) = (wrap(b - a), wrap(c - b));
    let plausible = first.abs() <= MAX_MOVE && second.abs() <= MAX_MOVE;
    if !plausible || (first - second).abs() > MAX_MOVE_CHANGE {
        return None;
    }
    let each = (first + second) / 2.0;
    // A look shows the sync where it was in the middle of the look.
    let ahead = (c + each / 2.0).rem_euclid(SEGMENT_SYMBOLS as f64);
    Some(SyncPlace { ahead, rate: each / LOOK_SYMBOLS as f64 })
}

/// A distance on the circle of a segment.
fn wrap(distance: f64) -> f64 {
    let len = SEGMENT_SYMBOLS as f64;
    distance - len * (distance / len).round()
}

/// The place of the sync in summed segments, if it stands out.
fn find(sums: &[f32; SEGMENT_SYMBOLS]) -> Option<f64> {
    let at = |i: isize| sums[i.rem_euclid(SEGMENT_SYMBOLS as isize) as usize];
    let match_at = |i: isize| at(i) - at(i + 1) - at(i + 2) + at(i + 3);
    let best =
        (0..SEGMENT_SYMBOLS as isize).max_by(|a, b| match_at(*a).total_cmp(&match_at(*b)))?;
    let fine = (-8..=8).map(|n| f64::from(n) / 16.0).map(|fraction| {
        let between = |i: isize| interpolate(&at, best + i, fraction);
        (between(0) - between(1) - between(2) + between(3), fraction)
    });
    let (value, fraction) = fine.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (value > f64::from(THRESHOLD)).then_some(best as f64 + fraction)
}

/// The value `fraction` symbols after place `i`, by a short windowed sinc.
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
    use super::*;
    use crate::field::SEGMENT_SYNC;

    /// Random data levels from a counter.
    fn data(n: usize) -> f32 {
        let hash = (n as u64 + 7).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (hash >> 61) as f32 * 2.0 - 7.0
    }

    #[test]
    fn the_sync_is_found_after_three_looks() {
        let start = 300;
        let symbol = |n: usize| {
            let i = (n + SEGMENT_SYMBOLS - start) % SEGMENT_SYMBOLS;
            SEGMENT_SYNC.get(i).copied().unwrap_or_else(|| data(n))
        };
        let mut search = SyncSearch::new();
        let mut found = None;
        let mut n = 0;
        while found.is_none() {
            let symbols: Vec<f32> = (n..n + 104).map(symbol).collect();
            found = search.push(&symbols);
            n += 104;
        }
        let SyncPlace { ahead, rate } = found.unwrap();
        assert_eq!(n, 3 * LOOK_SYMBOLS);
        assert!((ahead - start as f64).abs() < 0.3, "{ahead}");
        assert!(rate.abs() < 2e-5, "{rate}");
    }

    #[test]
    fn data_without_sync_is_not_taken_for_one() {
        let mut search = SyncSearch::new();
        for start in (0..100 * LOOK_SYMBOLS).step_by(104) {
            let symbols: Vec<f32> = (start..start + 104).map(data).collect();
            assert_eq!(search.push(&symbols), None);
        }
        assert_eq!(search.looks(), 100);
    }

    #[test]
    fn looks_that_wander_are_joined_across_the_segment_edge() {
        let joined = place([Some(831.0), Some(831.8), Some(0.6)]).unwrap();
        assert!((joined.ahead - 1.0).abs() < 1e-9, "{joined:?}");
        assert!((joined.rate - 0.8 / LOOK_SYMBOLS as f64).abs() < 1e-12);
        assert_eq!(place([Some(1.0), Some(5.0), Some(9.0)]), None);
        assert_eq!(place([Some(1.0), None, Some(1.0)]), None);
    }
}
