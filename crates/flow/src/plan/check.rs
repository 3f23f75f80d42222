//! Checks of a plan against a graph and a machine.

use super::WaitMode;
use super::{Buffers, Partition, Plan};
use crate::graph::{Graph, GraphError, PortDirection};
use millstream_cpu::CpuSet;

/// The largest ring, which holds seconds of the fastest streams.
const RING_BYTES_MAX: usize = 16 << 30;
/// The largest batch: a call that sees more has no cache for it.
const BATCH_BYTES_MAX: usize = 1 << 30;

/// The reason why a plan cannot be applied.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// Not TOML, or not a plan.
    #[error("cannot read the plan: {0}")]
    Syntax(String),
    /// A block that the graph does not have.
    #[error(
        "partition `{partition}` of the plan contains block `{block}`, which is not in the graph"
    )]
    UnknownBlock {
        /// The partition.
        partition: String,
        /// The block.
        block: String,
    },
    /// A block in two places.
    #[error(
        "block `{block}` is in partition `{first}` and in partition `{second}`: keep it in one of \
         them"
    )]
    BlockTwice {
        /// The block.
        block: String,
        /// One partition.
        first: String,
        /// The other.
        second: String,
    },
    /// Two partitions of one name.
    #[error("two partitions have the name `{0}`: give each partition its own name")]
    DuplicatePartition(String),
    /// A name that a thread cannot have.
    #[error(
        "{0:?} cannot be the name of a partition: write at least one character, and no control \
         characters"
    )]
    PartitionName(String),
    /// A CPU that is not allowed.
    #[error(
        "the plan puts partition `{partition}` on CPU {cpu}, but this process may use only CPUs \
         {allowed}"
    )]
    Cpu {
        /// The partition.
        partition: String,
        /// The CPU.
        cpu: usize,
        /// CPUs that are allowed.
        allowed: CpuSet,
    },
    /// A pin of a block that the graph does not have.
    #[error("the plan puts block `{block}` on CPU {cpu}, but this block is not in the graph")]
    PinnedBlock {
        /// The block.
        block: String,
        /// The CPU.
        cpu: usize,
    },
    /// A pin to a CPU that is not allowed.
    #[error("the plan puts block `{block}` on CPU {cpu}, but it may use only CPUs {allowed}")]
    PinnedCpu {
        /// The block.
        block: String,
        /// The CPU.
        cpu: usize,
        /// CPUs that are allowed.
        allowed: CpuSet,
    },
    /// A buffer that no machine has memory for.
    #[error("buffers.{name} is {bytes} bytes: give 0 to {most}")]
    BufferSize {
        /// The key.
        name: String,
        /// Its value.
        bytes: usize,
        /// The largest value.
        most: usize,
    },
    /// A buffer size for an output that does not exist.
    #[error("buffers.outputs contains `{name}`, which is not an output of a block: {reason}")]
    UnknownOutput {
        /// The key.
        name: String,
        /// The reason.
        reason: String,
    },
}

/// A plan with every block placed.
#[derive(Clone, Debug)]
pub(crate) struct Placement {
    pub(crate) partitions: Vec<Partition>,
    /// Partition of each node.
    pub(crate) of_node: Vec<usize>,
    /// Nodes in topological order.
    pub(crate) order: Vec<usize>,
}

impl Plan {
    /// Places every block of `graph`, on a machine that allows the CPUs `allowed`.
    pub(crate) fn place(&self, graph: &Graph, allowed: &CpuSet) -> Result<Placement, GraphError> {
        self.check_partitions(allowed)?;
        self.check_outputs(graph)?;
        self.check_sizes()?;
        let order = graph.topological_order()?;
        let blocks = graph.nodes.len();
        let mut of_node = self.partition_of_each(blocks, |name| graph.node_index(name))?;
        let mut partitions = self.partitions.clone();
        let open: Vec<usize> =
            order.iter().copied().filter(|node| of_node[*node].is_none()).collect();
        let runs = allowed.len().saturating_sub(partitions.len()).max(1).min(open.len());
        for run in 0..runs {
            let run = &open[run * open.len() / runs..(run + 1) * open.len() / runs];
            run.iter().for_each(|node| of_node[*node] = Some(partitions.len()));
            let partition = run_of_blocks(graph, run, &partitions);
            partitions.push(partition);
        }
        let of_node = of_node.into_iter().map(|index| index.expect("every node placed"));
        Ok(Placement { partitions, of_node: of_node.collect(), order })
    }

    /// Returns the partition of each of `blocks` blocks, if the plan mentions it; `position` gives
    /// the number of a block.
    ///
    /// # Errors
    /// [`PlanError`]: the plan mentions a block that `position` does not know, or one twice.
    pub fn partition_of_each(
        &self,
        blocks: usize,
        position: impl Fn(&str) -> Option<usize>,
    ) -> Result<Vec<Option<usize>>, PlanError> {
        let mut of_block: Vec<Option<usize>> = vec![None; blocks];
        for (index, partition) in self.partitions.iter().enumerate() {
            for block in &partition.blocks {
                let number = position(block).ok_or_else(|| PlanError::UnknownBlock {
                    partition: partition.name.clone(),
                    block: block.clone(),
                })?;
                if let Some(first) = of_block[number].replace(index) {
                    return Err(PlanError::BlockTwice {
                        block: block.clone(),
                        first: self.partitions[first].name.clone(),
                        second: partition.name.clone(),
                    });
                }
            }
        }
        Ok(of_block)
    }

