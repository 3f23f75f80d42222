//! The parts of a graph file that decide its cost.

use super::{FileProblem, GraphFile, GraphFileError};
use crate::registry::{BlockType, OVERWRITE, ParameterValue, Registry};
use std::fmt::Write;
use std::path::PathBuf;

impl GraphFile {
    /// Returns the structure as text: blocks with types and parameters, and connections, each
    /// sorted. Two files of one structure cost the same on one machine. Comments, the order of
    /// entries, the plan, and parameters that are [incidental] are not in it.
    ///
    /// [incidental]: derive@crate::registry::BlockParameters
    ///
    /// # Errors
    /// As [`build`](Self::build), as far as values are concerned: no block is made.
    pub fn structure(
        &self,
        registry: &Registry,
        overrides: &[String],
    ) -> Result<String, GraphFileError> {
        self.try_structure(registry, overrides).map_err(|problem| problem.of(&self.name))
    }

    fn try_structure(
        &self,
        registry: &Registry,
        overrides: &[String],
    ) -> Result<String, FileProblem> {
        let values = self.parameter_values(overrides)?;
        let mut lines = Vec::new();
        for entry in &self.blocks {
            let block_type = entry.block_type(registry)?;
            let mut line = format!("block {} {}", entry.name, entry.type_name);
            for (name, value) in entry.parameters(block_type, &values)?.iter() {
                if !block_type.is_incidental(name) {
                    let _ = write!(line, " {name}={value}");
                }
            }
            lines.push(line);
        }
        for chain in &self.connections {
            let ends: Vec<&str> = chain.split("->").map(str::trim).collect();
            lines.extend(ends.windows(2).map(|pair| format!("{} -> {}", pair[0], pair[1])));
        }
        lines.sort();
        Ok(lines.join("\n"))
    }

    /// Returns a numeric parameter of a block, with the values that the blocks get; `None` if the
    /// block has no such number.
    ///
    /// # Errors
    /// As [`structure`](Self::structure).
    pub fn number(
        &self,
        registry: &Registry,
        overrides: &[String],
        of: (&str, &str),
    ) -> Result<Option<f64>, GraphFileError> {
        Ok(match self.value(registry, overrides, of)? {
            Some(ParameterValue::Number(number)) => Some(number),
            Some(ParameterValue::Integer(number)) => Some(number as f64),
            _ => None,
        })
    }

    /// Returns a parameter of a block, with the values that the blocks get; `None` if the block has
    /// no such parameter.
    ///
    /// # Errors
    /// As [`structure`](Self::structure).
    pub fn value(
        &self,
        registry: &Registry,
        overrides: &[String],
        (block, parameter): (&str, &str),
    ) -> Result<Option<ParameterValue>, GraphFileError> {
        let find = || {
            let values = self.parameter_values(overrides)?;
            let Some(entry) = self.blocks.iter().find(|entry| entry.name == block) else {
                return Ok(None);
            };
            let parameters = entry.parameters(entry.block_type(registry)?, &values)?;
            let found = parameters.iter().find(|(name, _)| *name == parameter);
            Ok(found.map(|(_, value)| value.clone()))
        };
        find().map_err(|problem: FileProblem| problem.of(&self.name))
    }

    /// Returns the same graph, whose blocks may replace old files of the names that they write.
    #[must_use]
    pub fn overwriting(&self, registry: &Registry) -> Self {
        let writers = self.blocks_where(registry, |known| known.written_file().is_some());
        writers.iter().fold(self.clone(), |file, block| file.with_value(block, OVERWRITE, true))
    }

    /// Returns the files that its blocks write, in the order of the blocks.
    ///
    /// # Errors
    /// As [`structure`](Self::structure).
    pub fn written_files(
        &self,
        registry: &Registry,
        overrides: &[String],
    ) -> Result<Vec<PathBuf>, GraphFileError> {
        let mut files = Vec::new();
        for entry in &self.blocks {
            let known = registry.get(&entry.type_name);
            let Some(parameter) = known.and_then(BlockType::written_file) else { continue };
            let value = self.value(registry, overrides, (&entry.name, parameter))?;
            files.extend(value.map(|value| PathBuf::from(value.to_string())));
        }
        Ok(files)
    }

    /// Returns the type of a block of the file.
    #[must_use]
    pub fn type_of(&self, block: &str) -> Option<&str> {
        let entry = self.blocks.iter().find(|entry| entry.name == block)?;
        Some(&entry.type_name)
    }

