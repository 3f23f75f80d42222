//! Typed options: each is written down once, with its values, its default and its meaning.
//!
//! `options!` turns such a list into a struct, a serde reader, and a description for help texts and
//! schemas. Link strings (`xdp:eth1,mode=native`) and TOML (`mode = "native"`) are read alike, and
//! an unknown option is refused.
//!
//! ```ignore
//! options! {
//!     #[derive(Debug, Clone, PartialEq)]
//!     pub struct WireOptions {
//!         /// largest IP packet
//!         mtu: usize = 9000, number("bytes", 68..=65_535);
//!         /// what happens when the receiver is slow
//!         full: bool = false, Words(&[("drop", false), ("wait", true)]);
//!     }
//! }
//! ```

mod form;
mod given;
mod read;
#[cfg(test)]
mod tests;

use serde::Serialize;
use serde::de::DeserializeOwned;

pub use form::{
    Maybe, OnOff, OptionForm, OptionValues, Parsed, Text, WholeNumber, Words, auto, maybe, number,
    otherwise,
};
pub use given::{Given, Reading};
pub use read::UNKNOWN;
pub(crate) use read::read;

/// A struct made by `options!`.
pub trait Options: Default + DeserializeOwned {
    /// The names, in the order of the list.
    const NAMES: &'static [&'static str];

    /// Describes the options one by one.
    fn describe() -> Vec<Opt>;

    /// Returns the options that differ from their default, as text that reads back as the same
    /// value.
    fn written(&self) -> Vec<(&'static str, String)>;
}

/// An option, for people and for schemas.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Opt {
    /// Its name.
    pub name: &'static str,
    /// The possible values.
    pub values: OptionValues,
    /// Its default as text, where it has one.
    pub default: Option<String>,
    /// Its purpose.
    pub about: &'static str,
}

impl Opt {
    /// Returns one line for people: `mtu=68-65535 (largest IP packet; default 9000)`.
    #[must_use]
    pub fn help(&self) -> String {
        let Self { name, values, default, about } = self;
        match default {
            Some(default) => format!("{name}={values} ({about}; default {default})"),
            None => format!("{name}={values} ({about})"),
        }
    }
}

/// Returns the names of options, separated by commas.
#[must_use]
pub fn names(options: &[Opt]) -> String {
    options.iter().map(|option| option.name).collect::<Vec<_>>().join(", ")
}

/// Declares options; see the module. The name of an option that cannot be a Rust identifier is
/// given behind one that can: `times as "loop"`.
#[macro_export]
macro_rules! options {
    (@name $field:ident) => { stringify!($field) };
    (@name $field:ident $name:literal) => { $name };
    (
        $(#[$meta:meta])*
        $vis:vis struct $struct:ident {
            $(
                $(#[doc = $about:literal])+
                $field:ident $(as $name:literal)? : $type:ty = $default:expr, $form:expr;
            )*
        }
    ) => {
        $(#[$meta])*
        $vis struct $struct {
            $( $(#[doc = $about])+ pub $field: $type, )*
        }

        impl Default for $struct {
            fn default() -> Self {
                Self { $( $field: $default, )* }
            }
        }

        impl $crate::options::Options for $struct {
            const NAMES: &'static [&'static str] =
                &[$( $crate::options!(@name $field $($name)?), )*];

            fn describe() -> Vec<$crate::options::Opt> {
                use $crate::options::OptionForm as _;
                let default = Self::default();
                vec![$( $crate::options::Opt {
                    name: $crate::options!(@name $field $($name)?),
                    values: $form.values(),
                    default: $form.write(&default.$field),
                    about: concat!($($about),+).trim(),
                }, )*]
            }

            fn written(&self) -> Vec<(&'static str, String)> {
                use $crate::options::OptionForm as _;
                let default = Self::default();
                let mut written = Vec::new();
                $(
                    let said = self.$field != default.$field;
                    if let Some(text) = $form.write(&self.$field).filter(|_| said) {
                        written.push(($crate::options!(@name $field $($name)?), text));
                    }
                )*
                written
            }
        }

        impl<'de> serde::Deserialize<'de> for $struct {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                struct Visitor;
                impl<'de> serde::de::Visitor<'de> for Visitor {
                    type Value = $struct;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str("options")
                    }

                    fn visit_map<A: serde::de::MapAccess<'de>>(
                        self,
                        mut map: A,
                    ) -> Result<$struct, A::Error> {
                        use serde::de::Error as _;
                        let mut options = $struct::default();
                        while let Some(key) = map.next_key::<String>()? {
                            match key.as_str() {
                                $(
                                    $crate::options!(@name $field $($name)?) => {
                                        options.$field =
                                            map.next_value_seed($crate::options::Reading(&$form))?;
                                    }
                                )*
                                _ => {
                                    let names = <$struct as $crate::options::Options>::NAMES;
                                    return Err(A::Error::unknown_field(&key, names));
                                }
                            }
                        }
                        Ok(options)
                    }
                }
                from.deserialize_map(Visitor)
            }
        }
    };
}
