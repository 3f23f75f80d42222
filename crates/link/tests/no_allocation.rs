//! After open, sending and receiving allocate nothing.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use millstream_link::open;
use millstream_link::port::PortOptions;

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

fn allocations() -> u64 {
    ALLOCATIONS.with(Cell::get)
}

#[test]
fn steady_state_allocates_nothing() {
    for link in ["udp", "udp:gro=off,gso=off"] {
        let local = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
        let mut a = open(link, local, &PortOptions::default()).unwrap();
        let mut b = open(link, local, &PortOptions::default()).unwrap();
        let train = vec![1u8; 8000 * 12];
        let before = allocations();
        let mut seen = 0;
        for _ in 0..100 {
            a.tx.send_train(&train, 8000, b.local).unwrap();
            a.tx.send(&train[..100], b.local).unwrap();
            let mut wanted = 13;
            while wanted > 0 {
                let count = b.rx.recv_batch(Duration::from_secs(5)).unwrap();
                assert_ne!(count, 0);
                seen += (0..count).map(|index| b.rx.datagram(index).payload.len()).sum::<usize>();
                wanted -= count;
            }
            assert_eq!(b.rx.recv_batch(Duration::from_micros(10)).unwrap(), 0);
        }
        assert_eq!(allocations(), before, "{link}");
        assert_eq!(seen, 100 * (train.len() + 100));
    }
    let before = allocations();
    drop(Box::new(1));
    assert_eq!(allocations(), before + 1, "the counter counts");
}
