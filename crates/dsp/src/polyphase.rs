//! A continuous impulse response, tabulated for evaluation at any fractional sample position.

/// Taps are padded to a multiple of this, so kernels work in whole chunks.
pub const LANES: usize = 8;

/// An impulse response as a bank of phases with linear interpolation between them.
///
/// With samples `x[n]` at integer times, the filter output at time `t = n + mu` (`mu` in 0..1) is
/// `sum over j of x[n - H + 1 + j] * f(mu + H - 1 - j)`, where the bank holds `2 * H` taps.
/// A response limited to `b` cycles per sample is interpolated with a relative error below
/// `(2 pi b / phases)^2 / 8`.
#[derive(Clone, Debug)]
pub struct PolyphaseBank {
    taps: usize,
    phases: usize,
    /// For each phase: the taps, then the differences to the next phase's taps.
    rows: Vec<f32>,
}

impl PolyphaseBank {
    /// Tabulates `response`, a function of time in samples that is zero beyond `half_span`.
    ///
    /// # Panics
    /// If `phases` is zero or `half_span` is not positive.
    #[must_use]
    pub fn new(phases: usize, half_span: f64, response: impl Fn(f64) -> f64) -> Self {
        assert!(phases > 0 && half_span > 0.0, "a bank needs phases and a span");
        let taps = (2 * half_span.ceil() as usize).next_multiple_of(LANES);
        let half = (taps / 2) as f64;
        let tap =
            |phase: usize, j: usize| response(phase as f64 / phases as f64 + half - 1.0 - j as f64);
        let mut rows = Vec::with_capacity(phases * taps * 2);
        for phase in 0..phases {
            rows.extend((0..taps).map(|j| tap(phase, j) as f32));
            rows.extend((0..taps).map(|j| (tap(phase + 1, j) - tap(phase, j)) as f32));
        }
        Self { taps, phases, rows }
    }

    /// The number of taps of one phase (a multiple of [`LANES`]).
    #[must_use]
    pub fn taps(&self) -> usize {
        self.taps
    }

    /// Samples needed after the integer position `n` (the output uses `n - half + 1 ..= n + half`).
    #[must_use]
    pub fn half(&self) -> usize {
        self.taps / 2
    }

    /// The taps at `mu` in 0..1, the differences to the next phase, and the fraction between.
    #[inline(always)]
    #[must_use]
    pub fn row(&self, mu: f64) -> (&[f32], &[f32], f32) {
        let scaled = mu * self.phases as f64;
        let phase = (scaled as usize).min(self.phases - 1);
        let start = phase * 2 * self.taps;
        let (taps, slopes) = self.rows[start..start + 2 * self.taps].split_at(self.taps);
        (taps, slopes, (scaled - phase as f64) as f32)
    }

    /// The taps at `mu`, interpolated: for tests and for uses off the hot path.
    #[must_use]
    pub fn taps_at(&self, mu: f64) -> Vec<f32> {
        let (taps, slopes, fraction) = self.row(mu);
        taps.iter().zip(slopes).map(|(c, d)| c + fraction * d).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interpolated_taps_follow_the_response() {
        let response = |t: f64| (-t * t / 8.0).exp();
        let bank = PolyphaseBank::new(64, 12.0, response);
        assert_eq!(bank.taps(), 24);
        for step in 0..1000 {
            let mu = f64::from(step) / 1000.0;
            for (j, tap) in bank.taps_at(mu).iter().enumerate() {
                let exact = response(mu + 11.0 - j as f64);
                assert!((f64::from(*tap) - exact).abs() < 1e-4, "mu {mu} tap {j}");
            }
        }
    }

    #[test]
    fn the_last_phase_reaches_the_next_sample() {
        let bank = PolyphaseBank::new(4, 4.0, |t| t);
        let (taps, slopes, fraction) = bank.row(0.999_999);
        assert!((taps[0] + fraction * slopes[0] - 4.0).abs() < 1e-3);
    }
}
