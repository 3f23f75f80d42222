//! A running graph whose load shifts, and its moves.

use millstream_cpu::Topology;
use millstream_flow::Shape;
use millstream_flow::{Block, BlockError, Context, Graph, In, Out, Partition, Plan};
use millstream_flow::{Ports, Profile, WaitMode, Work};
use millstream_planner::adapt::{AdaptEvent, AdaptPolicy, Adapter, CostModel, Partitioner};
use millstream_planner::place::Hints;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const POLICY: AdaptPolicy = AdaptPolicy {
    window: Duration::from_millis(20),
    windows: 2,
    gain_min: 0.2,
    interval: Duration::ZERO,
    interval_max: Duration::ZERO,
    limit: Duration::from_secs(2),
};

/// Passes one item per call, and works hard for it while `front` has its value.
#[derive(Ports)]
struct Shifty {
    input: In<u32>,
    output: Out<u32>,
    is_front: bool,
    front: Arc<AtomicBool>,
}

impl Block for Shifty {
    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        let hard = self.front.load(Ordering::Relaxed) == self.is_front;
        let (input, output) = (self.input.slice(), self.output.slice_mut());
        let items = input.len().min(output.len()).min(16);
        let turns = if hard { 20_000 } else { 1 };
        let mix = |seed: u32| (0..turns).fold(seed, |x, _| std::hint::black_box(x ^ (x << 5) ^ 7));
        output[..items].copy_from_slice(&input[..items]);
        if items > 0 {
            std::hint::black_box(mix(input[0]));
        }
        self.input.consume(items);
        self.output.produce(items);
        Ok(Work::Continue)
    }
}

/// Four blocks between a source and a sink; the first two or the last two have the work.
fn graph(front: &Arc<AtomicBool>) -> Graph {
    let mut graph = Graph::new();
    graph.add("source", millstream_flow::blocks::NullSource::<u32>::new()).unwrap();
    for (name, is_front) in [("a", true), ("b", true), ("c", false), ("d", false)] {
        let (input, output, front) = (In::new(), Out::new(), Arc::clone(front));
        graph.add(name, Shifty { input, output, is_front, front }).unwrap();
    }
    graph.add("sink", millstream_flow::blocks::NullSink::<u32>::new()).unwrap();
    graph.chain(&["source", "a", "b", "c", "d", "sink"]).unwrap();
    graph
}

fn plan(cut: usize) -> Plan {
    let blocks = ["source", "a", "b", "c", "d", "sink"].map(str::to_owned);
    let part = |name: &str, blocks: &[String]| Partition {
        name: name.to_owned(),
        blocks: blocks.to_vec(),
        cpu: None,
        wait: WaitMode::Park,
    };
    let partitions = vec![part("front", &blocks[..cut]), part("back", &blocks[cut..])];
    Plan { partitions, ..Plan::default() }
}

fn together(plan: &Plan, one: &str, other: &str) -> bool {
    let has = |partition: &Partition, name| partition.blocks.iter().any(|block| block == name);
    plan.partitions.iter().any(|partition| has(partition, one) && has(partition, other))
}

#[test]
fn the_graph_follows_its_load_by_the_partitioners_advice() {
    let front = Arc::new(AtomicBool::new(true));
    let graph = graph(&front);
    let topology = Topology::flat(&[0, 1].into_iter().collect());
    let hints = Hints { unpinned: true, ..Hints::default() };
    let advisor = Partitioner::new(Shape::of(&graph), topology, hints);
    let mut adapter = Adapter::new(POLICY, advisor);
    // Both hard blocks on one thread.
    let mut running = graph.start(&plan(3)).unwrap();
    for (hard, is_front) in [(["a", "b"], true), (["c", "d"], false), (["a", "b"], true)] {
        front.store(is_front, Ordering::Relaxed);
        let since = Instant::now();
        while together(running.plan(), hard[0], hard[1]) {
            assert!(since.elapsed() < Duration::from_secs(60), "{:?}", running.plan());
            std::thread::sleep(Duration::from_millis(5));
            match adapter.step(&mut running, Instant::now()) {
                Some(AdaptEvent::Moved { gain, .. }) => assert!(gain >= POLICY.gain_min, "{gain}"),
                Some(AdaptEvent::Refused(error)) => panic!("{error}"),
                None => {}
            }
        }
    }
    running.stopper().stop();
    running.wait().unwrap();
}

#[test]
fn what_has_a_cpu_by_hand_keeps_it_and_the_rest_is_placed() {
    let graph = graph(&Arc::default());
    let topology = Topology::flat(&[0, 1].into_iter().collect());
    let mut by_hand = plan(2);
    by_hand.partitions[0].cpu = Some(1);
    by_hand.partitions[0].wait = WaitMode::Spin;
    let mut advisor = Partitioner::beside(&by_hand, Shape::of(&graph), topology, None);
    let advice = advisor.propose(&Profile::default()).unwrap();
    assert_eq!(advice.partitions[0], by_hand.partitions[0]);
    assert!(advice.partitions.len() > 1);
    for partition in &advice.partitions[1..] {
        assert_eq!(partition.cpu, None, "{advice:?}");
        assert!(!partition.blocks.iter().any(|block| by_hand.partitions[0].blocks.contains(block)));
    }
}

/// Proposes a plan that cannot be applied.
struct Nonsense;

impl CostModel for Nonsense {
    fn cost(&mut self, _: &Profile, plan: &Plan) -> Option<f64> {
        Some(if plan.partitions.len() == 1 { 0.5 } else { 1.0 })
    }

    fn propose(&mut self, _: &Profile) -> Option<Plan> {
        let mut plan = plan(3);
        plan.partitions.truncate(1);
        plan.partitions[0].cpu = Some(1023);
        Some(plan)
    }
}

#[test]
fn advice_that_cannot_be_taken_is_told_and_changes_nothing() {
    let front = Arc::new(AtomicBool::new(true));
    let graph = graph(&front);
    let mut running = graph.start(&plan(2)).unwrap();
    let mut adapter = Adapter::new(POLICY, Nonsense);
    let error = loop {
        std::thread::sleep(Duration::from_millis(5));
        match adapter.step(&mut running, Instant::now()) {
            Some(AdaptEvent::Refused(error)) => break error.to_string(),
            Some(AdaptEvent::Moved { .. }) => panic!("moved"),
            None => {}
        }
    };
    assert!(error.contains("the plan puts partition `front` on CPU 1023"), "{error}");
    assert_eq!(running.plan(), &plan(2));
    running.stopper().stop();
    running.wait().unwrap();
}
