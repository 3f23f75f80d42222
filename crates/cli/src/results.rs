//! The results of verbs: one struct is the document of `--json`, and its page in the reference.
//!
//! A verb declares its results with [`results!`](crate::results!) and returns
//! [`Report::of`](crate::output::Report::of) with the text and the struct. The macro derives
//! `Serialize`, and keeps the names, types and comments of the fields, of which the reference
//! `docs/reference/json.md` consists. So a field is named, typed and explained in one place:
//!
//! ```
//! millstream_cli::results! {
//!     /// What the verb counted.
//!     pub struct Counted {
//!         /// Packets that came.
//!         packets: u64,
//!         /// Where they came from.
//!         #[serde(skip_serializing_if = "Option::is_none")]
//!         from: Option<String>,
//!     }
//! }
//! let report = millstream_cli::output::Report::of(
//!     "3 packets\n".to_owned(),
//!     &Counted { packets: 3, from: None },
//! );
//! assert_eq!(report.results.to_string(), r#"{"packets":3}"#);
//! assert_eq!(results()[0].fields[0].help, " Packets that came.");
//! ```
//!
//! The first struct is the verb's document where there is one; further ones are its other
//! documents, and objects inside. Structs of other modules are added by their `results` functions:
//! `results! { also [other::results], /// … }`. [`group!`](crate::group!) with `typed;` requires
//! every verb of the group to have some.

use serde::Serialize;
use std::path::Path;

/// An object that appears in documents.
#[derive(Clone, Copy, Debug)]
pub struct ResultShape {
    /// Its Rust name.
    pub name: &'static str,
    /// What it is.
    pub about: &'static str,
    /// Its fields in order.
    pub fields: &'static [FieldShape],
}

/// A field of an object.
#[derive(Clone, Copy, Debug)]
pub struct FieldShape {
    /// Its name in the document.
    pub name: &'static str,
    /// Its Rust type.
    pub kind: &'static str,
    /// What it means, with its unit.
    pub help: &'static str,
    /// Its attributes of serde.
    pub serde: &'static str,
}

/// A struct that [`results!`](crate::results!) has declared.
pub trait VerbResult: Serialize {
    /// Its fields.
    const SHAPE: ResultShape;
}

/// A verb's path, such as `host net show`, and its objects.
pub type VerbShapes = (String, Vec<ResultShape>);

/// What a module's `results` returns: of a verb, or of a group of verbs.
pub trait Below {
    /// The verbs with the name of the module before theirs.
    fn below(self, module: &str) -> Vec<VerbShapes>;
}

impl Below for Vec<ResultShape> {
    fn below(self, module: &str) -> Vec<VerbShapes> {
        vec![(module.replace('_', "-"), self)]
    }
}

impl Below for Vec<VerbShapes> {
    fn below(self, module: &str) -> Vec<VerbShapes> {
        self.into_iter().map(|(verb, shapes)| (format!("{module} {verb}"), shapes)).collect()
    }
}

