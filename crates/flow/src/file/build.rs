//! Builds a [`Graph`] from a [`GraphFile`].

use super::{BlockEntry, FileProblem, GraphFile, GraphFileError};
use crate::block::Block;
use crate::graph::{Graph, GraphError};
use crate::registry::{
    BlockType, Make, Parameter, ParameterKind, ParameterValue, ParameterValues, Registry, wrong,
};
use std::collections::BTreeMap;

/// A value and its origin, which decides how strictly it is read.
#[derive(Clone, Debug)]
pub(super) enum Given {
    /// From the file: its kind counts.
    File(ParameterValue),
    /// Typed by a user: it is converted to the kind that is needed.
    Typed(String),
}

impl GraphFile {
    /// Makes the blocks and connects them. `overrides` are the `NAME=VALUE` of `--set`.
    ///
    /// # Errors
    /// [`GraphFileError`] names the block, the key and the expected value.
    pub fn build(
        &self,
        registry: &Registry,
        overrides: &[String],
    ) -> Result<Graph, GraphFileError> {
        self.try_build(registry, overrides, BlockType::make)
            .map_err(|problem| problem.of(&self.name))
    }

    /// Builds the same graph for a run that only measures, and that touches no file but to read it,
    /// no network and no device: stand-ins take the places of such blocks, see
    /// [`BlockEffect`](crate::registry::BlockEffect).
    ///
    /// # Errors
    /// As [`build`](Self::build).
    pub fn build_rehearsal(
        &self,
        registry: &Registry,
        overrides: &[String],
    ) -> Result<Graph, GraphFileError> {
        self.try_build(registry, overrides, BlockType::make_for_rehearsal)
            .map_err(|problem| problem.of(&self.name))
    }

    fn try_build(
        &self,
        registry: &Registry,
        overrides: &[String],
        make: Make,
    ) -> Result<Graph, FileProblem> {
        let values = self.parameter_values(overrides)?;
        let mut graph = Graph::new();
        for (index, entry) in self.blocks.iter().enumerate() {
            // Before the block is made: making it may create files.
            if self.blocks[..index].iter().any(|other| other.name == entry.name) {
                return Err(GraphError::DuplicateBlock { name: entry.name.clone() }.into());
            }
            graph.add_boxed(&entry.name, entry.make(registry, &values, make)?)?;
        }
        for chain in &self.connections {
            let ends: Vec<&str> = chain.split("->").map(str::trim).collect();
            if ends.len() < 2 || ends.iter().any(|end| end.is_empty()) {
                return Err(FileProblem::Connection(chain.clone()));
            }
            graph.chain(&ends)?;
        }
        for text in &self.messages {
            let ends: Vec<&str> = text.split("->").map(str::trim).collect();
            let [from, to] = ends[..] else { return Err(FileProblem::Messages(text.clone())) };
            graph.connect_message(from, to)?;
        }
        graph.check()?;
        Ok(graph)
    }

    /// Makes the block of a file that has exactly one.
    pub(crate) fn make_only_block(
        &self,
        registry: &Registry,
        make: Make,
    ) -> Result<Box<dyn Block>, GraphFileError> {
        let made = match &self.blocks[..] {
            [entry] => entry.make(registry, &BTreeMap::new(), make),
            _ => Err(GraphError::Empty.into()),
        };
        made.map_err(|problem| problem.of(&self.name))
    }

    /// Returns every parameter's value: set, or its default.
    pub(super) fn parameter_values(
        &self,
        overrides: &[String],
    ) -> Result<BTreeMap<String, Given>, FileProblem> {
        let mut values = BTreeMap::new();
        for text in overrides {
            let (name, value) =
                text.split_once('=').ok_or_else(|| FileProblem::NoAssignment(text.clone()))?;
            let Some(parameter) = self.parameters.get(name) else {
                let (name, known) = (name.to_owned(), self.parameters.keys().cloned().collect());
                return Err(FileProblem::UnknownParameter { name, known });
            };
            // A default fixes the kind of the parameter, whichever block uses it.
            if let Some(default) = &parameter.default {
                if ParameterValue::from_text(value, loosely(default.kind())).is_none() {
                    return Err(wrong_kind(format!("parameter `{name}`"), default.kind(), value));
                }
            }
            values.insert(name.to_owned(), Given::Typed(value.to_owned()));
        }
        for (name, parameter) in &self.parameters {
            match (&parameter.default, values.contains_key(name)) {
                (_, true) => {}
                (Some(default), false) => {
                    values.insert(name.clone(), Given::File(default.clone()));
                }
                (None, false) => {
                    let (name, help) = (name.clone(), parameter.help.clone());
                    return Err(FileProblem::MissingParameter { name, help });
                }
            }
        }
        Ok(values)
    }
}

/// Loosens the kind of a default: `rate = 5000000` does not forbid `--set rate=0.5`; the block that
/// uses the value decides.
fn loosely(kind: ParameterKind) -> ParameterKind {
    if kind == ParameterKind::Integer { ParameterKind::Number } else { kind }
}

fn wrong_kind(key: String, expected: ParameterKind, found: &str) -> FileProblem {
    FileProblem::WrongKind { key, expected: expected.to_string(), found: found.to_owned() }
}

