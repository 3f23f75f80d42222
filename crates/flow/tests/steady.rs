//! A running graph neither allocates nor frees.

use millstream_flow::blocks::{Copy, MultiplyConst, NullSink, NullSource, Throttle};
use millstream_flow::{Graph, Partition, Plan, WaitMode};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Counts what happens on threads other than the test's own (which takes snapshots).
struct Counting;

static CALLS: AtomicU64 = AtomicU64::new(0);
static COUNT: AtomicBool = AtomicBool::new(false);

thread_local! {
    static IS_TEST: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

fn count() {
    if COUNT.load(Ordering::Relaxed) && !IS_TEST.get() {
        CALLS.fetch_add(1, Ordering::Relaxed);
    }
}

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promises, passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count();
        // SAFETY: the caller's promises, passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn partition(name: &str, blocks: &[&str], wait: WaitMode) -> Partition {
    let blocks = blocks.iter().map(|block| (*block).to_owned()).collect();
    Partition { name: name.to_owned(), blocks, cpu: None, wait }
}

#[test]
fn the_steady_state_does_not_allocate() {
    IS_TEST.set(true);
    let mut graph = Graph::new();
    graph.add("source", NullSource::<f32>::new()).unwrap();
    graph.add("pace", Throttle::<f32>::new(20e6).unwrap()).unwrap();
    graph.add("scale", MultiplyConst::new(0.5f32)).unwrap();
    graph.add("copy", Copy::<f32>::new()).unwrap();
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
    wait_for(1_000_000);
    COUNT.store(true, Ordering::SeqCst);
    wait_for(5_000_000);
    COUNT.store(false, Ordering::SeqCst);
    let waits: u64 = running.snapshot().partitions.iter().map(|p| p.waits).sum();
    running.stopper().stop();
    running.wait().unwrap();
    assert!(waits > 0, "the measured time has waits in it");
    assert_eq!(CALLS.load(Ordering::SeqCst), 0, "allocations and frees in the steady state");
}
