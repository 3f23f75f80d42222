//! Graphs that are moved, stopped and sent messages while the scheduler chooses the threads.
//!
//! `MILLSTREAM_SEEDS` is the number of seeds, `MILLSTREAM_SEED` the first.

use super::{Random, Waiter, point, simulate, spawn};
use crate::Ports;
use crate::block::{Block, BlockError, Context, Work};
use crate::facts::BlockFacts;
use crate::graph::Graph;
use crate::lane::Lane;
use crate::plan::{Buffers, Partition, Plan, WaitMode};
use crate::port::{In, Out};
use crate::runtime::MoveError;
use crate::value::{ParameterKind, ParameterValue};
use millstream_ring::{Lock, Wait};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// A large item, so that rings of a page are soon full.
type Wide = [u64; 64];

/// Produces numbers.
#[derive(Ports)]
struct Source {
    output: Out<Wide>,
    count: u64,
    most: usize,
    given: Arc<AtomicU64>,
}

impl Block for Source {
    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        point();
        let given = self.given.load(Ordering::Relaxed);
        let room = self.output.slice_mut();
        let items = room.len().min(self.most).min((self.count - given) as usize);
        for (item, number) in room[..items].iter_mut().zip(given..) {
            *item = [number; 64];
        }
        point();
        self.output.produce(items);
        self.given.store(given + items as u64, Ordering::Relaxed);
        point();
        let done = given + items as u64 == self.count;
        Ok(if done { Work::Finished } else { Work::Continue })
    }
}

/// Passes items on, if it is open.
#[derive(Ports)]
struct Relay {
    input: In<Wide>,
    output: Out<Wide>,
    most: usize,
    shut: bool,
    one_to_one: bool,
}

impl Block for Relay {
    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        point();
        if self.shut {
            return Ok(Work::Continue);
        }
        let (input, output) = (self.input.slice(), self.output.slice_mut());
        let items = input.len().min(output.len()).min(self.most);
        output[..items].copy_from_slice(&input[..items]);
        self.input.consume(items);
        point();
        self.output.produce(items);
        point();
        Ok(Work::Continue)
    }

    fn pass(&mut self, lane: &mut Lane) {
        if !self.one_to_one {
            return;
        }
        point();
        lane.through(&mut self.input, &mut self.output, |from, to| to.copy_from_slice(from));
        point();
    }

    fn facts(&self, facts: &mut BlockFacts) {
        facts.message("open", ParameterKind::Integer, "1 opens it");
    }

    fn message(&mut self, _: &str, value: &ParameterValue) -> Result<(), BlockError> {
        self.shut = value.as_integer() != Some(1);
        Ok(())
    }
}

/// Collects numbers.
#[derive(Ports)]
struct Sink {
    input: In<Wide>,
    got: Arc<Lock<Vec<u64>>>,
}

impl Block for Sink {
    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        point();
        let items = self.input.slice();
        assert!(items.iter().all(|item| item.iter().all(|part| *part == item[0])), "a torn item");
        self.got.lock().extend(items.iter().map(|item| item[0]));
        let items = items.len();
        point();
        self.input.consume(items);
        point();
        Ok(Work::Continue)
    }
}

const BLOCKS: [&str; 6] = ["source", "gate", "one", "two", "sink", "beside"];

/// A graph, the items of its source, and the items at its sinks.
struct Made {
    graph: Graph,
    given: Arc<AtomicU64>,
    got: [Arc<Lock<Vec<u64>>>; 2],
}

fn make(random: &mut Random, count: u64) -> Made {
    let mut graph = Graph::new();
    // Without clock reads for costs: they would differ between runs.
    graph.set_timed(false);
    let (given, got) = (Arc::<AtomicU64>::default(), [0, 1].map(|_| Arc::default()));
    let mut most = || 1 + random.below(6) as usize;
    let source = Source { output: Out::new(), count, most: most(), given: Arc::clone(&given) };
    graph.add("source", source).unwrap();
    for name in ["gate", "one", "two"] {
        let (shut, one_to_one) = (name == "gate", name != "gate");
        let relay = Relay { input: In::new(), output: Out::new(), most: most(), shut, one_to_one };
        graph.add(name, relay).unwrap();
    }
    graph.add("sink", Sink { input: In::new(), got: Arc::clone(&got[0]) }).unwrap();
    graph.add("beside", Sink { input: In::new(), got: Arc::clone(&got[1]) }).unwrap();
    graph.chain(&["source", "gate", "one", "two", "sink"]).unwrap();
    graph.connect(["gate", "one"][random.below(2) as usize], "beside").unwrap();
    Made { graph, given, got }
}

/// Puts every block into some partition; names come and go.
fn plan(random: &mut Random) -> Plan {
    let most = 1 + random.below(BLOCKS.len() as u64);
    let mut partitions: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for block in BLOCKS {
        partitions.entry(random.below(most)).or_default().push(block.to_owned());
    }
    let partitions = partitions.into_iter().map(|(place, blocks)| Partition {
        name: format!("p{}", place + random.below(2) * 10),
        blocks,
        cpu: None,
        wait: WaitMode::Park,
    });
    let buffers = Buffers { inside_bytes: 4096, between_bytes: 4096, ..Buffers::default() };
    Plan { partitions: partitions.collect(), buffers, ..Plan::default() }
}

