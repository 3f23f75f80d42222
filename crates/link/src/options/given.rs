//! A value in its written form: text in a link string; text, a number or a truth value in TOML.

use std::fmt;

use serde::de::{Deserializer, Error, Visitor};
use serde::{Deserialize, Serialize};

/// A value in the form of link strings: `true` of TOML is `on`, and 50 is `50`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Given(pub String);

impl fmt::Display for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&str> for Given {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl<'de> Deserialize<'de> for Given {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Scalar;
        impl Visitor<'_> for Scalar {
            type Value = Given;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text, a number, true or false")
            }

            fn visit_bool<E: Error>(self, value: bool) -> Result<Given, E> {
                Ok(Given(if value { "on" } else { "off" }.to_owned()))
            }

            fn visit_i64<E: Error>(self, value: i64) -> Result<Given, E> {
                Ok(Given(value.to_string()))
            }

            fn visit_u64<E: Error>(self, value: u64) -> Result<Given, E> {
                Ok(Given(value.to_string()))
            }

            fn visit_f64<E: Error>(self, value: f64) -> Result<Given, E> {
                Ok(Given(value.to_string()))
            }

            fn visit_str<E: Error>(self, value: &str) -> Result<Given, E> {
                Ok(Given(value.to_owned()))
            }
        }
        from.deserialize_any(Scalar)
    }
}
