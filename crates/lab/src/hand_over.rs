//! Items a second from one thread to another: over the lock-free ring, and over queues behind a
//! lock.
//!
//! Both threads yield their CPU while they have nothing to do, so that the figure is that of the
//! queue and not of a way to wait, and both run also on one CPU.

use crate::CaseRuns;
use millstream_ring::spsc;
use millstream_stats::{Pairs, Ratio};
use serde::Serialize;
use std::collections::VecDeque;
use std::sync::mpsc::{TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

/// Items that each queue has room for.
const ROOM: usize = 1024;
/// Items of a batch.
pub const BATCH: usize = 64;

/// A queue between two threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum QueueKind {
    /// The ring, item by item.
    Ring,
    /// The ring, in batches.
    RingBatches,
    /// A queue behind a mutex, which is taken for each item.
    Mutex,
    /// The same, taken once for a batch.
    MutexBatches,
    /// The channel of the standard library, item by item.
    Channel,
}

impl QueueKind {
    /// All, each ring before what it is compared with.
    pub const ALL: [Self; 5] =
        [Self::Ring, Self::Mutex, Self::Channel, Self::RingBatches, Self::MutexBatches];

    /// Returns its name in words.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ring => "ring, one by one",
            Self::RingBatches => "ring, batches of 64",
            Self::Mutex => "mutex, one by one",
            Self::MutexBatches => "mutex, batches of 64",
            Self::Channel => "std channel, one by one",
        }
    }

    /// Returns the ring that moves as many items in a step.
    #[must_use]
    pub fn ring(self) -> Self {
        match self {
            Self::Ring | Self::Mutex | Self::Channel => Self::Ring,
            Self::RingBatches | Self::MutexBatches => Self::RingBatches,
        }
    }
}

/// The rates of a queue.
#[derive(Debug, Clone, Serialize)]
pub struct HandOver {
    /// The queue.
    pub queue: QueueKind,
    /// Items a second, in each round.
    pub items_per_s: Vec<f64>,
    /// The ring's rate to this one's, of what is no ring.
    pub ring_to_this: Option<Ratio>,
}

impl HandOver {
    /// Sums up the rates of all queues, in the order of [`QueueKind::ALL`].
    #[must_use]
    pub fn of(rates: &[CaseRuns<f64>]) -> Vec<Self> {
        let all: Vec<Vec<f64>> =
            rates.iter().map(|one| one.outcomes().copied().collect()).collect();
        let mut pairs = Pairs::default();
        let mut sum_up = |(queue, own): (QueueKind, &Vec<f64>)| {
            let ring = QueueKind::ALL.into_iter().position(|one| one == queue.ring());
            let of_ring = ring.and_then(|ring| all.get(ring)).filter(|_| queue.ring() != queue);
            let ring_to_this = of_ring.map(|of_ring| pairs.ratio(own, of_ring));
            Self { queue, items_per_s: own.clone(), ring_to_this }
        };
        QueueKind::ALL.into_iter().zip(&all).map(&mut sum_up).collect()
    }
}

/// Moves `items` over a queue; returns the items a second.
///
/// # Panics
/// If the queue loses, repeats or reorders an item.
#[must_use]
pub fn rate(queue: QueueKind, items: u64) -> f64 {
    let begun = Instant::now();
    match queue {
        QueueKind::Ring => {
            let (mut sender, mut receiver) = spsc::channel(ROOM);
            run(items, move |item| sender.push(item).is_ok(), move || receiver.pop());
        }
        QueueKind::RingBatches => {
            let (mut sender, mut receiver) = spsc::channel(ROOM);
            let send = move |batch: &mut Vec<u64>| sender.push_batch(batch);
            let take = move |batch: &mut Vec<u64>| receiver.pop_batch(batch, BATCH);
            run_batches(items, send, take);
        }
        QueueKind::Mutex => {
            let (queue, other) = locked();
            let send = move |item| {
                let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
                let has_room = queue.len() < ROOM;
                if has_room {
                    queue.push_back(item);
                }
                has_room
            };
            let take = move || other.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            run(items, send, take);
        }
        QueueKind::MutexBatches => {
            let (queue, other) = locked();
            let send = move |batch: &mut Vec<u64>| {
                let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
                let count = batch.len().min(ROOM - queue.len());
                queue.extend(batch.drain(..count));
                count
            };
            let take = move |batch: &mut Vec<u64>| {
                let mut queue = other.lock().unwrap_or_else(PoisonError::into_inner);
                let count = queue.len().min(BATCH);
                batch.extend(queue.drain(..count));
                count
            };
            run_batches(items, send, take);
        }
        QueueKind::Channel => {
            let (sender, receiver) = sync_channel(ROOM);
            let send = move |item| match sender.try_send(item) {
                Ok(()) => true,
                Err(TrySendError::Full(_)) => false,
                Err(TrySendError::Disconnected(_)) => unreachable!("the receiver takes all items"),
            };
            let take = move || receiver.try_recv().ok();
            run(items, send, take);
        }
    }
    items as f64 / begun.elapsed().as_secs_f64()
}

type Locked = Arc<Mutex<VecDeque<u64>>>;

fn locked() -> (Locked, Locked) {
    let queue = Arc::new(Mutex::new(VecDeque::with_capacity(ROOM)));
    (Arc::clone(&queue), queue)
}

/// Sends the numbers below `items` one by one, and checks that they come in order.
fn run(
    items: u64,
    mut send: impl FnMut(u64) -> bool + Send,
    mut take: impl FnMut() -> Option<u64>,
) {
    thread::scope(|scope| {
        scope.spawn(move || {
            for item in 0..items {
                while !send(item) {
                    thread::yield_now();
                }
            }
        });
        for due in 0..items {
            let item = loop {
                match take() {
                    Some(item) => break item,
                    None => thread::yield_now(),
                }
            };
            assert_eq!(item, due, "a queue lost, repeated or reordered an item");
        }
    });
}

/// The same in batches.
fn run_batches(
    items: u64,
    mut send: impl FnMut(&mut Vec<u64>) -> usize + Send,
    mut take: impl FnMut(&mut Vec<u64>) -> usize,
) {
    thread::scope(|scope| {
        scope.spawn(move || {
            let (mut batch, mut next) = (Vec::with_capacity(BATCH), 0);
            while next < items || !batch.is_empty() {
                let end = items.min(next + (BATCH - batch.len()) as u64);
                batch.extend(next..end);
                next = end;
                if send(&mut batch) == 0 {
                    thread::yield_now();
                }
            }
        });
        let (mut batch, mut due) = (Vec::with_capacity(BATCH), 0);
        while due < items {
            if take(&mut batch) == 0 {
                thread::yield_now();
            }
            for item in batch.drain(..) {
                assert_eq!(item, due, "a queue lost, repeated or reordered an item");
                due += 1;
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_queue_brings_every_item_and_has_its_ratio_to_the_ring() {
        // No multiple of a batch.
        let rates = |queue| [rate(queue, 10_007), rate(queue, 10_007)];
        let runs = |queue| CaseRuns { runs: (0..).zip(rates(queue)).collect(), refused: None };
        let all = HandOver::of(&QueueKind::ALL.map(runs));
        assert_eq!(all.len(), QueueKind::ALL.len());
        for one in all {
            assert!(one.items_per_s.len() == 2 && one.items_per_s.iter().all(|rate| *rate > 0.0));
            assert_eq!(one.ring_to_this.is_some(), one.queue != one.queue.ring(), "{one:?}");
        }
    }
}
