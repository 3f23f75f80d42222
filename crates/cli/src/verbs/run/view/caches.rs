//! The place of the buffers of a graph in the caches, by their sizes.

use millstream_cpu::threads::ThreadInfo;
use millstream_cpu::{Core, Topology};
use millstream_flow::{EdgeCost, Profile, Snapshot};
use serde::Serialize;

/// The buffer of a connection, and where it lies.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EdgeCache {
    pub from: String,
    pub to: String,
    /// Bytes of the buffer in use.
    pub buffer_bytes: u64,
    /// CPUs of the writer and of the reader, as far as they are known.
    pub cpus: [Option<usize>; 2],
    /// Whether the items go to another core; `None` where the CPUs are not known.
    pub crosses_cores: Option<bool>,
    /// The nearest cache that both share and that has room for the buffer: `L1`, `memory`.
    pub cache: Option<String>,
}

/// The CPUs of a machine, and where the threads of a graph are on them.
pub struct Caches<'a> {
    pub topology: Option<&'a Topology>,
    pub snapshot: &'a Snapshot,
    pub threads: &'a [ThreadInfo],
}

impl Caches<'_> {
    /// The buffers of all connections.
    pub fn edges(&self, load: &Profile) -> Vec<EdgeCache> {
        load.edges.iter().map(|edge| self.edge(load, edge)).collect()
    }

    pub fn edge(&self, load: &Profile, edge: &EdgeCost) -> EdgeCache {
        let reader = load.block(edge.reader()).cloned().unwrap_or_default();
        let buffer_bytes = edge.buffer_bytes(&reader);
        let cpus = [self.cpu(edge.writer()), self.cpu(edge.reader())];
        let cores = cpus.map(|cpu| self.core(cpu?));
        let crosses_cores = match cores {
            [Some(writer), Some(reader)] => Some(!writer.smt_siblings.contains(reader.cpu)),
            _ => None,
        };
        let cache = match cores {
            [Some(writer), Some(reader)] => nearest(reader, Some(writer.cpu), buffer_bytes),
            _ => None,
        };
        let (from, to) = (edge.from.clone(), edge.to.clone());
        EdgeCache { from, to, buffer_bytes, cpus, crosses_cores, cache }
    }

    /// The nearest cache with room for `bytes` of one block, on the CPU on which it runs.
    pub fn block(&self, name: &str, bytes: u64) -> Option<String> {
        let core = self.cpu(name).and_then(|cpu| self.core(cpu));
        nearest(core.or(self.topology?.cores.first())?, None, bytes)
    }

    /// The CPU on which a block runs: that of its plan, or the last one of its thread.
    fn cpu(&self, block: &str) -> Option<usize> {
        let name = &self.snapshot.block(block)?.partition;
        let mut partitions = self.snapshot.partitions.iter();
        let partition = partitions.find(|partition| partition.name == *name)?;
        let thread = self.threads.iter().find(|thread| thread.tid == partition.tid);
        partition.cpu.or_else(|| thread.map(|thread| thread.cpu as usize))
    }

    fn core(&self, cpu: usize) -> Option<&Core> {
        self.topology?.cores.iter().find(|core| core.cpu == cpu)
    }
}

/// The nearest cache of `core` with room for `bytes`, which the CPU `other` shares.
fn nearest(core: &Core, other: Option<usize>, bytes: u64) -> Option<String> {
    let shared = |cache: &&millstream_cpu::Cache| {
        bytes <= cache.size_bytes && other.is_none_or(|cpu| cache.shared_by.contains(cpu))
    };
    match core.caches.iter().find(shared) {
        Some(cache) => Some(format!("L{}", cache.level)),
        None if core.caches.is_empty() => None,
        None => Some("memory".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_cpu::RecordedMachine;
    use millstream_flow::{BlockCost, BlockStats, PartitionStats};
    use std::collections::BTreeMap;

    /// The edge from `a` on one CPU to `b` on the other, whose ring of `kib` is used.
    fn edge(machine: &str, cpus: [usize; 2], kib: u64) -> EdgeCache {
        let topology = RecordedMachine::named(machine).unwrap().topology;
        let names = ["a", "b"];
        let block = |name: &str| BlockStats {
            name: name.into(),
            partition: name.into(),
            calls: 0,
            items_in: 0,
            items_out: 0,
            busy_ns: 0,
            metrics: BTreeMap::new(),
            messages: None,
        };
        let partition = |name: &str, cpu| PartitionStats {
            name: name.into(),
            cpu: Some(cpu),
            tid: 0,
            sweeps: 0,
            waits: 0,
        };
        let snapshot = Snapshot {
            blocks: names.map(block).into(),
            partitions: vec![partition("a", cpus[0]), partition("b", cpus[1])],
            latency: Vec::new(),
        };
        let cost = |name: &str| BlockCost { name: name.into(), calls: 1, ..BlockCost::default() };
        let edge = EdgeCost {
            from: "a.out".into(),
            to: "b.in".into(),
            item_bytes: 1024,
            items: 1 << 40,
            capacity_items: kib,
            looks: 1,
            ..EdgeCost::default()
        };
        let load = Profile { elapsed_s: 1.0, blocks: names.map(cost).into(), edges: vec![edge] };
        let caches = Caches { topology: Some(&topology), snapshot: &snapshot, threads: &[] };
        caches.edges(&load).remove(0)
    }

    #[test]
    fn a_buffer_lies_in_the_nearest_cache_that_both_ends_share() {
        let topology = RecordedMachine::named("i7-6950x").unwrap().topology;
        let sibling = topology.cores[0].smt_siblings.iter().find(|cpu| *cpu != 0);
        let at = |cpus, kib| {
            let edge = edge("i7-6950x", cpus, kib);
            assert_eq!((edge.buffer_bytes, edge.cpus), (kib << 10, cpus.map(Some)));
            (edge.cache.unwrap(), edge.crosses_cores.unwrap())
        };
        // 32 KiB, 256 KiB and 25 MiB.
        assert_eq!(at([0, 0], 32), ("L1".to_owned(), false));
        assert_eq!(at([0, 0], 33), ("L2".to_owned(), false));
        assert_eq!(at([0, 1], 4), ("L3".to_owned(), true), "the last one only is shared");
        assert_eq!(at([0, 1], 26 << 10), ("memory".to_owned(), true));
        if let Some(sibling) = sibling {
            assert_eq!(at([0, sibling], 4), ("L1".to_owned(), false));
        }
    }

    #[test]
    fn what_is_not_known_is_left_open() {
        let snapshot = Snapshot { blocks: vec![], partitions: vec![], latency: vec![] };
        let caches = Caches { topology: None, snapshot: &snapshot, threads: &[] };
        let load = Profile { edges: vec![EdgeCost::default()], ..Profile::default() };
        let edge = caches.edges(&load).remove(0);
        assert_eq!((edge.cache, edge.crosses_cores, edge.cpus), (None, None, [None, None]));
        assert_eq!(caches.block("none", 7), None);
    }
}
