//! Stalled graphs and the reported reasons. Time is an argument: no test waits here.

use crate::common::{Add, Nibble, Ticker};
use millstream_flow::blocks::{NullSink, Throttle, VectorSource};
use millstream_flow::observe::{StallReason, Why};
use millstream_flow::{Block, BlockError, Context, Graph, Out, Plan, Ports, Preset};
use millstream_flow::{RunningGraph, Stall, WaitMode, Work};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(10);

/// Polls twice, the limit apart.
fn stalls(running: &mut RunningGraph) -> Vec<Stall> {
    let now = Instant::now();
    assert_eq!(running.stalls(now, LIMIT), [], "the first look knows nothing yet");
    running.stalls(now + LIMIT, LIMIT)
}

/// A source that produces some items and then does as its mode says.
#[derive(Ports)]
struct Moody {
    output: Out<u32>,
    left: usize,
    /// 0: produces no items; 1: stays inside `work`; 2: is inside; 3: ends.
    mode: Arc<AtomicU8>,
}

impl Block for Moody {
    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        let items = self.left.min(self.output.slice_mut().len());
        self.output.produce(items);
        self.left -= items;
        while matches!(self.mode.load(Ordering::Relaxed), 1 | 2) {
            self.mode.store(2, Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(if self.mode.load(Ordering::Relaxed) == 3 { Work::Finished } else { Work::Continue })
    }
}

fn moody(mode: u8) -> (Graph, Arc<AtomicU8>) {
    let mode = Arc::new(AtomicU8::new(mode));
    let mut graph = Graph::new();
    let source = Moody { output: Out::new(), left: 812, mode: Arc::clone(&mode) };
    graph.add("source", source).unwrap();
    graph.add("demod", Nibble::new(1, 5000).wanting(4096)).unwrap();
    graph.add("sink", NullSink::<u32>::new()).unwrap();
    graph.chain(&["source", "demod", "sink"]).unwrap();
    (graph, mode)
}

fn items_out(running: &RunningGraph, block: &str) -> u64 {
    running.snapshot().block(block).unwrap().items_out
}

#[test]
fn a_graph_that_waits_for_items_says_whose() {
    let demod = "; `demod` waits for 4096 items of `source`, and has 812; \
                 `sink` waits for 1 item of `demod`, and has 0";
    for preset in Preset::ALL {
        // A block in the midst of its last call at both polls is reported too: then poll again.
        let mut told = Vec::new();
        while told.last().is_none_or(|text: &String| !text.ends_with(demod)) {
            assert!(told.len() < 100, "{preset:?}: {told:#?}");
            let (graph, mode) = moody(0);
            let plan = preset.plan(&graph, WaitMode::Park, &Plan::default().buffers);
            let mut running = graph.start(&plan).unwrap();
            // Called again it produces nothing, and gives the others time to poll their rings.
            while running.snapshot().block("source").unwrap().calls < 3 {
                std::thread::yield_now();
            }
            let found: Vec<_> = stalls(&mut running).iter().map(Stall::to_string).collect();
            mode.store(3, Ordering::Relaxed);
            running.wait().unwrap();
            told.push(found.join("\n"));
        }
        let text = told.pop().unwrap();
        assert!(text.starts_with("no item has moved for 10.0 s: `source` "), "{preset:?}: {text}");
    }
}

#[test]
fn a_block_that_does_not_come_back_is_named() {
    for preset in Preset::ALL {
        let (graph, mode) = moody(1);
        let plan = preset.plan(&graph, WaitMode::Park, &Plan::default().buffers);
        let mut running = graph.start(&plan).unwrap();
        while mode.load(Ordering::Relaxed) != 2 || items_out(&running, "source") < 812 {
            std::thread::yield_now();
        }
        let found = stalls(&mut running);
        mode.store(3, Ordering::Relaxed);
        // On a busy machine the others may be in their last call at both polls, and are named too.
        let named = |stall: &Stall| match stall {
            Stall::Busy { block, lasted, .. } => block == "source" && *lasted == LIMIT,
            _ => false,
        };
        assert!(found.iter().any(named), "{preset:?}: {found:?}");
        let Some(Stall::Still { reasons, .. }) = found.last() else { panic!("{found:?}") };
        assert_eq!(reasons[0], StallReason { block: "source".into(), why: Why::Busy });
        running.wait().unwrap();
    }
}

#[test]
fn a_ring_that_nobody_empties_names_its_reader() {
    let mut graph = Graph::new();
    graph.add("few", VectorSource::new(vec![0u32])).unwrap();
    graph.add("slow", Throttle::<u32>::new(1e-9).unwrap()).unwrap();
    graph.add("many", Ticker { output: Out::new(), next: 0 }).unwrap();
    graph.add("add", Add::new()).unwrap();
    graph.add("sink", NullSink::<u32>::new()).unwrap();
    graph.chain(&["few", "slow", "add.a"]).unwrap();
    graph.chain(&["many", "add.b"]).unwrap();
    graph.chain(&["add", "sink"]).unwrap();
    let mut running = graph.start(&Plan::default()).unwrap();
    let full = |running: &RunningGraph| {
        let before = items_out(running, "many");
        std::thread::sleep(Duration::from_millis(20));
        before > 0 && before == items_out(running, "many")
    };
    while !full(&running) {}
    let found = stalls(&mut running);
    let [Stall::Still { reasons, .. }] = &found[..] else { panic!("{found:?}") };
    let why = |name: &str| {
        let reason = reasons.iter().find(|reason| reason.block == name);
        reason.map(ToString::to_string).unwrap_or_default()
    };
    assert!(why("many").starts_with("`many` waits for room for 1 item in `many.out` (0 of "));
    assert!(why("many").ends_with(" free), which `add` has not emptied"), "{}", why("many"));
    assert_eq!(why("add"), "`add` waits for 1 item of `slow`, and has 0");
    assert_eq!(reasons[0].to_string(), "`slow` has asked to be called later", "the cause first");
    assert_eq!(why("few"), "", "it has finished");
    running.stopper().stop();
    running.wait().unwrap();
}

#[test]
fn a_graph_that_flows_or_has_ended_has_no_stall() {
    let mut graph = Graph::new();
    graph.add("source", Ticker { output: Out::new(), next: 0 }).unwrap();
    graph.add("sink", NullSink::<u32>::new()).unwrap();
    graph.connect("source", "sink").unwrap();
    let mut running = graph.start(&Plan::default()).unwrap();
    let now = Instant::now();
    for look in 0..10u32 {
        assert_eq!(running.stalls(now + LIMIT * look, LIMIT), []);
        // After the look, or the next one might find nothing new; at both blocks, or one may still
        // be in the same call.
        let passed = || {
            let snapshot = running.snapshot();
            let source = snapshot.block("source").unwrap().items_out;
            (source, snapshot.block("sink").unwrap().items_in)
        };
        let before = passed();
        while passed().0 < before.0 + 10_000 || passed().1 < before.1 + 10_000 {
            std::thread::yield_now();
        }
    }
    running.stopper().stop();
    while !running.is_finished() {
        std::thread::yield_now();
    }
    assert_eq!(running.stalls(now + LIMIT * 100, LIMIT), []);
    running.wait().unwrap();
}

#[test]
fn a_graph_that_never_comes_back_can_be_left() {
    let (graph, mode) = moody(1);
    let running = graph.start(&Plan::default()).unwrap();
    while mode.load(Ordering::Relaxed) != 2 {
        std::thread::yield_now();
    }
    running.abandon(Duration::from_millis(10));
    mode.store(3, Ordering::Relaxed);
}
