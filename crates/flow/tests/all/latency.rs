//! A bound on the items under way is never exceeded, and one that cannot be kept is refused.

use crate::common::tagged::Random;
use millstream_flow::blocks::{Copy, Head, NullSink, NullSource, Throttle};
use millstream_flow::{
    Block, BlockError, BlockFacts, Context, Graph, In, ItemRatio, Latency, Out, Partition, Plan,
    Ports, WaitMode, Work,
};
use proptest::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Positions at both ends, in items of the source.
#[derive(Default)]
struct Ends {
    produced: AtomicU64,
    consumed: Vec<AtomicU64>,
    most: AtomicU64,
}

/// Fills its room, and records the items then under way to the slowest sink.
#[derive(Ports)]
struct Start {
    output: Out<u32>,
    items: u64,
    ends: Arc<Ends>,
}

impl Block for Start {
    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        let left = self.items - self.output.position();
        let items = (self.output.slice_mut().len() as u64).min(left);
        // The sinks can only advance meanwhile: this is an upper limit of the items under way.
        let consumed = self.ends.consumed.iter().map(|at| at.load(Ordering::Acquire));
        let produced = self.output.position() + items;
        let under_way = produced - consumed.min().unwrap().min(produced);
        self.ends.most.fetch_max(under_way, Ordering::Relaxed);
        self.ends.produced.store(produced, Ordering::Relaxed);
        self.output.produce(items as usize);
        Ok(if items == left { Work::Finished } else { Work::Continue })
    }
}

/// Keeps `holds` items back until the end, and changes the rate behind that.
#[derive(Ports)]
struct Middle {
    input: In<u32>,
    output: Out<u32>,
    rate: ItemRatio,
    holds: u64,
    kept: u64,
    random: Random,
}

impl Block for Middle {
    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        let (up, down) = (self.rate.interpolation() as usize, self.rate.decimation() as usize);
        let keep = self.input.slice().len().min((self.holds - self.kept) as usize);
        self.input.consume(keep);
        self.kept += keep as u64;
        let groups = (self.input.slice().len() / down).min(self.output.slice_mut().len() / up);
        let groups = groups.min(1 + self.random.below(200));
        self.input.consume(groups * down);
        self.output.produce(groups * up);
        Ok(Work::Continue)
    }

    fn facts(&self, facts: &mut BlockFacts) {
        facts.rate(self.rate).holds(self.holds);
    }
}

/// Consumes in bites; each item is worth `worth` items of the source.
#[derive(Ports)]
struct End {
    input: In<u32>,
    worth: ItemRatio,
    index: usize,
    ends: Arc<Ends>,
    random: Random,
}

impl Block for End {
    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        let items = self.input.slice().len().min(1 + self.random.below(500));
        self.input.consume(items);
        let consumed = self.worth.map(self.input.position());
        self.ends.consumed[self.index].store(consumed, Ordering::Release);
        Ok(Work::Continue)
    }
}

/// A source, `middles` in a row, with a sink behind each of them and one at the end.
fn fan(seed: u64, middles: usize, ends: &Arc<Ends>) -> (Graph, u64) {
    let mut random = Random::new(seed);
    let mut graph = Graph::new();
    let items = 200_000;
    graph.add("start", Start { output: Out::new(), items, ends: Arc::clone(ends) }).unwrap();
    let (mut last, mut up, mut down, mut least) = ("start".to_owned(), 1u32, 1u32, 1u64);
    for n in 0..middles {
        let rates = [
            ItemRatio::ONE,
            ItemRatio::interpolate(2),
            ItemRatio::decimate(2),
            ItemRatio::decimate(5),
        ];
        let rate = rates[random.below(rates.len())];
        let worth = |items: u64| (items * u64::from(down)).div_ceil(u64::from(up));
        least += worth(u64::from(rate.decimation()) - 1);
        let (input, output) = (In::new(), Out::with_min_items(rate.interpolation() as usize));
        let (name, random) = (format!("m{n}"), random.clone());
        graph.add(&name, Middle { input, output, rate, holds: 0, kept: 0, random }).unwrap();
        graph.connect(&last, &name).unwrap();
        (up, down) = (up * rate.interpolation(), down * rate.decimation());
        last = name;
        let (name, ends) = (format!("e{n}"), Arc::clone(ends));
        let (input, worth, random) =
            (In::new(), ItemRatio::new(down, up), Random::new(seed + n as u64));
        graph.add(&name, End { input, worth, index: n, ends, random }).unwrap();
        graph.connect(&last, &name).unwrap();
    }
    (graph, least)
}

