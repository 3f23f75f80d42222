//! A running graph neither allocates nor locks, has only the plan's threads, and stays on the
//! plan's CPUs; with tags and messages on their way.
//!
//! One test, alone in its program: it counts the threads of the process.

mod common;

use common::gain::Gain;
use millstream_cpu::threads::{self, ThreadInfo};
use millstream_flow::blocks::{NullSink, NullSource, Throttle};
use millstream_flow::{
    Block, BlockError, BlockFacts, Context, Emitter, Graph, In, Key, Out, ParameterKind,
    ParameterValue, Partition, Plan, PortVisitor, Ports, RunningGraph, WaitMode, Work,
};
use millstream_ring::locks_taken;
use millstream_testkit::allocations;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The allocations and locks of a thread so far, the runtime included.
#[derive(Default)]
struct Used {
    allocations: AtomicU64,
    locks: AtomicU64,
    tags: AtomicU64,
}

/// A block that reports its thread's allocations and locks.
struct Watched<B> {
    block: B,
    used: Arc<Used>,
}

impl<B: Block> Ports for Watched<B> {
    fn ports(&mut self, ports: &mut dyn PortVisitor) {
        self.block.ports(ports);
    }
}

impl<B: Block> Block for Watched<B> {
    fn work(&mut self, context: &mut Context) -> Result<Work, BlockError> {
        self.used.allocations.store(allocations(), Ordering::Relaxed);
        self.used.locks.store(locks_taken(), Ordering::Relaxed);
        self.block.work(context)
    }

    fn facts(&self, facts: &mut BlockFacts) {
        self.block.facts(facts);
    }

    fn message(&mut self, name: &str, value: &ParameterValue) -> Result<(), BlockError> {
        self.block.message(name, value)
    }
}

/// Items from one tag and one message to the next: so many that the tags of a full ring find room
/// in a queue that has not grown.
const EVERY: u64 = 2000;
const MARK: Key = Key::new("mark");

/// Passes items on, tags some and emits messages about them.
#[derive(Ports)]
struct Talker {
    input: In<f32>,
    output: Out<f32>,
    told: Emitter,
}

impl Block for Talker {
    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        let (input, output) = (self.input.slice(), self.output.slice_mut());
        let items = input.len().min(output.len());
        output[..items].copy_from_slice(&input[..items]);
        let position = self.output.position();
        let first = position.next_multiple_of(EVERY) - position;
        for index in (first..items as u64).step_by(EVERY as usize) {
            self.output.tag(index as usize, MARK, position + index);
            self.told.emit(0.5);
        }
        self.input.consume(items);
        self.output.produce(items);
        Ok(Work::Continue)
    }
}

/// Passes items on and counts their tags.
#[derive(Ports)]
struct Listener {
    input: In<f32>,
    output: Out<f32>,
    used: Arc<Used>,
}

impl Block for Listener {
    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        let (input, output) = (self.input.slice(), self.output.slice_mut());
        let items = input.len().min(output.len());
        output[..items].copy_from_slice(&input[..items]);
        let seen = self.input.tags().take_while(|(index, _)| *index < items).count();
        self.used.tags.fetch_add(seen as u64, Ordering::Relaxed);
        self.input.consume(items);
        self.output.produce(items);
        Ok(Work::Continue)
    }
}

fn graph(used: &[Arc<Used>; 3]) -> Graph {
    let watch = |thread: usize| Arc::clone(&used[thread]);
    let mut graph = Graph::new();
    graph.add("source", NullSource::<f32>::new()).unwrap();
    let pace = Throttle::<f32>::new(20e6).unwrap();
    graph.add("pace", Watched { block: pace, used: watch(0) }).unwrap();
    let told = Emitter::new(ParameterKind::Number);
    graph.add("talker", Talker { input: In::new(), output: Out::new(), told }).unwrap();
    let scale = Gain::<f32>::new(0.5);
    graph.add("scale", Watched { block: scale, used: watch(1) }).unwrap();
    let block = Listener { input: In::new(), output: Out::new(), used: watch(2) };
    graph.add("listener", Watched { block, used: watch(2) }).unwrap();
    graph.add("sink", NullSink::<f32>::new()).unwrap();
    graph.add("side", NullSink::<f32>::new()).unwrap();
    graph.chain(&["source", "pace", "talker", "scale", "listener", "sink"]).unwrap();
    graph.connect("scale", "side").unwrap();
    graph.connect_message("talker.told", "scale.factor").unwrap();
    graph
}

