//! A continuous impulse response, tabulated for evaluation at any fractional sample position.

use crate::chunks::Chunks;

/// Taps are padded to a multiple of this, so kernels work in whole chunks.
pub const LANES: usize = 8;

/// Eight taps and the differences to the next phase's taps.
pub type TapPair = [[f32; LANES]; 2];

/// A time in samples as a 32.32 fixed-point number: whole samples in the high half, fraction in the
/// low half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instant(pub u64);

impl Instant {
    /// Creates the time `t`, from zero to 2^32 samples.
    #[inline(always)]
    #[must_use]
    pub fn new(t: f64) -> Self {
        Self((t * 4_294_967_296.0) as u64)
    }

    /// Returns the whole samples.
    #[inline(always)]
    #[must_use]
    pub fn whole(self) -> usize {
        (self.0 >> 32) as usize
    }
}

/// An impulse response as a bank of phases with linear interpolation between them.
///
/// With samples `x[n]` at integer times, the filter output at time `t = n + mu` (`mu` in 0..1) is
/// `sum over j of x[n - H + 1 + j] * f(mu + H - 1 - j)`, where the bank holds `2 * H` taps.
/// A response limited to `b` cycles per sample is interpolated with a relative error below
/// `(2 pi b / phases)^2 / 8`.
#[derive(Clone, Debug)]
pub struct PolyphaseBank {
    /// [`TapPair`]s of one phase.
    chunks: usize,
    phases: u32,
    rows: Vec<TapPair>,
}

impl PolyphaseBank {
    /// Tabulates `response`, a function of time in samples that is zero beyond `half_span`.
    ///
    /// # Panics
    /// If `phases` is zero or `half_span` is not positive.
    #[must_use]
    pub fn new(phases: u32, half_span: f64, response: impl Fn(f64) -> f64) -> Self {
        assert!(phases > 0 && half_span > 0.0, "a bank needs phases and a span");
        let taps = (2 * half_span.ceil() as usize).next_multiple_of(LANES);
        let half = (taps / 2) as f64;
        let tap = |phase: u32, j: usize| {
            response(f64::from(phase) / f64::from(phases) + half - 1.0 - j as f64)
        };
        let slope = |phase: u32, j: usize| tap(phase + 1, j) - tap(phase, j);
        let pair = |phase: u32, first: usize| {
            let taps = std::array::from_fn(|i| tap(phase, first + i) as f32);
            [taps, std::array::from_fn(|i| slope(phase, first + i) as f32)]
        };
        let starts = || (0..taps).step_by(LANES);
        let rows = (0..phases).flat_map(|p| starts().map(move |first| (p, first)));
        Self {
            chunks: taps / LANES,
            phases,
            rows: rows.map(|(phase, first)| pair(phase, first)).collect(),
        }
    }

    /// Returns the number of taps of one phase (a multiple of [`LANES`]).
    #[inline(always)]
    #[must_use]
    pub fn taps(&self) -> usize {
        self.chunks * LANES
    }

    /// Returns the samples needed after the integer position `n` (the output uses `n - half + 1 ..=
    /// n + half`).
    #[inline(always)]
    #[must_use]
    pub fn half(&self) -> usize {
        self.taps() / 2
    }

    /// Returns the taps for a time, and its position towards the next phase (0 to 1).
    #[inline(always)]
    #[must_use]
    pub fn row(&self, at: Instant) -> (&[TapPair], f32) {
        let scaled = (at.0 & 0xFFFF_FFFF) * u64::from(self.phases);
        let start = (scaled >> 32) as usize * self.chunks;
        let fraction = ((scaled & 0xFFFF_FFFF) >> 8) as i32 as f32 * (1.0 / 16_777_216.0);
        (&self.rows[start..start + self.chunks], fraction)
    }

    /// Returns the `taps` samples of `x` that the output at `at` depends on.
    #[inline(always)]
    #[must_use]
    pub fn window<'a>(&self, x: &'a [f32], at: Instant) -> &'a [[f32; LANES]] {
        let first = at.whole() + 1 - self.half();
        x[first..first + self.taps()].in_chunks::<LANES>().0
    }
}

/// Adds up the lanes.
#[inline(always)]
#[must_use]
pub fn sum_lanes(lanes: &[f32; LANES]) -> f32 {
    let half: [f32; 4] = std::array::from_fn(|i| lanes[i] + lanes[i + 4]);
    (half[0] + half[2]) + (half[1] + half[3])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taps_at(bank: &PolyphaseBank, at: Instant) -> Vec<f32> {
        let (row, fraction) = bank.row(at);
        let blend = |[taps, slopes]: &TapPair| -> [f32; LANES] {
            std::array::from_fn(|i| taps[i] + fraction * slopes[i])
        };
        row.iter().flat_map(blend).collect()
    }

    #[test]
    fn interpolated_taps_follow_the_response() {
        let response = |t: f64| (-t * t / 8.0).exp();
        let bank = PolyphaseBank::new(64, 12.0, response);
        assert_eq!(bank.taps(), 24);
        for step in 0..1000 {
            let mu = f64::from(step) / 1000.0;
            for (j, tap) in taps_at(&bank, Instant::new(7.0 + mu)).iter().enumerate() {
                let exact = response(mu + 11.0 - j as f64);
                assert!((f64::from(*tap) - exact).abs() < 1e-4, "mu {mu} tap {j}");
            }
        }
    }

    #[test]
    fn the_last_phase_reaches_the_next_sample() {
        let bank = PolyphaseBank::new(4, 4.0, |t| t);
        assert!((taps_at(&bank, Instant::new(0.999_999))[0] - 4.0).abs() < 1e-3);
    }

    #[test]
    fn the_window_lies_around_the_time() {
        let bank = PolyphaseBank::new(1, 4.0, |t| t);
        let x: Vec<f32> = (0..20).map(|n| n as f32).collect();
        let window = bank.window(&x, Instant::new(7.5)).as_flattened();
        assert_eq!(window, [4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0]);
    }
}
