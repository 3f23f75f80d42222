//! Places the blocks of a graph by a plan, on a machine.

use crate::graph::{Graph, GraphError, PortDirection};
use crate::plan::{Partition, Plan, PlanError, WaitMode};
use millstream_cpu::CpuSet;

/// A plan with every block placed.
#[derive(Clone, Debug)]
pub(in crate::runtime) struct Placement {
    pub(in crate::runtime) partitions: Vec<Partition>,
    /// Partition of each node.
    pub(in crate::runtime) of_node: Vec<usize>,
    /// Nodes in topological order.
    pub(in crate::runtime) order: Vec<usize>,
}

impl Plan {
    /// Places every block of `graph`, on a machine that allows the CPUs `allowed`.
    pub(in crate::runtime) fn place(
        &self,
        graph: &Graph,
        allowed: &CpuSet,
    ) -> Result<Placement, GraphError> {
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
    use crate::plan::{BATCH_BYTES_MAX, RING_BYTES_MAX};

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
