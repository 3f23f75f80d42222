//! Tags: metadata of single items, carried alongside them.
//!
//! A tag belongs to one item of a stream: the time it was received, a loss in front of it, a mark
//! for a sink. A block puts tags on the items that it produces ([`Out::tag`](crate::Out::tag)) and
//! sees those on the items that it reads ([`In::tags`](crate::In::tags)). The rest follows its
//! [`TagRule`]: by default every tag moves on to every output, to the item that its
//! [`ItemRatio`](crate::ItemRatio) and its [delay](crate::BlockFacts) say, and stays true there:
//! see [`TagShift`]. Tags are neither lost, repeated nor reordered, and belong to the same items
//! whatever the partitions and batches of the graph.
//!
//! [`keys`] has the names that several blocks use.

mod document;
mod key;
pub(crate) mod queue;
pub(crate) mod shift;
pub(crate) mod side;
mod value;

pub use document::TagDocument;
pub use key::{Key, keys};
pub use queue::TagChangeFlag;
pub use shift::TagShift;
pub use side::Tags;
pub use value::{ShortText, TagTime, TagValue};

/// Initial capacity of every connection for tags.
pub(crate) const QUEUE_TAGS: usize = 64;

/// A key and a value on one item of a stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tag {
    /// The item's position in the stream, counted from its start.
    pub offset: u64,
    /// The kind of metadata.
    pub key: Key,
    /// The value.
    pub value: TagValue,
}

/// The rule of a block for the tags on its inputs.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum TagRule {
    /// Every tag of every input moves on to every output, before the call that sees its item.
    #[default]
    Forward,
    /// Tags end here.
    Drop,
    /// The block reads them and puts its own tags on its output.
    Own,
}
