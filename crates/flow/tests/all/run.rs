//! The run and the end of graphs.

use crate::common::{Add, Kind, Nibble, Ticker, Trouble};
use millstream_flow::blocks::{FileSource, Head, NullSink, NullSource, SampleFormat};
use millstream_flow::blocks::{Throttle, VectorSink, VectorSource};
use millstream_flow::{Block, BlockError, Context, Out, PortVisitor, Ports, Work};
use millstream_flow::{Buffers, Graph, Plan, Preset, RunError, WaitMode};
use num_complex::Complex;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Each block on a thread of its own: the plan with the most concurrency.
fn spread(graph: &Graph) -> Plan {
    Plan::per_block(graph, WaitMode::Park)
}

fn every_preset(build: impl Fn() -> Graph, check: impl Fn(Graph, Plan)) {
    for preset in Preset::ALL {
        println!("{}", preset.name());
        let graph = build();
        let plan = preset.plan(&graph, WaitMode::Park, &Buffers::default());
        check(graph, plan);
    }
}

#[test]
fn every_item_arrives_once_and_in_order() {
    let items: Vec<u32> = (0..300_000).collect();
    for plan in [None, Some(WaitMode::Park), Some(WaitMode::Spin)] {
        let mut graph = Graph::new();
        graph.add("source", VectorSource::new(items.clone())).unwrap();
        graph.add("a", Nibble::new(7, 5000)).unwrap();
        graph.add("b", Nibble::new(9, 70)).unwrap();
        let (sink, collected) = VectorSink::<u32>::new();
        graph.add("sink", sink).unwrap();
        graph.chain(&["source", "a", "b", "sink"]).unwrap();
        let plan = plan.map_or_else(|| spread(&graph), |wait| Plan::single(&graph, wait));
        let snapshot = graph.run(&plan).unwrap();
        assert_eq!(collected.take(), items);
        for (name, moved_in, moved_out) in
            [("source", 0, 300_000), ("a", 300_000, 300_000), ("sink", 300_000, 0)]
        {
            let block = snapshot.block(name).unwrap();
            assert_eq!((block.items_in, block.items_out), (moved_in, moved_out), "{name}");
            assert!(block.calls > 0);
        }
    }
}

#[test]
fn every_reader_of_an_output_sees_every_item() {
    let items: Vec<u32> = (0..100_000).collect();
    let mut graph = Graph::new();
    graph.add("source", VectorSource::new(items.clone())).unwrap();
    graph.add("slow", Nibble::new(3, 10)).unwrap();
    graph.add("short", Head::<u32>::new(5)).unwrap();
    let mut results = Vec::new();
    for name in ["all", "slowly", "few"] {
        let (sink, collected) = VectorSink::<u32>::new();
        graph.add(name, sink).unwrap();
        results.push(collected);
    }
    graph.connect("source", "all").unwrap();
    graph.chain(&["source", "slow", "slowly"]).unwrap();
    graph.chain(&["source", "short", "few"]).unwrap();
    let plan = spread(&graph);
    graph.run(&plan).unwrap();
    assert_eq!(results[0].take(), items);
    assert_eq!(results[1].take(), items, "a slow reader holds the others back, not up");
    assert_eq!(results[2].take(), &items[..5], "a reader that ends is no longer waited for");
}

#[test]
fn the_shorter_of_two_streams_ends_a_join() {
    let build = || {
        let mut graph = Graph::new();
        graph.add("few", VectorSource::new(vec![1u32, 2, 3])).unwrap();
        graph.add("many", Ticker { output: Out::new(), next: 10 }).unwrap();
        graph.add("add", Add::new()).unwrap();
        graph.add("sink", NullSink::<u32>::new()).unwrap();
        graph.connect("few", "add.a").unwrap();
        graph.connect("many", "add.b").unwrap();
        graph.connect("add", "sink").unwrap();
        graph
    };
    every_preset(build, |graph, plan| {
        let snapshot = graph.run(&plan).unwrap();
        assert_eq!(snapshot.block("sink").unwrap().items_in, 3);
    });
}

