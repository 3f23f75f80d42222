//! The numbers that a parameter may have.

use std::fmt;
use std::ops::{Bound, RangeBounds};

/// The least and the largest number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ParameterRange {
    /// The least number.
    pub least: Bound<f64>,
    /// The largest number.
    pub most: Bound<f64>,
}

impl ParameterRange {
    /// Any number.
    pub const ANY: Self = Self { least: Bound::Unbounded, most: Bound::Unbounded };

    /// Makes a range.
    #[must_use]
    pub const fn new(least: Bound<f64>, most: Bound<f64>) -> Self {
        Self { least, most }
    }

    /// Whether a number is in the range.
    #[must_use]
    pub fn contains(&self, number: f64) -> bool {
        (self.least, self.most).contains(&number)
    }

    /// Adds the bounds of a type, where there are none yet.
    pub(crate) fn of_type(self, least: f64, most: Bound<f64>) -> Self {
        let or = |own: Bound<f64>, other| if own == Bound::Unbounded { other } else { own };
        Self { least: or(self.least, Bound::Included(least)), most: or(self.most, most) }
    }
}

impl fmt::Display for ParameterRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use Bound::{Excluded, Included, Unbounded};
        match (self.least, self.most) {
            (Unbounded, Unbounded) => f.write_str("any number"),
            (Unbounded, Included(most)) => write!(f, "at most {most}"),
            (Unbounded, Excluded(most)) => write!(f, "less than {most}"),
            (Included(least), Unbounded) => write!(f, "{least} or more"),
            (Excluded(least), Unbounded) => write!(f, "more than {least}"),
            (Included(least), Included(most)) => write!(f, "{least} to {most}"),
            (Included(least), Excluded(most)) => write!(f, "{least} or more, less than {most}"),
            (Excluded(least), Included(most)) => write!(f, "more than {least}, at most {most}"),
            (Excluded(least), Excluded(most)) => write!(f, "more than {least}, less than {most}"),
        }
    }
}
