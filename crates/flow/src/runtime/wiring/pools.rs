//! Memory that the rings inside a partition share, and how much of it a call sees.

use super::{buffer_by_hand, is_inside, least_items, targets};
use crate::graph::{End, Graph, GraphError};
use crate::plan::{Buffers, Placement};
pub(in crate::runtime) use crate::survey::Loans;
use millstream_ring::{MapError, Pool};
use millstream_sys::Topology;
use std::any::TypeId;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::OnceLock;

/// The pools of each partition, by the type of the items.
pub(super) type Pools = BTreeMap<(usize, TypeId), Pool>;

/// The pool that an output's ring is to borrow from: it has one reader, in the same partition, and
/// no size of its own.
pub(super) fn key(
    graph: &Graph,
    placement: &Placement,
    buffers: &Buffers,
    from: End,
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
    let mut members = BTreeMap::<_, Vec<End>>::new();
    for (node, port) in graph.ends(|node| node.outputs.len()) {
        let end = End { node, port };
        if let Some(key) = key(graph, placement, buffers, end) {
            members.entry(key).or_default().push(end);
        }
    }
    let pool = |(key, ends): ((usize, TypeId), Vec<End>)| {
        let (bytes, huge) = (buffers.inside_bytes, buffers.huge_pages);
        // SAFETY: a block holds at most one end of a ring, because a graph has no cycles, and uses
        // it only while it is called. The blocks of a partition are called one after the other.
        let pool = unsafe { Pool::new(key.1, ends.len(), bytes, huge) };
        let output = graph.output_name(ends[0]);
        let pool = pool.map_err(|error| GraphError::Ring { output, source: error.into() })?;
        Ok((key, pool))
    };
    members.into_iter().map(pool).collect()
}

/// Gives every ring memory of its own whose ends, or whose pool, would come to several threads;
/// `thread_of` says which thread each node is to have. For blocks that nobody runs now.
pub(in crate::runtime) fn settle(
    loans: &[Option<Loans>],
    graph: &Graph,
    thread_of: &[usize],
) -> Result<(), MapError> {
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
            // SAFETY: nobody runs the blocks, so nobody uses their ports.
            unsafe { loan.settle() }?;
        }
    }
    Ok(())
}

/// A third of the smallest L1 data cache, as a power of two: a block reads one batch and writes
/// another, and needs some room itself.
pub(super) fn default_batch_bytes() -> usize {
    /// Where the machine does not tell.
    const USUAL: usize = 16 << 10;
    static BYTES: OnceLock<usize> = OnceLock::new();
    *BYTES.get_or_init(|| {
        let Ok(topology) = Topology::read(Path::new("/")) else { return USUAL };
        let l1 = topology.cores.iter().filter_map(|core| core.cache(1)).map(|c| c.size_bytes).min();
        l1.map_or(USUAL, |bytes| batch_of_l1(usize::try_from(bytes).unwrap_or(USUAL)))
    })
}

fn batch_of_l1(bytes: usize) -> usize {
    let third = (bytes / 3).max(4096);
    1 << third.ilog2()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_batches_and_some_room_fit_the_cache() {
        let kib = |n: usize| batch_of_l1(n << 10) >> 10;
        assert_eq!((kib(48), kib(32), kib(64), kib(128)), (16, 8, 16, 32));
        assert_eq!(kib(0), 4, "a machine that says nothing sensible");
    }
}
