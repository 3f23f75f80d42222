//! A queue whose sender continues in a longer ring while its receiver empties the old one.

use crate::explore;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;
use millstream_ring::growing::queue;

#[test]
fn what_goes_into_a_growing_queue_comes_out_once_and_in_order() {
    explore(|| {
        const ITEMS: u64 = 4;
        let (mut sender, mut receiver) = queue(1);
        // One for the first ring, two for its successor, and one for the next.
        let writer = thread::spawn(move || (0..ITEMS).for_each(|n| sender.push(n).unwrap()));
        let mut wanted = 0;
        while wanted < ITEMS {
            if let Some(item) = receiver.pop() {
                assert_eq!(item, wanted);
                wanted += 1;
            } else {
                thread::yield_now();
            }
        }
        assert_eq!(receiver.pop(), None);
        writer.join().unwrap();
    });
}

/// Counts its drops.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// `loom` also reports rings that are never freed.
#[test]
fn a_receiver_may_leave_while_the_queue_grows() {
    explore(|| {
        const ITEMS: usize = 3;
        let dropped = Arc::new(AtomicUsize::new(0));
        let (mut sender, mut receiver) = queue(1);
        let writer = thread::spawn({
            let dropped = dropped.clone();
            move || (0..ITEMS).for_each(|_| drop(sender.push(Counted(dropped.clone()))))
        });
        drop(receiver.pop());
        drop(receiver);
        writer.join().unwrap();
        assert_eq!(dropped.load(Ordering::Relaxed), ITEMS);
    });
}
