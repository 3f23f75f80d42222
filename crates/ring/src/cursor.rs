//! Positions of one producer and its consumers in a circular buffer of bytes (or of whole items,
//! where the buffer is an array of them: then read "items" for "bytes").
//!
//! ```text
//!        consumed (slowest open reader)      produced
//!               │                               │
//!   ────────────▼───────────────────────────────▼──────────────────▶ bytes since the start
//!    room again │  readable, owned by consumers │ room, owned by the producer
//!               └───────────── at most `capacity` apart ────────────▶
//! ```
//!
//! A position counts bytes since the start and never wraps (2⁶⁴ bytes at 10 GB/s last 58 years), so
//! *empty* and *full* need no spare slot and an item of any size may straddle the end of the
//! buffer. Each position has one writing thread. The other side keeps a cached copy and polls again
//! only when it wants more than the copy grants.
//!
//! **Ownership.** Bytes in `consumed..produced` are the consumers' to read; everything else is the
//! producer's to write. A `Release` store of a position hands bytes over, the `Acquire` load on the
//! other side receives them. Closing is one way and hands everything over: a closed end grants
//! nothing, whatever is called afterwards.
//!
//! **Memory.** An end grants by its position alone, so a user that guards memory with cursors
//! derives the address from [`Producer::position`] or [`Consumer::position`], without counts of its
//! own.

mod view;

pub use view::{ConsumerView, ProducerView};

use crate::pad::Padded;
use crate::sync::{Arc, AtomicBool, AtomicU64, Ordering};
use std::cell::Cell;

/// One side's published position, alone on its cache lines.
#[derive(Debug)]
struct Position {
    position: AtomicU64,
    closed: AtomicBool,
    /// The amount that its owner wants before it acts; for views only.
    wanted: AtomicU64,
}

impl Position {
    fn new() -> Padded<Self> {
        Padded(Self {
            position: AtomicU64::new(0),
            closed: AtomicBool::new(false),
            wanted: AtomicU64::new(1),
        })
    }
}

#[derive(Debug)]
struct Shared {
    capacity: u64,
    producer: Padded<Position>,
    consumers: Box<[Padded<Position>]>,
    /// Positions that a side may not pass for now: the producer's, then each consumer's. Only the
    /// thread of that side touches them, so they are apart from the shared positions.
    cuts: Box<[Padded<AtomicU64>]>,
}

impl Shared {
    /// Returns the position up to which the producer at `position` may write.
    #[inline]
    fn limit(&self, position: u64) -> u64 {
        self.look(position).0
    }

    fn is_abandoned(&self) -> bool {
        let sides = &self.consumers;
        !sides.is_empty() && sides.iter().all(|side| side.closed.load(Ordering::Acquire))
    }

    /// Returns the limit and whether no consumer is open, in one poll.
    #[inline]
    fn look(&self, position: u64) -> (u64, bool) {
        let (mut limit, mut open) = (u64::MAX, self.consumers.is_empty());
        for side in &self.consumers {
            // Acquire: a closing or advancing consumer did all its reads before this.
            if !side.closed.load(Ordering::Acquire) {
                limit = limit.min(side.position.load(Ordering::Acquire) + self.capacity);
                open = true;
            }
        }
        // Without open readers the whole buffer is room.
        (limit.min(position + self.capacity), !open)
    }
}

/// Makes the producer and `consumers` consumers of a buffer of `capacity` bytes.
///
/// Every consumer sees every byte (broadcast); the slowest open one delays the producer.
#[must_use]
pub fn cursors(capacity: u64, consumers: usize) -> (Producer, Vec<Consumer>) {
    let shared = Arc::new(Shared {
        capacity,
        producer: Position::new(),
        consumers: (0..consumers).map(|_| Position::new()).collect(),
        cuts: (0..=consumers).map(|_| Padded(AtomicU64::new(u64::MAX))).collect(),
    });
    let consumers = (0..consumers)
        .map(|index| Consumer {
            shared: Arc::clone(&shared),
            index,
            position: 0,
            produced: Cell::new(0),
            ended: Cell::new(false),
        })
        .collect();
    (Producer { shared, position: 0, limit: capacity, closed: false }, consumers)
}

/// The writing side. Dropping it closes it.
#[derive(Debug)]
pub struct Producer {
    shared: Arc<Shared>,
    position: u64,
    /// Cached: the position that may not be passed.
    limit: u64,
    closed: bool,
}

impl Producer {
    /// Returns the bytes that may be written now, after a poll of the consumers.
    #[inline]
    pub fn room(&mut self) -> u64 {
        if self.closed {
            return 0;
        }
        let cut = self.shared.cuts[0].load(Ordering::Relaxed).max(self.position);
        self.limit = self.shared.limit(self.position).min(cut);
        self.limit - self.position
    }

