//! The queue of tags from a writer to one reader, on any two threads.
//!
//! A [growing](millstream_ring::growing) queue, so a tag always fits. It needs no bound of its own:
//! it holds at most the tags on the items that fit into the sample ring.

use super::Tag;
use millstream_ring::{Padded, growing};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Makes a queue that begins with room for `capacity` tags.
pub(crate) fn queue(capacity: usize) -> (TagSender, TagReceiver) {
    let news = TagChangeFlag::default();
    let (sender, receiver) = growing::queue(capacity);
    (TagSender { sender, news: news.clone() }, TagReceiver { receiver, news })
}

/// The number of tags ever sent on a connection; a change means that the queue is to be polled.
#[derive(Clone, Debug, Default)]
pub struct TagChangeFlag(Arc<Padded<AtomicU64>>);

impl TagChangeFlag {
    /// Returns a count that includes the tags of every item seen before.
    pub(crate) fn sent(&self) -> u64 {
        // The item was published after its tags.
        self.0.load(Ordering::Relaxed)
    }
}

/// The writer's end.
#[derive(Debug)]
pub(crate) struct TagSender {
    sender: growing::UnboundedSender<Tag>,
    news: TagChangeFlag,
}

impl TagSender {
    /// Sends a tag. A tag for a reader that is gone is discarded.
    pub(crate) fn push(&mut self, tag: Tag) {
        if self.sender.push(tag).is_ok() {
            // Only one thread writes it.
            let sent = self.news.sent() + 1;
            self.news.0.store(sent, Ordering::Relaxed);
        }
    }
}

/// The reader's end.
#[derive(Debug)]
pub(crate) struct TagReceiver {
    receiver: growing::UnboundedReceiver<Tag>,
    pub(super) news: TagChangeFlag,
}

impl TagReceiver {
    /// Takes the oldest tag.
    pub(crate) fn pop(&mut self) -> Option<Tag> {
        self.receiver.pop()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tag::Key;

    #[test]
    fn news_count_what_was_sent_to_somebody() {
        let tag = |offset| Tag { offset, key: Key::new("key"), value: 1u64.into() };
        let (mut sender, mut receiver) = queue(1);
        let news = receiver.news.clone();
        (0..3).for_each(|offset| sender.push(tag(offset)));
        assert_eq!(news.sent(), 3);
        (0..3).for_each(|offset| assert_eq!(receiver.pop(), Some(tag(offset))));
        drop(receiver);
        sender.push(tag(3));
        assert_eq!(news.sent(), 3);
    }
}
