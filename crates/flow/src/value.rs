//! Values of parameters and messages, and their kinds.

use std::fmt;

/// The kind that a parameter's value must have.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ParameterKind {
    /// Any text.
    Text,
    /// A whole number.
    Integer,
    /// Any finite number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// A list of finite numbers.
    Numbers,
}

impl fmt::Display for ParameterKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "text",
            Self::Integer => "a whole number",
            Self::Number => "a number",
            Self::Boolean => "true or false",
            Self::Numbers => "a list of numbers",
        })
    }
}

impl ParameterKind {
    /// Whether every value of kind `other` converts to this kind.
    pub(crate) fn takes(self, other: Self) -> bool {
        self == other || (self == Self::Number && other == Self::Integer)
    }
}

/// A parameter's value.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ParameterValue {
    /// Text.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// A number.
    Number(f64),
    /// True or false.
    Boolean(bool),
    /// Numbers, such as a filter's taps.
    Numbers(Vec<f64>),
}

impl ParameterValue {
    /// Returns its kind.
    #[must_use]
    pub fn kind(&self) -> ParameterKind {
        match self {
            Self::Text(_) => ParameterKind::Text,
            Self::Integer(_) => ParameterKind::Integer,
            Self::Number(_) => ParameterKind::Number,
            Self::Boolean(_) => ParameterKind::Boolean,
            Self::Numbers(_) => ParameterKind::Numbers,
        }
    }

    /// Returns the number, if it is one; also a whole one.
    #[must_use]
    pub fn as_number(&self) -> Option<f64> {
        match self {
            Self::Integer(n) => Some(*n as f64),
            Self::Number(x) => Some(*x),
            _ => None,
        }
    }

    /// Returns the whole number, if it is one.
    #[must_use]
    pub fn as_integer(&self) -> Option<i64> {
        match self {
            Self::Integer(n) => Some(*n),
            _ => None,
        }
    }

    /// Converts the value to `kind`, if that is possible without loss: whole numbers are numbers,
    /// and numbers without fraction (`5e6`) are whole.
    pub(crate) fn into_kind(self, kind: ParameterKind) -> Option<Self> {
        match (self, kind) {
            (Self::Integer(n), ParameterKind::Number) => Some(Self::Number(n as f64)),
            (Self::Number(x), ParameterKind::Integer) => {
                // Up to 2^53 every whole float is an exact integer.
                let whole = x.fract() == 0.0 && x.abs() <= 9_007_199_254_740_992.0;
                whole.then_some(Self::Integer(x as i64))
            }
            (Self::Number(x), ParameterKind::Number) if !x.is_finite() => None,
            (Self::Numbers(list), _) if list.iter().any(|x| !x.is_finite()) => None,
            (value, kind) => (value.kind() == kind).then_some(value),
        }
    }

    /// Reads text that a user typed as a value of `kind`. Numbers of a list are separated by
    /// commas.
    #[must_use]
    pub fn from_text(text: &str, kind: ParameterKind) -> Option<Self> {
        let number = || typed_number(text).map(Self::Number);
        match kind {
            ParameterKind::Text => Some(Self::Text(text.to_owned())),
            ParameterKind::Boolean => text.parse().ok().map(Self::Boolean),
            ParameterKind::Number => number()?.into_kind(kind),
            ParameterKind::Numbers => {
                let list = text.trim().trim_start_matches('[').trim_end_matches(']');
                let numbers = list.split(',').map(|number| typed_number(number.trim()));
                Self::Numbers(numbers.collect::<Option<_>>()?).into_kind(kind)
            }
            ParameterKind::Integer => {
                let integer = text.parse().ok().map(Self::Integer);
                integer.or_else(|| number()?.into_kind(kind))
            }
        }
    }
}