/// Runs a graph: every item arrives once and in order, whatever happens to the graph, unless it is
/// dropped.
fn live(random: &mut Random) {
    let count = 40 + random.below(40);
    let Made { graph, given, got } = make(random, count);
    let mut running = graph.start(&plan(random)).unwrap();
    let (mut is_open, mut is_stopped) = (false, false);
    for _ in 0..random.below(10) {
        match random.below(6) {
            0 | 1 => (0..random.below(60)).for_each(|_| point()),
            2 | 3 => {
                let short = random.below(4) == 0;
                let limit = Duration::from_micros(if short { random.below(30) } else { 2_000_000 });
                match running.repartition(&plan(random), limit) {
                    // No thread waits for a time limit where another could have woken it.
                    Ok(moved) => assert!(short || moved.waited < limit, "{moved:?}"),
                    Err(MoveError::Ended) => {}
                    Err(MoveError::Busy { .. } | MoveError::Late { .. }) if short => {}
                    Err(error) => panic!("{error}"),
                }
            }
            4 if !is_open => {
                running.send("gate", "open", 1i64).unwrap();
                is_open = true;
            }
            _ if is_open && random.below(3) == 0 => {
                running.stopper().stop();
                is_stopped = true;
            }
            _ => {}
        }
    }
    if random.below(10) == 0 {
        return;
    }
    if !is_open {
        running.send("gate", "open", 1i64).unwrap();
    }
    let snapshot = running.wait().unwrap();
    let given = given.load(Ordering::Relaxed);
    let (one, two) = (snapshot.block("one").unwrap(), snapshot.block("two").unwrap());
    assert_eq!([one.items_out, two.items_in, two.items_out], [given; 3], "what chains count");
    assert!(is_stopped || given == count, "the source gave {given} of {count}");
    for got in got {
        assert!(got.lock().iter().copied().eq(0..given), "{given} given, {:?}", got.lock());
    }
}

fn seeds() -> std::ops::Range<u64> {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let first = number("MILLSTREAM_SEED");
    let runs = number("MILLSTREAM_SEEDS").unwrap_or(if first.is_some() { 1 } else { 100 });
    let first = first.unwrap_or(0);
    first..first.saturating_add(runs)
}

#[test]
fn nothing_is_lost_and_nobody_sleeps_for_ever_whoever_goes_first() {
    for seed in seeds() {
        let life = || simulate(seed, || live(&mut Random::new(!seed)));
        if let Err(panic) = catch_unwind(AssertUnwindSafe(life)) {
            eprintln!("seed {seed}; to see it again: MILLSTREAM_SEED={seed} cargo test sim::");
            resume_unwind(panic);
        }
    }
}

/// A failure can be reproduced by its seed.
#[test]
fn a_run_goes_the_same_way_for_the_same_seed() {
    let steps = |seed| {
        simulate(seed, || {
            live(&mut Random::new(!seed));
            let (sim, _) = super::me().unwrap();
            super::lock(&sim.state).steps
        })
    };
    for seed in 0..8 {
        assert_eq!(steps(seed), steps(seed), "seed {seed}");
    }
}

/// A protocol with a hole: the value is stored after the wake-up.
#[test]
#[should_panic(expected = "nobody can go on")]
fn a_wake_up_that_is_lost_is_found() {
    for seed in 0..100 {
        simulate(seed, || {
            let shared = Arc::new((Waiter::default(), AtomicBool::new(false)));
            let other = Arc::clone(&shared);
            let thread = spawn("other".into(), move || {
                other.0.notify();
                point();
                other.1.store(true, Ordering::Relaxed);
            });
            while !shared.1.load(Ordering::Relaxed) {
                shared.0.wait(Wait::Park, None);
            }
            thread.unwrap().join().unwrap();
        });
    }
}

#[test]
fn a_message_wakes_the_thread_of_its_block_and_no_other() {
    simulate(1, || {
        let mut random = Random::new(1);
        let Made { graph, .. } = make(&mut random, 1000);
        let partition = |name: &str, blocks: &[&str]| Partition {
            name: name.to_owned(),
            blocks: blocks.iter().map(|block| (*block).to_owned()).collect(),
            cpu: None,
            wait: WaitMode::Park,
        };
        let here = partition("here", &["gate"]);
        let rest = partition("rest", &["source", "one", "two", "sink", "beside"]);
        let plan = Plan { partitions: vec![here, rest], ..Plan::default() };
        let running = graph.start(&plan).unwrap();
        let settle = || (0..3000).for_each(|_| point());
        let waits = || running.snapshot().partitions.iter().map(|p| p.waits).collect::<Vec<_>>();
        settle();
        let before = waits();
        for _ in 0..10 {
            running.send("gate", "open", 0i64).unwrap();
            settle();
        }
        let taken = running.snapshot().block("gate").unwrap().messages.as_ref().unwrap().taken;
        assert_eq!((taken, waits()), (10, vec![before[0] + 10, before[1]]));
        running.send("gate", "open", 1i64).unwrap();
        running.wait().unwrap();
    });
}
