//! Errors of a configuration file: the place, the key, the problem and what to do.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use millstream_host::journal::JournalError;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The reason why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file does not exist, or cannot be read.
    #[error(
        "cannot read the configuration file {}: {source}; `millstream host net import` writes one",
        file.display()
    )]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Something in the file is wrong.
    #[error("{}:{line}:{column}: {}{problem}", file.display(), key_prefix(key))]
    Wrong {
        /// The file.
        file: PathBuf,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// The key, such as `interface[0].mtu`; empty where there is none.
        key: String,
        /// The problem, and what to do.
        problem: String,
    },
    /// A setting of the system could not be changed.
    #[error("cannot set {interface} up as the configuration file requires: {source}")]
    Setting {
        /// The interface.
        interface: String,
        /// The reason why it could not be changed.
        source: JournalError,
    },
    /// The system does not have the state that the configuration expects.
    #[error("the configuration file does not fit this system: {problem}")]
    Unfit {
        /// The difference, and what to do.
        problem: String,
    },
}

fn key_prefix(key: &str) -> String {
    if key.is_empty() { String::new() } else { format!("{key}: ") }
}

/// One step of the path to a value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum KeyStep {
    Key(&'static str),
    Name(String),
    Index(usize),
}

/// A problem of a value in a file that could be read.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ValueProblem {
    /// The path to the value.
    pub path: Vec<KeyStep>,
    /// The problem, and what to do.
    pub text: String,
}

impl ConfigError {
    /// Creates the error of text that is not TOML, or does not have the file's structure.
    pub(super) fn of_toml(file: &Path, text: &str, error: &toml::de::Error) -> Self {
        let span = error.span().unwrap_or(0..0);
        let key = DeTable::parse(text)
            .map_or_else(|_| String::new(), |tree| key_at(tree.get_ref(), span.start));
        let problem = match error.message().trim() {
            "" => "this is not valid TOML".to_owned(),
            message => in_words(message),
        };
        Self::wrong(file, text, span, key, problem)
    }

    /// Creates the error of a value that is not valid.
    pub(super) fn of_problem(file: &Path, text: &str, problem: ValueProblem) -> Self {
        let (mut span, mut key) = (0..0, String::new());
        for step in &problem.path {
            match step {
                KeyStep::Key(name) if key.is_empty() => key.push_str(name),
                KeyStep::Key(name) => key.push_str(&format!(".{name}")),
                KeyStep::Name(name) => key.push_str(&format!(".{name}")),
                KeyStep::Index(index) => key.push_str(&format!("[{index}]")),
            }
        }
        if let Ok(tree) = DeTable::parse(text) {
            span = span_of(tree.get_ref(), &problem.path).unwrap_or(0..0);
        }
        Self::wrong(file, text, span, key, problem.text)
    }

    fn wrong(file: &Path, text: &str, span: Range<usize>, key: String, problem: String) -> Self {
        let before = text.get(..span.start).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        Self::Wrong { file: file.to_owned(), line, column, key, problem }
    }
}

/// Rewrites a parser's message about types for readers who do not know them.
fn in_words(message: &str) -> String {
    const WORDS: [(&str, &str); 8] = [
        ("\n", " "),
        (" as i128", ""),
        ("expected u8", "expected a whole number from 0 to 255"),
        ("expected u16", "expected a whole number from 0 to 65535"),
        ("expected u32", "expected a whole number from 0 to 4294967295"),
        ("expected usize", "expected a whole number"),
        (
            "invalid type: map, expected a sequence",
            "there may be several of these: write its name in [[double brackets]]",
        ),
        (
            "invalid IPv4 address syntax",
            "this is not an IPv4 address; write it like 192.168.10.254",
        ),
    ];
    let said = message.trim().to_owned();
    let said = WORDS.iter().fold(said, |said, (jargon, words)| said.replace(jargon, words));
    said.replace("expected a sequence", "expected a list, like [\"a\", \"b\"]")
}

/// Returns the position of the value at the end of a path, or of as much of the path as exists.
fn span_of(table: &DeTable<'_>, path: &[KeyStep]) -> Option<Range<usize>> {
    let (KeyStep::Key(first), mut rest) = (path.first()?, path.get(1..)?) else { return None };
    let mut value: &Spanned<DeValue<'_>> = table.get(*first)?;
    while let Some((step, left)) = rest.split_first() {
        let next = match (step, value.get_ref()) {
            (KeyStep::Key(name), DeValue::Table(table)) => table.get(*name),
            (KeyStep::Name(name), DeValue::Table(table)) => table.get(name.as_str()),
            (KeyStep::Index(index), DeValue::Array(array)) => array.get(*index),
            _ => None,
        };
        let Some(next) = next else { break };
        (value, rest) = (next, left);
    }
    Some(value.span())
}

/// Returns the key whose name or value contains a position.
fn key_at(table: &DeTable<'_>, position: usize) -> String {
    for (key, value) in table {
        let (name, span) = (key.get_ref(), value.span());
        if key.span().contains(&position) {
            return name.to_string();
        }
        if span.contains(&position) || holds(value.get_ref(), position) {
            let inside = below(value.get_ref(), position);
            let dot = if inside.is_empty() || inside.starts_with('[') { "" } else { "." };
            return format!("{name}{dot}{inside}");
        }
    }
    String::new()
}

fn below(value: &DeValue<'_>, position: usize) -> String {
    match value {
        DeValue::Table(table) => key_at(table, position),
        DeValue::Array(array) => {
            let found = array
                .iter()
                .enumerate()
                .find(|(_, one)| one.span().contains(&position) || holds(one.get_ref(), position));
            found.map_or_else(String::new, |(index, one)| {
                let inside = below(one.get_ref(), position);
                let dot = if inside.is_empty() { "" } else { "." };
                format!("[{index}]{dot}{inside}")
            })
        }
        _ => String::new(),
    }
}

/// Whether a position lies inside a value; the span of `[[header]]` tables is that of the header.
fn holds(value: &DeValue<'_>, position: usize) -> bool {
    match value {
        DeValue::Table(table) => table.iter().any(|(key, value)| {
            key.span().contains(&position)
                || value.span().contains(&position)
                || holds(value.get_ref(), position)
        }),
        DeValue::Array(array) => {
            array.iter().any(|one| one.span().contains(&position) || holds(one.get_ref(), position))
        }
        _ => false,
    }
}
