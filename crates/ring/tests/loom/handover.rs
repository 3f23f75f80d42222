//! Ends of rings that move from one thread to another under a mutex, as blocks do at the safe
//! point.

use crate::explore;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::sync::{Arc, Mutex};
use loom::thread;
use millstream_ring::{Pool, Reader, RingOptions, Wait, Waiter, Writer, ring};
use std::any::TypeId;

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

type Ends = (Writer<u32>, Reader<u32>);

fn write(writer: &mut Writer<u32>, item: u32) {
    writer.slice_mut()[0] = item;
    writer.produce(1);
}

fn lend_and_hand_in(pool: &Pool, (mut writer, mut reader): Ends, keep: bool) -> Ends {
    // SAFETY: no thread has used it before.
    unsafe { pool.enter() };
    write(&mut writer, 1);
    assert_eq!(reader.slice(), [1]);
    if !keep {
        reader.consume(1);
    }
    (writer, reader)
}

/// Every word of a pool and of a loan is relaxed: the mutex alone has to order them.
#[test]
fn the_ends_of_a_ring_of_a_pool_part_with_what_it_holds() {
    for keep in [false, true] {
        explore(move || {
            let pool = Pool::new(TypeId::of::<u32>(), 1, 1, false).unwrap();
            let options = RingOptions { pool: Some(pool.clone()), ..RingOptions::items(1) };
            let (writer, mut readers) = ring::<u32>(&options).unwrap();
            let ends = (writer, readers.pop().unwrap());
            let exchange = Arc::new(Mutex::new(None::<Ends>));
            let worker = thread::spawn({
                let exchange = exchange.clone();
                move || {
                    let ends = lend_and_hand_in(&pool, ends, keep);
                    *exchange.lock().unwrap() = Some(ends);
                }
            });
            let (mut writer, mut reader) = loop {
                if let Some(ends) = exchange.lock().unwrap().take() {
                    break ends;
                }
                thread::yield_now();
            };
            // SAFETY: both ends are here, and the other thread uses neither any more.
            unsafe { reader.loan().unwrap().reclaim() };
            let other = thread::spawn(move || write(&mut writer, 2));
            let expected: &[u32] = if keep { &[1, 2] } else { &[2] };
            while reader.available() < expected.len() {
                thread::yield_now();
            }
            assert_eq!(reader.slice(), expected);
            reader.consume(expected.len());
            other.join().unwrap();
            worker.join().unwrap();
        });
    }
}
