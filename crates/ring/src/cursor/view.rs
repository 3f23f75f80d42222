//! The ends of a buffer, seen without them.

use super::{Consumer, Position, Producer, Shared};
use crate::sync::{Arc, Ordering};

/// Where a producer stands, seen without it: for whoever decides when its owner is called, and for
/// whoever counts. It grants nothing, and may [cut](Self::cut) what is granted.
///
/// On the producer's own thread the answers are at least as old as what the producer sees next.
#[derive(Clone, Debug)]
pub struct ProducerView {
    pub(super) shared: Arc<Shared>,
}

impl ProducerView {
    /// Bytes produced so far.
    #[inline]
    #[must_use]
    pub fn position(&self) -> u64 {
        self.shared.producer.position.load(Ordering::Relaxed)
    }

    /// Bytes that may be written.
    #[must_use]
    #[inline]
    pub fn room(&self) -> u64 {
        let position = self.position();
        self.shared.limit(position) - position
    }

    /// [`room`](Self::room) and [`is_abandoned`](Self::is_abandoned) in one look.
    #[inline]
    #[must_use]
    pub fn survey(&self) -> (u64, bool) {
        let position = self.position();
        let (limit, is_abandoned) = self.shared.look(position);
        (limit - position, is_abandoned)
    }

    /// Lets the producer see at most `bytes` of room from here on, until the next such word. On
    /// the producer's own thread only.
    #[inline]
    pub fn cut(&self, bytes: u64) {
        let cut = self.position().saturating_add(bytes);
        self.shared.cuts[0].store(cut, Ordering::Relaxed);
    }

    /// Whether this buffer has one consumer, and it is that one.
    #[must_use]
    pub fn feeds_only(&self, consumer: &ConsumerView) -> bool {
        self.shared.consumers.len() == 1 && Arc::ptr_eq(&self.shared, &consumer.shared)
    }

    /// Whether everything that was produced has been consumed by everybody. For the thread of all
    /// ends.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        let position = self.position();
        let consumers = &self.shared.consumers;
        consumers.iter().all(|side| side.position.load(Ordering::Relaxed) == position)
    }

    /// Says what the producer wants.
    pub fn want(&self, bytes: u64) {
        self.shared.producer.wanted.store(bytes, Ordering::Relaxed);
    }

    /// Whether it is a view of that producer.
    #[must_use]
    pub fn is_of(&self, producer: &Producer) -> bool {
        Arc::ptr_eq(&self.shared, &producer.shared)
    }

    /// What the producer said that it wants.
    #[inline]
    #[must_use]
    pub fn wanted(&self) -> u64 {
        self.shared.producer.wanted.load(Ordering::Relaxed)
    }

    /// See [`Producer::is_abandoned`](super::Producer::is_abandoned).
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        self.shared.is_abandoned()
    }

    /// Bytes that fit.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.shared.capacity
    }
}

/// Where a consumer stands, seen without it; as [`ProducerView`].
#[derive(Clone, Debug)]
pub struct ConsumerView {
    pub(super) shared: Arc<Shared>,
    pub(super) index: usize,
}

impl ConsumerView {
    /// Bytes consumed so far.
    #[inline]
    #[must_use]
    pub fn position(&self) -> u64 {
        self.side().position.load(Ordering::Relaxed)
    }

    /// Bytes that may be read, and whether they are all that will ever come.
    #[must_use]
    #[inline]
    pub fn available(&self) -> (u64, bool) {
        let producer = &self.shared.producer;
        // Its own position first, so that it is never ahead of the producer's, from any thread;
        // the close before the producer's position, which then is the final one.
        let position = self.side().position.load(Ordering::Acquire);
        let ended = producer.closed.load(Ordering::Acquire);
        (producer.position.load(Ordering::Acquire) - position, ended)
    }

    /// Lets the consumer see at most `bytes` from here on, until the next such word; so a call
    /// can be kept to what was there when it was decided. On the consumer's own thread only.
    #[inline]
    pub fn cut(&self, bytes: u64) {
        let cut = self.position().saturating_add(bytes);
        self.shared.cuts[self.index + 1].store(cut, Ordering::Relaxed);
    }

    /// Says what the consumer wants.
    pub fn want(&self, bytes: u64) {
        self.side().wanted.store(bytes, Ordering::Relaxed);
    }

    /// Whether it is a view of that consumer.
    #[must_use]
    pub fn is_of(&self, consumer: &Consumer) -> bool {
        Arc::ptr_eq(&self.shared, &consumer.shared) && self.index == consumer.index
    }

    /// What the consumer said that it wants.
    #[inline]
    #[must_use]
    pub fn wanted(&self) -> u64 {
        self.side().wanted.load(Ordering::Relaxed)
    }

    /// Bytes that fit.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.shared.capacity
    }

    #[inline]
    fn side(&self) -> &Position {
        &self.shared.consumers[self.index]
    }
}
