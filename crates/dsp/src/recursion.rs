//! The states of recursive filters, loops and averages.

use crate::Sample;

/// A value that a recursion carries from one item to the next.
pub trait StateValue: Copy {
    /// Whether every number of it is neither NaN nor infinite.
    fn is_finite(self) -> bool;
}

impl StateValue for f32 {
    #[inline]
    fn is_finite(self) -> bool {
        self.is_finite()
    }
}

impl StateValue for Sample {
    #[inline]
    fn is_finite(self) -> bool {
        self.re.is_finite() && self.im.is_finite()
    }
}

/// Returns the state after an item: `next`, or `last` if `next` is not finite. A NaN or an infinity
/// in a recursion would stay there for ever, so every recursion over samples takes its state from
/// here: one bad sample counts as none.
#[inline]
#[must_use]
pub fn next_state<S: StateValue>(next: S, last: S) -> S {
    if next.is_finite() { next } else { last }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_finite_does_not_enter_a_state() {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            assert_eq!(next_state(bad, 0.5), 0.5);
            let last = Sample::new(1.0, 2.0);
            assert_eq!(next_state(Sample::new(bad, 0.0), last), last);
            assert_eq!(next_state(Sample::new(0.0, bad), last), last);
        }
        assert_eq!(next_state(0.25, 0.5), 0.25);
    }
}
