//! Parameters of block types, and their values.

use crate::block::BlockError;
use crate::value::{ParameterKind, ParameterValue};
use std::collections::BTreeMap;

/// A parameter that a block type declares.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// Name; units last, `rate_hz`.
    pub name: &'static str,
    /// The kind of its value.
    pub kind: ParameterKind,
    /// The help text.
    pub help: &'static str,
    /// Its default; `None` if a value must be given.
    pub default: Option<ParameterValue>,
    /// The allowed values of a text; empty when any text is allowed.
    pub choices: &'static [&'static str],
}

macro_rules! getters {
    ($($(#[$doc:meta])* $name:ident: $T:ty, $Kind:ident($content:ident) => $value:expr;)*) => {$(
        $(#[$doc])*
        #[must_use]
        pub fn $name(&self, name: &str) -> $T {
            match self.get(name) {
                ParameterValue::$Kind($content) => $value,
                other => panic!("parameter {name} is {other:?}"),
            }
        }
    )*};
}

/// The values for one block: complete, and of the kinds its type declares.
///
/// # Panics
/// The getters panic for a name or kind that the type does not declare. This is a mistake in the
/// factory, and the first graph that uses the type finds it.
#[derive(Clone, Debug, Default)]
pub struct Parameters {
    values: BTreeMap<&'static str, ParameterValue>,
}

impl Parameters {
    pub(crate) fn insert(&mut self, name: &'static str, value: ParameterValue) {
        self.values.insert(name, value);
    }

    /// Iterates over every value, by name.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'static str, &ParameterValue)> {
        self.values.iter().map(|(name, value)| (*name, value))
    }

    /// Returns what becomes of an old file, by the parameter `overwrite` of blocks that
    /// [write a file](super::BlockDeclaration::writes_file).
    ///
    /// # Panics
    /// The type does not declare it.
    #[must_use]
    pub fn existing(&self) -> millstream_output::Existing {
        millstream_output::Existing::replace_if(self.boolean(super::OVERWRITE))
    }

    getters! {
        /// Returns a text parameter.
        text: &str, Text(text) => text;
        /// Returns a whole number.
        integer: i64, Integer(n) => *n;
        /// Returns a number; finite.
        number: f64, Number(x) => *x;
        /// Returns a truth value.
        boolean: bool, Boolean(b) => *b;
        /// Returns a list of numbers; finite.
        numbers: &[f64], Numbers(list) => list;
    }

    /// Returns a whole number of type `T`, at least `least`.
    ///
    /// # Errors
    /// The expected value.
    pub fn count<T: TryFrom<i64>>(&self, name: &str, least: i64) -> Result<T, BlockError> {
        let value = self.integer(name);
        let count = if value < least { None } else { T::try_from(value).ok() };
        count.ok_or_else(|| self.wrong(name, &format!("a whole number from {least}")))
    }

    /// Returns an error with the expected value of parameter `name`: for values of the right kind
    /// that are still invalid.
    #[must_use]
    pub fn wrong(&self, name: &str, expected: &str) -> BlockError {
        format!("{name} = `{}`: expected {expected}", self.get(name)).into()
    }

    fn get(&self, name: &str) -> &ParameterValue {
        self.values.get(name).unwrap_or_else(|| panic!("parameter {name} is not declared"))
    }
}