impl BlockEntry {
    fn make(
        &self,
        registry: &Registry,
        values: &BTreeMap<String, Given>,
        make: Make,
    ) -> Result<Box<dyn Block>, FileProblem> {
        let block_type = self.block_type(registry)?;
        let parameters = self.parameters(block_type, values)?;
        let block = || self.name.clone();
        make(block_type, &parameters)
            .map_err(|source| FileProblem::Block { block: block(), source })
    }

    pub(super) fn block_type<'a>(
        &self,
        registry: &'a Registry,
    ) -> Result<&'a BlockType, FileProblem> {
        registry.get(&self.type_name).ok_or_else(|| FileProblem::UnknownType {
            block: self.name.clone(),
            type_name: self.type_name.clone(),
            known: registry.types().map(|known| known.name().to_owned()).collect(),
        })
    }

    pub(super) fn parameters(
        &self,
        block_type: &BlockType,
        values: &BTreeMap<String, Given>,
    ) -> Result<ParameterValues, FileProblem> {
        let declared = block_type.parameters();
        if let Some(key) =
            self.values.keys().find(|key| declared.iter().all(|known| known.name != **key))
        {
            return Err(FileProblem::UnknownKey {
                block: self.name.clone(),
                type_name: self.type_name.clone(),
                key: key.clone(),
                known: declared.iter().map(|known| known.name.to_owned()).collect(),
            });
        }
        let mut parameters = ParameterValues::default();
        for parameter in declared {
            let key = || format!("block `{}`, {}", self.name, parameter.name);
            let value = match (self.values.get(parameter.name), &parameter.default) {
                (Some(value), _) => {
                    let (value, text) = match resolve(&key(), value, values)? {
                        Given::File(value) => {
                            let text = value.to_string();
                            (value.into_kind(parameter.kind), text)
                        }
                        Given::Typed(text) => {
                            (ParameterValue::from_text(&text, parameter.kind), text)
                        }
                    };
                    value.ok_or_else(|| wrong_kind(key(), parameter.kind, &text))?
                }
                (None, Some(default)) => default.clone(),
                (None, None) => {
                    return Err(FileProblem::MissingKey {
                        block: self.name.clone(),
                        key: parameter.name,
                        expected: parameter.kind.to_string(),
                        help: parameter.help,
                    });
                }
            };
            self.check_value(parameter, &value)?;
            parameters.insert(parameter.name, value);
        }
        Ok(parameters)
    }

    fn check_value(
        &self,
        parameter: &Parameter,
        value: &ParameterValue,
    ) -> Result<(), FileProblem> {
        match value {
            ParameterValue::Text(text)
                if !parameter.choices.is_empty() && !parameter.choices.contains(&text.as_str()) =>
            {
                Err(FileProblem::NoChoice {
                    block: self.name.clone(),
                    key: parameter.name,
                    found: text.clone(),
                    choices: parameter.choices,
                })
            }
            _ => match parameter.refuses(value) {
                None => Ok(()),
                Some(expected) => {
                    let source = wrong(parameter.name, value, &expected);
                    Err(FileProblem::Block { block: self.name.clone(), source })
                }
            },
        }
    }
}

/// Replaces `${NAME}`. A value that is only `${NAME}` becomes the parameter's value, inside text
/// its text.
fn resolve(
    key: &str,
    value: &ParameterValue,
    values: &BTreeMap<String, Given>,
) -> Result<Given, FileProblem> {
    let ParameterValue::Text(text) = value else { return Ok(Given::File(value.clone())) };
    let find = |name: &str| {
        values.get(name).ok_or_else(|| FileProblem::UnknownReference {
            key: key.to_owned(),
            name: name.to_owned(),
            known: values.keys().cloned().collect(),
        })
    };
    let mut result = String::new();
    let mut rest = text.as_str();
    while let Some((before, after)) = rest.split_once("${") {
        let (name, after) = after
            .split_once('}')
            .ok_or_else(|| FileProblem::OpenReference { key: key.to_owned() })?;
        let given = find(name)?;
        if before.is_empty() && after.is_empty() && result.is_empty() {
            return Ok(given.clone());
        }
        result.push_str(before);
        match given {
            Given::File(value) => result.push_str(&value.to_string()),
            Given::Typed(text) => result.push_str(text),
        }
        rest = after;
    }
    result.push_str(rest);
    Ok(Given::File(ParameterValue::Text(result)))
}

impl Registry {
    /// Makes the block of a type's [`example`](crate::registry::BlockDeclaration::example), or its
    /// stand-in, which has the same ports and messages: nothing happens outside of this program.
    ///
    /// # Errors
    /// [`GraphFileError`] for an unknown type, and for an error of the factory.
    pub fn make_example(&self, name: &str) -> Result<Box<dyn Block>, GraphFileError> {
        let values = self.get(name).map_or("", BlockType::example_values);
        self.make_by(name, values, BlockType::make_for_rehearsal)
    }

    /// Makes a block of type `name` with `values`, as a graph file has them under `[[block]]`.
    ///
    /// # Errors
    /// [`GraphFileError`], as for a graph file.
    pub fn make(&self, name: &str, values: &str) -> Result<Box<dyn Block>, GraphFileError> {
        self.make_by(name, values, BlockType::make)
    }

    fn make_by(
        &self,
        name: &str,
        values: &str,
        make: Make,
    ) -> Result<Box<dyn Block>, GraphFileError> {
        let text = format!("[[block]]\nname = \"block\"\ntype = \"{name}\"\n{values}");
        GraphFile::parse("example", &text)?.make_only_block(self, make)
    }
}
