//! The call of threads to the safe point.

use crate::explore;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;
use millstream_ring::{Wait, Waiter};

/// The flag that calls threads to the safe point is stored before they are notified, so that a
/// sleeping thread finds it when it wakes: it needs no ordering of its own.
#[test]
fn a_call_to_the_exchange_is_seen_by_who_sleeps() {
    explore(|| {
        let shared = Arc::new((AtomicBool::new(false), Waiter::new()));
        let caller = thread::spawn({
            let shared = shared.clone();
            move || {
                // A notification for something else, whose token the call finds or not.
                shared.1.notify();
                shared.0.store(true, Ordering::Relaxed);
                shared.1.notify();
            }
        });
        while !shared.0.load(Ordering::Relaxed) {
            shared.1.wait(Wait::Park, None);
        }
        caller.join().unwrap();
    });
}
