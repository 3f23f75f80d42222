//! Running graphs moved to other plans.

use crate::common::moving::{Counted, Digest, Gate, LIMIT, Random, graph, threads_called};
use crate::common::tagged::Case;
use crate::common::{Kind, Nibble, Ticker, Trouble};
use millstream_flow::blocks::{NullSink, NullSource, Throttle};
use millstream_flow::{Block, BlockError, Context, Graph, MoveError, Out, Partition, Plan};
use millstream_flow::{Ports, WaitMode, Work};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const MOVES: usize = 100;

/// Waits until `items` items have reached the sink since the call.
fn wait_for_items(digest: &Digest, items: u64) {
    while digest.items() < items {
        std::thread::yield_now();
    }
}

#[test]
fn a_hundred_random_moves_under_load_change_nothing_in_the_output() {
    let seed = std::env::var("MILLSTREAM_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or(0x6d69_6c6c);
    println!("seed {seed} (set MILLSTREAM_SEED to change it)");
    let mut random = Random::new(seed);
    let gate = Gate::default();
    let (moved, digest) = graph(seed, Counted::until(&gate));
    let names: Vec<String> = moved.block_names().map(str::to_owned).collect();
    let mut running = moved.start(&random.plan(&names, "mv")).unwrap();
    let (mut blocks, mut started, mut ended) = (0, 0, 0);
    for _ in 0..MOVES {
        wait_for_items(&digest, digest.items() + random.below(20_000));
        let plan = random.plan(&names, "mv");
        let done = running.repartition(&plan, LIMIT).unwrap();
        (blocks, started) = (blocks + done.blocks, started + done.started);
        ended += done.ended;
        assert!(threads_called("mv").len() <= plan.partitions.len(), "{plan:?}");
        assert_eq!(running.snapshot().partitions.len(), plan.partitions.len());
    }
    assert!(!running.is_finished(), "every move was one of a running graph");
    println!("{MOVES} moves: {blocks} blocks, {started} threads started, {ended} ended");
    assert!(blocks > MOVES && started > 0 && ended > 0);
    gate.close();
    running.wait().unwrap();
    let items = gate.given();
    let (unmoved, expected) = graph(seed, Counted::exactly(items));
    let plan = Plan::single(&unmoved, WaitMode::Park);
    unmoved.run(&plan).unwrap();
    println!("{items} items, digest {:016x}", digest.value());
    assert_eq!((digest.items(), digest.value()), (expected.items(), expected.value()));
}

#[test]
fn tags_stay_at_their_items_through_moves() {
    let (mut tags, mut moves) = (0, 0);
    for seed in 0..20 {
        let case = Case::random(seed);
        let names: Vec<String> = case.graph.block_names().map(str::to_owned).collect();
        let mut random = Random::new(seed);
        tags += case.run_by(|graph| {
            let mut running = graph.start(&random.plan(&names, "tg")).unwrap();
            loop {
                match running.repartition(&random.plan(&names, "tg"), LIMIT) {
                    Ok(_) => moves += 1,
                    Err(MoveError::Ended) => break,
                    Err(error) => panic!("seed {seed}: {error}"),
                }
            }
            running.wait().unwrap();
        });
    }
    println!("{moves} moves, {tags} tags");
    assert!(moves > 20 && tags > 20_000, "{moves} moves, {tags} tags");
}

#[test]
fn there_is_never_a_thread_more_than_the_larger_plan_has() {
    let mut random = Random::new(7);
    let gate = Gate::default();
    let (graph, digest) = graph(7, Counted::until(&gate));
    let names: Vec<String> = graph.block_names().map(str::to_owned).collect();
    let mut plan = random.plan(&names, "nt");
    let mut running = graph.start(&plan).unwrap();
    let allowed = Arc::new(AtomicUsize::new(plan.partitions.len()));
    let done = Arc::new(AtomicBool::new(false));
    let watch = {
        let (allowed, done) = (Arc::clone(&allowed), Arc::clone(&done));
        move || {
            let mut looks = 0;
            while !done.load(Ordering::Relaxed) {
                // A thread on both lists existed in between, so all of these existed at one moment.
                let first = threads_called("nt");
                let allowed = allowed.load(Ordering::SeqCst);
                let there = first.intersection(&threads_called("nt")).count();
                assert!(there <= allowed, "{there} threads, {allowed} planned");
                looks += 1;
            }
            looks
        }
    };
    let watcher = std::thread::Builder::new().name("watch".into()).spawn(watch).unwrap();
    for _ in 0..40 {
        wait_for_items(&digest, digest.items() + 1000);
        let next = random.plan(&names, "nt");
        allowed.store(plan.partitions.len().max(next.partitions.len()), Ordering::SeqCst);
        running.repartition(&next, LIMIT).unwrap();
        allowed.store(next.partitions.len(), Ordering::SeqCst);
        plan = next;
    }
    done.store(true, Ordering::Relaxed);
    assert!(watcher.join().unwrap() > 0);
    gate.close();
    running.wait().unwrap();
}

fn endless() -> Graph {
    let mut graph = Graph::new();
    graph.add("source", Ticker { output: Out::new(), next: 0 }).unwrap();
    graph.add("a", Nibble::new(11, 999)).unwrap();
    graph.add("sink", NullSink::<u32>::new()).unwrap();
    graph.chain(&["source", "a", "sink"]).unwrap();
    graph
}

fn partition(name: &str, blocks: &[&str]) -> Partition {
    let blocks = blocks.iter().map(|block| (*block).to_owned()).collect();
    Partition { name: name.to_owned(), blocks, cpu: None, wait: WaitMode::Park }
}

fn plan(partitions: &[(&str, &[&str])]) -> Plan {
    let partitions = partitions.iter().map(|(name, blocks)| partition(name, blocks));
    Plan { partitions: partitions.collect(), ..Plan::default() }
}

#[test]
fn a_plan_that_cannot_be_obeyed_is_refused_and_the_graph_goes_on() {
    let graph = endless();
    let first = plan(&[("one", &["source"]), ("two", &["a", "sink"])]);
    let mut running = graph.start(&first).unwrap();
    let mut pinned = plan(&[("one", &["source", "a", "sink"])]);
    pinned.partitions[0].cpu = Some(1023);
    let unknown = plan(&[("one", &["b"])]);
    let twice = plan(&[("one", &["a"]), ("two", &["a"])]);
    for (plan, part) in [
        (pinned, "the plan puts partition `one` on CPU 1023, but this process may use only CPUs"),
        (unknown, "partition `one` of the plan contains block `b`, which is not in the graph"),
        (twice, "block `a` is in partition `one` and in partition `two`"),
    ] {
        let error = running.repartition(&plan, LIMIT).unwrap_err();
        assert!(matches!(error, MoveError::Plan(_)), "{error}");
        let text = error.to_string();
        assert!(
            text.contains(part) && text.ends_with("continues with its previous plan"),
            "{text}"
        );
        assert_eq!(running.plan(), &first);
    }
    let items = |running: &millstream_flow::RunningGraph| running.snapshot().blocks[2].items_in;
    let before = items(&running);
    while items(&running) < before + 100_000 {
        std::thread::yield_now();
    }
    running.stopper().stop();
    running.wait().unwrap();
}

/// Stays inside `work` while it is held.
#[derive(Ports)]
struct Stubborn {
    output: Out<u32>,
    held: Held,
}

/// Whether it is to be held, and whether it is.
#[derive(Clone, Default)]
struct Held(Arc<(AtomicBool, AtomicBool)>);

impl Held {
    fn wait_until_held(&self) {
        self.0.0.store(true, Ordering::Relaxed);
        while !self.0.1.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
    }

    fn release(&self) {
        self.0.0.store(false, Ordering::Relaxed);
    }
}

impl Block for Stubborn {
    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        while self.held.0.0.load(Ordering::Relaxed) {
            self.held.0.1.store(true, Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(1));
        }
        let items = self.output.slice_mut().len().min(100);
        self.output.produce(items);
        Ok(Work::Continue)
    }
}

