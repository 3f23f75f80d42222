//! In the steady state a receive stream allocates nothing.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use common::{PATIENCE, device};
use millstream_radio::{Complex32, RxArgs};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call goes to the system's allocator unchanged; counting touches a plain
// thread-local cell that needs no allocation itself.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn receiving_allocates_nothing_and_reports_once_per_period() {
    let (_radio, device) = device(4e6);
    let mut stream = device.rx_stream(RxArgs::new(0)).unwrap();
    stream.start_finite(2_000_000, None).unwrap();
    let mut buffer = vec![Complex32::default(); 4096];
    stream.recv(&mut buffer, PATIENCE).unwrap();
    let before = ALLOCATIONS.with(Cell::get);
    while stream.is_running() {
        stream.recv(&mut buffer, PATIENCE).unwrap();
    }
    assert_eq!(ALLOCATIONS.with(Cell::get), before);
    assert_eq!(stream.ledger().delivered, 2_000_000);
    // 32 reports per window of credit, at most one per packet, and a few after quiet moments.
    let counters = stream.counters();
    println!("{counters:?}");
    let (packet_bytes, period_bytes) = (8016, stream.credit_window_bytes().div_ceil(32));
    let packets_per_report = period_bytes.div_ceil(packet_bytes);
    let due = counters.packets / packets_per_report;
    assert!((due..due + 20).contains(&counters.reports), "{due} due, {}", counters.reports);
    drop(Box::new(1));
    assert!(ALLOCATIONS.with(Cell::get) > before, "the counter counts");
}
