//! Errors of equalised symbols relative to their decisions.

use crate::params::SEGMENT_SYMBOLS;
use millstream_dsp::chunks::Chunks;
use millstream_dsp::multiversion;

/// Segments of a window, and the share of the previous window's error from which on the error
/// counts as no longer decreasing.
const WINDOW: u32 = 256;
const SETTLED: f64 = 0.99;

/// Parallel partial sums.
const LANES: usize = 16;

/// The error over whole windows of segments.
#[derive(Clone, Copy, Debug, Default)]
pub struct ErrorWindow {
    sum: f64,
    segments: u32,
    /// The sum of the previous window; zero before the first.
    before: f64,
    /// Whether the last window's error was hardly less than `before`.
    settled: bool,
}

impl ErrorWindow {
    /// Adds a segment's mean square error.
    pub fn take(&mut self, power: f64) {
        self.sum += power;
        self.segments += 1;
        if self.segments == WINDOW {
            let settled = self.before > 0.0 && self.sum > SETTLED * self.before;
            *self = Self { before: self.sum, settled, ..Self::default() };
        }
    }

    /// Returns whether the error is no longer decreasing.
    pub fn is_settled(&self) -> bool {
        self.settled
    }
}

/// Returns the mean square.
pub fn mean_square(symbols: &[f32]) -> f32 {
    let mut sums = [0.0; LANES];
    for symbols in symbols.in_chunks::<LANES>().0 {
        sums.iter_mut().zip(symbols).for_each(|(sum, x)| *sum += x * x);
    }
    sums.iter().sum::<f32>() / symbols.len() as f32
}

multiversion! {
    /// Computes symbols minus decisions, and their mean square.
    pub fn differences(
        symbols: &[f32; SEGMENT_SYMBOLS],
        decided: &[i16; SEGMENT_SYMBOLS],
        errors: &mut [f32; SEGMENT_SYMBOLS],
    ) -> f32 = differences_body;
}

#[inline(always)]
fn differences_body<const FMA: bool>(
    symbols: &[f32; SEGMENT_SYMBOLS],
    decided: &[i16; SEGMENT_SYMBOLS],
    errors: &mut [f32; SEGMENT_SYMBOLS],
) -> f32 {
    // Never fused, because all copies must give the same bits.
    let mut sums = [0.0; LANES];
    let rows = symbols.in_chunks::<LANES>().0.iter().zip(decided.in_chunks::<LANES>().0);
    for ((symbols, decided), errors) in rows.zip(errors.in_chunks_mut::<LANES>().0) {
        for lane in 0..LANES {
            errors[lane] = symbols[lane] - f32::from(decided[lane]);
            sums[lane] += errors[lane] * errors[lane];
        }
    }
    sums.iter().sum::<f32>() / SEGMENT_SYMBOLS as f32
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_testkit::cost;

    #[test]
    fn an_error_settles_when_a_window_is_hardly_better_than_the_one_before() {
        let mut window = ErrorWindow::default();
        let mut settled = Vec::new();
        for power in [2.0, 1.5, 1.2, 1.195, 1.3, 1.0] {
            (0..WINDOW).for_each(|_| window.take(power));
            settled.push(window.is_settled());
        }
        assert_eq!(settled, [false, false, false, true, true, false]);
    }

    #[test]
    fn the_fast_copy_gives_the_same_bits() {
        let symbols: [f32; SEGMENT_SYMBOLS] = std::array::from_fn(|n| (n * n % 97) as f32 / 7.3);
        let decided: [i16; SEGMENT_SYMBOLS] = std::array::from_fn(|n| (n % 8) as i16 * 2 - 7);
        let [mut plain, mut fast] = [[0.0; SEGMENT_SYMBOLS]; 2];
        let power = differences_body::<false>(&symbols, &decided, &mut plain);
        assert_eq!(differences(&symbols, &decided, &mut fast), power);
        assert!(plain == fast && (mean_square(&fast) / power - 1.0).abs() < 1e-5);
    }

    #[test]
    #[ignore = "counted by docs/evidence/arm64_cost.py"]
    fn cost_of_the_differences() {
        let (symbols, decided) = ([2.9; SEGMENT_SYMBOLS], [3; SEGMENT_SYMBOLS]);
        let [mut plain, mut fast] = [[0.0; SEGMENT_SYMBOLS]; 2];
        cost::repeat(
            || assert!(differences_body::<false>(&symbols, &decided, &mut plain) > 0.0),
            || assert!(differences(&symbols, &decided, &mut fast) > 0.0),
        );
    }
}
