//! Forwards tags through one block.

use super::{QUEUE_TAGS, Tag, TagChangeFlag, TagRule, TagShift};
use crate::block::Block;
use crate::port::{InputPort, OutputPort, each_port};

/// Forwards the tags of one block, before each of its calls. Without tags it costs one load for
/// each input.
#[derive(Debug, Default)]
pub(crate) struct TagCarrier {
    rule: TagRule,
    /// One for each input.
    shifts: Vec<TagShift>,
    news: Vec<TagChangeFlag>,
    /// The sum of the tag counts at the last poll.
    seen: u64,
    /// A tag waits for its item.
    ahead: bool,
    /// Tags on the way from the inputs to the outputs, with their input; persistent for its
    /// capacity.
    passing: Vec<(Tag, u16)>,
}

impl TagCarrier {
    /// Makes the carrier of a block whose ports are connected.
    pub(crate) fn of(block: &mut dyn Block) -> Self {
        let mut news = Vec::new();
        let mut shifts = Vec::new();
        let (rate, shift_hz) = (block.rate(), block.band_shift_hz());
        let input = |_: &str, port: &mut dyn InputPort| {
            news.extend(port.tag_news());
            let mut shift = TagShift::new(rate);
            shift.turn(rate, (0, 0), shift_hz);
            shifts.push(shift);
        };
        each_port(block, input, |_, _| {});
        let passing = Vec::with_capacity(QUEUE_TAGS);
        Self { rule: block.tag_rule(), shifts, news, passing, ..Self::default() }
    }

    /// Moves the tags of the items that the block can see now into its inputs, and, if the rule
    /// says so, to its outputs. The items must have been polled before, and the block must not see
    /// more of them in its call.
    #[inline]
    pub(crate) fn carry(&mut self, block: &mut dyn Block) {
        let sent = self.news.iter().map(TagChangeFlag::sent).sum();
        if sent != self.seen || self.ahead {
            self.seen = sent;
            self.fetch(block);
        }
    }

    /// Whether [`carry`](Self::carry) has no work.
    #[inline]
    pub(crate) fn is_quiet(&self) -> bool {
        !self.ahead && self.news.iter().map(TagChangeFlag::sent).sum::<u64>() == self.seen
    }

    /// Follows a block that a message may have changed: its outputs get tags with what is true
    /// from the next item on.
    #[cold]
    pub(crate) fn follow(&mut self, block: &mut dyn Block) {
        if self.rule != TagRule::Forward {
            return;
        }
        let (rate, delay, shift_hz) = (block.rate(), block.delay(), block.band_shift_hz());
        let mut written = 0;
        let see = |_: &str, port: &mut dyn OutputPort| {
            written = port.view().map_or(0, |view| view.position());
        };
        each_port(block, |_, _| {}, see);
        let Self { shifts, passing, .. } = self;
        let mut shifts = shifts.iter_mut().zip(0..);
        let turn = |_: &str, port: &mut dyn InputPort| {
            let Some((shift, input)) = shifts.next() else { return };
            let read = port.view().map_or(0, |view| view.position());
            let tags = shift.turn(rate, (read, written), shift_hz).into_iter().flatten();
            passing.extend(tags.map(|tag| (shift.moved(tag, delay, shift_hz), input)));
        };
        each_port(block, turn, |_, _| {});
        self.hold(block);
    }

    #[cold]
    fn fetch(&mut self, block: &mut dyn Block) {
        let Self { rule, shifts, ahead, passing, .. } = self;
        let mut input = 0;
        *ahead = false;
        let fetch = |_: &str, port: &mut dyn InputPort| {
            let fetched = port.fetch_tags();
            *ahead |= fetched.ahead;
            if fetched.new && *rule == TagRule::Forward {
                port.forward_tags(&mut |tag| {
                    shifts[usize::from(input)].learn(&tag);
                    passing.push((tag, input));
                });
            }
            input += 1;
        };
        each_port(block, fetch, |_, _| {});
        if !passing.is_empty() {
            let (delay, shift_hz) = (block.delay(), block.band_shift_hz());
            for (tag, input) in &mut *passing {
                *tag = shifts[usize::from(*input)].moved(*tag, delay, shift_hz);
            }
            self.hold(block);
        }
    }

    /// Passes the tags on the way to the outputs.
    fn hold(&mut self, block: &mut dyn Block) {
        let held = self.passing.iter();
        each_port(
            block,
            |_, _| {},
            |_, port| held.clone().for_each(|(tag, input)| port.hold_tag(*tag, *input)),
        );
        self.passing.clear();
    }
}
