//! Standard plans by name.

use crate::graph::Graph;
use crate::plan::{Buffers, Partition, Plan, WaitMode};
use std::str::FromStr;

/// A standard plan. The same graph runs with each, so the gain of a plan can be measured inside one
/// program.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Preset {
    /// Every block on one thread.
    Single,
    /// A thread for each block, as in many other runtimes.
    PerBlock,
    /// Runs of equal length in the order that items pass, one for each CPU.
    Auto,
}

/// A word that is not the name of a preset.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("`{0}` is not the name of a plan; the names are: single, per-block, auto")]
pub struct ParsePresetError(String);

impl Preset {
    /// Every preset.
    pub const ALL: [Self; 3] = [Self::Single, Self::PerBlock, Self::Auto];

    /// Returns its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::PerBlock => "per-block",
            Self::Auto => "auto",
        }
    }

    /// Returns the plan for `graph` with this wait mode for all partitions (those of `Auto` park)
    /// and these buffer sizes.
    #[must_use]
    pub fn plan(self, graph: &Graph, wait: WaitMode, buffers: &Buffers) -> Plan {
        let plan = match self {
            Self::Single => Plan::single(graph, wait),
            Self::PerBlock => Plan::per_block(graph, wait),
            Self::Auto => Plan::default(),
        };
        Plan { buffers: buffers.clone(), ..plan }
    }
}

impl FromStr for Preset {
    type Err = ParsePresetError;

    fn from_str(text: &str) -> Result<Self, ParsePresetError> {
        let found = Self::ALL.into_iter().find(|preset| preset.name() == text);
        found.ok_or_else(|| ParsePresetError(text.to_owned()))
    }
}

impl Plan {
    /// Makes one partition with every block of `graph`.
    #[must_use]
    pub fn single(graph: &Graph, wait: WaitMode) -> Self {
        let blocks = graph.block_names().map(str::to_owned).collect();
        let partition = Partition { name: "all".to_owned(), blocks, cpu: None, wait };
        Self { partitions: vec![partition], ..Self::default() }
    }

    /// Makes one partition for each block of `graph`, with the name of the block.
    #[must_use]
    pub fn per_block(graph: &Graph, wait: WaitMode) -> Self {
        let alone = |name: &str| Partition {
            name: name.to_owned(),
            blocks: vec![name.to_owned()],
            cpu: None,
            wait,
        };
        Self { partitions: graph.block_names().map(alone).collect(), ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::{Copy, NullSink, NullSource};

    #[test]
    fn words_are_plans() {
        let mut graph = Graph::new();
        graph.add("a", NullSource::<f32>::new()).unwrap();
        graph.add("b", Copy::<f32>::new()).unwrap();
        graph.add("c", NullSink::<f32>::new()).unwrap();
        graph.chain(&["a", "b", "c"]).unwrap();
        let buffers = Buffers { inside_bytes: 4096, ..Buffers::default() };
        for (preset, partitions) in Preset::ALL.into_iter().zip([1, 3, 0]) {
            assert_eq!(preset.name().parse(), Ok(preset));
            let plan = preset.plan(&graph, WaitMode::Spin, &buffers);
            assert_eq!(plan.partitions.len(), partitions, "{preset:?}");
            assert!(plan.partitions.iter().all(|partition| partition.wait == WaitMode::Spin));
            assert_eq!(plan.buffers, buffers);
        }
    }

    #[test]
    fn other_words_are_told_which_there_are() {
        let error = "fast".parse::<Preset>().unwrap_err().to_string();
        assert_eq!(
            error,
            "`fast` is not the name of a plan; the names are: single, per-block, auto"
        );
    }
}
