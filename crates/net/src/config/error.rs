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

/// A problem of a value in a file that could be read.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ValueProblem {
    /// The key of the value, such as `interface[0].mtu`; it may be absent from the file.
    pub key: String,
    /// The problem, and what to do.
    pub text: String,
}

impl ConfigError {
    /// Creates the error of text that is not TOML, or does not have the file's structure.
    pub(super) fn of_toml(file: &Path, text: &str, error: &toml::de::Error) -> Self {
        let span = error.span().unwrap_or(0..0);
        // The innermost place comes last.
        let found = places(text).into_iter().rfind(|(_, place)| place.contains(&span.start));
        let problem = match error.message().trim() {
            "" => "this is not valid TOML".to_owned(),
            message => in_words(message),
        };
        let key = found.map_or_else(String::new, |(key, _)| key);
        Self::wrong(file, text, span.start, ValueProblem { key, text: problem })
    }

    /// Creates the error of a value that is not valid, at its place or that of what is around it.
    pub(super) fn of_problem(file: &Path, text: &str, problem: ValueProblem) -> Self {
        let places = places(text);
        let mut key = &problem.key[..];
        let start = loop {
            if let Some((_, place)) = places.iter().rfind(|(found, _)| found == key) {
                break place.start;
            }
            match key.rfind(['.', '[']) {
                Some(end) => key = &key[..end],
                None => break 0,
            }
        };
        Self::wrong(file, text, start, problem)
    }

    fn wrong(file: &Path, text: &str, start: usize, problem: ValueProblem) -> Self {
        let before = text.get(..start).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        let ValueProblem { key, text: problem } = problem;
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

/// Returns every key and value of a file, with its key and its place in the text: what is around
/// others before them, and a value behind its name.
fn places(text: &str) -> Vec<(String, Range<usize>)> {
    fn table(inside: &DeTable<'_>, around: &str, all: &mut Vec<(String, Range<usize>)>) {
        let dot = if around.is_empty() { "" } else { "." };
        for (key, of_key) in inside {
            let name = format!("{around}{dot}{}", key.get_ref());
            all.push((name.clone(), key.span()));
            value(of_key, name, all);
        }
    }
    fn value(found: &Spanned<DeValue<'_>>, name: String, all: &mut Vec<(String, Range<usize>)>) {
        all.push((name.clone(), found.span()));
        match found.get_ref() {
            DeValue::Table(inside) => table(inside, &name, all),
            DeValue::Array(list) => {
                for (index, one) in list.iter().enumerate() {
                    value(one, format!("{name}[{index}]"), all);
                }
            }
            _ => {}
        }
    }
    let mut all = Vec::new();
    if let Ok(tree) = DeTable::parse(text) {
        table(tree.get_ref(), "", &mut all);
    }
    all
}
