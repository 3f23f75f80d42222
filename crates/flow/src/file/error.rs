//! Errors in graph files.

use super::similar::{closest, closest_type};
use crate::block::BlockError;
use crate::graph::GraphError;

/// A problem and the file that has it.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {problem}")]
pub struct GraphFileError {
    /// The file.
    pub file: String,
    /// The problem.
    pub problem: Box<FileProblem>,
}

/// A problem of a graph file or of an override.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileProblem {
    /// It cannot be read.
    #[error("the file cannot be read: {0}")]
    Read(std::io::Error),
    /// Not TOML, or keys that graphs do not have.
    #[error("{0}")]
    Syntax(String),
    /// A value that is neither text, number nor boolean.
    #[error(
        "{key}: expected text, a number, true or false, or a list of numbers, but found {found}"
    )]
    NoValue {
        /// Where.
        key: String,
        /// The kind found there.
        found: &'static str,
    },
    /// A list with something else than numbers.
    #[error("{key}: expected a list of numbers, but one element is not a number")]
    NoNumbers {
        /// The key.
        key: String,
    },
    /// A text that is not one of the choices.
    #[error(
        "block `{block}`: {key} = `{found}`: expected {}{}",
        either(choices), suggestion(found, choices.iter().copied())
    )]
    NoChoice {
        /// The block.
        block: String,
        /// The key.
        key: &'static str,
        /// The text.
        found: String,
        /// The choices.
        choices: &'static [&'static str],
    },
    /// A parameter without value.
    #[error("parameter `{name}`{} has no value: give one with `--set {name}=VALUE`", about(help))]
    MissingParameter {
        /// The parameter.
        name: String,
        /// The help text.
        help: String,
    },
    /// Setting a parameter that does not exist.
    #[error("the graph has no parameter `{name}`; its parameters are: {}", list(name, known))]
    UnknownParameter {
        /// The name.
        name: String,
        /// The parameters that exist.
        known: Vec<String>,
    },
    /// An override that is not an assignment.
    #[error("`{0}` is not an assignment: write `NAME=VALUE`")]
    NoAssignment(String),
    /// `${…}` of a parameter that does not exist.
    #[error(
        "{key}: the graph has no parameter `{name}`; its parameters are: {}",
        list(name, known)
    )]
    UnknownReference {
        /// Where.
        key: String,
        /// The name in the braces.
        name: String,
        /// The parameters that exist.
        known: Vec<String>,
    },
    /// `${` without `}`.
    #[error("{key}: `${{` has no closing `}}`")]
    OpenReference {
        /// Where.
        key: String,
    },
    /// A block type that is not registered.
    #[error(
        "block `{block}`: there is no block type `{type_name}`; {}there are: {}",
        meant(type_name, known), known.join(", ")
    )]
    UnknownType {
        /// The block.
        block: String,
        /// The type.
        type_name: String,
        /// The registered types.
        known: Vec<String>,
    },
    /// A key that the block type does not declare.
    #[error(
        "block `{block}`: the type `{type_name}` has no parameter `{key}`; it has: {}",
        list(key, known)
    )]
    UnknownKey {
        /// The block.
        block: String,
        /// Its type.
        type_name: String,
        /// The key.
        key: String,
        /// The keys that the type declares.
        known: Vec<String>,
    },
    /// A key that must be there.
    #[error("block `{block}`: the parameter `{key}` is missing; it is {expected}: {help}")]
    MissingKey {
        /// The block.
        block: String,
        /// The key.
        key: &'static str,
        /// Its kind.
        expected: String,
        /// The help text.
        help: &'static str,
    },
    /// A value of the wrong kind.
    #[error("{key}: expected {expected}, but found `{found}`")]
    WrongKind {
        /// Where.
        key: String,
        /// The right kind.
        expected: String,
        /// The value.
        found: String,
    },
    /// A connection with fewer than two ends.
    #[error("connection `{0}` cannot be read: write `from -> to`")]
    Connection(String),
    /// Messages without exactly two ends.
    #[error("message connection `{0}` cannot be read: write `block.emitter -> block.message`")]
    Messages(String),
    /// The block could not be made.
    #[error("block `{block}`: {source}")]
    Block {
        /// The block.
        block: String,
        /// The cause.
        source: BlockError,
    },
    /// The graph is invalid.
    #[error(transparent)]
    Graph(#[from] GraphError),
}

impl FileProblem {
    pub(super) fn of(self, file: &str) -> GraphFileError {
        GraphFileError { file: file.to_owned(), problem: Box::new(self) }
    }
}

/// Lists every name, with the closest one first.
fn list(wrong: &str, names: &[String]) -> String {
    let all = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    all + &suggestion(wrong, names.iter().map(String::as_str))
}

/// Formats "a, b or c".
fn either(choices: &[&str]) -> String {
    match choices {
        [rest @ .., before, last] => {
            let rest: String = rest.iter().map(|choice| format!("{choice}, ")).collect();
            format!("{rest}{before} or {last}")
        }
        _ => choices.concat(),
    }
}

/// Names the likely type before the long list of all.
fn meant(wrong: &str, types: &[String]) -> String {
    match closest_type(wrong, types.iter().map(String::as_str)) {
        Some(name) => format!("did you mean `{name}`? "),
        None => String::new(),
    }
}

fn suggestion<'a>(wrong: &str, names: impl Iterator<Item = &'a str>) -> String {
    match closest(wrong, names) {
        Some(name) => format!("; did you mean `{name}`?"),
        None => String::new(),
    }
}

fn about(help: &str) -> String {
    if help.is_empty() { String::new() } else { format!(" ({help})") }
}
