//! The proportional-plus-integral filter of a second-order tracking loop.

/// Gains for a loop that is updated at a fixed rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoopGains {
    /// Added to the phase, per unit of error.
    pub proportional: f64,
    /// Added to the rate (per update), per unit of error.
    pub integral: f64,
}

impl LoopGains {
    /// Creates the gains for a damping of 0.707 at a one-sided noise bandwidth, for a detector of
    /// unit slope. `bandwidth_hz` should stay below a twentieth of `update_rate_hz`.
    #[must_use]
    pub fn new(bandwidth_hz: f64, update_rate_hz: f64) -> Self {
        const DAMPING: f64 = std::f64::consts::FRAC_1_SQRT_2;
        // Noise bandwidth of a second-order loop: wn / 2 * (zeta + 1 / (4 zeta)).
        let natural = 2.0 * bandwidth_hz / (DAMPING + 0.25 / DAMPING);
        let theta = natural / update_rate_hz;
        Self { proportional: 2.0 * DAMPING * theta, integral: theta * theta }
    }
}

/// A second-order loop: `rate` is the integral branch.
#[derive(Clone, Copy, Debug)]
pub struct LoopFilter {
    gains: LoopGains,
    rate: f64,
    rate_limit: f64,
}

impl LoopFilter {
    /// Creates a loop at rest; `rate_limit` bounds the integral branch on both sides.
    #[must_use]
    pub fn new(gains: LoopGains, rate_limit: f64) -> Self {
        Self { gains, rate: 0.0, rate_limit }
    }

    /// Changes the gains without a change of the integral branch.
    pub fn set_gains(&mut self, gains: LoopGains) {
        self.gains = gains;
    }

    /// Presets the integral branch.
    pub fn set_rate(&mut self, rate: f64) {
        self.rate = rate.clamp(-self.rate_limit, self.rate_limit);
    }

    /// Returns the integral branch: phase per update.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// Takes one detector output; returns the phase to advance by until the next update.
    pub fn update(&mut self, error: f64) -> f64 {
        self.set_rate(self.rate + self.gains.integral * error);
        self.rate + self.gains.proportional * error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follows_a_frequency_step_without_lasting_error() {
        let mut filter = LoopFilter::new(LoopGains::new(300.0, 100_000.0), 0.1);
        let (mut phase, mut local) = (0.0_f64, 0.0_f64);
        let mut error = 0.0;
        for _ in 0..5000 {
            phase += 0.01;
            error = phase - local;
            local += filter.update(error);
        }
        assert!(error.abs() < 1e-6, "{error}");
        assert!((filter.rate() - 0.01).abs() < 1e-8);
    }

    #[test]
    fn the_integral_branch_stays_within_its_limit() {
        let mut filter = LoopFilter::new(LoopGains::new(300.0, 10_000.0), 0.02);
        for _ in 0..1000 {
            filter.update(1.0);
        }
        assert!((filter.rate() - 0.02).abs() < 1e-12);
    }
}
