//! What can be wrong with a graph file.

use crate::block::BlockError;
use crate::graph::GraphError;

/// A problem and the file that has it.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {problem}")]
pub struct GraphFileError {
    /// The file.
    pub file: String,
    /// What is wrong.
    pub problem: Box<Problem>,
}

/// What is wrong with a graph file or what was set.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// It cannot be read.
    #[error("cannot be read: {0}")]
    Read(std::io::Error),
    /// Not TOML, or keys that graphs do not have.
    #[error("{0}")]
    Syntax(String),
    /// A value that is neither text, number nor boolean.
    #[error("{key}: expected text, a number, or true or false, found {found}")]
    NoValue {
        /// Where.
        key: String,
        /// What is there.
        found: &'static str,
    },
    /// A parameter without value.
    #[error("parameter `{name}`{} has no value; give one with `--set {name}=VALUE`", about(help))]
    MissingParameter {
        /// The parameter.
        name: String,
        /// What it means.
        help: String,
    },
    /// Setting a parameter that is not there.
    #[error("there is no parameter `{name}` to set; there are: {}", list(known))]
    UnknownParameter {
        /// The name.
        name: String,
        /// The parameters there are.
        known: Vec<String>,
    },
    /// An override that is no assignment.
    #[error("`{0}` sets nothing; write `NAME=VALUE`")]
    NoAssignment(String),
    /// `${…}` of a parameter that is not there.
    #[error("{key}: there is no parameter `{name}`; there are: {}", list(known))]
    UnknownReference {
        /// Where.
        key: String,
        /// The name in the braces.
        name: String,
        /// The parameters there are.
        known: Vec<String>,
    },
    /// `${` without `}`.
    #[error("{key}: `${{` without `}}`")]
    OpenReference {
        /// Where.
        key: String,
    },
    /// A block type that is not registered.
    #[error("block `{block}`: there is no type `{type_name}`; there are: {}", list(known))]
    UnknownType {
        /// The block.
        block: String,
        /// The type.
        type_name: String,
        /// The types there are.
        known: Vec<String>,
    },
    /// A key that the block type does not declare.
    #[error("block `{block}`: type `{type_name}` has no `{key}`; it has: {}", list(known))]
    UnknownKey {
        /// The block.
        block: String,
        /// Its type.
        type_name: String,
        /// The key.
        key: String,
        /// The keys there are.
        known: Vec<String>,
    },
    /// A key that must be there.
    #[error("block `{block}`: `{key}` is missing; it is {expected}: {help}")]
    MissingKey {
        /// The block.
        block: String,
        /// The key.
        key: &'static str,
        /// Its kind.
        expected: String,
        /// What it means.
        help: &'static str,
    },
    /// A value of the wrong kind.
    #[error("{key}: expected {expected}, found `{found}`")]
    WrongKind {
        /// Where.
        key: String,
        /// The right kind.
        expected: String,
        /// The value.
        found: String,
    },
    /// A connection with fewer than two ends.
    #[error("connection `{0}`: write `from -> to`")]
    Connection(String),
    /// The block could not be made.
    #[error("block `{block}`: {source}")]
    Block {
        /// The block.
        block: String,
        /// Why.
        source: BlockError,
    },
    /// The graph does not hold together.
    #[error(transparent)]
    Graph(#[from] GraphError),
}

impl Problem {
    pub(super) fn of(self, file: &str) -> GraphFileError {
        GraphFileError { file: file.to_owned(), problem: Box::new(self) }
    }
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

fn about(help: &str) -> String {
    if help.is_empty() { String::new() } else { format!(" ({help})") }
}
