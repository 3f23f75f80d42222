//! One-to-one blocks run as a fused chain with the same output as without.

use crate::common::moving::{LIMIT, Random};
use millstream_flow::{
    Block, BlockError, BlockFacts, Context, Graph, In, Item, Key, Lane, Out, ParameterKind,
    ParameterValue, Partition, Plan, PortVisitor, Ports, RunError, Tag, WaitMode, Work,
};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

const MARK: Key = Key::new("mark");
/// Items from one tag to the next, where there are tags.
const EVERY: u64 = 70_001;

/// Counts up; stops at `end`, or once the gate is closed; produces nothing while it is `still`.
#[derive(Ports)]
struct Count {
    output: Out<u32>,
    end: u64,
    tagged: bool,
    closed: Arc<AtomicBool>,
    still: Arc<AtomicBool>,
    /// The number of its items, once it is still.
    rests_at: Arc<AtomicU64>,
}

impl Block for Count {
    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        let position = self.output.position();
        let left = self.end - position;
        if left == 0 || self.closed.load(Ordering::Relaxed) {
            return Ok(Work::Finished);
        }
        if self.still.load(Ordering::Relaxed) {
            self.rests_at.store(position, Ordering::Relaxed);
            return Ok(Work::Continue);
        }
        let output = self.output.slice_mut();
        let items = (output.len() as u64).min(left);
        output.iter_mut().zip(position..position + items).for_each(|(to, n)| *to = n as u32);
        let first = position.next_multiple_of(EVERY);
        for offset in (first..position + items).step_by(EVERY as usize).filter(|_| self.tagged) {
            self.output.tag((offset - position) as usize, MARK, offset);
        }
        self.output.produce(items as usize);
        Ok(Work::Continue)
    }
}

/// Adds, by itself and in fused chains, and may fail at one number. Tries to use its own ports
/// where it must not.
struct Add<T: Item> {
    input: In<u32>,
    output: Out<T>,
    by: u32,
    fails_at: Option<u32>,
    passed: Arc<AtomicU64>,
    /// Messages taken, and items that its ports granted inside a chain.
    told: Arc<AtomicU64>,
    granted: Arc<AtomicU64>,
}

impl<T: Item + From<u32>> Add<T> {
    fn new(by: u32, passed: &Arc<AtomicU64>) -> Self {
        let passed = Arc::clone(passed);
        let (told, granted) = Default::default();
        Self { input: In::new(), output: Out::new(), by, fails_at: None, passed, told, granted }
    }
}

fn add<T: From<u32>>(by: u32, fails_at: Option<u32>, input: &[u32], output: &mut [T]) {
    for (to, from) in output.iter_mut().zip(input) {
        assert_ne!(Some(*from), fails_at, "this one");
        *to = T::from(from.wrapping_add(by));
    }
}

impl<T: Item + From<u32>> Ports for Add<T> {
    // In an unusual order.
    fn ports(&mut self, ports: &mut dyn PortVisitor) {
        ports.output("out", &mut self.output);
        ports.input("in", &mut self.input);
    }
}

