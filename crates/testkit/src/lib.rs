//! Shared code of the tests of several crates. A dev-dependency only.
//!
//! A test program that uses this crate runs on an allocator that counts allocations.

pub mod cost;
pub mod netns;
pub mod raw;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

// SAFETY: every call goes to the system's allocator unchanged. Counting touches a plain cell of
// this thread, without a destructor, so it allocates nothing and is allowed at any time.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps the contract of `GlobalAlloc::alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: `pointer` came from `System` with this layout, by the caller's contract.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Returns the allocations of the calling thread so far; growing one counts as one.
pub fn allocations() -> u64 {
    ALLOCATIONS.with(Cell::get)
}

#[cfg(test)]
mod tests {
    use super::allocations;

    #[test]
    fn each_allocation_of_this_thread_counts_once() {
        let before = allocations();
        let mut bytes = std::hint::black_box(Vec::<u8>::with_capacity(10));
        assert_eq!(allocations(), before + 1);
        bytes.resize(1000, 0);
        assert_eq!(allocations(), before + 2);
        drop(std::hint::black_box(bytes));
        let busy = || (0..1000).for_each(|_| drop(std::hint::black_box(vec![1u8; 10])));
        std::thread::scope(|scope| scope.spawn(busy).join()).unwrap();
        assert!(allocations() < before + 1000, "those of another thread do not");
    }
}
