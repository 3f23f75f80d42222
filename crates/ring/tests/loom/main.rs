//! Every interleaving of the cursor protocol and of the waiter, explored by `loom`:
//! `RUSTFLAGS="--cfg loom" cargo test -p millstream-ring --test loom --release`.
#![cfg(loom)]

mod beacon;
mod doorbell;
mod growing;
mod handover;
mod news;
mod recent;
mod shared;
mod spsc;

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use millstream_ring::cursor::{Consumer, Producer, cursors};
use millstream_ring::{Wait, Waiter};

/// Explores every execution with at most two preemptions: this finds the errors of a small protocol
/// (Musuvathi and Qadeer 2007) and ends within seconds.
fn explore(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(model);
}

/// The bytes that the cursors guard. `loom` reports any access that the protocol does not
/// order.
struct Memory(Vec<UnsafeCell<u64>>);

impl Memory {
    fn new(capacity: u64) -> Arc<Self> {
        Arc::new(Self((0..capacity).map(|_| UnsafeCell::new(0)).collect()))
    }

    fn write(&self, position: u64, value: u64) {
        let cell = &self.0[position as usize % self.0.len()];
        // SAFETY: the cursor granted this byte for writing; `loom` checks that it did.
        cell.with_mut(|value_at| unsafe { *value_at = value });
    }

    fn read(&self, position: u64) -> u64 {
        let cell = &self.0[position as usize % self.0.len()];
        // SAFETY: the cursor granted this byte for reading; `loom` checks that it did.
        cell.with(|value_at| unsafe { *value_at })
    }
}

/// Writes as much as there is room for, up to `until`; returns the new position.
fn write(producer: &mut Producer, memory: &Memory, mut position: u64, until: u64) -> u64 {
    let bytes = producer.room().min(until - position);
    for _ in 0..bytes {
        memory.write(position, position + 1);
        position += 1;
    }
    producer.advance(bytes);
    position
}

/// Reads and checks the available bytes; returns the new position.
fn read(consumer: &mut Consumer, memory: &Memory, mut position: u64) -> u64 {
    let bytes = consumer.available();
    for _ in 0..bytes {
        assert_eq!(memory.read(position), position + 1);
        position += 1;
    }
    consumer.advance(bytes);
    position
}

fn read_to_the_end(mut consumer: Consumer, memory: &Memory) -> u64 {
    let mut position = 0;
    loop {
        position = read(&mut consumer, memory, position);
        if consumer.is_ended() {
            return position;
        }
        thread::yield_now();
    }
}

#[test]
fn every_byte_arrives_once_and_the_end_after_the_last() {
    explore(|| {
        const BYTES: u64 = 3;
        let (mut producer, mut consumers) = cursors(2, 1);
        let memory = Memory::new(2);
        let consumer = consumers.pop().unwrap();
        let writer = thread::spawn({
            let memory = memory.clone();
            move || {
                let mut position = 0;
                while position < BYTES {
                    position = write(&mut producer, &memory, position, BYTES);
                    thread::yield_now();
                }
            }
        });
        assert_eq!(read_to_the_end(consumer, &memory), BYTES);
        writer.join().unwrap();
    });
}

/// No thread waits here: each side polls a few times, in every order, and `loom` checks that a byte
/// is never overwritten under a reader.
#[test]
fn the_slower_reader_holds_the_writer_back() {
    explore(|| {
        let (mut producer, mut consumers) = cursors(1, 2);
        let memory = Memory::new(1);
        let readers: Vec<_> = consumers
            .drain(..)
            .map(|mut consumer| {
                let memory = memory.clone();
                thread::spawn(move || {
                    let position = read(&mut consumer, &memory, 0);
                    read(&mut consumer, &memory, position)
                })
            })
            .collect();
        let mut written = 0;
        for _ in 0..3 {
            written = write(&mut producer, &memory, written, 2);
        }
        for reader in readers {
            assert!(reader.join().unwrap() <= written);
        }
    });
}

