//! A running graph does not allocate.

use millstream_flow::blocks::{Copy, MultiplyConst, NullSink, NullSource, Throttle};
use millstream_flow::{Block, BlockError, Context, Graph, Partition, Plan, PortVisitor};
use millstream_flow::{WaitMode, Work};
use millstream_testkit::allocations;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A block that also tells what its thread has allocated so far, the runtime included.
struct Watched<B> {
    block: B,
    allocated: Arc<AtomicU64>,
}

impl<B: Block> Block for Watched<B> {
    fn ports(&mut self, ports: &mut dyn PortVisitor) {
        self.block.ports(ports);
    }

    fn work(&mut self, context: &mut Context) -> Result<Work, BlockError> {
        self.allocated.store(allocations(), Ordering::Relaxed);
        self.block.work(context)
    }
}

fn partition(name: &str, blocks: &[&str], wait: WaitMode) -> Partition {
    let blocks = blocks.iter().map(|block| (*block).to_owned()).collect();
    Partition { name: name.to_owned(), blocks, cpu: None, wait }
}

#[test]
fn the_steady_state_does_not_allocate() {
    let allocated: [Arc<AtomicU64>; 3] = Default::default();
    let watch = |thread: usize| Arc::clone(&allocated[thread]);
    let mut graph = Graph::new();
    graph.add("source", NullSource::<f32>::new()).unwrap();
    let pace = Throttle::<f32>::new(20e6).unwrap();
    graph.add("pace", Watched { block: pace, allocated: watch(0) }).unwrap();
    let scale = MultiplyConst::new(0.5f32);
    graph.add("scale", Watched { block: scale, allocated: watch(1) }).unwrap();
    let copy = Copy::<f32>::new();
    graph.add("copy", Watched { block: copy, allocated: watch(2) }).unwrap();
    graph.add("sink", NullSink::<f32>::new()).unwrap();
    graph.add("side", NullSink::<f32>::new()).unwrap();
    graph.chain(&["source", "pace", "scale", "copy", "sink"]).unwrap();
    graph.connect("scale", "side").unwrap();
    let partitions = vec![
        partition("front", &["source", "pace"], WaitMode::Park),
        partition("middle", &["scale", "side"], WaitMode::Park),
        partition("back", &["copy", "sink"], WaitMode::Spin),
    ];
    let running = graph.start(&Plan { partitions, ..Plan::default() }).unwrap();
    let arrived = || running.snapshot().block("sink").unwrap().items_in;
    let wait_for = |items| {
        while arrived() < items {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    };
    let total = || allocated.iter().map(|count| count.load(Ordering::Relaxed)).collect::<Vec<_>>();
    wait_for(1_000_000);
    let before = total();
    assert!(before.iter().all(|count| *count > 0), "every thread is watched: {before:?}");
    wait_for(5_000_000);
    assert_eq!(total(), before, "allocations of each thread in the steady state");
    let waits: u64 = running.snapshot().partitions.iter().map(|p| p.waits).sum();
    running.stopper().stop();
    running.wait().unwrap();
    assert!(waits > 0, "the measured time has waits in it");
}