/// Declares the results of a verb; see [the module](mod@crate::results).
#[macro_export]
macro_rules! results {
    ($(also [$($other:path),+],)? $(
        $(#[doc = $about:literal])+
        $(#[derive($($derived:ident),+)])?
        $visible:vis struct $name:ident $(<$life:lifetime>)? {$(
            $(#[doc = $help:literal])+
            $(#[serde $serde:tt])*
            $field:ident: $kind:ty
        ),* $(,)?}
    )*) => {
        $(
            $(#[doc = $about])+
            $(#[derive($($derived),+)])?
            #[derive(::serde::Serialize)]
            $visible struct $name $(<$life>)? {$(
                $(#[doc = $help])+
                $(#[serde $serde])*
                pub $field: $kind,
            )*}

            impl $(<$life>)? $crate::results::VerbResult for $name $(<$life>)? {
                const SHAPE: $crate::results::ResultShape = $crate::results::ResultShape {
                    name: stringify!($name),
                    about: concat!($($about),+),
                    fields: &[$($crate::results::FieldShape {
                        name: stringify!($field),
                        kind: stringify!($kind),
                        help: concat!($($help),+),
                        serde: stringify!($($serde)*),
                    }),*],
                };
            }
        )*

        /// The objects of these results.
        pub fn results() -> Vec<$crate::results::ResultShape> {
            #[allow(unused_mut)]
            let mut all = vec![$(<$name as $crate::results::VerbResult>::SHAPE),*];
            $($(all.extend($other());)+)?
            all
        }
    };
}

impl<T: VerbResult> VerbResult for Vec<T> {
    const SHAPE: ResultShape = T::SHAPE;
}

/// Checks the page of all documents in the reference, which begins with `head`, or writes it where
/// `MILLSTREAM_WRITE` is set.
///
/// # Panics
/// Where the page differs from the structs; says the `test` that writes it.
pub fn check_page(path: &Path, head: &str, verbs: &[VerbShapes], test: &str) {
    let page = page(head, verbs);
    if std::env::var_os("MILLSTREAM_WRITE").is_some() {
        std::fs::write(path, &page).expect("the reference can be written");
    }
    let there = std::fs::read_to_string(path).unwrap_or_default();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    assert!(
        there == page,
        "{name} is not that of the program: write it with MILLSTREAM_WRITE=1 cargo test {test}"
    );
}

/// The page of all documents, for the reference.
fn page(head: &str, verbs: &[VerbShapes]) -> String {
    let mut text = head.to_owned();
    let mut told: Vec<&str> = Vec::new();
    // A verb of the program's own processes prints nothing.
    for (verb, shapes) in verbs.iter().filter(|(_, shapes)| !shapes.is_empty()) {
        text += &format!("\n## `{verb}`\n");
        for shape in shapes {
            // An object of several verbs is explained once.
            if told.contains(&shape.name) {
                continue;
            }
            told.push(shape.name);
            text += &format!(
                "\n{}\n\n",
                wrapped(&format!("`{}`. {}", shape.name, plain(shape.about)), 0)
            );
            for field in shape.fields {
                text += &(wrapped(&field.line(), 2) + "\n");
            }
        }
    }
    text
}

/// The beginning of the page of `millstream`.
#[cfg(test)]
const HEAD: &str = "# JSON documents

With `--json` a command prints one object with `command`, `environment` and `results`; after a
failure also `error`. This page lists the fields of `results` for each command: its own object
first, then the objects inside, each where it first occurs. A command with several jobs has an
object for each. An object without an entry here is one of the Rust library, whose documentation
explains its fields.

The page is made from the structs of the program, and a test compares it with them.
";

impl FieldShape {
    /// Its name, type and meaning as an item of a list.
    fn line(&self) -> String {
        let name = self.serde.split("rename = \"").nth(1).and_then(|rest| rest.split('"').next());
        let help = plain(self.help);
        if self.serde.contains("flatten") {
            return format!("- all fields of {}: {help}", words(self.kind));
        }
        let absent =
            if self.serde.contains("skip_serializing_if") { ", may be absent" } else { "" };
        let kind = words(self.kind);
        let kind =
            if absent.is_empty() { kind.as_str() } else { kind.trim_end_matches(" or null") };
        format!("- `{}` ({kind}{absent}): {help}", name.unwrap_or(self.name))
    }
}

fn plain(help: &str) -> String {
    help.replace(['[', ']'], "").trim().to_owned()
}

/// A Rust type as the type of a JSON value.
fn words(kind: &str) -> String {
    let kind = kind.trim().trim_start_matches('&').trim();
    let kind = match kind.strip_prefix('\'') {
        Some(named) => named.split_once(' ').map_or(named, |(_, kind)| kind),
        None => kind,
    };
    let inside = |start: &str, end: &str| kind.strip_prefix(start)?.strip_suffix(end);
    if let Some(kind) = inside("Option<", ">") {
        return format!("{} or null", words(kind));
    }
    if let Some(kind) = inside("Vec<", ">").or_else(|| inside("[", "]")) {
        return format!("list of {}", words(kind.split(';').next().unwrap_or(kind)));
    }
    if let Some((_, kind)) = inside("BTreeMap<", ">").and_then(|kinds| kinds.split_once(',')) {
        return format!("{} by name", words(kind));
    }
    let kind = kind.strip_prefix("NonZero<").map_or(kind, |kind| kind.trim_end_matches('>'));
    match kind {
        "u8" | "u16" | "u32" | "u64" | "usize" | "i32" | "i64" => "whole number".to_owned(),
        "f32" | "f64" => "number".to_owned(),
        "bool" => "true or false".to_owned(),
        "String" | "str" | "Ipv4Addr" | "SocketAddrV4" => "text".to_owned(),
        "Value" => "any value".to_owned(),
        tuple if tuple.starts_with('(') => "list".to_owned(),
        other => format!("`{}`", other.split('<').next().unwrap_or(other)),
    }
}

/// The words in lines of at most 118 characters; further lines begin with `indent` blanks.
pub(crate) fn wrapped(text: &str, indent: usize) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is one");
        if line.chars().count() + 1 + word.chars().count() > 118 {
            lines.push(format!("{}{word}", " ".repeat(indent)));
        } else {
            line.push_str(if line.is_empty() { "" } else { " " });
            line.push_str(word);
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_told_as_those_of_json() {
        for (kind, expected) in [
            ("Option<Vec<&'a str>>", "list of text or null"),
            ("&'a [f64]", "list of number"),
            ("BTreeMap<&'static str, u64>", "whole number by name"),
            ("&'a Played<'a>", "`Played`"),
            ("Option<bool>", "true or false or null"),
        ] {
            assert_eq!(words(kind), expected);
        }
    }

    /// Run with `MILLSTREAM_WRITE=1` the test writes the page.
    #[test]
    fn every_verb_has_documents_and_the_page_is_made_of_them() {
        let verbs = crate::documents();
        for (verb, shapes) in &verbs {
            assert!(!shapes.is_empty(), "{verb} declares no results");
        }
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/json.md");
        check_page(&path, HEAD, &verbs, "-p millstream-cli --lib every_verb_has_documents");
    }
}
