//! Views of the ends of a buffer, without access to the ends themselves.

use super::{Position, Shared};
use crate::sync::{Arc, Ordering};

/// The state of a producer, for schedulers and statistics. It grants nothing, and may
/// [cut](Self::cut) the producer's grant.
///
/// On the producer's own thread the answers are at least as old as the producer's next poll.
#[derive(Clone, Debug)]
pub struct ProducerView {
    pub(super) shared: Arc<Shared>,
}

impl ProducerView {
    /// Returns the bytes that may be written.
    #[must_use]
    #[inline]
    pub fn room(&self) -> u64 {
        let position = self.position();
        self.shared.limit(position) - position
    }

    /// Returns [`room`](Self::room) and [`is_abandoned`](Self::is_abandoned) in one poll.
    #[inline]
    #[must_use]
    pub fn survey(&self) -> (u64, bool) {
        let position = self.position();
        let (limit, is_abandoned) = self.shared.look(position);
        (limit - position, is_abandoned)
    }

    /// Limits the producer's room to `bytes` from here on, until the next call. On the producer's
    /// own thread only.
    #[inline]
    pub fn cut(&self, bytes: u64) {
        let cut = self.position().saturating_add(bytes);
        self.shared.cuts[0].store(cut, Ordering::Relaxed);
    }

    /// Whether `consumer` is the only consumer of this buffer.
    #[must_use]
    pub fn feeds_only(&self, consumer: &ConsumerView) -> bool {
        self.shared.consumers.len() == 1 && Arc::ptr_eq(&self.shared, &consumer.shared)
    }

    /// Whether every consumer has consumed everything that was produced. For the thread of all
    /// ends.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        let position = self.position();
        let consumers = &self.shared.consumers;
        consumers.iter().all(|side| side.position.load(Ordering::Relaxed) == position)
    }

    /// See [`Producer::is_abandoned`](super::Producer::is_abandoned).
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        self.shared.is_abandoned()
    }

    #[inline]
    fn side(&self) -> &Position {
        &self.shared.producer
    }
}

/// The state of a consumer; like [`ProducerView`].
#[derive(Clone, Debug)]
pub struct ConsumerView {
    pub(super) shared: Arc<Shared>,
    pub(super) index: usize,
}

impl ConsumerView {
    /// Returns the bytes that may be read, and whether they are the last.
    #[must_use]
    #[inline]
    pub fn available(&self) -> (u64, bool) {
        let producer = &self.shared.producer;
        // Its own position first, so that it is never ahead of the producer's, from any thread; the
        // close before the producer's position, which then is the final one.
        let position = self.side().position.load(Ordering::Acquire);
        let ended = producer.closed.load(Ordering::Acquire);
        (producer.position.load(Ordering::Acquire) - position, ended)
    }

    /// Limits the consumer to `bytes` from here on, until the next call; so a call sees only the
    /// items that were there at its decision. On the consumer's own thread only.
    #[inline]
    pub fn cut(&self, bytes: u64) {
        let cut = self.position().saturating_add(bytes);
        self.shared.cuts[self.index + 1].store(cut, Ordering::Relaxed);
    }

    #[inline]
    fn side(&self) -> &Position {
        &self.shared.consumers[self.index]
    }
}

/// What both views tell of their end.
macro_rules! of_either_end {
    ($View:ident) => {
        impl $View {
            /// Returns the bytes that passed this end so far.
            #[inline]
            #[must_use]
            pub fn position(&self) -> u64 {
                self.side().position.load(Ordering::Relaxed)
            }

            /// Sets the amount that this end wants.
            pub fn want(&self, bytes: u64) {
                self.side().wanted.store(bytes, Ordering::Relaxed);
            }

            /// Returns the amount that this end wants.
            #[inline]
            #[must_use]
            pub fn wanted(&self) -> u64 {
                self.side().wanted.load(Ordering::Relaxed)
            }

            /// Whether both are views of one end.
            #[must_use]
            pub fn is_same(&self, other: &Self) -> bool {
                std::ptr::eq(self.side(), other.side())
            }

            /// Returns the bytes that fit.
            #[must_use]
            pub fn capacity(&self) -> u64 {
                self.shared.capacity
            }
        }
    };
}

of_either_end!(ProducerView);
of_either_end!(ConsumerView);
