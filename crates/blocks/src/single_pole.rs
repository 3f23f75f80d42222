//! A recursive low-pass of first order.

use crate::common::{each, number};
use millstream_dsp::recursion::{StateValue, next_state};
use millstream_flow::registry::BlockParameters;
use millstream_flow::{BlockError, BlockFacts, Item, ParameterKind, ParameterValue};
use millstream_flow::{Each, OneToOne};
use std::ops::{Add, Mul, Sub};

/// Computes `y[n] = y[n - 1] + alpha · (x[n] - y[n - 1])`, from zero. Its time constant is `-1 /
/// ln(1 - alpha)` items.
///
/// # Messages
/// `alpha`.
#[derive(Debug)]
pub struct SinglePole<T> {
    alpha: f32,
    state: T,
}

impl<T: Default> SinglePole<T> {
    /// Creates a filter at rest.
    ///
    /// # Errors
    /// An alpha outside 0 (exclusive) to 1.
    pub fn new(alpha: f64) -> Result<Self, BlockError> {
        Ok(Self { alpha: checked(alpha)?, state: T::default() })
    }
}

fn checked(alpha: f64) -> Result<f32, BlockError> {
    if alpha > 0.0 && alpha <= 1.0 {
        return Ok(alpha as f32);
    }
    Err(format!("alpha = {alpha}: expected more than 0 and at most 1").into())
}

impl<T> OneToOne for SinglePole<T>
where
    T: Item + Default + StateValue + Add<Output = T> + Sub<Output = T> + Mul<f32, Output = T>,
{
    type Input = T;
    type Output = T;

    fn run(&mut self, input: &[T], output: &mut [T]) {
        let (mut state, alpha) = (self.state, self.alpha);
        each(input, output, |x| {
            state = next_state(state + (x - state) * alpha, state);
            state
        });
        self.state = state;
    }

    fn facts(&self, facts: &mut BlockFacts) {
        facts.ns_per_item(2.6).message("alpha", ParameterKind::Number, "share of the new item");
    }

    fn message(&mut self, _: &str, value: &ParameterValue) -> Result<(), BlockError> {
        self.alpha = checked(number(value)?)?;
        Ok(())
    }
}

/// Recursive low-pass filter of first order.
#[derive(BlockParameters)]
#[block(single_pole, pure, items(f32, cf32), example = "alpha = 0.05")]
struct SinglePoleParameters {
    /// weight of the new item
    #[parameter(above = 0, most = 1)]
    alpha: f64,
}

impl SinglePoleParameters {
    fn make<T: Default>(self) -> Result<Each<SinglePole<T>>, BlockError>
    where
        SinglePole<T>: OneToOne,
    {
        Ok(Each::new(SinglePole::new(self.alpha)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_flow::Mock;

    #[test]
    fn a_step_is_followed_exponentially() {
        let mut mock = Mock::new(Each::new(SinglePole::<f32>::new(0.1).unwrap()));
        mock.feed("in", &[2.0f32; 100]);
        mock.run().unwrap();
        for (n, y) in mock.take::<f32>("out").into_iter().enumerate() {
            let exact = 2.0 * (1.0 - 0.9f64.powi(n as i32 + 1));
            assert!((f64::from(y) - exact).abs() < 1e-5, "{n}: {y} {exact}");
        }
        assert!(SinglePole::<f32>::new(0.0).is_err() && SinglePole::<f32>::new(1.5).is_err());
    }
}
