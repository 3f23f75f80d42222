//! The way of tags from a writer to one reader, on any two threads.
//!
//! A queue is a lock-free ring; when it is full the writer goes on in one twice as long, and
//! the reader follows when it has emptied the old one. So a tag always has a place, and after
//! the first bursts nothing allocates or locks. It needs no bound of its own: tags travel
//! beside items, so a queue holds at most what the writer put on the items that fit into the
//! sample ring.

use super::Tag;
use millstream_ring::{Padded, spsc};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Where the reader finds the next ring once this one has ended.
type Next = Arc<Mutex<Option<Box<TagReceiver>>>>;

/// Makes a queue that begins with room for `capacity` tags.
pub(crate) fn queue(capacity: usize) -> (TagSender, TagReceiver) {
    let (news, next) = (TagNews::default(), Next::default());
    let (sender, receiver) = spsc::channel(capacity);
    (
        TagSender { sender, capacity, next: Arc::clone(&next), news: news.clone() },
        TagReceiver { receiver, next, news },
    )
}

/// How many tags were ever sent on a connection, for whoever decides when to look at them.
#[derive(Clone, Debug, Default)]
pub struct TagNews(Arc<Padded<AtomicU64>>);

impl TagNews {
    /// At least those of every item that was seen before.
    pub(crate) fn sent(&self) -> u64 {
        // The item was published behind its tags.
        self.0.load(Ordering::Relaxed)
    }
}

/// The writer's end.
pub(crate) struct TagSender {
    sender: spsc::Sender<Tag>,
    capacity: usize,
    next: Next,
    news: TagNews,
}

impl TagSender {
    /// Hands a tag over. One for a reader that is gone is discarded.
    pub(crate) fn push(&mut self, tag: Tag) {
        if let Err(tag) = self.sender.push(tag) {
            if self.sender.is_abandoned() {
                return;
            }
            self.grow(tag);
        }
        // One thread writes it.
        let sent = self.news.sent() + 1;
        self.news.0.store(sent, Ordering::Release);
    }

    #[cold]
    fn grow(&mut self, tag: Tag) {
        self.capacity *= 2;
        let (mut sender, receiver) = spsc::channel(self.capacity);
        let pushed = sender.push(tag);
        debug_assert!(pushed.is_ok(), "a new ring has room");
        let next = Next::default();
        let rest = TagReceiver { receiver, next: Arc::clone(&next), news: self.news.clone() };
        *self.next.lock() = Some(Box::new(rest));
        // Ends the old ring, now that its successor is in place.
        (self.sender, self.next) = (sender, next);
    }
}

/// The reader's end.
pub(crate) struct TagReceiver {
    receiver: spsc::Receiver<Tag>,
    next: Next,
    pub(super) news: TagNews,
}

impl TagReceiver {
    /// The oldest tag.
    pub(crate) fn pop(&mut self) -> Option<Tag> {
        loop {
            if let Some(tag) = self.receiver.pop() {
                return Some(tag);
            }
            if !self.receiver.is_ended() {
                return None;
            }
            let next = self.next.lock().take()?;
            *self = *next;
        }
    }
}

impl std::fmt::Debug for TagSender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TagSender").field("capacity", &self.capacity).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for TagReceiver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TagReceiver").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tag::Key;

    const KEY: Key = Key::new("key");

    fn tag(offset: u64) -> Tag {
        Tag { offset, key: KEY, value: offset.into() }
    }

    #[test]
    fn a_queue_grows_and_keeps_the_order() {
        let (mut sender, mut receiver) = queue(1);
        let mut wanted = 0;
        for burst in [1, 2, 3, 100, 7] {
            let first = wanted;
            (first..first + burst).for_each(|offset| sender.push(tag(offset)));
            for _ in 0..burst.min(5) {
                assert_eq!(receiver.pop(), Some(tag(wanted)));
                wanted += 1;
            }
            while let Some(next) = receiver.pop() {
                assert_eq!(next, tag(wanted));
                wanted += 1;
            }
            assert_eq!(wanted, first + burst);
        }
        drop(sender);
        assert_eq!(receiver.pop(), None);
    }

    #[test]
    fn both_threads_agree_on_every_tag() {
        const TAGS: u64 = 200_000;
        let (mut sender, mut receiver) = queue(2);
        let writer = std::thread::spawn(move || (0..TAGS).for_each(|n| sender.push(tag(n))));
        let mut wanted = 0;
        while wanted < TAGS {
            if let Some(next) = receiver.pop() {
                assert_eq!(next, tag(wanted));
                wanted += 1;
            } else {
                std::thread::yield_now();
            }
        }
        writer.join().unwrap();
        assert_eq!(receiver.pop(), None);
    }

    #[test]
    fn a_reader_that_is_gone_does_not_make_a_queue_grow() {
        let (mut sender, receiver) = queue(2);
        drop(receiver);
        (0..1000).for_each(|offset| sender.push(tag(offset)));
        assert_eq!(sender.capacity, 2);
    }
}
