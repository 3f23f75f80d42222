//! Forwards tags through one block.

use super::side::Fetched;
use super::{QUEUE_TAGS, Tag, TagChangeFlag, TagRule};
use crate::block::Block;
use crate::port::{InputPort, OutputPort, PortVisitor};
use crate::rate::ItemRatio;

/// Forwards the tags of one block, before each of its calls. Without tags it costs one load for
/// each input.
#[derive(Debug, Default)]
pub(crate) struct TagCarrier {
    rule: TagRule,
    rate: ItemRatio,
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
        let mut news = News(Vec::new());
        block.ports(&mut news);
        let (rule, rate) = (block.tag_rule(), block.rate());
        let passing = Vec::with_capacity(QUEUE_TAGS);
        Self { rule, rate, news: news.0, passing, ..Self::default() }
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

    #[cold]
    fn fetch(&mut self, block: &mut dyn Block) {
        let mut fetched = Fetched::default();
        let forwards = self.rule == TagRule::Forward;
        let (rate, to) = (self.rate, &mut self.passing);
        block.ports(&mut Fetch { fetched: &mut fetched, rate, forwards, input: 0, to });
        self.ahead = fetched.ahead;
        if !self.passing.is_empty() {
            block.ports(&mut Hold(&self.passing));
            self.passing.clear();
        }
    }
}

struct News(Vec<TagChangeFlag>);

impl PortVisitor for News {
    fn input(&mut self, _: &str, port: &mut dyn InputPort) {
        self.0.extend(port.tag_news());
    }

    fn output(&mut self, _: &str, _: &mut dyn OutputPort) {}
}

struct Fetch<'a> {
    fetched: &'a mut Fetched,
    rate: ItemRatio,
    forwards: bool,
    input: u16,
    to: &'a mut Vec<(Tag, u16)>,
}

impl PortVisitor for Fetch<'_> {
    fn input(&mut self, _: &str, port: &mut dyn InputPort) {
        let fetched = port.fetch_tags();
        self.fetched.new |= fetched.new;
        self.fetched.ahead |= fetched.ahead;
        if fetched.new && self.forwards {
            let (rate, input, to) = (self.rate, self.input, &mut *self.to);
            port.forward_tags(&mut |tag| {
                to.push((Tag { offset: rate.map(tag.offset), ..tag }, input));
            });
        }
        self.input += 1;
    }

    fn output(&mut self, _: &str, _: &mut dyn OutputPort) {}
}

struct Hold<'a>(&'a [(Tag, u16)]);

impl PortVisitor for Hold<'_> {
    fn input(&mut self, _: &str, _: &mut dyn InputPort) {}

    fn output(&mut self, _: &str, port: &mut dyn OutputPort) {
        self.0.iter().for_each(|(tag, input)| port.hold_tag(*tag, *input));
    }
}
