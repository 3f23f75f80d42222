//! From declared parameters to the fields of a struct.

use super::parameter::{ITEM, Parameter, wrong};
use crate::block::BlockError;
use crate::value::{ParameterKind, ParameterValue};
use millstream_output::Existing;
use std::collections::BTreeMap;
use std::net::SocketAddrV4;
use std::ops::Bound;
use std::path::PathBuf;

/// The parameters of a type of block, or a group of them that several types share: a struct whose
/// fields are the parameters, with `#[derive(BlockParameters)]`.
///
/// ```
/// use millstream_flow::registry::{BlockParameters, ParameterChoice, ParameterKind};
///
/// #[derive(BlockParameters)]
/// struct Filter {
///     /// sample rate, Hz
///     #[parameter(above = 0)]
///     rate_hz: f64,
///     /// number of taps
///     #[parameter(default = 64, least = 1, most = 4096)]
///     taps: usize,
///     /// what the filter lets pass
///     band: Band,
/// }
///
/// #[derive(BlockParameters, Debug, PartialEq)]
/// enum Band {
///     Low,
///     High,
/// }
///
/// let mut declared = Vec::new();
/// Filter::declare(&mut declared);
/// let [rate_hz, taps, band] = &declared[..] else { panic!() };
/// assert_eq!((rate_hz.help, rate_hz.kind), ("sample rate, Hz", ParameterKind::Number));
/// assert_eq!(taps.range.to_string(), "1 to 4096");
/// assert_eq!((band.choices, Band::named("high")), (&["low", "high"][..], Some(Band::High)));
/// ```
///
/// What `#[parameter(...)]` may contain:
///
/// | word | meaning |
/// | --- | --- |
/// | `default = VALUE` | the value if none is given; without it, one must be given |
/// | `least = N`, `above = N` | the least number, or one that it must exceed |
/// | `most = N`, `below = N` | the largest number, or one that it must not reach |
/// | `incidental` | it does not change the cost of an item |
/// | `flatten` | the field is a group: its fields are parameters of this type, too |
///
/// With `#[block(...)]` the struct is a type of block, see [`BlockType`](super::BlockType). An enum
/// without data is a parameter of its own: its variants, in small letters, are the choices, and the
/// first one is the default. `#[parameter("name")]` gives a variant another name.
pub trait BlockParameters: Sized {
    /// Adds the parameters.
    fn declare(declared: &mut Vec<Parameter>);

    /// Makes the struct of the values of a block.
    ///
    /// # Errors
    /// A value that its field does not take.
    ///
    /// # Panics
    /// The values are those of a type with other parameters.
    fn read(values: &ParameterValues) -> Result<Self, BlockError>;
}

/// The values for one block: complete, and of the kinds and ranges that its type declares. A
/// [`BlockParameters`] reads them.
#[derive(Clone, Debug, Default)]
pub struct ParameterValues {
    values: BTreeMap<&'static str, ParameterValue>,
}

impl ParameterValues {
    pub(crate) fn insert(&mut self, name: &'static str, value: ParameterValue) {
        self.values.insert(name, value);
    }

    /// Iterates over every value, by name.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'static str, &ParameterValue)> {
        self.values.iter().map(|(name, value)| (*name, value))
    }

    /// Returns the fields of a type.
    ///
    /// # Errors
    /// A value that its field does not take.
    ///
    /// # Panics
    /// The values are those of another type.
    pub fn read<P: BlockParameters>(&self) -> Result<P, BlockError> {
        P::read(self)
    }

    /// Returns one field, for code that the derive makes.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    ///
    /// # Panics
    /// As [`read`](Self::read).
    pub fn field<F: ParameterField>(&self, name: &'static str) -> Result<F, BlockError> {
        F::read(name, self)
    }

    /// Returns the type of the items, `cf32`, by the parameter that
    /// [`items`](super::BlockDeclaration::items) declares.
    ///
    /// # Panics
    /// The type does not declare it.
    #[must_use]
    pub fn item(&self) -> &str {
        match self.value(ITEM) {
            ParameterValue::Text(item) => item,
            other => panic!("the type of the items is {other:?}"),
        }
    }

    pub(crate) fn value(&self, name: &str) -> &ParameterValue {
        self.values.get(name).unwrap_or_else(|| panic!("parameter {name} is not declared"))
    }
}

/// The type of a field that is a parameter.
pub trait ParameterField: Sized {
    /// The kind of the value in graph files.
    const KIND: ParameterKind;

    /// Makes the field of a value of the kind.
    ///
    /// # Errors
    /// What is expected in place of the value.
    fn of_value(value: &ParameterValue) -> Result<Self, String>;

    /// Adds the parameter, with what the type says about it.
    fn declare(parameter: Parameter, declared: &mut Vec<Parameter>) {
        declared.push(parameter.of_kind(Self::KIND));
    }

    /// Makes the field of the values of a block.
    ///
    /// # Errors
    /// The value is invalid.
    fn read(name: &'static str, values: &ParameterValues) -> Result<Self, BlockError> {
        let value = values.value(name);
        Self::of_value(value).map_err(|expected| wrong(name, value, &expected))
    }
}

/// An enum whose variants are the choices of a parameter, with `#[derive(BlockParameters)]`.
pub trait ParameterChoice: Sized {
    /// The names; the first is the default.
    const NAMES: &'static [&'static str];

    /// Returns the variant of a name.
    fn named(name: &str) -> Option<Self>;
}

impl<C: ParameterChoice> ParameterField for C {
    const KIND: ParameterKind = ParameterKind::Text;

    fn of_value(value: &ParameterValue) -> Result<Self, String> {
        Self::named(&value.to_string()).ok_or_else(|| Self::NAMES.join(", "))
    }

