//! The forms of option values: how they are read, written and described.

use std::fmt::{self, Display};
use std::ops::RangeInclusive;
use std::str::FromStr;

use serde::Serialize;

/// A form of option values.
pub trait OptionForm {
    /// The type of the values.
    type Value;

    /// Returns the values, for people and schemas.
    fn values(&self) -> OptionValues;

    /// Reads a value.
    ///
    /// # Errors
    /// The accepted values: "wants …".
    fn read(&self, text: &str) -> Result<Self::Value, String>;

    /// Returns the text of a value, where it has one.
    fn write(&self, value: &Self::Value) -> Option<String>;
}

/// The values that an option accepts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OptionValues {
    /// On or off.
    Switch,
    /// One of these words.
    Words(Vec<&'static str>),
    /// A whole number.
    Number {
        /// The unit, or the things counted.
        of: &'static str,
        /// The least.
        min: u64,
        /// The most.
        max: u64,
        /// A word that may stand for the number.
        or: Option<&'static str>,
    },
    /// Text of this form.
    Text(&'static str),
}

impl Display for OptionValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Switch => f.write_str("on|off"),
            Self::Words(words) => f.write_str(&words.join("|")),
            Self::Number { min, max, or: Some(word), .. } => write!(f, "{word}|{min}-{max}"),
            Self::Number { min, max: u64::MAX, .. } => write!(f, "N from {min} on"),
            Self::Number { min, max, .. } => write!(f, "{min}-{max}"),
            Self::Text(looks) => f.write_str(looks),
        }
    }
}

/// On or off.
#[derive(Debug, Clone, Copy)]
pub struct OnOff;

impl OptionForm for OnOff {
    type Value = bool;

    fn values(&self) -> OptionValues {
        OptionValues::Switch
    }

    fn read(&self, text: &str) -> Result<bool, String> {
        match text {
            "on" | "1" | "true" => Ok(true),
            "off" | "0" | "false" => Ok(false),
            _ => Err("wants on or off".to_owned()),
        }
    }

    fn write(&self, value: &bool) -> Option<String> {
        Some(if *value { "on" } else { "off" }.to_owned())
    }
}

/// One of several words, each with its value.
#[derive(Debug, Clone, Copy)]
pub struct Words<T: 'static>(pub &'static [(&'static str, T)]);

impl<T: Clone + PartialEq> OptionForm for Words<T> {
    type Value = T;

    fn values(&self) -> OptionValues {
        OptionValues::Words(self.0.iter().map(|(word, _)| *word).collect())
    }

    fn read(&self, text: &str) -> Result<T, String> {
        let found = self.0.iter().find(|(word, _)| *word == text);
        found.map(|(_, value)| value.clone()).ok_or_else(|| {
            let words: Vec<_> = self.0.iter().map(|(word, _)| *word).collect();
            format!("wants one of: {}", words.join(", "))
        })
    }

    fn write(&self, value: &T) -> Option<String> {
        let found = self.0.iter().find(|(_, other)| other == value);
        found.map(|(word, _)| (*word).to_owned())
    }
}

/// A whole number.
#[derive(Debug, Clone)]
pub struct WholeNumber<T> {
    of: &'static str,
    range: RangeInclusive<T>,
}

/// Returns the form of a whole number in a range; `of`: the unit, or the things counted.
pub const fn number<T>(of: &'static str, range: RangeInclusive<T>) -> WholeNumber<T> {
    WholeNumber { of, range }
}

impl<T> OptionForm for WholeNumber<T>
where
    T: Copy + FromStr + PartialOrd + Display,
    u64: TryFrom<T>,
{
    type Value = T;

    fn values(&self) -> OptionValues {
        let plain = |number: &T| u64::try_from(*number).unwrap_or(u64::MAX);
        let (min, max) = (plain(self.range.start()), plain(self.range.end()));
        OptionValues::Number { of: self.of, min, max, or: None }
    }

    fn read(&self, text: &str) -> Result<T, String> {
        let number = text.parse().ok().filter(|number| self.range.contains(number));
        number.ok_or_else(|| {
            let Self { of, range } = self;
            let to = format!(" to {}", range.end());
            let unlimited = u64::try_from(*range.end()).is_ok_and(|end| end == u64::MAX);
            format!("wants {of} from {}{}", range.start(), if unlimited { " on" } else { &to })
        })
    }

    fn write(&self, value: &T) -> Option<String> {
        Some(value.to_string())
    }
}

/// Text that a separate function reads.
#[derive(Debug, Clone, Copy)]
pub struct Parsed<T> {
    /// Its shape, such as `IP/PREFIX`.
    pub looks: &'static str,
    /// The text of the error: "wants …".
    pub wants: &'static str,
    /// Reads the value of a text.
    pub read: fn(&str) -> Option<T>,
    /// Writes the text of a value.
    pub write: fn(&T) -> String,
}

impl<T> OptionForm for Parsed<T> {
    type Value = T;

    fn values(&self) -> OptionValues {
        OptionValues::Text(self.looks)
    }

    fn read(&self, text: &str) -> Result<T, String> {
        (self.read)(text).ok_or_else(|| self.wants.to_owned())
    }

    fn write(&self, value: &T) -> Option<String> {
        Some((self.write)(value))
    }
}

/// A value that may be absent.
#[derive(Debug, Clone)]
pub struct Maybe<F> {
    form: F,
    /// The word that stands for an absent value.
    none: Option<&'static str>,
    /// The text of the default that an absent value means.
    default: Option<&'static str>,
}

/// Returns the form of an optional value.
pub const fn maybe<F>(form: F) -> Maybe<F> {
    Maybe { form, none: None, default: None }
}

/// Returns the form of an optional value, or `auto`.
pub const fn auto<F>(form: F) -> Maybe<F> {
    Maybe { form, none: Some("auto"), default: Some("auto") }
}

/// Returns the form of an optional value; its absence means `default`.
pub const fn otherwise<F>(form: F, default: &'static str) -> Maybe<F> {
    Maybe { form, none: None, default: Some(default) }
}

impl<F: OptionForm> OptionForm for Maybe<F> {
    type Value = Option<F::Value>;

    fn values(&self) -> OptionValues {
        match (self.form.values(), self.none) {
            (OptionValues::Number { of, min, max, .. }, or) => {
                OptionValues::Number { of, min, max, or }
            }
            (OptionValues::Switch, Some(word)) => OptionValues::Words(vec![word, "on", "off"]),
            (OptionValues::Words(words), Some(word)) => {
                OptionValues::Words([word].into_iter().chain(words).collect())
            }
            (other, _) => other,
        }
    }

    fn read(&self, text: &str) -> Result<Self::Value, String> {
        if self.none == Some(text) { Ok(None) } else { self.form.read(text).map(Some) }
    }

    fn write(&self, value: &Self::Value) -> Option<String> {
        match value {
            Some(value) => self.form.write(value),
            None => self.default.map(str::to_owned),
        }
    }
}