    /// Returns the names of the blocks whose place a stand-in takes in a rehearsal.
    #[must_use]
    pub fn rehearsed(&self, registry: &Registry) -> Vec<String> {
        self.blocks_where(registry, |known| known.effect().has_stand_in())
    }

    /// Returns the names of the blocks that set the rate of items.
    #[must_use]
    pub fn paced(&self, registry: &Registry) -> Vec<String> {
        self.blocks_where(registry, |known| known.effect().sets_rate())
    }

    fn blocks_where(&self, registry: &Registry, holds: fn(&BlockType) -> bool) -> Vec<String> {
        let is_such = |name: &String| registry.get(name).is_some_and(holds);
        let blocks = self.blocks.iter().filter(|entry| is_such(&entry.type_name));
        blocks.map(|entry| entry.name.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Block;
    use crate::blocks::Copy;
    use crate::registry::{BlockParameters, BlockType, ParameterValues};

    const GRAPH: &str = r#"
        [parameters]
        out = "a.u8"
        factor = 2.0
        [[block]]
        name = "source"
        type = "null_source"
        [[block]]
        name = "scale"
        type = "stand_in"
        factor = "${factor}"
        [[block]]
        name = "sink"
        type = "file_sink"
        item = "cf32"
        path = "${out}"
        [graph]
        connections = ["source -> scale -> sink"]
    "#;

    #[derive(BlockParameters)]
    struct Factor {
        /// a number
        #[allow(dead_code, reason = "it costs what it costs")]
        factor: f64,
    }

    /// The builtin types, and one with a number that may change the cost.
    fn registry() -> Registry {
        let mut registry = Registry::builtin();
        let make = |values: &ParameterValues| {
            values.read::<Factor>()?;
            Ok(Box::new(Copy::<crate::Complex<f32>>::new()) as Box<dyn Block>)
        };
        let declared = BlockType::declare::<Factor>("stand_in", "Costs what it costs.");
        registry.register(declared.items(&["cf32"]).pure(make));
        registry
    }

    fn structure(text: &str, overrides: &[&str]) -> String {
        let overrides: Vec<String> = overrides.iter().map(|set| (*set).to_owned()).collect();
        let file = GraphFile::parse("g.toml", text).unwrap();
        file.structure(&registry(), &overrides).unwrap()
    }

    #[test]
    fn what_costs_nothing_does_not_count() {
        let first = structure(GRAPH, &[]);
        assert_eq!(
            first,
            "block scale stand_in factor=2 item=cf32\nblock sink file_sink item=cf32\n\
             block source null_source item=cf32\nscale -> sink\nsource -> scale"
        );
        assert_eq!(structure(GRAPH, &["out=b.u8"]), first);
        let split = GRAPH.replace("source -> scale -> sink", "scale->sink\", \"source->  scale");
        assert_eq!(structure(&split, &[]), first);
        let planned = format!("# a comment\n{GRAPH}\n[plan.buffers]\ninside_bytes = 4096\n");
        assert_eq!(structure(&planned, &[]), first);
    }

    #[test]
    fn what_may_cost_counts() {
        let first = structure(GRAPH, &[]);
        assert_ne!(structure(GRAPH, &["factor=3"]), first);
        assert_ne!(structure(&GRAPH.replace("cf32", "u8"), &[]), first);
        assert_ne!(structure(&GRAPH.replace("scale", "gain"), &[]), first, "plans go by name");
    }

    #[test]
    fn a_rehearsal_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.u8");
        let text = GRAPH.replace("source -> scale", "source -> head -> scale")
            + "\n[[block]]\nname = \"head\"\ntype = \"head\"\ncount = 1000\n";
        let file = GraphFile::parse("g.toml", &text).unwrap();
        let (registry, set) = (registry(), [format!("out={}", path.display())]);
        assert_eq!(file.rehearsed(&registry), ["sink"]);
        assert!(file.paced(&registry).is_empty());
        let rehearsal = file.build_rehearsal(&registry, &set).unwrap();
        let snapshot = rehearsal.run(file.plan()).unwrap();
        assert_eq!(snapshot.block("sink").unwrap().items_in, 1000);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        file.build(&registry, &set).unwrap().run(file.plan()).unwrap();
        assert_eq!(path.metadata().unwrap().len(), 8000);
    }
}
