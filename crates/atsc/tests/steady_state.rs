//! No allocation once everything runs.

mod common;

use common::{Channel, numbered, receive, receiver, signal};
use millstream_atsc::Sample;
use millstream_atsc::tx::{Transmitter, TxConfig};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call goes to the system allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations(work: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.with(Cell::get);
    work();
    ALLOCATIONS.with(Cell::get) - before
}

#[test]
fn a_locked_receiver_does_not_allocate() {
    let samples = signal(21, 0.2, Channel::default());
    let (start, rest) = samples.split_at(600_000);
    let mut receiver = receiver(6.25e6);
    assert!(!receive(&mut receiver, start).is_empty());
    let mut packets = 0;
    let count = allocations(|| receiver.process(rest, &mut |_| packets += 1));
    assert!(packets > 1000, "{packets} packets");
    assert_eq!(count, 0);
}

#[test]
fn a_running_transmitter_does_not_allocate() {
    let mut transmitter = Transmitter::new(TxConfig::default()).unwrap();
    let mut samples = vec![Sample::default(); 100_000];
    let mut n = 0;
    let mut next = |packet: &mut [u8; 188]| {
        *packet = numbered(22, n);
        n += 1;
    };
    transmitter.generate(&mut next, &mut samples);
    assert_eq!(allocations(|| transmitter.generate(&mut next, &mut samples)), 0);
}
