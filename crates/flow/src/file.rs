//! Graphs as files.
//!
//! ```toml
//! description = "The first second of a recording, at half the amplitude."
//!
//! [parameters]                       # what `--set NAME=VALUE` may override
//! rate = 6.25e6                      # a default, which also sets the kind
//! in = { help = "recording to read" }            # without default: must be set
//! out = { help = "where to write", default = "half.cf32" }
//!
//! [[block]]
//! name = "source"
//! type = "file_source"
//! path = "${in}"                     # the parameter's value
//!
//! [[block]]
//! name = "half"
//! type = "multiply_const"
//! factor = 0.5
//!
//! [[block]]
//! name = "first"
//! type = "head"
//! count = "${rate}"
//!
//! [[block]]
//! name = "sink"
//! type = "file_sink"
//! item = "cf32"
//! path = "${out}"
//!
//! [graph]
//! connections = ["source -> half -> first -> sink.in"]
//! messages = []                      # from block to block: see `message`
//!
//! [plan]                             # optional: see `plan`
//! [[plan.partition]]
//! name = "disk"
//! blocks = ["source"]
//! ```
//!
//! A value is text, a number, `true` or `false`, or a list of numbers. `${NAME}` inside longer text
//! is replaced too. In a chain `a -> b -> c` a block without port name must have only one such
//! port.

mod build;
mod error;
mod raw;
mod similar;
mod structure;

pub use error::{FileProblem, GraphFileError};

use crate::plan::Pins;
use crate::plan::Plan;
use crate::value::ParameterValue;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The largest graph or plan, bytes; a device such as `/dev/zero` never ends.
const MAX_BYTES: u64 = 4 << 20;

/// A graph file, read and not yet built.
#[derive(Clone, Debug)]
pub struct GraphFile {
    /// The name in errors.
    name: String,
    description: String,
    parameters: BTreeMap<String, GraphParameter>,
    blocks: Vec<BlockEntry>,
    connections: Vec<String>,
    messages: Vec<String>,
    plan: Plan,
    pins: Pins,
}

/// A parameter of the whole graph.
#[derive(Clone, Debug, PartialEq)]
pub struct GraphParameter {
    /// Its value unless overridden; `None` if it must be set.
    pub default: Option<ParameterValue>,
    /// The help text.
    pub help: String,
}

/// A `[[block]]` as written.
#[derive(Clone, Debug)]
struct BlockEntry {
    name: String,
    type_name: String,
    values: BTreeMap<String, ParameterValue>,
}

/// Reads the text of a graph or plan.
///
/// # Errors
/// It cannot be read, is not UTF-8, or has more than 4 MiB.
pub fn read_text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let bytes = File::open(path)?.take(MAX_BYTES + 1).read_to_string(&mut text)?;
    if bytes as u64 > MAX_BYTES {
        let reason = "it is larger than 4 MiB, the limit of graphs and plans";
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, reason));
    }
    Ok(text)
}

impl GraphFile {
    /// Reads a file.
    ///
    /// # Errors
    /// [`GraphFileError`]: it cannot be read, or does not have the form of a graph.
    pub fn read(path: &Path) -> Result<Self, GraphFileError> {
        let name = path.display().to_string();
        match read_text(path) {
            Ok(text) => Self::parse(&name, &text),
            Err(error) => Err(FileProblem::Read(error).of(&name)),
        }
    }

    /// Reads a graph from text; `name` is used in errors.
    ///
    /// # Errors
    /// [`GraphFileError`]: the text does not have the form of a graph.
    pub fn parse(name: &str, text: &str) -> Result<Self, GraphFileError> {
        raw::parse(name, text).map_err(|problem| problem.of(name))
    }

    /// Returns the description of the graph.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Returns the parameters that may be set, by name.
    #[must_use]
    pub fn parameters(&self) -> &BTreeMap<String, GraphParameter> {
        &self.parameters
    }

    /// Returns every parameter of a block that has the value of the graph's parameter `name`, with
    /// its block.
    #[must_use]
    pub fn users_of(&self, name: &str) -> Vec<(&str, &str)> {
        let whole = ParameterValue::Text(format!("${{{name}}}"));
        let mut users = Vec::new();
        for block in &self.blocks {
            let values = block.values.iter().filter(|(_, value)| **value == whole);
            users.extend(values.map(|(key, _)| (block.name.as_str(), key.as_str())));
        }
        users
    }

    /// Returns the same graph with another value of a block's parameter.
    #[must_use]
    pub fn with_value(&self, block: &str, key: &str, value: impl Into<ParameterValue>) -> Self {
        let mut changed = self.clone();
        if let Some(entry) = changed.blocks.iter_mut().find(|entry| entry.name == block) {
            entry.values.insert(key.to_owned(), value.into());
        }
        changed
    }

    /// Returns the names of the blocks, in the order of the file.
    pub fn block_names(&self) -> impl Iterator<Item = &str> {
        self.blocks.iter().map(|block| block.name.as_str())
    }

    /// Returns the plan in the file, or the automatic one.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Returns the entries of the plan that are in the file.
    #[must_use]
    pub fn pins(&self) -> &Pins {
        &self.pins
    }
}
