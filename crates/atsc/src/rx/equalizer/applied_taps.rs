//! Feedback taps as whole numbers, in the groups that are in use.

use super::quick_trellis::Row;
use crate::params::TRELLIS_CODERS;
use millstream_dsp::pairs;

/// Feedback taps that are left out together where there is no echo.
pub const GROUP: usize = 32;

/// A group of taps in use.
pub type FeedbackTaps = pairs::Group<{ GROUP / 2 }>;

/// The taps in use, as whole numbers.
#[derive(Clone, Debug)]
pub struct AppliedTaps {
    /// Groups, those with the longest delays first.
    pub groups: Vec<FeedbackTaps>,
    /// The number of groups that use only final decisions.
    pub far: usize,
    /// The effect of a decision on later symbols of the same row of twelve, by its position.
    pub near: [Row; TRELLIS_CODERS],
    /// Whether `near` has an effect.
    pub has_near: bool,
    /// The value of one integer step.
    pub unit: f32,
}