#[test]
fn a_block_that_does_not_come_back_is_named_and_delays_the_move_only() {
    let held = Held::default();
    let mut graph = Graph::new();
    let stubborn = Stubborn { output: Out::new(), held: held.clone() };
    graph.add("stubborn", stubborn).unwrap();
    graph.add("sink", NullSink::<u32>::new()).unwrap();
    graph.connect("stubborn", "sink").unwrap();
    let apart = plan(&[("one", &["stubborn"]), ("two", &["sink"])]);
    let together = plan(&[("all", &["stubborn", "sink"])]);
    let mut running = graph.start(&apart).unwrap();
    held.wait_until_held();
    let refused = running.repartition(&together, Duration::from_millis(50));
    held.release();
    let error = refused.unwrap_err();
    assert_eq!(
        error.to_string(),
        "no block was moved, because block `stubborn` of partition `one` was busy for all of 50 \
         ms: a block that waits inside `work` must check `Context::may_block`"
    );
    assert_eq!(running.plan().partitions, apart.partitions);
    let moved = running.repartition(&together, LIMIT).unwrap();
    assert_eq!((moved.blocks, moved.started, moved.ended), (1, 0, 1));
    let before = running.snapshot().blocks[1].items_in;
    while running.snapshot().blocks[1].items_in < before + 1000 {
        std::thread::yield_now();
    }
    running.stopper().stop();
    running.wait().unwrap();
}