#[test]
fn a_diamond_of_unequal_branches_does_not_stick() {
    let items: Vec<u32> = (0..200_000).collect();
    let build = || {
        let mut graph = Graph::new();
        graph.add("source", VectorSource::new(items.clone())).unwrap();
        graph.add("a", Nibble::new(3, 3000)).unwrap();
        graph.add("b", Nibble::new(5, 30)).unwrap();
        graph.add("add", Add::new()).unwrap();
        graph.add("sink", NullSink::<u32>::new()).unwrap();
        graph.connect("source", "add.a").unwrap();
        graph.chain(&["source", "a", "b", "add.b"]).unwrap();
        graph.connect("add", "sink").unwrap();
        graph
    };
    every_preset(build, |graph, plan| {
        let snapshot = graph.run(&plan).unwrap();
        assert_eq!(snapshot.block("sink").unwrap().items_in, 200_000);
    });
}

#[test]
fn a_block_that_wants_many_items_gets_a_ring_that_holds_them() {
    let wanted = 100_000;
    let mut graph = Graph::new();
    graph.add("source", VectorSource::new((0..350_000).collect::<Vec<u32>>())).unwrap();
    graph.add("big", Nibble::new(3, usize::MAX).wanting(wanted)).unwrap();
    graph.add("sink", NullSink::<u32>::new()).unwrap();
    graph.chain(&["source", "big", "sink"]).unwrap();
    let snapshot = graph.run(&Plan::default()).unwrap();
    let big = snapshot.block("big").unwrap();
    assert_eq!(big.items_in, 350_000, "the end may bring fewer than wanted");
}

fn trouble(kind: Kind) -> Graph {
    let mut graph = Graph::new();
    graph.add("source", Ticker { output: Out::new(), next: 0 }).unwrap();
    graph.add("before", Nibble::new(1, 100)).unwrap();
    graph.add("culprit", Trouble::new(kind, 12_345)).unwrap();
    graph.add("sink", NullSink::<u32>::new()).unwrap();
    graph.chain(&["source", "before", "culprit", "sink"]).unwrap();
    graph
}

#[test]
fn an_error_ends_the_graph_and_names_the_block() {
    every_preset(
        || trouble(Kind::Error),
        |graph, plan| {
            let error = graph.run(&plan).unwrap_err();
            assert_eq!(error.to_string(), "block `culprit` failed: out of luck");
        },
    );
}

#[test]
fn a_panic_ends_the_graph_and_names_the_block() {
    every_preset(
        || trouble(Kind::Panic),
        |graph, plan| {
            let error = graph.run(&plan).unwrap_err();
            assert_eq!(error.to_string(), "block `culprit` panicked: out of hand");
        },
    );
}

#[test]
fn consuming_too_much_is_the_blocks_own_fault() {
    every_preset(
        || trouble(Kind::Overconsume),
        |graph, plan| {
            let error = graph.run(&plan).unwrap_err().to_string();
            assert!(error.starts_with("block `culprit` panicked: consumed more"), "{error}");
        },
    );
}

#[test]
fn a_panic_in_a_drop_does_not_hang_the_others() {
    every_preset(
        || trouble(Kind::PanicInDrop),
        |graph, plan| {
            let error = graph.run(&plan).unwrap_err();
            assert!(matches!(error, RunError::PartitionPanic { .. }), "{error}");
            assert!(error.to_string().ends_with("panicked: a bad goodbye"), "{error}");
        },
    );
}

#[test]
fn stop_drains_what_is_under_way() {
    let build = || {
        let mut graph = Graph::new();
        graph.add("source", Ticker { output: Out::new(), next: 0 }).unwrap();
        graph.add("a", Nibble::new(11, 999)).unwrap();
        graph.add("sink", NullSink::<u32>::new()).unwrap();
        graph.chain(&["source", "a", "sink"]).unwrap();
        graph
    };
    every_preset(build, |graph, plan| {
        let running = graph.start(&plan).unwrap();
        while running.snapshot().block("sink").unwrap().items_in < 100_000 {
            std::thread::yield_now();
        }
        running.stopper().stop();
        let snapshot = running.wait().unwrap();
        let sent = snapshot.block("source").unwrap().items_out;
        assert!(sent >= 100_000);
        assert_eq!(snapshot.block("sink").unwrap().items_in, sent, "nothing is lost");
    });
}

