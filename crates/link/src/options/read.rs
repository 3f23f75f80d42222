//! Options of a link string, for serde: a map of names to texts.

use std::fmt::{self, Display};
use std::slice::Iter;

use serde::de::value::StrDeserializer;
use serde::de::{self, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, Visitor};
use serde::forward_to_deserialize_any;

use super::Options;
use crate::LinkError;
use crate::spec::bad;

/// The reason of [`LinkError::BadOption`] for an option that the link does not have.
pub const UNKNOWN: &str = "is not known";

/// Reads all of `options`, names and values.
pub(crate) fn read<O: Options>(options: &[(String, String)]) -> Result<O, LinkError> {
    O::deserialize(Text { left: options.iter(), value: None })
        .map_err(|Refused { option, reason }| bad(&written(options, option), &reason))
}

/// Returns an option as it was written: serde knows only the name of an unknown option.
fn written(options: &[(String, String)], option: String) -> String {
    let found = options.iter().find(|(name, _)| *name == option);
    found.map_or(option, |(name, value)| format!("{name}={value}"))
}

/// The options as a map. An error about a value names its option.
struct Text<'a> {
    left: Iter<'a, (String, String)>,
    value: Option<&'a (String, String)>,
}

impl<'de> MapAccess<'de> for Text<'de> {
    type Error = Refused;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Refused> {
        self.value = self.left.next();
        self.value.map(|(name, _)| seed.deserialize(text(name))).transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Refused> {
        let Some((name, value)) = self.value.take() else {
            return Err(de::Error::custom("a value comes before its name"));
        };
        let about = |refused| Refused { option: format!("{name}={value}"), ..refused };
        seed.deserialize(text(value)).map_err(about)
    }
}

fn text(text: &str) -> StrDeserializer<'_, Refused> {
    text.into_deserializer()
}

impl<'de> Deserializer<'de> for Text<'de> {
    type Error = Refused;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        visitor.visit_map(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// A refused option, and the reason.
#[derive(Debug)]
struct Refused {
    option: String,
    reason: String,
}

impl Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.option, self.reason)
    }
}

impl std::error::Error for Refused {}

impl de::Error for Refused {
    fn custom<T: Display>(reason: T) -> Self {
        Self { option: String::new(), reason: reason.to_string() }
    }

    fn unknown_field(field: &str, _: &'static [&'static str]) -> Self {
        Self { option: field.to_owned(), reason: UNKNOWN.to_owned() }
    }
}
