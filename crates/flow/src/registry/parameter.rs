//! Parameters of block types, and their values.

use super::range::ParameterRange;
use crate::block::BlockError;
use crate::value::{ParameterKind, ParameterValue};
use std::fmt;

/// A parameter that a block type declares, by a field of its [`BlockParameters`].
///
/// [`BlockParameters`]: derive@crate::registry::BlockParameters
#[derive(Clone, Debug)]
pub struct Parameter {
    /// Name; units last, `rate_hz`.
    pub name: &'static str,
    /// The kind of its value.
    pub kind: ParameterKind,
    /// The help text.
    pub help: &'static str,
    /// Its default; `None` if a value must be given. A default is allowed even outside of the
    /// range.
    pub default: Option<ParameterValue>,
    /// The allowed values of a text; empty when any text is allowed.
    pub choices: &'static [&'static str],
    /// The allowed numbers.
    pub range: ParameterRange,
    /// Whether graphs that differ only in it share their tuned plans, because it does not change
    /// the cost of an item: the name of a file, an address, the length of a run.
    pub incidental: bool,
    /// Whether it is the file that the block writes.
    pub(crate) written: bool,
}

impl Parameter {
    /// Makes a parameter that must be given; its field says the kind.
    #[must_use]
    pub fn new(name: &'static str, help: &'static str) -> Self {
        Self {
            name,
            kind: ParameterKind::Text,
            help,
            default: None,
            choices: &[],
            range: ParameterRange::ANY,
            incidental: false,
            written: false,
        }
    }

    /// Sets the default.
    #[must_use]
    pub fn with_default(self, default: impl Into<ParameterValue>) -> Self {
        Self { default: Some(default.into()), ..self }
    }

    /// Sets the allowed numbers.
    #[must_use]
    pub fn within(self, range: ParameterRange) -> Self {
        Self { range, ..self }
    }

    /// Says that the parameter does not change the cost of an item.
    #[must_use]
    pub fn incidental(self) -> Self {
        Self { incidental: true, ..self }
    }

    /// Sets the kind, and converts the default to it.
    pub(crate) fn of_kind(mut self, kind: ParameterKind) -> Self {
        self.default = self.default.map(|default| {
            let text = default.to_string();
            let converted = default.into_kind(kind);
            converted.unwrap_or_else(|| panic!("{}: the default {text} is not {kind}", self.name))
        });
        self.kind = kind;
        self
    }

    /// Returns what is expected in place of `value`; `None` if it may have that value.
    pub(crate) fn refuses(&self, value: &ParameterValue) -> Option<String> {
        let number = value.as_number()?;
        if self.range.contains(number) || self.default.as_ref() == Some(value) {
            return None;
        }
        let default = self.default.as_ref().and_then(ParameterValue::as_number);
        Some(match default.filter(|default| !self.range.contains(*default)) {
            Some(default) => format!("{}, or {default}", self.range),
            None => self.range.to_string(),
        })
    }
}

/// The parameter with the type of the items.
pub(crate) const ITEM: &str = "item";

/// Returns the error for a parameter of the right kind that is still invalid.
#[must_use]
pub fn wrong(name: &str, value: impl fmt::Display, expected: &str) -> BlockError {
    format!("{name} = `{value}`: expected {expected}").into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ops::Bound::{self, Excluded, Included, Unbounded};

    fn expected(range: (Bound<f64>, Bound<f64>), default: f64, value: f64) -> Option<String> {
        let range = ParameterRange::new(range.0, range.1);
        let parameter = Parameter::new("x", "a number").within(range).with_default(default);
        parameter.of_kind(ParameterKind::Number).refuses(&ParameterValue::from(value))
    }

    #[test]
    fn a_number_outside_of_its_range_is_told_the_range() {
        for (range, text) in [
            ((Included(0.25), Included(4096.0)), "0.25 to 4096"),
            ((Included(0.0), Unbounded), "0 or more"),
            ((Excluded(0.0), Unbounded), "more than 0"),
            ((Excluded(0.0), Included(1.0)), "more than 0, at most 1"),
            ((Excluded(0.0), Excluded(0.5)), "more than 0, less than 0.5"),
            ((Included(0.0), Excluded(0.5)), "0 or more, less than 0.5"),
        ] {
            assert_eq!(expected(range, 0.25, -3.0).as_deref(), Some(text));
        }
        for (range, text) in
            [((Unbounded, Included(2.0)), "at most 2"), ((Unbounded, Excluded(2.0)), "less than 2")]
        {
            assert_eq!(expected(range, 1.0, 3.0).as_deref(), Some(text));
            assert_eq!(expected(range, 1.0, 1.5), None);
        }
        assert_eq!(expected((Unbounded, Unbounded), 1.0, -1e300), None);
    }

    #[test]
    fn a_default_outside_of_the_range_is_allowed_and_told() {
        let range = (Included(0.0), Unbounded);
        assert_eq!(expected(range, -1.0, -1.0), None);
        assert_eq!(expected(range, -1.0, -2.0).as_deref(), Some("0 or more, or -1"));
    }
}