#[test]
fn stop_wakes_a_graph_that_sleeps() {
    let mut graph = Graph::new();
    graph.add("source", NullSource::<u32>::new()).unwrap();
    graph.add("slow", Throttle::<u32>::new(1e-6).unwrap()).unwrap();
    graph.add("sink", NullSink::<u32>::new()).unwrap();
    graph.chain(&["source", "slow", "sink"]).unwrap();
    let plan = spread(&graph);
    let running = graph.start(&plan).unwrap();
    while running.snapshot().partitions.iter().any(|partition| partition.waits == 0) {
        std::thread::yield_now();
    }
    assert!(!running.is_finished());
    running.stopper().stop();
    running.wait().unwrap();
}

#[test]
fn stop_ends_a_source_whose_pipe_is_silent() {
    let (pipe, mut writer) = std::io::pipe().unwrap();
    let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&pipe));
    let mut graph = Graph::new();
    let format = Some(SampleFormat::Sc16);
    graph.add("source", FileSource::open(Path::new(&path), format).unwrap()).unwrap();
    graph.add("sink", NullSink::<Complex<f32>>::new()).unwrap();
    graph.connect("source", "sink").unwrap();
    let running = graph.start(&Plan::default()).unwrap();
    // One sample and a half: the rest never comes, and the writer stays open.
    writer.write_all(&[0; 6]).unwrap();
    while running.snapshot().block("sink").unwrap().items_in < 1 {
        std::thread::sleep(Duration::from_millis(1));
    }
    running.stopper().stop();
    running.wait().unwrap();
    drop(writer);
}

#[test]
fn dropping_a_running_graph_ends_it() {
    let mut graph = Graph::new();
    graph.add("source", NullSource::<u32>::new()).unwrap();
    graph.add("sink", NullSink::<u32>::new()).unwrap();
    graph.connect("source", "sink").unwrap();
    let plan = spread(&graph);
    drop(graph.start(&plan).unwrap());
}

/// A source that waits inside `work`, like one that reads a socket.
#[derive(Ports)]
struct Waits {
    output: Out<u32>,
    left: u32,
    allowed: bool,
}

impl Block for Waits {
    fn work(&mut self, context: &mut Context) -> Result<Work, BlockError> {
        if !self.allowed && context.may_block == Duration::ZERO {
            return Ok(Work::Again(Duration::ZERO));
        }
        self.allowed = true;
        let items = self.output.slice_mut().len().min(self.left as usize);
        self.output.produce(items);
        self.left -= items as u32;
        Ok(if self.left == 0 { Work::Finished } else { Work::Continue })
    }
}

#[test]
fn a_source_may_block_once_its_partition_has_nothing_else_to_do() {
    let mut graph = Graph::new();
    graph.add("source", Waits { output: Out::new(), left: 10, allowed: false }).unwrap();
    graph.add("sink", NullSink::<u32>::new()).unwrap();
    graph.connect("source", "sink").unwrap();
    let plan = Plan::single(&graph, WaitMode::Park);
    let snapshot = graph.run(&plan).unwrap();
    assert_eq!(snapshot.block("sink").unwrap().items_in, 10);
}

/// The time that the blocks of one sweep might wait, and the longest of all sweeps.
#[derive(Default)]
struct Sweeps {
    sweep: Option<Instant>,
    sum: Duration,
    longest: Duration,
}

/// Sleeps as long as it may, some times.
#[derive(Ports)]
struct Polls {
    output: Out<u32>,
    left: u32,
    sweeps: Arc<Mutex<Sweeps>>,
}

