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
mod line;
#[cfg(test)]
mod tests;

use serde::Serialize;

pub use form::{
    Maybe, OnOff, OptionForm, OptionValues, Parsed, WholeNumber, Words, auto, maybe, number,
    otherwise,
};
pub use given::Given;
pub use line::{BadOption, Line};

/// The reason of [`BadOption`] for an option that does not exist.
pub const UNKNOWN: &str = "is not known";

/// The reason for a word that is no option.
pub(crate) const NO_PAIR: &str = "is not of the form name=value";

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
///
/// # Errors
/// The first name or value that `O` does not have, or a name that is given twice.
pub fn read<O: Options>(options: &[(String, String)]) -> Result<O, BadOption> {
    let mut read = O::default();
    for (index, (name, text)) in options.iter().enumerate() {
        let twice = options[..index].iter().any(|(other, _)| other == name);
        let set = if twice { Err("is given twice".to_owned()) } else { read.set(name, text) };
        set.map_err(|reason| BadOption::new(format!("{name}={text}"), reason))?;
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
    /// Returns those of `options` that have one of `names`, for people, separated by commas.
    #[must_use]
    pub fn help_of(options: &[Self], names: &[&str]) -> String {
        let named = options.iter().filter(|option| names.contains(&option.name));
        named.map(Self::help).collect::<Vec<_>>().join(", ")
    }

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

/// Returns `names` for an error about a name that is not one of them, behind `head`; before that
/// the one that was perhaps meant.
#[must_use]
pub fn names_for(wrong: &str, names: &[&str], head: &str) -> String {
    let all = format!("{head}{}", names.join(", "));
    // The letters between what both have in front and what both have at the end.
    let distance = |name: &str| {
        let same = |(a, b): &(u8, u8)| a == b;
        let front = wrong.bytes().zip(name.bytes()).take_while(same).count();
        let end = wrong.bytes().rev().zip(name.bytes().rev()).take_while(same).count();
        wrong.len().max(name.len()) - (front + end).min(wrong.len().min(name.len()))
    };
    let near = |(letters, name): &(usize, &&str)| {
        *letters <= (wrong.len() / 3).max(1) && *letters < wrong.len().max(name.len())
    };
    match names.iter().map(|name| (distance(name), name)).filter(near).min() {
        Some((_, name)) => format!("did you mean `{name}`? {all}"),
        None => all,
    }
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
