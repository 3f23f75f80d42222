//! Forwards tags through one block.

use crate::block::Block;
use crate::facts::BlockFacts;
use crate::port::{InputPort, each_port};
use crate::rate::ItemRatio;
use crate::tag::shift::Conversion;
use crate::tag::{QUEUE_TAGS, Tag, TagChangeFlag, TagRule, TagShift};

/// Forwards the tags of one block, before each of its calls. Without tags it costs one load for
/// each input.
#[derive(Debug, Default)]
pub(crate) struct TagCarrier {
    rule: TagRule,
    /// As the block stated them last; kept for the memory of their lists.
    facts: BlockFacts,
    /// What the block does to the stream since its last message.
    conversion: Conversion,
    /// One for each input.
    shifts: Vec<TagShift>,
    news: Vec<TagChangeFlag>,
    /// The sum of the tag counts at the last poll.
    seen: u64,
    /// A tag waits for its item.
    ahead: bool,
    /// Tags on the way from the inputs to the outputs, with their input; persistent for its
    /// capacity.
    passing: Vec<(u16, Tag)>,
}

impl TagCarrier {
    /// Makes the carrier of a block whose ports are connected.
    pub(crate) fn of(block: &mut dyn Block) -> Self {
        let mut news = Vec::new();
        let mut shifts = Vec::new();
        let facts = BlockFacts::of(block);
        let conversion = Conversion::of(&facts);
        let rate = conversion.rate;
        let input = |_: &str, port: &mut dyn InputPort| {
            news.extend(port.tag_news());
            shifts.push(TagShift::new(rate));
        };
        each_port(block, input, |_, _| {});
        let passing = Vec::with_capacity(QUEUE_TAGS);
        let rule = facts.tag_rule;
        Self { rule, facts, conversion, shifts, news, passing, ..Self::default() }
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
    /// from the next item on, and the tags that wait for their items move with these.
    #[cold]
    pub(crate) fn follow(&mut self, block: &mut dyn Block) {
        self.facts.read(block);
        let now = Conversion::of(&self.facts);
        let was = std::mem::replace(&mut self.conversion, now);
        if now == was || self.rule != TagRule::Forward {
            return;
        }
        let (mut shifts, mut written) = (self.shifts.iter_mut(), 0);
        each_port(
            block,
            |_, _| {},
            |_, port| written = port.view().map_or(0, |view| view.position()),
        );
        let turn = |_: &str, port: &mut dyn InputPort| {
            let read = port.view().map_or(0, |view| view.position());
            shifts.next().into_iter().for_each(|shift| shift.turn(now.rate, (read, written)));
        };
        each_port(block, turn, |_, _| {});
        for (shift, input) in self.shifts.iter().zip(0..) {
            each_port(block, |_, _| {}, |_, port| port.turn_tags(input, *shift, was, now));
        }
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
                    passing.push((input, tag));
                });
            }
            input += 1;
        };
        each_port(block, fetch, |_, _| {});
        if passing.is_empty() {
            return;
        }
        let Conversion { delay, shift_hz, .. } = self.conversion;
        for (input, origin) in passing.drain(..) {
            let tag = shifts[usize::from(input)].moved(origin, delay, shift_hz);
            each_port(block, |_, _| {}, |_, port| port.hold_tag(tag, (input, origin)));
        }
    }
}

impl Conversion {
    fn of(facts: &BlockFacts) -> Self {
        Self { rate: facts.rate, delay: facts.delay, shift_hz: facts.band_shift_hz }
    }
}

impl Default for Conversion {
    fn default() -> Self {
        Self { rate: ItemRatio::ONE, delay: 0.0, shift_hz: 0.0 }
    }
}
