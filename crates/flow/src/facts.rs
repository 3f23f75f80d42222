//! What a block says about itself: [`BlockFacts`].

use crate::memory::BlockMemory;
use crate::message::MessageSpec;
use crate::metric::Metric;
use crate::rate::ItemRatio;
use crate::tag::TagRule;
use crate::value::ParameterKind;

/// The estimate for a block that gives none, nanoseconds an item: a filter of ordinary length.
const UNKNOWN_NS_PER_ITEM: f64 = 5.0;

/// Returns the time to copy one item, nanoseconds: the estimate for a block that does hardly more.
#[must_use]
pub const fn copied_ns<T>() -> f64 {
    0.02 * size_of::<T>() as f64
}

/// The facts of a block, which [`Block::facts`](crate::Block::facts) states. Each has a default,
/// that of a block which passes items on one for one.
///
/// ```
/// use millstream_flow::{BlockFacts, ItemRatio, ParameterKind};
///
/// let mut facts = BlockFacts::default();
/// facts.rate(ItemRatio::decimate(4)).message("gain", ParameterKind::Number, "the new gain");
/// assert_eq!((facts.rate, facts.messages.len()), (ItemRatio::decimate(4), 1));
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BlockFacts {
    /// Items out for items in; one for one by default.
    pub rate: ItemRatio,
    /// By how many items of the input what comes out is later than what went in, by default 0: the
    /// group delay of a filter. Negative where an output item shows the last of several input
    /// items. Tags move with the samples by it, and times of tags are corrected by it (see
    /// [`TagShift`](crate::TagShift)). A filter whose delay depends on the frequency gives the mean
    /// one of its power.
    pub delay: f64,
    /// By how much the block moves the band up now, Hz, by default 0: the frequency in its middle
    /// becomes lower by it, which changes the value of the tag `rx_freq_hz`.
    pub band_shift_hz: f64,
    /// The time that one item takes on an ordinary CPU, nanoseconds, by estimate and by the block's
    /// parameters. Items are counted at the busier port. A plan for a graph that was not measured
    /// follows these estimates, so only their ratios matter.
    pub ns_per_item: f64,
    /// The rule for the tags on the inputs; they pass by default.
    pub tag_rule: TagRule,
    /// The most items, of the input, that the block keeps inside beyond a call, by default 0:
    /// filter history that delays, a frame being filled. The latency bound counts them.
    pub holds: u64,
    /// How much of its past the block needs, see [`observe::memory`](crate::observe::memory);
    /// `None`, the default, if that is not known or has no end.
    pub memory: Option<BlockMemory>,
    /// The messages that the block takes.
    pub messages: Vec<MessageSpec>,
    /// The numbers that the block publishes, with names.
    pub metrics: Vec<(&'static str, Metric)>,
}

impl Default for BlockFacts {
    fn default() -> Self {
        Self {
            rate: ItemRatio::ONE,
            delay: 0.0,
            band_shift_hz: 0.0,
            ns_per_item: UNKNOWN_NS_PER_ITEM,
            tag_rule: TagRule::Forward,
            holds: 0,
            memory: None,
            messages: Vec::new(),
            metrics: Vec::new(),
        }
    }
}

macro_rules! set {
    ($($name:ident: $T:ty;)*) => {$(
        #[doc = concat!("Sets the field `", stringify!($name), "`.")]
        pub fn $name(&mut self, $name: $T) -> &mut Self {
            self.$name = $name;
            self
        }
    )*};
}

impl BlockFacts {
    set! {
        rate: ItemRatio;
        delay: f64;
        band_shift_hz: f64;
        ns_per_item: f64;
        tag_rule: TagRule;
        holds: u64;
    }

    /// Sets how much of its past the block needs.
    pub fn memory(&mut self, memory: BlockMemory) -> &mut Self {
        self.memory = Some(memory);
        self
    }

    /// Adds a message that the block takes; `help` says its effect.
    pub fn message(
        &mut self,
        name: &'static str,
        kind: ParameterKind,
        help: &'static str,
    ) -> &mut Self {
        self.messages.push(MessageSpec::new(name, kind, help));
        self
    }

    /// Adds a number that the block publishes.
    pub fn metric(&mut self, name: &'static str, metric: impl Into<Metric>) -> &mut Self {
        self.metrics.push((name, metric.into()));
        self
    }

    /// Makes the facts those of a block that states nothing, and keeps the memory of the lists.
    pub(crate) fn clear(&mut self) {
        let (mut messages, mut metrics) =
            (std::mem::take(&mut self.messages), std::mem::take(&mut self.metrics));
        messages.clear();
        metrics.clear();
        *self = Self { messages, metrics, ..Self::default() };
    }
}
