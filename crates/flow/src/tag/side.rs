//! The tags of one port.

use super::Tag;
use super::TagShift;
use super::queue::{TagChangeFlag, TagReceiver, TagSender};
use super::shift::{Conversion, FOLLOWED, Followed};
use std::collections::VecDeque;

/// The rank of a block's own tags among those of one item: behind the forwarded ones.
pub(crate) const OWN_RANK: u16 = u16::MAX;

/// The result of a poll for tags.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Fetched {
    /// There are tags that were not forwarded yet.
    pub(crate) new: bool,
    /// There is a tag of an item that cannot be seen yet.
    pub(crate) ahead: bool,
}

/// The tags on their way into an input.
#[derive(Debug, Default)]
pub(crate) struct TagsIn {
    receiver: Option<TagReceiver>,
    /// A tag that was received for an item not seen yet.
    ahead: Option<Tag>,
    /// Tags on items that were seen and are not consumed yet.
    window: VecDeque<Tag>,
    /// The number of these, from the front, that were forwarded.
    forwarded: usize,
}

impl TagsIn {
    pub(crate) fn attach(&mut self, receiver: TagReceiver) {
        self.receiver = Some(receiver);
        self.window.reserve(super::QUEUE_TAGS);
    }

    pub(crate) fn news(&self) -> Option<TagChangeFlag> {
        self.receiver.as_ref().map(|receiver| receiver.news.clone())
    }

    /// Stops receiving.
    pub(crate) fn close(&mut self) {
        *self = Self::default();
    }

    /// Fetches the tags of items before `end`, which must be in the ring.
    pub(crate) fn fetch(&mut self, end: u64) -> Fetched {
        if let Some(receiver) = &mut self.receiver {
            while let Some(tag) = self.ahead.take().or_else(|| receiver.pop()) {
                if tag.offset >= end {
                    self.ahead = Some(tag);
                    break;
                }
                self.window.push_back(tag);
            }
        }
        let new = self.forwarded < self.window.len();
        Fetched { new, ahead: self.ahead.is_some() }
    }

    /// Whether every fetched tag is consumed.
    pub(crate) fn is_empty(&self) -> bool {
        self.window.is_empty() && self.ahead.is_none()
    }

    /// Returns each fetched tag once.
    pub(crate) fn forward(&mut self) -> impl Iterator<Item = Tag> + '_ {
        let from = std::mem::replace(&mut self.forwarded, self.window.len());
        self.window.range(from..).copied()
    }

    /// Drops the tags of items before `position`.
    #[inline]
    pub(crate) fn consumed(&mut self, position: u64) {
        if !self.window.is_empty() {
            self.forget(position);
        }
    }

    fn forget(&mut self, position: u64) {
        while self.window.front().is_some_and(|tag| tag.offset < position) {
            self.window.pop_front();
            self.forwarded = self.forwarded.saturating_sub(1);
        }
    }

    /// Returns the fetched tags of items from `position`, the first that is not consumed, to `end`.
    pub(crate) fn seen(&self, position: u64, end: u64) -> Tags<'_> {
        Tags { tags: self.window.iter(), position, end }
    }
}

/// The tags of a slice, in order: the index of the item, and the tag.
///
/// From [`In::tags`](crate::In::tags).
#[derive(Clone, Debug)]
pub struct Tags<'a> {
    tags: std::collections::vec_deque::Iter<'a, Tag>,
    position: u64,
    end: u64,
}

impl Iterator for Tags<'_> {
    type Item = (usize, Tag);

    fn next(&mut self) -> Option<Self::Item> {
        let tag = self.tags.next().filter(|tag| tag.offset < self.end)?;
        Some(((tag.offset - self.position) as usize, *tag))
    }
}

/// The tags on their way out of an output.
#[derive(Debug, Default)]
pub(crate) struct TagsOut {
    /// One for each reader.
    senders: Vec<TagSender>,
    /// Tags on items that are not produced yet: sorted by item, and within an item by rank.
    held: VecDeque<HeldTag>,
    /// For each input the tag that was forwarded and sent last, as it was there, of each key in
    /// [`FOLLOWED`].
    said: Vec<Followed>,
}

/// The inputs of a block that need no allocation when their first tag is sent.
const INPUTS: usize = 4;

/// A tag that waits for its item.
#[derive(Debug)]
struct HeldTag {
    tag: Tag,
    rank: u16,
    /// The tag of the input that it was forwarded from.
    origin: Tag,
    /// It was sent before, and says now what holds behind a message.
    is_anew: bool,
}

impl TagsOut {
    pub(crate) fn open(&mut self, senders: Vec<TagSender>) {
        self.senders = senders;
        self.held.reserve(super::QUEUE_TAGS);
        self.said.reserve(INPUTS);
    }

    /// Takes a tag for an item from `position` on, the first that is not produced yet; a tag for an
    /// earlier item (from a wrong rate) moves to `position`. Tags of one item are sorted by `rank`,
    /// then by arrival. On input `rank` it was the tag `origin`.
    pub(crate) fn hold(&mut self, tag: Tag, (rank, origin): (u16, Tag), position: u64) {
        if self.senders.is_empty() {
            return;
        }
        let tag = Tag { offset: tag.offset.max(position), ..tag };
        let place = (tag.offset, rank);
        // Nearly always the end of the queue.
        let behind = self.held.iter().rev();
        let later = behind.take_while(|held| (held.tag.offset, held.rank) > place).count();
        self.held.insert(self.held.len() - later, HeldTag { tag, rank, origin, is_anew: false });
    }