fn partitions(graph: &Graph, each: bool) -> Vec<Partition> {
    let names: Vec<String> = graph.block_names().map(str::to_owned).collect();
    let groups: Vec<Vec<String>> =
        if each { names.into_iter().map(|name| vec![name]).collect() } else { vec![names] };
    let partition =
        |(n, blocks)| Partition { name: format!("p{n}"), blocks, cpu: None, wait: WaitMode::Park };
    groups.into_iter().enumerate().map(partition).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn the_bound_is_never_passed(
        seed in 0u64..1_000_000, middles in 1usize..6, more in 0u64..3000, each in any::<bool>(),
    ) {
        let consumed = (0..middles).map(|_| AtomicU64::new(0)).collect();
        let ends = Arc::new(Ends { consumed, ..Ends::default() });
        let (graph, least) = fan(seed, middles, &ends);
        let bound = least + more;
        let latency = Some(Latency { max_items: Some(bound), ..Latency::default() });
        let plan = Plan { partitions: partitions(&graph, each), latency, ..Plan::default() };
        let snapshot = graph.run(&plan).unwrap();
        let most = ends.most.load(Ordering::Relaxed);
        prop_assert!(most <= bound, "{most} items under way, {bound} allowed");
        prop_assert_eq!(ends.produced.load(Ordering::Relaxed), 200_000);
        let stats = &snapshot.latency[0];
        prop_assert_eq!((stats.source.as_str(), stats.bound_items), ("start", Some(bound)));
        prop_assert!(most <= stats.max_items && stats.max_items <= bound, "{stats:?}, {most}");
    }
}

fn chain(graph: &mut Graph, holds: u64, wants: usize) {
    graph.add("source", NullSource::<u32>::new()).unwrap();
    let (input, output) = (In::with_min_items(wants), Out::new());
    let (rate, random) = (ItemRatio::decimate(10), Random::new(1));
    graph.add("middle", Middle { input, output, rate, holds, kept: 0, random }).unwrap();
    graph.add("head", Head::<u32>::new(5000)).unwrap();
    graph.add("sink", NullSink::<u32>::new()).unwrap();
    graph.chain(&["source", "middle", "head", "sink"]).unwrap();
}

fn bounded(max_items: u64) -> Plan {
    let latency = Latency { max_items: Some(max_items), ..Latency::default() };
    Plan { latency: Some(latency), ..Plan::default() }
}

#[test]
fn the_least_possible_bound_works_and_one_less_is_refused() {
    // One for the source, 511 that may wait for the 512th, 64 held back.
    let least = 1 + 511 + 64;
    let mut graph = Graph::new();
    chain(&mut graph, 64, 512);
    let error = graph.start(&bounded(least - 1)).err().unwrap();
    assert_eq!(
        error.to_string(),
        "latency bound of `source`: 575 items are too few for its blocks; the least is 576 items, \
         most of them for `middle.in`"
    );
    let mut graph = Graph::new();
    chain(&mut graph, 64, 512);
    let snapshot = graph.run(&bounded(least)).unwrap();
    assert_eq!(snapshot.block("sink").unwrap().items_in, 5000);
    assert!(snapshot.latency[0].max_items <= least, "{:?}", snapshot.latency);
}

#[test]
fn a_branch_that_has_ended_holds_nobody_back() {
    let mut graph = Graph::new();
    graph.add("source", NullSource::<u32>::new()).unwrap();
    for (head, count) in [("few", 10), ("many", 100_000)] {
        let sink = format!("{head}_sink");
        graph.add(head, Head::<u32>::new(count)).unwrap();
        graph.add(&sink, NullSink::<u32>::new()).unwrap();
        graph.chain(&["source", head, &sink]).unwrap();
    }
    let snapshot = graph.run(&bounded(100)).unwrap();
    assert_eq!(snapshot.block("many_sink").unwrap().items_in, 100_000);
}

#[test]
fn a_throttled_graph_is_full_without_a_bound_and_not_with_one() {
    let run = |max_ms: Option<f64>| {
        let mut graph = Graph::new();
        graph.add("source", NullSource::<u32>::new()).unwrap();
        graph.add("copy", Copy::<u32>::new()).unwrap();
        graph.add("pace", Throttle::<u32>::new(200_000.0).unwrap()).unwrap();
        graph.add("sink", NullSink::<u32>::new()).unwrap();
        graph.chain(&["source", "copy", "pace", "sink"]).unwrap();
        let max = max_ms.map_or(String::new(), |ms| format!("max_ms = {ms:?}\n"));
        let plan = format!("[latency]\n{max}rate_hz = 200000.0");
        let running = graph.start(&Plan::from_toml(&plan).unwrap()).unwrap();
        while running.snapshot().block("sink").unwrap().items_in < 20_000 {
            std::thread::sleep(Duration::from_millis(1));
        }
        running.stopper().stop();
        let stats = running.wait().unwrap().latency.remove(0);
        println!("{max_ms:?} ms: {stats:?}");
        stats
    };
    let (free, bound) = (run(None), run(Some(2.0)));
    assert_eq!((free.bound_items, bound.bound_items), (None, Some(400)));
    assert!(free.max_items > 10_000, "{free:?}");
    assert!(bound.max_items <= 400 && bound.held_back > 0, "{bound:?}");
    assert_eq!(bound.ms(400), Some(2.0));
}

#[test]
fn what_is_no_source_is_said() {
    let mut graph = Graph::new();
    chain(&mut graph, 0, 1);
    let plan = Plan::from_toml("[latency.source.sink]\nmax_items = 5").unwrap();
    let error = graph.start(&plan).err().unwrap().to_string();
    assert_eq!(
        error,
        "latency.source names `sink`, which is not a source; the sources are: source"
    );
    let error = Plan::from_toml("[latency]\nmax_ms = 0").unwrap_err().to_string();
    assert!(error.contains("0 is not allowed here: write a number above zero"), "{error}");
}