    /// Checks names and CPUs of the partitions.
    ///
    /// # Errors
    /// [`PlanError`]: a name that a thread cannot have or that two partitions have, or a CPU that
    /// is not `allowed`.
    pub fn check_partitions(&self, allowed: &CpuSet) -> Result<(), PlanError> {
        for (index, partition) in self.partitions.iter().enumerate() {
            let name = &partition.name;
            if name.is_empty() || name.chars().any(char::is_control) {
                return Err(PlanError::PartitionName(name.clone()));
            }
            if self.partitions[..index].iter().any(|other| other.name == *name) {
                return Err(PlanError::DuplicatePartition(name.clone()));
            }
            if let Some(cpu) = partition.cpu.filter(|cpu| !allowed.contains(*cpu)) {
                let (partition, allowed) = (name.clone(), allowed.clone());
                return Err(PlanError::Cpu { partition, cpu, allowed });
            }
        }
        Ok(())
    }

    /// Checks the sizes before anything allocates them.
    fn check_sizes(&self) -> Result<(), PlanError> {
        let Buffers { inside_bytes, batch_bytes, between_bytes, outputs, .. } = &self.buffers;
        let outputs = outputs.iter().map(|(name, bytes)| (format!("outputs.{name}"), *bytes));
        let all = [
            ("inside_bytes", *inside_bytes, RING_BYTES_MAX),
            ("between_bytes", *between_bytes, RING_BYTES_MAX),
            ("batch_bytes", batch_bytes.unwrap_or(0), BATCH_BYTES_MAX),
        ];
        let all = all.map(|(name, bytes, most)| (name.to_owned(), bytes, most)).into_iter();
        let mut all = all.chain(outputs.map(|(name, bytes)| (name, bytes, RING_BYTES_MAX)));
        match all.find(|(_, bytes, most)| bytes > most) {
            Some((name, bytes, most)) => Err(PlanError::BufferSize { name, bytes, most }),
            None => Ok(()),
        }
    }

    fn check_outputs(&self, graph: &Graph) -> Result<(), PlanError> {
        self.buffers.outputs.keys().try_for_each(|name| {
            graph.find(name, PortDirection::Output).map(|_| ()).map_err(|error| {
                PlanError::UnknownOutput { name: name.clone(), reason: error.to_string() }
            })
        })
    }
}

/// Makes a partition of blocks that the plan does not mention, named after the first of them.
fn run_of_blocks(graph: &Graph, run: &[usize], others: &[Partition]) -> Partition {
    let name = Partition::unused_name(others, &graph.nodes[run[0]].name);
    let blocks = run.iter().map(|node| graph.nodes[*node].name.clone()).collect();
    Partition { name, blocks, cpu: None, wait: WaitMode::Park }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::{Copy, NullSink, NullSource};

    #[test]
    fn sizes_beyond_any_memory_are_told_before_they_are_allocated() {
        let mut graph = Graph::new();
        graph.add("a", NullSource::<f32>::new()).unwrap();
        graph.add("b", NullSink::<f32>::new()).unwrap();
        graph.chain(&["a", "b"]).unwrap();
        for (key, most) in [
            ("batch_bytes", BATCH_BYTES_MAX),
            ("inside_bytes", RING_BYTES_MAX),
            ("between_bytes", RING_BYTES_MAX),
            ("outputs.a", RING_BYTES_MAX),
            ("outputs.\"a.out\"", RING_BYTES_MAX),
        ] {
            for bytes in [most + 1, 100_000_000_000, i64::MAX as usize] {
                let plan = Plan::from_toml(&format!("[buffers]\n{key} = {bytes}")).unwrap();
                let error = plan.place(&graph, &(0..1).collect()).unwrap_err().to_string();
                let expected = format!("is {bytes} bytes: give 0 to {most}");
                assert!(error.contains(&expected), "{key}: {error}");
            }
        }
    }

    #[test]
    fn what_a_plan_does_not_mention_is_cut_into_runs_of_equal_length() {
        let mut graph = Graph::new();
        // Added in another order than items pass.
        graph.add("e", NullSink::<f32>::new()).unwrap();
        graph.add("a", NullSource::<f32>::new()).unwrap();
        ["b", "c", "d"].into_iter().for_each(|name| graph.add(name, Copy::<f32>::new()).unwrap());
        graph.chain(&["a", "b", "c", "d", "e"]).unwrap();
        let runs = |plan: &Plan, cpus: usize| {
            let placed = plan.place(&graph, &(0..cpus).collect()).unwrap();
            let text = |one: &Partition| format!("{}: {}", one.name, one.blocks.join(" "));
            let all: Vec<_> = placed.partitions.iter().map(text).collect();
            for (node, partition) in placed.of_node.iter().enumerate() {
                assert!(placed.partitions[*partition].blocks.contains(&graph.nodes[node].name));
            }
            all
        };
        let open = Plan::default();
        assert_eq!(runs(&open, 1), ["a: a b c d e"]);
        assert_eq!(runs(&open, 2), ["a: a b", "c: c d e"]);
        assert_eq!(runs(&open, 9), ["a: a", "b: b", "c: c", "d: d", "e: e"]);
        let blocks = vec!["b".to_owned(), "c".to_owned()];
        let hand = Partition { name: "a".to_owned(), blocks, cpu: None, wait: WaitMode::Park };
        let half = Plan { partitions: vec![hand], ..Plan::default() };
        assert_eq!(runs(&half, 1), ["a: b c", "a_: a d e"]);
        assert_eq!(runs(&half, 3), ["a: b c", "a_: a", "d: d e"]);
        assert_eq!(runs(&Plan::single(&graph, WaitMode::Park), 2), ["all: e a b c d"]);
    }
}