    /// Returns the bytes produced since the start.
    #[inline]
    #[must_use]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Returns the bytes that may certainly be written, without a poll of the consumers.
    #[inline]
    #[must_use]
    pub fn granted(&self) -> u64 {
        self.limit - self.position
    }

    /// Hands the next `bytes` to the consumers.
    ///
    /// # Panics
    /// If that is more than the room last reported; once closed there is no room.
    #[inline]
    pub fn advance(&mut self, bytes: u64) {
        assert!(bytes <= self.limit - self.position, "produced more than the room reported");
        self.position += bytes;
        self.shared.producer.position.store(self.position, Ordering::Release);
    }

    /// Whether there are consumers and every one of them is closed: no byte written from now on
    /// will be read.
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        self.shared.is_abandoned()
    }

    /// Whether `consumer` is the only consumer of this buffer.
    #[inline]
    #[must_use]
    pub fn feeds_only(&self, consumer: &Consumer) -> bool {
        self.shared.consumers.len() == 1 && Arc::ptr_eq(&self.shared, &consumer.shared)
    }

    /// Counts bytes as produced and consumed that bypassed the buffer: the owner of this end gave
    /// them directly to the owner of the other.
    ///
    /// # Panics
    /// If `consumer` is not the only one of this buffer, or has not consumed everything.
    #[inline]
    pub fn count_bypassed(&mut self, consumer: &mut Consumer, bytes: u64) {
        let drained = self.feeds_only(consumer) && consumer.position == self.position;
        assert!(drained, "bytes can pass a buffer only if it is empty and has these two ends");
        self.position += bytes;
        consumer.position = self.position;
        // Nothing is granted before the next poll.
        self.limit = self.position;
        consumer.produced.set(self.position);
        self.shared.cuts.iter().for_each(|cut| cut.store(u64::MAX, Ordering::Relaxed));
        self.shared.producer.position.store(self.position, Ordering::Release);
        consumer.side().position.store(self.position, Ordering::Release);
    }

    /// Returns a view of this side.
    #[must_use]
    pub fn view(&self) -> ProducerView {
        ProducerView { shared: Arc::clone(&self.shared) }
    }

    /// Ends the stream. There is no room from here on.
    pub fn close(&mut self) {
        self.closed = true;
        self.limit = self.position;
        self.shared.producer.closed.store(true, Ordering::Release);
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        self.close();
    }
}

/// A reading side. Dropping it closes it.
#[derive(Debug)]
pub struct Consumer {
    shared: Arc<Shared>,
    index: usize,
    position: u64,
    /// Cached: the producer's position.
    produced: Cell<u64>,
    /// Whether `produced` is final.
    ended: Cell<bool>,
}

impl Consumer {
    /// Returns the bytes that may be read now, after a poll of the producer.
    #[inline]
    pub fn available(&self) -> u64 {
        if !self.ended.get() {
            let producer = &self.shared.producer;
            // In this order: a position that is read after a close is the final one.
            let ended = producer.closed.load(Ordering::Acquire);
            let produced = producer.position.load(Ordering::Acquire);
            let cut = self.shared.cuts[self.index + 1].load(Ordering::Relaxed).max(self.position);
            self.produced.set(produced.min(cut));
            self.ended.set(ended && produced <= cut);
        }
        self.produced.get() - self.position
    }

    /// Returns the bytes consumed since the start.
    #[inline]
    #[must_use]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Returns the bytes that may certainly be read, without a poll of the producer.
    #[inline]
    #[must_use]
    pub fn granted(&self) -> u64 {
        self.produced.get() - self.position
    }

    /// Whether `bytes` may be read now; polls the producer only if the cached answer is no.
    pub fn has(&self, bytes: u64) -> bool {
        self.granted() >= bytes || self.available() >= bytes
    }

    /// Whether the last poll found the producer closed: the bytes available then are the last. It
    /// does not poll again, so it agrees with the current slice.
    #[inline]
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.ended.get()
    }

    /// Hands the next `bytes` back to the producer.
    ///
    /// # Panics
    /// If that is more than was last reported available.
    #[inline]
    pub fn advance(&mut self, bytes: u64) {
        assert!(
            bytes <= self.produced.get() - self.position,
            "consumed more than was reported available"
        );
        self.position += bytes;
        self.side().position.store(self.position, Ordering::Release);
    }

    /// Returns a view of this side.
    #[must_use]
    pub fn view(&self) -> ConsumerView {
        ConsumerView { shared: Arc::clone(&self.shared), index: self.index }
    }

    /// Stops reading; the producer no longer waits for this consumer.
    pub fn close(&mut self) {
        // Nothing is readable from here on, whatever is polled: the producer may write there.
        self.ended.set(true);
        self.produced.set(self.position);
        self.side().closed.store(true, Ordering::Release);
    }

    #[inline]
    fn side(&self) -> &Position {
        &self.shared.consumers[self.index]
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        self.close();
    }
}
