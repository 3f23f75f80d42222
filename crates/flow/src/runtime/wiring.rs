//! Rings on every connection.

use super::GraphError;
use super::placement::Placement;
use crate::graph::{Edge, Graph, Node, PortId};
use crate::plan::Buffers;
use crate::port::{InputPort, OutputPort, each_port};
use millstream_ring::RingOptions;
use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};

/// Reading ends on their way from outputs to inputs.
type Readers = BTreeMap<PortId, Box<dyn Any + Send>>;

/// Opens every output and attaches every connected input.
pub(super) fn open_rings(
    graph: &mut Graph,
    placement: &Placement,
    buffers: &Buffers,
) -> Result<(), GraphError> {
    let mut readers = Readers::new();
    for node in 0..graph.nodes.len() {
        let options: Vec<RingOptions> = (0..graph.nodes[node].outputs.len())
            .map(|port| ring_options(graph, placement, buffers, PortId { node, port }))
            .collect();
        open_outputs(graph, node, &options, &mut readers)?;
    }
    for (index, node) in graph.nodes.iter_mut().enumerate() {
        let mut end = PortId { node: index, port: 0 };
        let attach = |_: &str, port: &mut dyn InputPort| {
            let reader = readers.remove(&end).expect("a checked graph connects every input");
            assert!(port.attach(reader), "item types were compared when the ports were connected");
            end.port += 1;
        };
        each_port(&mut *node.block, attach, |_, _| {});
    }
    debug_assert!(readers.is_empty(), "every reading end found its input");
    Ok(())
}

/// Returns the waiters of the threads on the other side of a node's rings, and of those that wait
/// for its progress, except its own; `thread_of` is the thread of each node.
pub(super) fn neighbours(graph: &Graph, thread_of: &[usize], node: usize) -> BTreeSet<usize> {
    let others = graph.edges.iter().flat_map(|Edge { from, to }| match node {
        node if node == from.node => Some(to.node),
        node if node == to.node => Some(from.node),
        _ => None,
    });
    let waiting = graph.wakes.iter().filter(|(of, _)| *of == node).map(|(_, who)| *who);
    let others = others.chain(waiting);
    let own = thread_of[node];
    others.map(|other| thread_of[other]).filter(|other| *other != own).collect()
}

fn ring_options(
    graph: &Graph,
    placement: &Placement,
    buffers: &Buffers,
    from: PortId,
) -> RingOptions {
    let output = graph.output(from);
    let size = output.item.size_bytes().max(1);
    let inside = is_inside(graph, placement, from);
    let default = if inside { buffers.inside_bytes } else { buffers.between_bytes };
    let by_hand = buffer_by_hand(graph, buffers, from);
    let least = least_items(graph, from);
    RingOptions {
        items: (by_hand.unwrap_or(default) / size).max(least),
        readers: targets(graph, from).count(),
        huge_pages: buffers.huge_pages,
        batch_items: (buffers.batch_bytes() / size).max(1),
    }
}

/// Returns the size that the plan sets for this output.
fn buffer_by_hand(graph: &Graph, buffers: &Buffers, from: PortId) -> Option<usize> {
    let Node { name, outputs, .. } = &graph.nodes[from.node];
    let bytes = buffers.outputs.get(&graph.output_name(from)).or_else(|| {
        // The short form, for a block with one output.
        buffers.outputs.get(name).filter(|_| outputs.len() == 1)
    });
    bytes.copied()
}

/// Returns the least size of a ring: a writer that wants W and a reader that wants R items are
/// never both stuck in W + R items; twice that lets them overlap.
fn least_items(graph: &Graph, from: PortId) -> usize {
    let wanted = targets(graph, from).map(|to| graph.input(to).min_items).max().unwrap_or(0);
    graph.output(from).min_items.saturating_add(wanted).saturating_mul(2)
}

fn targets(graph: &Graph, from: PortId) -> impl Iterator<Item = PortId> + '_ {
    graph.edges.iter().filter(move |edge| edge.from == from).map(|edge| edge.to)
}

fn is_inside(graph: &Graph, placement: &Placement, from: PortId) -> bool {
    let own = placement.of_node[from.node];
    targets(graph, from).all(|to| placement.of_node[to.node] == own)
}

fn open_outputs(
    graph: &mut Graph,
    node: usize,
    options: &[RingOptions],
    readers: &mut Readers,
) -> Result<(), GraphError> {
    let edges = &graph.edges;
    let Node { name: block_name, block, .. } = &mut graph.nodes[node];
    let (mut options, mut failed) = (options.iter().enumerate(), None);
    let open = |name: &str, output: &mut dyn OutputPort| {
        let (port, options) = options.next().expect("a block shows the same ports again");
        let from = PortId { node, port };
        match output.open(options) {
            Ok(ends) => {
                let targets = edges.iter().filter(|edge| edge.from == from);
                readers.extend(targets.map(|edge| edge.to).zip(ends));
            }
            Err(source) => {
                let output = format!("{block_name}.{name}");
                failed.get_or_insert(GraphError::Ring { output, source });
            }
        }
    };
    each_port(&mut **block, |_, _| {}, open);
    failed.map_or(Ok(()), Err)
}
