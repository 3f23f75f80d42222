//! Memory that the rings inside a partition share.

use super::{buffer_by_hand, is_inside, least_items, targets};
use crate::graph::{Graph, GraphError, PortId};
use crate::plan::{Buffers, Placement};
pub(in crate::runtime) use crate::port_state::Loans;
use millstream_ring::Pool;
use std::any::TypeId;
use std::collections::BTreeMap;

/// The pools of each partition, by the type of the items.
pub(super) type Pools = BTreeMap<(usize, TypeId), Pool>;

/// Returns the pool that an output's ring borrows from: the ring has one reader, in the same
/// partition, and no size of its own.
pub(super) fn key(
    graph: &Graph,
    placement: &Placement,
    buffers: &Buffers,
    from: PortId,
) -> Option<(usize, TypeId)> {
    let item = graph.output(from).item;
    let fits = least_items(graph, from).saturating_mul(item.size_bytes()) <= buffers.inside_bytes;
    let alone = targets(graph, from).count() == 1;
    let pooled = alone
        && fits
        && is_inside(graph, placement, from)
        && buffer_by_hand(graph, buffers, from).is_none();
    pooled.then(|| (placement.of_node[from.node], item.id()))
}

pub(super) fn make(
    graph: &Graph,
    placement: &Placement,
    buffers: &Buffers,
) -> Result<Pools, GraphError> {
    let mut members = BTreeMap::<_, Vec<PortId>>::new();
    for (node, port) in graph.ends(|node| node.outputs.len()) {
        let end = PortId { node, port };
        if let Some(key) = key(graph, placement, buffers, end) {
            members.entry(key).or_default().push(end);
        }
    }
    let pool = |(key, ends): ((usize, TypeId), Vec<PortId>)| {
        let (bytes, huge) = (buffers.inside_bytes, buffers.huge_pages);
        let pool = Pool::new(key.1, ends.len(), bytes, huge);
        let output = graph.output_name(ends[0]);
        let pool = pool.map_err(|error| GraphError::Ring { output, source: error.into() })?;
        Ok((key, pool))
    };
    members.into_iter().map(pool).collect()
}

/// Gives every ring permanent memory whose ends, or whose pool, would belong to several threads;
/// `thread_of` is the new thread of each node.
///
/// # Safety
/// No thread runs the blocks.
pub(in crate::runtime) unsafe fn reclaim(
    loans: &[Option<Loans>],
    graph: &Graph,
    thread_of: &[usize],
) {
    let mut owners: Vec<(Pool, usize)> = Vec::new();
    for edge in &graph.edges {
        let thread = thread_of[edge.from.node];
        // One end is enough: the other may have finished.
        let writer = loans[edge.from.node].as_ref().map(|loans| &loans.outputs[edge.from.port]);
        let reader = loans[edge.to.node].as_ref().map(|loans| &loans.inputs[edge.to.port]);
        let Some(loan) = writer.or(reader).and_then(Option::as_ref) else { continue };
        let Some(pool) = loan.pool() else { continue };
        let together = thread == thread_of[edge.to.node];
        let owner = owners.iter().find(|(other, _)| other.is_same(pool)).map(|(_, owner)| *owner);
        if together && owner.is_none_or(|owner| owner == thread) {
            owners.push((pool.clone(), thread));
        } else {
            // SAFETY: only the thread that has entered a pool uses its rings; that thread ran these
            // blocks and does not now.
            unsafe { loan.reclaim() };
        }
    }
}
