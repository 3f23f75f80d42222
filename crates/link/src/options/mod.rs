//! Typed options: each is written down once, with its values, its default and its meaning.
//!
//! `options!` turns such a list into a struct, a reader of link strings (`xdp:eth1,mode=native`),
//! and a description for help texts and schemas. An unknown option is refused. Values of TOML files
//! are [`Given`] as a link string has them.
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
#[cfg(test)]
mod tests;

use serde::Serialize;

use crate::LinkError;
use crate::spec::bad;

pub use form::{
    Maybe, OnOff, OptionForm, OptionValues, Parsed, Text, WholeNumber, Words, auto, maybe, number,
    otherwise,
};
pub use given::Given;

/// The reason of [`LinkError::BadOption`] for an option that the link does not have.
pub const UNKNOWN: &str = "is not known";

/// A struct made by `options!`.
pub trait Options: Default {
    /// The names, in the order of the list.
    const NAMES: &'static [&'static str];

    /// Describes the options one by one.
    fn describe() -> Vec<Opt>;

    /// Sets an option to the value of a text.
    ///
    /// # Errors
    /// The accepted values, or [`UNKNOWN`].
    fn set(&mut self, name: &str, text: &str) -> Result<(), String>;

    /// Returns the options that differ from their default, as text that reads back as the same
    /// value.
    fn written(&self) -> Vec<(&'static str, String)>;
}

/// Reads all of `options`, names and values.
pub(crate) fn read<O: Options>(options: &[(String, String)]) -> Result<O, LinkError> {
    let mut read = O::default();
    for (name, text) in options {
        let set = read.set(name, text);
        set.map_err(|reason| bad(&format!("{name}={text}"), &reason))?;
    }
    Ok(read)
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

            fn set(&mut self, name: &str, text: &str) -> Result<(), String> {
                use $crate::options::OptionForm as _;
                match name {
                    $( $crate::options!(@name $field $($name)?) => {
                        self.$field = $form.read(text)?;
                    } )*
                    _ => return Err($crate::options::UNKNOWN.to_owned()),
                }
                Ok(())
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
    };
}