impl Block for Polls {
    fn work(&mut self, context: &mut Context) -> Result<Work, BlockError> {
        let mut sweeps = self.sweeps.lock().unwrap();
        if sweeps.sweep.replace(context.now) != Some(context.now) {
            sweeps.sum = Duration::ZERO;
        }
        sweeps.sum += context.may_block;
        sweeps.longest = sweeps.longest.max(sweeps.sum);
        std::thread::sleep(context.may_block);
        self.left -= u32::from(context.may_block > Duration::ZERO);
        Ok(if self.left == 0 { Work::Finished } else { Work::Again(Duration::ZERO) })
    }
}

/// The partition waits once, whatever the number of blocks that wait.
#[test]
fn sources_that_wait_share_what_their_partition_may_wait() {
    let longest = |sources: usize| {
        let mut graph = Graph::new();
        // So that all blocks of a sweep see one time.
        graph.set_timed(false);
        let sweeps = Arc::<Mutex<Sweeps>>::default();
        for n in 0..sources {
            let (source, sink) = (format!("source{n}"), format!("sink{n}"));
            let polls = Polls { output: Out::new(), left: 5, sweeps: Arc::clone(&sweeps) };
            graph.add(&source, polls).unwrap();
            graph.add(&sink, NullSink::<u32>::new()).unwrap();
            graph.connect(&source, &sink).unwrap();
        }
        let plan = Plan::single(&graph, WaitMode::Park);
        graph.run(&plan).unwrap();
        let sweeps = sweeps.lock().unwrap();
        sweeps.longest
    };
    let alone = longest(1);
    assert!(alone > Duration::ZERO);
    assert_eq!(longest(4), alone);
}

#[test]
fn a_partition_runs_where_the_plan_says_under_its_name() {
    struct Where(Out<u32>);
    impl Ports for Where {
        fn ports(&mut self, ports: &mut dyn PortVisitor) {
            ports.output("out", &mut self.0);
        }
    }

    impl Block for Where {
        fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
            let name = std::fs::read_to_string("/proc/thread-self/comm")?;
            Err(format!("{} on {}", name.trim(), millstream_cpu::thread::allowed_cpus()?).into())
        }
    }
    let cpu = millstream_cpu::thread::allowed_cpus().unwrap().iter().next().unwrap();
    let mut graph = Graph::new();
    graph.add("where", Where(Out::new())).unwrap();
    let mut plan = Plan::single(&graph, WaitMode::Park);
    plan.partitions[0].cpu = Some(cpu);
    let error = graph.run(&plan).unwrap_err().to_string();
    assert_eq!(error, format!("block `where` failed: all on {cpu}"));
}

#[test]
fn the_profile_counts_what_passed_and_what_it_cost() {
    let mut graph = Graph::new();
    graph.add("source", NullSource::<u32>::new()).unwrap();
    graph.add("head", Head::<u32>::new(100_000)).unwrap();
    graph.add("sink", NullSink::<u32>::new()).unwrap();
    graph.chain(&["source", "head", "sink"]).unwrap();
    let plan = Plan::single(&graph, WaitMode::Park);
    let running = graph.start(&plan).unwrap();
    while !running.is_finished() {
        std::thread::yield_now();
    }
    let profile = running.profile();
    let head = profile.block("head").unwrap();
    assert_eq!((head.items_in, head.items_out), (100_000, 100_000));
    assert!(head.calls > 0 && head.busy_ns > 0, "{head:?}");
    let bytes = 2 * 4 * 100_000 / head.calls;
    assert_eq!(head.working_set_bytes, bytes, "what a call reads and writes");
    let edge = &profile.edges[1];
    assert_eq!((edge.from.as_str(), edge.to.as_str()), ("head.out", "sink.in"));
    assert_eq!((edge.items, edge.item_bytes), (100_000, 4));
    assert!(edge.fill > 0.0 && edge.fill <= 1.0 && edge.looks > 0, "{edge:?}");
    let nothing = running.profile().since(&profile);
    assert_eq!(nothing.block("head").unwrap().items_in, 0);
    running.wait().unwrap();
}
