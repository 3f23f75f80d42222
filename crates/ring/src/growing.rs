//! An unbounded queue between two threads: [`spsc`] rings, one after the other.
//!
//! When its ring is full the sender continues in one twice as long, and the receiver follows when
//! it has emptied the old one. So after the first bursts the queue neither allocates nor locks. The
//! user must bound its length.
//!
//! ```text
//!   sender ──▶ ring of 4 ══ next ══▶ ring of 8 ══ next ══▶ …
//!                 │ full: the successor is put in place, then the ring is ended
//!   receiver ◀────┘ empty and ended: the successor is taken
//! ```

use crate::Lock;
use crate::spsc;
use crate::sync::Arc;
use std::fmt;

/// The next ring, which the receiver takes once this one has ended.
type Next<T> = Arc<Lock<Option<Box<UnboundedReceiver<T>>>>>;

/// Makes a queue that begins with room for `capacity` items.
///
/// # Panics
/// If `capacity` is 0.
#[must_use]
pub fn queue<T: Send>(capacity: usize) -> (UnboundedSender<T>, UnboundedReceiver<T>) {
    let (sender, receiver) = spsc::channel(capacity);
    let next: Next<T> = Arc::new(Lock::default());
    let rest = UnboundedReceiver { receiver, next: Arc::clone(&next) };
    (UnboundedSender { sender, capacity, next }, rest)
}

/// The sending side. Dropping it ends the queue.
pub struct UnboundedSender<T: Send> {
    sender: spsc::Sender<T>,
    capacity: usize,
    next: Next<T>,
}

impl<T: Send> UnboundedSender<T> {
    /// Sends one item.
    ///
    /// # Errors
    /// The item itself when the receiver is gone.
    pub fn push(&mut self, item: T) -> Result<(), T> {
        match self.sender.push(item) {
            Ok(()) => Ok(()),
            Err(item) if self.sender.is_abandoned() => Err(item),
            Err(item) => {
                self.grow(item);
                Ok(())
            }
        }
    }

    /// Returns the number of items that fit into the current ring.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    #[cold]
    fn grow(&mut self, item: T) {
        self.capacity *= 2;
        let (mut sender, receiver) = spsc::channel(self.capacity);
        let pushed = sender.push(item);
        debug_assert!(pushed.is_ok(), "a new ring has room");
        let next: Next<T> = Arc::new(Lock::default());
        *self.next.lock() = Some(Box::new(UnboundedReceiver { receiver, next: Arc::clone(&next) }));
        // Ends the old ring after its successor is in place.
        (self.sender, self.next) = (sender, next);
    }
}

/// The receiving side.
pub struct UnboundedReceiver<T: Send> {
    receiver: spsc::Receiver<T>,
    next: Next<T>,
}

impl<T: Send> UnboundedReceiver<T> {
    /// Takes the oldest item.
    pub fn pop(&mut self) -> Option<T> {
        loop {
            if let Some(item) = self.receiver.pop() {
                return Some(item);
            }
            if !self.receiver.is_ended() {
                return None;
            }
            let next = self.next.lock().take()?;
            *self = *next;
        }
    }
}

impl<T: Send> fmt::Debug for UnboundedSender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").field("capacity", &self.capacity).finish_non_exhaustive()
    }
}

impl<T: Send> fmt::Debug for UnboundedReceiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_queue_grows_and_keeps_the_order() {
        let (mut sender, mut receiver) = queue(1);
        let mut wanted = 0u64;
        for burst in [1, 2, 3, 100, 7] {
            let first = wanted;
            (first..first + burst).for_each(|n| sender.push(n).unwrap());
            while let Some(next) = receiver.pop() {
                assert_eq!(next, wanted);
                wanted += 1;
            }
            assert_eq!(wanted, first + burst);
        }
        assert_eq!(sender.capacity(), 64);
        drop(sender);
        assert_eq!(receiver.pop(), None);
    }

    #[test]
    fn both_threads_agree_on_every_item() {
        let items = if cfg!(miri) { 200 } else { 200_000 };
        let (mut sender, mut receiver) = queue(2);
        let writer = std::thread::spawn(move || (0..items).for_each(|n| sender.push(n).unwrap()));
        let mut wanted = 0;
        while wanted < items {
            if let Some(next) = receiver.pop() {
                assert_eq!(next, wanted);
                wanted += 1;
            } else {
                std::thread::yield_now();
            }
        }
        writer.join().unwrap();
        assert_eq!(receiver.pop(), None);
    }

    #[test]
    fn a_receiver_that_is_gone_does_not_make_a_queue_grow() {
        let (mut sender, receiver) = queue(2);
        drop(receiver);
        // The sender may notice it only when the ring is full.
        let refused = (0..1000).filter(|n| sender.push(*n) == Err(*n)).count();
        assert!(refused >= 998, "{refused}");
        assert_eq!(sender.capacity(), 2);
    }

    #[test]
    fn what_has_been_grown_is_not_taken_again() {
        let (mut sender, mut receiver) = queue(2);
        (0..8).for_each(|n| sender.push(n).unwrap());
        while receiver.pop().is_some() {}
        let (capacity, before) = (sender.capacity(), crate::locks_taken());
        for n in 0..1000 {
            sender.push(n).unwrap();
            assert_eq!(receiver.pop(), Some(n));
        }
        assert_eq!((sender.capacity(), crate::locks_taken()), (capacity, before));
    }
}