/// Reads a number as users type it: `6.25e6`, or `6.25M`, with k, M or G for thousand, million or
/// 10⁹.
#[must_use]
pub fn typed_number(text: &str) -> Option<f64> {
    let with_unit = |(unit, factor): (char, f64)| {
        let digits = text.strip_suffix(unit)?;
        // Not "infM" and the like: a number ends in a digit or a point.
        let is_plain = digits.ends_with(|end: char| end.is_ascii_digit() || end == '.');
        digits.parse::<f64>().ok().filter(|_| is_plain).map(|number| number * factor)
    };
    let units = || [('k', 1e3), ('M', 1e6), ('G', 1e9)].into_iter().find_map(with_unit);
    text.parse().ok().or_else(units)
}

impl fmt::Display for ParameterValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Integer(n) => write!(f, "{n}"),
            Self::Number(x) => write!(f, "{x}"),
            Self::Boolean(b) => write!(f, "{b}"),
            Self::Numbers(list) => write!(f, "{list:?}"),
        }
    }
}

macro_rules! from {
    ($($T:ty => |$value:ident| $Kind:ident($content:expr)),* $(,)?) => {$(
        impl From<$T> for ParameterValue {
            fn from($value: $T) -> Self {
                Self::$Kind($content)
            }
        }
    )*};
}

from!(
    &str => |text| Text(text.to_owned()),
    i64 => |n| Integer(n),
    f64 => |x| Number(x),
    bool => |b| Boolean(b),
    &[f64] => |list| Numbers(list.to_vec()),
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typed_text_becomes_what_is_wanted_or_nothing() {
        for (text, kind, expected) in [
            ("5e6", ParameterKind::Integer, Some(ParameterValue::Integer(5_000_000))),
            ("-3", ParameterKind::Integer, Some(ParameterValue::Integer(-3))),
            (
                "9223372036854775807",
                ParameterKind::Integer,
                Some(ParameterValue::Integer(i64::MAX)),
            ),
            ("1e30", ParameterKind::Integer, None),
            ("0.5", ParameterKind::Integer, None),
            ("6.25e6", ParameterKind::Number, Some(ParameterValue::Number(6.25e6))),
            ("6.25M", ParameterKind::Number, Some(ParameterValue::Number(6.25e6))),
            ("-10k", ParameterKind::Integer, Some(ParameterValue::Integer(-10_000))),
            ("1M,-2.5k", ParameterKind::Numbers, Some(ParameterValue::Numbers(vec![1e6, -2500.0]))),
            ("M", ParameterKind::Number, None),
            ("infM", ParameterKind::Number, None),
            ("6.25 MHz", ParameterKind::Number, None),
            ("nan", ParameterKind::Number, None),
            ("inf", ParameterKind::Number, None),
            ("fast", ParameterKind::Number, None),
            ("true", ParameterKind::Boolean, Some(ParameterValue::Boolean(true))),
            ("yes", ParameterKind::Boolean, None),
            ("7", ParameterKind::Text, Some(ParameterValue::from("7"))),
            ("[1, -2.5]", ParameterKind::Numbers, Some(ParameterValue::from(&[1.0, -2.5][..]))),
            ("3", ParameterKind::Numbers, Some(ParameterValue::from(&[3.0][..]))),
            ("1,,2", ParameterKind::Numbers, None),
            ("1,nan", ParameterKind::Numbers, None),
        ] {
            assert_eq!(ParameterValue::from_text(text, kind), expected, "{text} as {kind}");
        }
    }

    #[test]
    fn values_keep_their_kind_except_for_whole_numbers() {
        assert_eq!(
            ParameterValue::from(2i64).into_kind(ParameterKind::Number),
            Some(ParameterValue::Number(2.0))
        );
        assert_eq!(
            ParameterValue::from(2.0).into_kind(ParameterKind::Integer),
            Some(ParameterValue::Integer(2))
        );
        assert_eq!(ParameterValue::from(2.5).into_kind(ParameterKind::Integer), None);
        assert_eq!(ParameterValue::from(2.5).into_kind(ParameterKind::Text), None);
        assert_eq!(ParameterValue::from("2").into_kind(ParameterKind::Number), None);
    }
}