fn plan() -> Plan {
    let cpus: Vec<usize> = millstream_cpu::thread::allowed_cpus().unwrap().iter().collect();
    let partition = |name: &str, blocks: &[&str], cpu: usize, wait| {
        let blocks = blocks.iter().map(|block| (*block).to_owned()).collect();
        Partition { name: name.to_owned(), blocks, cpu: Some(cpus[cpu % cpus.len()]), wait }
    };
    let partitions = vec![
        partition("front", &["source", "pace", "talker"], 0, WaitMode::Park),
        partition("middle", &["scale", "side"], 0, WaitMode::Adaptive),
        partition("back", &["listener", "sink"], 1, WaitMode::Spin),
    ];
    Plan { partitions, ..Plan::default() }
}

fn process_threads() -> Vec<ThreadInfo> {
    threads::of_process(std::process::id()).unwrap()
}

/// Waits until so many items have arrived; returns the most threads that existed meanwhile.
fn wait_for(running: &RunningGraph, items: u64) -> usize {
    let mut most = 0;
    while running.snapshot().block("sink").unwrap().items_in < items {
        most = most.max(process_threads().len());
        std::thread::sleep(Duration::from_millis(1));
    }
    most
}

/// Checks that each partition's thread is on its CPU; returns how often it came to a CPU.
fn places(running: &RunningGraph, plan: &Plan) -> Vec<Option<u64>> {
    let (snapshot, threads) = (running.snapshot(), process_threads());
    let place = |partition: &Partition| {
        let stats = snapshot.partitions.iter().find(|stats| stats.name == partition.name).unwrap();
        let thread = threads.iter().find(|thread| thread.tid == stats.tid).unwrap();
        assert_eq!(Some(thread.cpu as usize), partition.cpu, "{}", partition.name);
        thread.migrations
    };
    plan.partitions.iter().map(place).collect()
}

#[test]
fn the_steady_state_neither_allocates_nor_locks_nor_migrates() {
    let used: [Arc<Used>; 3] = Default::default();
    let load = |number: &AtomicU64| number.load(Ordering::Relaxed);
    let totals = || used.each_ref().map(|used| (load(&used.allocations), load(&used.locks)));
    let plan = plan();
    let before = process_threads().len();
    let running = graph(&used).start(&plan).unwrap();
    wait_for(&running, 1_000_000);
    let (warm, placed) = (totals(), places(&running, &plan));
    assert!(warm.iter().all(|(count, _)| *count > 0), "every thread is watched: {warm:?}");
    let most = wait_for(&running, 5_000_000);
    assert_eq!(totals(), warm, "allocations and locks of each thread in the steady state");
    assert_eq!(places(&running, &plan), placed, "migrations of each thread");
    assert!(most <= before + plan.partitions.len(), "{most} threads, {before} without the graph");
    assert!(load(&used[2].tags) >= 5_000_000 / EVERY, "tags flow");
    let snapshot = running.snapshot();
    let messages = snapshot.block("scale").unwrap().messages.clone().unwrap();
    assert!(messages.taken > 1000 && messages.refused == 0, "messages flow: {messages:?}");
    let waits: u64 = snapshot.partitions.iter().map(|partition| partition.waits).sum();
    running.stopper().stop();
    running.wait().unwrap();
    assert!(waits > 0, "the measured time has waits in it");
}
