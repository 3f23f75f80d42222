//! Silence during pauses of a transmission.

use crate::Sample;
use crate::common::{each, number};
use millstream_dsp::recursion::next_state;
use millstream_flow::registry::BlockParameters;
use millstream_flow::{BlockError, BlockFacts, Gauge, ParameterKind, ParameterValue};
use millstream_flow::{Each, OneToOne};

/// Puts out zeros while the mean power, `p += alpha · (|x|² - p)`, is below a threshold.
///
/// # Messages
/// `threshold_db`.
///
/// # Metrics
/// `power_db`.
#[derive(Debug)]
pub struct Squelch {
    threshold: f32,
    alpha: f32,
    power: f32,
    shown: Gauge,
}

impl Squelch {
    /// Creates a squelch that opens at `threshold_db` (of full scale); `alpha` is the share of a
    /// new sample in the mean.
    #[must_use]
    pub fn new(threshold_db: f64, alpha: f32) -> Self {
        Self { threshold: ratio(threshold_db), alpha, power: 0.0, shown: Gauge::new() }
    }
}

fn ratio(db: f64) -> f32 {
    10f64.powf(db / 10.0) as f32
}

impl OneToOne for Squelch {
    type Input = Sample;
    type Output = Sample;

    fn run(&mut self, input: &[Sample], output: &mut [Sample]) {
        let (mut power, alpha, threshold) = (self.power, self.alpha, self.threshold);
        each(input, output, |x: Sample| {
            power = next_state(power + alpha * (x.norm_sqr() - power), power);
            if power < threshold { Sample::default() } else { x }
        });
        self.power = power;
        self.shown.set(10.0 * f64::from(power.max(1e-20)).log10());
    }

    fn facts(&self, facts: &mut BlockFacts) {
        facts
            .ns_per_item(2.0)
            .message("threshold_db", ParameterKind::Number, "power above which samples pass, dBFS")
            .metric("power_db", &self.shown);
    }

    fn message(&mut self, _: &str, value: &ParameterValue) -> Result<(), BlockError> {
        self.threshold = ratio(number(value)?);
        Ok(())
    }
}

/// Squelch: sends zeros while the power is below a threshold.
#[derive(BlockParameters)]
#[block(squelch, pure, example = "threshold_db = -40")]
struct SquelchParameters {
    /// power above which samples pass, dBFS
    threshold_db: f64,
    /// weight of a new sample in the mean power
    #[parameter(default = 1e-3, above = 0, most = 1)]
    alpha: f32,
}

impl SquelchParameters {
    fn make(self) -> Each<Squelch> {
        Each::new(Squelch::new(self.threshold_db, self.alpha))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_flow::Mock;

    #[test]
    fn it_opens_when_the_mean_reaches_the_threshold() {
        let mut mock = Mock::new(Each::new(Squelch::new(-20.0, 0.1)));
        let mut x = vec![Sample::new(0.01, 0.0); 100];
        x.extend([Sample::new(0.0, 1.0); 100]);
        mock.feed("in", &x);
        mock.run().unwrap();
        let out = mock.take::<Sample>("out");
        assert!(out[..100].iter().all(|x| *x == Sample::default()));
        // The first strong sample brings the mean to 0.1.
        assert_eq!(out[100..], x[100..]);
    }
}