impl<T: Item + From<u32>> Block for Add<T> {
    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        let (input, output) = (self.input.slice(), self.output.slice_mut());
        let items = input.len().min(output.len());
        add(self.by, self.fails_at, &input[..items], &mut output[..items]);
        self.input.consume(items);
        self.output.produce(items);
        Ok(Work::Continue)
    }

    fn pass(&mut self, lane: &mut Lane) {
        let granted = self.input.slice().len() + self.output.slice_mut().len();
        let (by, fails_at) = (self.by, self.fails_at);
        lane.through(&mut self.input, &mut self.output, |input, output| {
            self.granted.fetch_max(granted as u64, Ordering::Relaxed);
            self.passed.fetch_add(input.len() as u64, Ordering::Relaxed);
            add(by, fails_at, input, output);
        });
    }

    fn facts(&self, facts: &mut BlockFacts) {
        facts.message("by", ParameterKind::Integer, "what is added from now on");
    }

    fn message(&mut self, _: &str, value: &ParameterValue) -> Result<(), BlockError> {
        let ParameterValue::Integer(by) = value else { return Err("expected a number".into()) };
        self.by = u32::try_from(*by)?;
        self.told.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

/// Takes everything, and checks that it counts up.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<(u64, Vec<Tag>)>>);

impl Seen {
    fn lock(&self) -> MutexGuard<'_, (u64, Vec<Tag>)> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[derive(Ports)]
struct Check {
    input: In<u64>,
    ahead_by: u64,
    seen: Seen,
}

impl Block for Check {
    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        let (position, input) = (self.input.position(), self.input.slice());
        let first = position + self.ahead_by;
        let counted = (first..).map(|n| u64::from(n as u32)).zip(input);
        if let Some((expected, item)) = counted.into_iter().find(|(n, item)| n != *item) {
            return Err(format!("expected {expected}, found {item}").into());
        }
        let tags =
            self.input.tags().map(|(index, tag)| Tag { offset: position + index as u64, ..tag });
        let mut seen = self.seen.lock();
        seen.1.extend(tags);
        seen.0 += input.len() as u64;
        drop(seen);
        let items = self.input.slice().len();
        self.input.consume(items);
        Ok(Work::Continue)
    }
}

/// A source, five adders of one type, one that changes it, and a sink.
struct Chain {
    graph: Graph,
    names: Vec<String>,
    seen: Seen,
    passed: Arc<AtomicU64>,
    closed: Arc<AtomicBool>,
    still: Arc<AtomicBool>,
    rests_at: Arc<AtomicU64>,
    /// Messages of the fourth adder.
    told: Arc<AtomicU64>,
    granted: Arc<AtomicU64>,
}

fn chain(end: u64, tagged: bool, fails_at: Option<u32>) -> Chain {
    let (seen, passed) = <(Seen, Arc<AtomicU64>)>::default();
    let (closed, still) = <(Arc<AtomicBool>, Arc<AtomicBool>)>::default();
    let (told, granted, rests_at) = <(Arc<AtomicU64>, Arc<AtomicU64>, Arc<AtomicU64>)>::default();
    let mut graph = Graph::new();
    let [gate, pause] = [&closed, &still].map(Arc::clone);
    let rest = Arc::clone(&rests_at);
    let source =
        Count { output: Out::new(), end, tagged, closed: gate, still: pause, rests_at: rest };
    graph.add("source", source).unwrap();
    let mut names = vec!["source".to_owned()];
    for by in 1..=5 {
        names.push(format!("add{by}"));
        let fails_at = fails_at.filter(|_| by == 3);
        let mut add = Add::<u32> { fails_at, ..Add::new(by, &passed) };
        if by == 4 {
            (add.told, add.granted) = (Arc::clone(&told), Arc::clone(&granted));
        }
        graph.add(&names[by as usize], add).unwrap();
    }
    graph.add("widen", Add::<u64>::new(0, &passed)).unwrap();
    let check = Check { input: In::new(), ahead_by: 15, seen: seen.clone() };
    graph.add("sink", check).unwrap();
    names.extend(["widen".to_owned(), "sink".to_owned()]);
    graph.chain(&names.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
    Chain { graph, names, seen, passed, closed, still, rests_at, told, granted }
}

fn split(names: &[String], at: &[usize]) -> Plan {
    let bounds = [&[0], at, &[names.len()]].concat();
    let partitions = bounds.windows(2).enumerate().map(|(index, bounds)| Partition {
        name: format!("p{index}"),
        blocks: names[bounds[0]..bounds[1]].to_vec(),
        cpu: None,
        wait: WaitMode::Park,
    });
    Plan { partitions: partitions.collect(), ..Plan::default() }
}

#[test]
fn every_item_and_tag_comes_once_and_is_counted() {
    const END: u64 = 500_003;
    for (at, tagged) in [(&[][..], false), (&[], true), (&[3], true), (&[1, 7], true)] {
        let chain = chain(END, tagged, None);
        let summary = chain.graph.run(&split(&chain.names, at)).unwrap();
        let seen = chain.seen.lock();
        assert_eq!(seen.0, END, "{at:?}");
        let offsets: Vec<u64> = seen.1.iter().map(|tag| tag.offset).collect();
        let expected: Vec<u64> = (0..END).step_by(EVERY as usize).filter(|_| tagged).collect();
        assert_eq!(offsets, expected, "{at:?}");
        assert!(seen.1.iter().all(|tag| tag.value.as_count() == Some(tag.offset)));
        for name in &chain.names[1..7] {
            let block = summary.block(name).unwrap();
            assert_eq!((block.items_in, block.items_out), (END, END), "{name} {at:?}");
        }
        // Without tags every item passes in the chain except those left in rings at the end; six
        // blocks count.
        let passed = chain.passed.load(Ordering::Relaxed);
        // Around a tag the blocks are not fused while it is in any ring.
        let least = match (tagged, at) {
            (false, _) => 5 * END,
            (true, []) => END / 4,
            (true, _) => 0,
        };
        assert!(passed > least, "{passed} items went by chain, {at:?}");
    }
}

/// Waits, for at most ten seconds.
fn until(what: &str, done: impl Fn() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(10), "{what} did not come");
        std::thread::yield_now();
    }
}

