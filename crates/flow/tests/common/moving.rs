//! Helpers to move a graph and to check its output.

use super::{Add, Nibble};
use millstream_cpu::proc::Stat;
use millstream_flow::{Block, BlockError, Context, Graph, In, Out, Partition, Plan};
use millstream_flow::{Ports, WaitMode, Work};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// The longest wait of a move. A sanitizer on a busy machine needs seconds.
pub const LIMIT: Duration = Duration::from_secs(60);

/// Random numbers from a seed.
pub struct Random(SplitMix64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(SplitMix64::seed_from_u64(seed))
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.0.next_u64() % limit
    }

    /// Puts every block somewhere, in partitions whose names begin with `prefix`.
    pub fn plan(&mut self, blocks: &[String], prefix: &str) -> Plan {
        let most = 1 + self.below(blocks.len() as u64);
        let mut partitions: BTreeMap<u64, Vec<String>> = BTreeMap::new();
        for block in blocks {
            partitions.entry(self.below(most)).or_default().push(block.clone());
        }
        let cpus: Vec<usize> = millstream_cpu::thread::allowed_cpus().unwrap().iter().collect();
        let partitions = partitions.into_iter().map(|(place, blocks)| Partition {
            // Names that come and go.
            name: format!("{prefix}-{}", (place + self.below(2) * 100)),
            blocks,
            cpu: (self.below(2) == 0).then(|| cpus[self.below(cpus.len() as u64) as usize]),
            wait: [WaitMode::Park, WaitMode::Adaptive][self.below(2) as usize],
        });
        Plan { partitions: partitions.collect(), ..Plan::default() }
    }
}

/// Threads of this process whose names begin with `prefix`, each as its number and its name. The
/// list is not a snapshot: threads can begin and end while it is read.
pub fn threads_called(prefix: &str) -> BTreeSet<String> {
    // A thread that has been joined can be listed for another moment: the kernel reports its end
    // before it takes it off the list. Such a thread has the flag `PF_EXITING`.
    const PF_EXITING: u32 = 4;
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let stats = tasks.filter_map(|task| Some((task.file_name(), Stat::read(&task.path())?)));
    let called = stats.filter(|(_, stat)| {
        stat.name.starts_with(prefix) && stat.field::<u32>(9).unwrap() & PF_EXITING == 0
    });
    called.map(|(number, stat)| format!("{} {}", number.to_string_lossy(), stat.name)).collect()
}

/// Ends a [`Counted`] and returns how far it came.
#[derive(Clone, Default)]
pub struct Gate(Arc<(AtomicBool, AtomicU64)>);

impl Gate {
    pub fn close(&self) {
        self.0.0.store(true, Ordering::Relaxed);
    }

    pub fn given(&self) -> u64 {
        self.0.1.load(Ordering::Relaxed)
    }
}

/// A source whose item n is a hash of n.
#[derive(Ports)]
pub struct Counted {
    output: Out<u32>,
    gate: Gate,
    next: u64,
    last: u64,
}

impl Counted {
    pub fn until(gate: &Gate) -> Self {
        Self { output: Out::new(), gate: gate.clone(), next: 0, last: u64::MAX }
    }

    pub fn exactly(items: u64) -> Self {
        Self { last: items, ..Self::until(&Gate::default()) }
    }

    pub fn endless() -> Self {
        Self::until(&Gate::default())
    }
}

impl Block for Counted {
    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        let output = self.output.slice_mut();
        let items = output.len().min(1000).min((self.last - self.next) as usize);
        for item in &mut output[..items] {
            *item = (self.next as u32).wrapping_mul(2_654_435_761);
            self.next += 1;
        }
        self.output.produce(items);
        self.gate.0.1.store(self.next, Ordering::Relaxed);
        let end = self.next == self.last || self.gate.0.0.load(Ordering::Relaxed);
        Ok(if end { Work::Finished } else { Work::Continue })
    }
}

/// The result of a [`DigestSink`].
#[derive(Clone, Default)]
pub struct Digest(Arc<(AtomicU64, AtomicU64)>);

impl Digest {
    pub fn items(&self) -> u64 {
        self.0.0.load(Ordering::Relaxed)
    }

    pub fn value(&self) -> u64 {
        self.0.1.load(Ordering::Relaxed)
    }
}

/// Hashes everything it sees in order (FNV-1a).
#[derive(Ports)]
struct DigestSink {
    input: In<u32>,
    digest: Digest,
    value: u64,
}

impl Block for DigestSink {
    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        let input = self.input.slice();
        for item in input {
            self.value = (self.value ^ u64::from(*item)).wrapping_mul(0x0100_0000_01b3);
        }
        let items = input.len();
        self.input.consume(items);
        self.digest.0.1.store(self.value, Ordering::Relaxed);
        self.digest.0.0.fetch_add(items as u64, Ordering::Relaxed);
        Ok(Work::Continue)
    }
}

/// A graph with a fan-out, unequal branches and a join.
pub fn graph(seed: u64, source: Counted) -> (Graph, Digest) {
    let digest = Digest::default();
    let value = 0xcbf2_9ce4_8422_2325;
    let sink = DigestSink { input: In::new(), digest: digest.clone(), value };
    let mut graph = Graph::new();
    graph.add("source", source).unwrap();
    graph.add("front", Nibble::new(seed, 3000)).unwrap();
    graph.add("left", Nibble::new(seed ^ 5, 700)).unwrap();
    graph.add("right", Nibble::new(seed ^ 9, 70)).unwrap();
    graph.add("late", Nibble::new(seed ^ 17, 900).wanting(500)).unwrap();
    graph.add("join", Add::new()).unwrap();
    graph.add("sink", sink).unwrap();
    graph.chain(&["source", "front", "left", "join.a"]).unwrap();
    graph.chain(&["front", "right", "late", "join.b"]).unwrap();
    graph.chain(&["join", "sink"]).unwrap();
    (graph, digest)
}