    fn declare(mut parameter: Parameter, declared: &mut Vec<Parameter>) {
        parameter.choices = Self::NAMES;
        parameter.default.get_or_insert_with(|| ParameterValue::from(Self::NAMES[0]));
        declared.push(parameter.of_kind(Self::KIND));
    }
}

macro_rules! field {
    ($($T:ty, $Kind:ident($content:pat) => $value:expr, $expected:expr;)*) => {$(
        impl ParameterField for $T {
            const KIND: ParameterKind = ParameterKind::$Kind;

            fn of_value(value: &ParameterValue) -> Result<Self, String> {
                match value {
                    ParameterValue::$Kind($content) => $value,
                    _ => None,
                }
                .ok_or_else(|| $expected.to_owned())
            }
        }
    )*};
}

field! {
    f64, Number(x) => Some(*x), "a number";
    f32, Number(x) => Some(*x as f32).filter(|x| x.is_finite()),
        "a number that a 32-bit float can hold";
    i64, Integer(n) => Some(*n), "a whole number";
    bool, Boolean(b) => Some(*b), "true or false";
    String, Text(text) => Some(text.clone()), "text";
    PathBuf, Text(text) => Some(text.into()), "a file";
    Vec<f64>, Numbers(list) => Some(list.clone()), "a list of numbers";
    Vec<f32>, Numbers(list) => Some(list.iter().map(|x| *x as f32).collect()), "a list of numbers";
    SocketAddrV4, Text(text) => text.parse().ok(),
        "an IPv4 address and a port, such as 127.0.0.1:4000";
}

macro_rules! counts {
    ($($T:ty, $most:expr;)*) => {$(
        impl ParameterField for $T {
            const KIND: ParameterKind = ParameterKind::Integer;

            fn of_value(value: &ParameterValue) -> Result<Self, String> {
                let count = value.as_integer().and_then(|n| Self::try_from(n).ok());
                count.ok_or_else(|| "0 or more".to_owned())
            }

            fn declare(parameter: Parameter, declared: &mut Vec<Parameter>) {
                let range = parameter.range.of_type(0.0, $most);
                declared.push(parameter.within(range).of_kind(Self::KIND));
            }
        }
    )*};
}

counts! {
    u32, Bound::Included(f64::from(u32::MAX));
    u64, Bound::Unbounded;
    usize, Bound::Unbounded;
}

/// A value that may be left out: an empty text, or 0.
impl<F: ParameterField> ParameterField for Option<F> {
    const KIND: ParameterKind = F::KIND;

    fn of_value(value: &ParameterValue) -> Result<Self, String> {
        if *value == nothing(F::KIND) { Ok(None) } else { F::of_value(value).map(Some) }
    }

    fn declare(mut parameter: Parameter, declared: &mut Vec<Parameter>) {
        parameter.default.get_or_insert_with(|| nothing(F::KIND));
        F::declare(parameter, declared);
    }

    fn read(name: &'static str, values: &ParameterValues) -> Result<Self, BlockError> {
        if *values.value(name) == nothing(F::KIND) {
            Ok(None)
        } else {
            F::read(name, values).map(Some)
        }
    }
}

/// Returns the value of a parameter that is left out.
fn nothing(kind: ParameterKind) -> ParameterValue {
    match kind {
        ParameterKind::Text => ParameterValue::from(""),
        ParameterKind::Integer => ParameterValue::Integer(0),
        ParameterKind::Number => ParameterValue::Number(0.0),
        ParameterKind::Boolean => ParameterValue::Boolean(false),
        ParameterKind::Numbers => ParameterValue::Numbers(Vec::new()),
    }
}

/// The part of a recording that a source plays, as parameters that sources share.
#[derive(Clone, Copy, Debug, millstream_derive::BlockParameters)]
pub struct RecordingPart {
    /// first sample to read, counted from 0
    #[parameter(default = 0, incidental)]
    pub first: u64,
    /// most samples to read; 0: all to the end of the file
    #[parameter(incidental)]
    pub count: Option<u64>,
}

impl RecordingPart {
    /// Returns the most samples to read, where "all" is the largest number.
    #[must_use]
    pub fn most(&self) -> u64 {
        self.count.unwrap_or(u64::MAX)
    }
}

/// The file that a block writes: its path, `-` for standard output, and the parameter `overwrite`,
/// which [`GraphFile::overwriting`](crate::GraphFile::overwriting) sets for all blocks.
#[derive(Clone, Debug)]
pub struct WrittenFile {
    /// Its path.
    pub path: PathBuf,
    /// Whether it may replace an old file.
    pub existing: Existing,
}

/// The parameter of blocks that write a file: whether an old one may be replaced.
pub(crate) const OVERWRITE: &str = "overwrite";

impl ParameterField for WrittenFile {
    const KIND: ParameterKind = ParameterKind::Text;

    fn of_value(value: &ParameterValue) -> Result<Self, String> {
        Ok(Self { path: PathBuf::of_value(value)?, existing: Existing::Refuse })
    }

    fn declare(parameter: Parameter, declared: &mut Vec<Parameter>) {
        declared.push(Parameter { written: true, ..parameter.incidental().of_kind(Self::KIND) });
        let overwrite =
            Parameter::new(OVERWRITE, "whether the file may replace an old one of its name");
        bool::declare(overwrite.with_default(false).incidental(), declared);
    }

    fn read(name: &'static str, values: &ParameterValues) -> Result<Self, BlockError> {
        let overwrites = values.field(OVERWRITE)?;
        Ok(Self { path: values.field(name)?, existing: Existing::replace_if(overwrites) })
    }
}