#[test]
fn a_message_reaches_a_block_in_a_chain_that_waits_and_its_ports_grant_nothing() {
    let chain = chain(u64::MAX, false, None);
    let running = chain.graph.start(&split(&chain.names, &[])).unwrap();
    until("a fused chain", || chain.passed.load(Ordering::Relaxed) > 0);
    chain.still.store(true, Ordering::Relaxed);
    let made = || chain.rests_at.load(Ordering::Relaxed);
    until("the last item", || made() > 0 && chain.seen.lock().0 == made());
    running.send("add4", "by", ParameterValue::Integer(4)).unwrap();
    until("a message to a chain that waits", || chain.told.load(Ordering::Relaxed) == 1);
    running.send("add4", "by", ParameterValue::Integer(5)).unwrap();
    chain.still.store(false, Ordering::Relaxed);
    let error = running.wait().unwrap_err();
    assert_eq!(chain.granted.load(Ordering::Relaxed), 0, "items granted inside a chain");
    assert!(matches!(&error, RunError::Block { block, .. } if block == "sink"), "{error}");
}

#[test]
fn the_block_that_fails_in_a_chain_is_named() {
    let chain = chain(u64::MAX, false, Some(1_000_000));
    let error = chain.graph.run(&split(&chain.names, &[])).unwrap_err();
    assert!(matches!(&error, RunError::BlockPanic { block, .. } if block == "add3"), "{error}");
    assert!(chain.passed.load(Ordering::Relaxed) > 1_000_000);
}

#[test]
fn chains_are_taken_apart_and_formed_anew_by_moves() {
    let chain = chain(u64::MAX, true, None);
    let mut running = chain.graph.start(&split(&chain.names, &[])).unwrap();
    while chain.passed.load(Ordering::Relaxed) == 0 {
        std::thread::yield_now();
    }
    let mut random = Random::new(5);
    for _ in 0..20 {
        let before = chain.seen.lock().0;
        running.repartition(&random.plan(&chain.names, "chain"), LIMIT).unwrap();
        while chain.seen.lock().0 == before && !running.is_finished() {
            std::thread::yield_now();
        }
    }
    running.repartition(&split(&chain.names, &[]), LIMIT).unwrap();
    chain.closed.store(true, Ordering::Relaxed);
    let summary = running.wait().unwrap();
    let seen = chain.seen.lock();
    assert_eq!(summary.block("source").unwrap().items_out, seen.0);
    let expected: Vec<u64> = (0..seen.0).step_by(EVERY as usize).collect();
    assert_eq!(seen.1.iter().map(|tag| tag.offset).collect::<Vec<_>>(), expected);
}
