//! What a block states about its memory: how much of its past it needs, see
//! [`observe::memory`](crate::observe::memory).

/// What a block states about its memory; as many stages as it has reasons.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BlockMemory {
    pub(crate) stages: Vec<(&'static str, MemorySpan)>,
    pub(crate) numbering: Option<Numbering>,
}

/// A length of stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MemorySpan {
    /// Items of the block's input.
    Items(u64),
    /// Seconds of signal.
    Seconds(f64),
}

/// The numbers on the results of a path: the tags [`SOURCE_ITEM`](crate::keys::SOURCE_ITEM) at its
/// end count the items of this block's input.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Numbering {
    /// Items of the input per second.
    pub rate_hz: f64,
    /// The items from one tag to the next, while nothing is interrupted.
    pub group: f64,
}

impl BlockMemory {
    /// States that each item out depends only on the item in at the same place.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Adds a reason.
    #[must_use]
    pub fn with(mut self, what: &'static str, span: MemorySpan) -> Self {
        self.stages.push((what, span));
        self
    }

    /// States that results are numbered by the items of this block's input.
    #[must_use]
    pub fn numbering(mut self, numbering: Numbering) -> Self {
        self.numbering = Some(numbering);
        self
    }
}
