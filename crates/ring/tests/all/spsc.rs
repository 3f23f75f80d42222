//! The channel behaves like a bounded queue, for any sequence of operations, and drops every item
//! exactly once.
#![cfg(not(loom))]

use millstream_ring::spsc::{Receiver, Sender, channel};
use millstream_testkit::allocations;
use proptest::prelude::*;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

#[derive(Clone, Debug)]
enum Step {
    Push,
    PushBatch(usize),
    Pop,
    PopBatch(usize),
    DropSender,
    DropReceiver,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        10 => Just(Step::Push),
        10 => (0usize..12).prop_map(Step::PushBatch),
        10 => Just(Step::Pop),
        10 => (0usize..12).prop_map(Step::PopBatch),
        1 => Just(Step::DropSender),
        1 => Just(Step::DropReceiver),
    ]
}

/// Counts its living instances.
#[derive(Debug)]
struct Item(u64, Arc<AtomicUsize>);

impl Item {
    fn new(number: u64, alive: &Arc<AtomicUsize>) -> Self {
        alive.fetch_add(1, Ordering::Relaxed);
        Self(number, Arc::clone(alive))
    }
}

impl Drop for Item {
    fn drop(&mut self) {
        self.1.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The channel and the queue with its expected contents.
struct Pair {
    capacity: usize,
    sender: Option<Sender<Item>>,
    receiver: Option<Receiver<Item>>,
    expected: VecDeque<u64>,
    next: u64,
    alive: Arc<AtomicUsize>,
}

impl Pair {
    fn new(capacity: usize) -> Self {
        let (sender, receiver) = channel(capacity);
        let (sender, receiver) = (Some(sender), Some(receiver));
        let (expected, alive) = (VecDeque::new(), Arc::default());
        Self { capacity, sender, receiver, expected, next: 0, alive }
    }

    fn room(&self) -> usize {
        if self.receiver.is_some() { self.capacity - self.expected.len() } else { 0 }
    }

    fn push(&mut self, count: usize, batch: bool) {
        let room = self.room();
        let Some(sender) = &mut self.sender else { return };
        assert_eq!(sender.is_abandoned(), self.receiver.is_none());
        let mut items: Vec<_> =
            (self.next..).take(count).map(|n| Item::new(n, &self.alive)).collect();
        let taken = if batch {
            let taken = sender.push_batch(&mut items);
            assert_eq!(items.len(), count - taken, "the others stay");
            assert!(items.first().is_none_or(|item| item.0 == self.next + taken as u64));
            taken
        } else {
            usize::from(sender.push(items.pop().unwrap()).is_ok())
        };
        if self.receiver.is_some() {
            assert_eq!(taken, count.min(room), "the channel takes what it has room for");
            self.expected.extend(self.next..self.next + taken as u64);
        }
        assert_eq!(sender.room(), room.saturating_sub(taken));
        // A few items may go into a channel whose end was not noticed yet; they are dropped with
        // it.
        self.next += taken as u64;
    }

    fn pop(&mut self, max: usize, batch: bool) {
        let Some(receiver) = &mut self.receiver else { return };
        let mut items = Vec::new();
        if batch {
            let count = receiver.pop_batch(&mut items, max);
            assert_eq!(count, items.len());
        } else {
            items.extend(receiver.pop());
        }
        let count = max.min(self.expected.len());
        assert!(items.iter().map(|item| item.0).eq(self.expected.drain(..count)));
        assert_eq!(receiver.available(), self.expected.len());
        assert_eq!(receiver.is_ended(), self.sender.is_none() && self.expected.is_empty());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn it_is_a_bounded_queue(capacity in 1usize..9, steps in prop::collection::vec(step(), 1..99)) {
        let mut pair = Pair::new(capacity);
        for step in steps {
            match step {
                Step::Push => pair.push(1, false),
                Step::PushBatch(count) => pair.push(count, true),
                Step::Pop => pair.pop(1, false),
                Step::PopBatch(max) => pair.pop(max, true),
                Step::DropSender => pair.sender = None,
                Step::DropReceiver => pair.receiver = None,
            }
            if pair.sender.is_some() && pair.receiver.is_some() {
                prop_assert_eq!(pair.alive.load(Ordering::Relaxed), pair.expected.len());
            }
        }
        (pair.sender, pair.receiver) = (None, None);
        prop_assert_eq!(pair.alive.load(Ordering::Relaxed), 0, "every item is dropped once");
    }
}

#[test]
fn a_sender_takes_back_what_the_receiver_left() {
    let (mut sender, mut receiver) = channel(4);
    let mut items = vec![1, 2, 3];
    sender.push_batch(&mut items);
    assert_eq!(receiver.pop(), Some(1));
    assert_eq!(sender.reclaim(&mut items), 0, "the receiver is there");
    drop(receiver);
    // The sender has not polled since, so one more item goes in and comes back too.
    assert_eq!(sender.push(4), Ok(()));
    assert_eq!(sender.reclaim(&mut items), 3);
    assert_eq!(items, [2, 3, 4]);
    assert_eq!((sender.room(), sender.push(5)), (0, Err(5)));
}

#[test]
fn capacity_is_exact_even_if_it_is_no_power_of_two() {
    let (mut sender, receiver) = channel(5);
    assert_eq!(sender.room(), 5);
    let mut items: Vec<u8> = (0..9).collect();
    assert_eq!(sender.push_batch(&mut items), 5);
    assert_eq!(items, [5, 6, 7, 8]);
    assert_eq!((receiver.available(), sender.room()), (5, 0));
}

#[test]
#[should_panic(expected = "a channel holds at least one item")]
fn a_channel_without_room_is_refused() {
    let _ = channel::<u8>(0);
}

#[test]
fn items_pass_between_threads_in_batches_of_any_size() {
    let count = crate::steps(300_000);
    let (mut sender, mut receiver) = channel::<[u64; 4]>(100);
    thread::scope(|scope| {
        scope.spawn(move || {
            let (mut batch, mut next) = (Vec::with_capacity(64), 0);
            while next < count || !batch.is_empty() {
                while batch.len() < 64 && next < count {
                    batch.push([next, !next, next, !next]);
                    next += 1;
                }
                if sender.push_batch(&mut batch) == 0 {
                    thread::yield_now();
                }
            }
        });
        let (mut batch, mut expected) = (Vec::with_capacity(37), 0);
        while !receiver.is_ended() {
            if receiver.pop_batch(&mut batch, 37) == 0 {
                thread::yield_now();
            }
            for item in batch.drain(..) {
                assert_eq!(item, [expected, !expected, expected, !expected]);
                expected += 1;
            }
        }
        assert_eq!(expected, count);
    });
}

#[test]
fn passing_items_allocates_nothing() {
    let (mut sender, mut receiver) = channel::<[u8; 32]>(256);
    let (mut there, mut here) = (vec![[7; 32]; 64], Vec::with_capacity(64));
    let before = allocations();
    for _ in 0..crate::steps(10_000) {
        sender.push_batch(&mut there);
        sender.push([8; 32]).unwrap();
        assert!(receiver.pop().is_some());
        assert_eq!(receiver.pop_batch(&mut here, 64), 64);
        std::mem::swap(&mut there, &mut here);
    }
    assert_eq!(allocations(), before);
}