#[test]
fn a_reader_that_goes_gives_its_bytes_back() {
    explore(|| {
        let (mut producer, mut consumers) = cursors(1, 1);
        let memory = Memory::new(1);
        let mut consumer = consumers.pop().unwrap();
        let reader = thread::spawn({
            let memory = memory.clone();
            move || {
                // Polls, and leaves without consuming.
                if consumer.available() == 1 {
                    assert_eq!(memory.read(0), 1);
                }
                consumer.close();
                assert_eq!(consumer.available(), 0);
            }
        });
        let mut position = 0;
        while position < 2 {
            position = write(&mut producer, &memory, position, 2);
            thread::yield_now();
        }
        reader.join().unwrap();
        assert!(producer.is_abandoned());
    });
}

#[test]
fn the_cached_answers_never_grant_too_much() {
    explore(|| {
        let (mut producer, mut consumers) = cursors(2, 1);
        let memory = Memory::new(2);
        let mut consumer = consumers.pop().unwrap();
        let writer = thread::spawn({
            let memory = memory.clone();
            move || {
                for position in 0..3 {
                    while producer.granted() == 0 && producer.room() == 0 {
                        thread::yield_now();
                    }
                    memory.write(position, position + 1);
                    producer.advance(1);
                }
            }
        });
        for position in 0..3 {
            while !consumer.has(1) {
                thread::yield_now();
            }
            assert_eq!(memory.read(position), position + 1);
            consumer.advance(1);
        }
        writer.join().unwrap();
    });
}

/// A decision for a call holds for all items that the call sees, whatever the writer does
/// meanwhile.
#[test]
fn a_cut_hides_what_comes_later_and_never_the_end() {
    explore(|| {
        const BYTES: u64 = 2;
        let (mut producer, mut consumers) = cursors(BYTES, 1);
        let memory = Memory::new(BYTES);
        let mut consumer = consumers.pop().unwrap();
        let view = consumer.view();
        let writer = thread::spawn({
            let memory = memory.clone();
            move || {
                let view = producer.view();
                for position in 0..BYTES {
                    view.cut(1);
                    assert_eq!(producer.room(), 1);
                    write(&mut producer, &memory, position, BYTES);
                }
            }
        });
        let mut position = 0;
        loop {
            let (seen, ended) = view.available();
            view.cut(seen);
            let before = position;
            position = read(&mut consumer, &memory, position);
            assert_eq!(position - before, seen);
            // The end may have come since; it never hides items behind the cut.
            assert!(consumer.is_ended() || !ended);
            if consumer.is_ended() {
                break;
            }
            thread::yield_now();
        }
        assert_eq!(position, BYTES);
        writer.join().unwrap();
    });
}

/// A lost wake-up would leave the reader asleep for ever, which `loom` reports as a deadlock.
#[test]
fn no_wake_up_is_lost() {
    explore(|| {
        const BYTES: u64 = 2;
        let (mut producer, mut consumers) = cursors(1, 1);
        let memory = Memory::new(1);
        let mut consumer = consumers.pop().unwrap();
        let waiters = [Arc::new(Waiter::new()), Arc::new(Waiter::new())];
        let writer = thread::spawn({
            let (memory, waiters) = (memory.clone(), waiters.clone());
            move || {
                let mut position = 0;
                while position < BYTES {
                    let before = position;
                    position = write(&mut producer, &memory, position, BYTES);
                    if position == before {
                        waiters[0].wait(Wait::Park, None);
                    } else {
                        waiters[1].notify();
                    }
                }
                drop(producer);
                waiters[1].notify();
            }
        });
        let mut position = 0;
        loop {
            let before = position;
            position = read(&mut consumer, &memory, position);
            if consumer.is_ended() {
                break;
            }
            if position == before {
                waiters[1].wait(Wait::Park, None);
            } else {
                waiters[0].notify();
            }
        }
        assert_eq!(position, BYTES);
        writer.join().unwrap();
    });
}

#[test]
fn two_notifiers_and_a_sleeper() {
    explore(|| {
        let waiter = Arc::new(Waiter::new());
        let news = [0, 1].map(|_| Arc::new(loom::sync::atomic::AtomicBool::new(false)));
        let notifiers = news.clone().map(|news| {
            let waiter = waiter.clone();
            thread::spawn(move || {
                news.store(true, loom::sync::atomic::Ordering::Relaxed);
                waiter.notify();
            })
        });
        while !news.iter().all(|news| news.load(loom::sync::atomic::Ordering::Relaxed)) {
            waiter.wait(Wait::Park, None);
        }
        notifiers.into_iter().for_each(|notifier| notifier.join().unwrap());
    });
}