#[test]
fn a_graph_that_has_ended_is_not_moved() {
    let graph = endless();
    let plan = Plan::single(&graph, WaitMode::Park);
    let mut running = graph.start(&plan).unwrap();
    running.stopper().stop();
    while !running.is_finished() {
        std::thread::yield_now();
    }
    assert!(matches!(running.repartition(&plan, LIMIT), Err(MoveError::Ended)));
    running.wait().unwrap();
}

#[test]
fn a_graph_that_fails_or_stops_between_moves_ends_in_order() {
    let mut ended_by_move = 0;
    for seed in 0..30 {
        let mut random = Random::new(seed);
        let mut graph = Graph::new();
        graph.add("source", Ticker { output: Out::new(), next: 0 }).unwrap();
        graph.add("before", Nibble::new(1, 100)).unwrap();
        let after = 1 + random.below(400_000) as usize;
        let kind = [Kind::Error, Kind::Panic, Kind::PanicInDrop][seed as usize % 3];
        graph.add("culprit", Trouble::new(kind, after)).unwrap();
        graph.add("sink", NullSink::<u32>::new()).unwrap();
        graph.chain(&["source", "before", "culprit", "sink"]).unwrap();
        let names: Vec<String> = graph.block_names().map(str::to_owned).collect();
        let mut running = graph.start(&random.plan(&names, "mf")).unwrap();
        loop {
            match running.repartition(&random.plan(&names, "mf"), LIMIT) {
                Ok(_) if running.is_finished() => break,
                Ok(_) => {}
                Err(MoveError::Ended) => {
                    ended_by_move += 1;
                    break;
                }
                Err(other) => panic!("seed {seed}: {other}"),
            }
        }
        let error = running.wait().unwrap_err().to_string();
        let told = ["failed: out of luck", "panicked: out of hand", "panicked: a bad goodbye"];
        assert!(error.ends_with(told[seed as usize % 3]), "seed {seed}: {error}");
    }
    assert!(ended_by_move > 0);
}

#[test]
fn a_stop_during_moves_drains_everything() {
    for seed in 0..10 {
        let mut random = Random::new(seed);
        let (graph, digest) = graph(seed, Counted::endless());
        let names: Vec<String> = graph.block_names().map(str::to_owned).collect();
        let mut running = graph.start(&random.plan(&names, "ms")).unwrap();
        wait_for_items(&digest, 10_000);
        let stopper = running.stopper();
        let stop = std::thread::spawn(move || stopper.stop());
        while running.repartition(&random.plan(&names, "ms"), LIMIT).is_ok()
            && !running.is_finished()
        {}
        stop.join().unwrap();
        let snapshot = running.wait().unwrap();
        let sent = snapshot.block("source").unwrap().items_out;
        assert_eq!(digest.items(), sent, "seed {seed}: nothing is lost");
    }
}

#[test]
fn a_sleeping_graph_is_moved_at_once_and_stays_asleep() {
    let mut graph = Graph::new();
    graph.add("source", NullSource::<u32>::new()).unwrap();
    graph.add("slow", Throttle::<u32>::new(1e-6).unwrap()).unwrap();
    graph.add("sink", NullSink::<u32>::new()).unwrap();
    graph.chain(&["source", "slow", "sink"]).unwrap();
    let apart = plan(&[("x", &["source"]), ("y", &["slow"]), ("z", &["sink"])]);
    let mut running = graph.start(&apart).unwrap();
    while running.snapshot().partitions.iter().any(|partition| partition.waits == 0) {
        std::thread::yield_now();
    }
    let asked = Instant::now();
    running.repartition(&plan(&[("x", &["source", "slow", "sink"])]), LIMIT).unwrap();
    running.repartition(&apart, LIMIT).unwrap();
    assert!(asked.elapsed() < LIMIT / 2, "woken, not timed out");
    running.stopper().stop();
    running.wait().unwrap();
}

#[test]
fn dropping_a_graph_after_a_move_ends_it() {
    let graph = endless();
    let mut running = graph.start(&plan(&[("dr-one", &["source", "a", "sink"])])).unwrap();
    running.repartition(&plan(&[("dr-x", &["source"]), ("dr-y", &["a", "sink"])]), LIMIT).unwrap();
    drop(running);
    assert!(threads_called("dr-").is_empty());
}