    /// Follows a block that `was` another until item `position`, for the tags of input `rank`:
    /// `shift` is its rule `now`. Says on that item what is not true any more as it was said last,
    /// and moves the tags that wait, in their order.
    pub(crate) fn turn(
        &mut self,
        (rank, position): (u16, u64),
        shift: TagShift,
        (was, now): (Conversion, Conversion),
    ) {
        let said = self.said.get(usize::from(rank)).copied().unwrap_or_default();
        let mut shift = shift.afresh();
        said.iter().flatten().for_each(|tag| shift.learn(tag));
        for tag in shift.outdated(said, (was, now)) {
            // Unless it waits already, said anew by an earlier message.
            if !self.held.iter().any(|held| (held.rank, held.origin) == (rank, tag)) {
                self.held.push_front(HeldTag { tag, rank, origin: tag, is_anew: true });
            }
        }
        let held = self.held.iter().filter(|held| held.rank == rank);
        held.for_each(|held| shift.learn(&held.origin));
        for held in self.held.iter_mut().filter(|held| held.rank == rank) {
            let (origin, delay, shift_hz) = (held.origin, now.delay, now.shift_hz);
            held.tag = match held.is_anew {
                true => shift.said_at(position, origin, delay, shift_hz),
                false => shift.moved_behind(position, origin, delay, shift_hz),
            };
        }
        self.held.make_contiguous().sort_by_key(|held| (held.tag.offset, held.rank));
    }

    /// Whether no tag waits for its item.
    pub(crate) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Adds a tag of the block itself.
    pub(crate) fn put(&mut self, tag: Tag, position: u64) {
        self.hold(tag, (OWN_RANK, tag), position);
    }

    /// Sends the tags of items before `end`. Called before those items are published.
    #[inline]
    pub(crate) fn publish(&mut self, end: u64) {
        if !self.held.is_empty() {
            self.hand_over(end);
        }
    }

    fn hand_over(&mut self, end: u64) {
        while self.held.front().is_some_and(|held| held.tag.offset < end) {
            let Some(HeldTag { tag, rank, origin, .. }) = self.held.pop_front() else { break };
            self.senders.iter_mut().for_each(|sender| sender.push(tag));
            let followed = FOLLOWED.iter().position(|key| *key == origin.key);
            if let Some(index) = followed.filter(|_| rank != OWN_RANK) {
                let input = usize::from(rank);
                self.said.resize(self.said.len().max(input + 1), Followed::default());
                self.said[input][index] = Some(origin);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tag::Key;
    use crate::tag::queue::queue;

    const A: Key = Key::new("a");

    fn tag(offset: u64, value: u64) -> Tag {
        Tag { offset, key: A, value: value.into() }
    }

    fn connected() -> (TagsOut, TagsIn) {
        let (sender, receiver) = queue(2);
        let (mut out, mut input) = (TagsOut::default(), TagsIn::default());
        out.open(vec![sender]);
        input.attach(receiver);
        (out, input)
    }

    fn seen(input: &TagsIn, position: u64, end: u64) -> Vec<(usize, u64)> {
        let tags = input.seen(position, end);
        tags.map(|(index, tag)| (index, tag.value.as_count().unwrap())).collect()
    }

    #[test]
    fn a_tag_appears_with_its_item_and_goes_with_it() {
        let (mut out, mut input) = connected();
        (0..10).for_each(|n| out.hold(tag(n * 10, n), (0, tag(n * 10, n)), 0));
        out.publish(31);
        assert!(input.fetch(11).new);
        assert_eq!(seen(&input, 0, 11), [(0, 0), (10, 1)]);
        assert_eq!(seen(&input, 0, 10), [(0, 0)]);
        input.consumed(5);
        assert!(!input.fetch(1000).ahead);
        assert_eq!(seen(&input, 5, 1000), [(5, 1), (15, 2), (25, 3)]);
    }

    #[test]
    fn each_tag_is_forwarded_once() {
        let (mut out, mut input) = connected();
        (0..4).for_each(|n| out.hold(tag(n, n), (0, tag(n, n)), 0));
        out.publish(4);
        assert_eq!(input.fetch(2), Fetched { new: true, ahead: true });
        assert_eq!(input.forward().count(), 2);
        assert_eq!(input.fetch(2), Fetched { new: false, ahead: true });
        input.consumed(1);
        assert_eq!(input.fetch(4), Fetched { new: true, ahead: false });
        assert_eq!(input.forward().map(|tag| tag.offset).collect::<Vec<_>>(), [2, 3]);
    }

    #[test]
    fn tags_of_one_item_stand_by_rank_whenever_they_came() {
        let (mut out, mut input) = connected();
        for (offset, rank) in [(5, 1), (7, 0), (5, 0), (5, OWN_RANK), (5, 0), (1, 1)] {
            let tag = tag(offset, u64::from(rank));
            out.hold(tag, (rank, tag), 3);
        }
        out.publish(100);
        input.fetch(100);
        let own = u64::from(OWN_RANK);
        assert_eq!(seen(&input, 0, 100), [(3, 1), (5, 0), (5, 0), (5, 1), (5, own), (7, 0)]);
    }
}
