//! Messages to blocks while they run: a new factor, another rate, "end now".
//!
//! A block lists the messages that it takes ([`BlockFacts`](crate::BlockFacts)) and takes
//! each message between two calls of `work`, on the thread of `work`
//! ([`Block::message`](crate::Block::message)); so it needs no lock. Messages come from
//! [`RunningGraph::send`](crate::RunningGraph::send), and from other blocks: a block that has an
//! [`Emitter`] can be [connected](crate::Graph::connect_message) to a message of another block. In
//! graph files:
//!
//! ```toml
//! [graph]
//! connections = ["source -> gain -> probe -> sink"]
//! messages = ["probe.level -> gain.factor"]
//! ```
//!
//! Each sender has a queue of its own to the block, without a lock, of [`QUEUE_MESSAGES`]. The
//! messages of one sender arrive in order.

mod emitter;
mod error;

pub use emitter::Emitter;
pub(crate) use emitter::{MessageConnection, Wake};
pub use error::MessageError;

use crate::value::{ParameterKind, ParameterValue};

/// The most messages of one sender that may wait.
pub const QUEUE_MESSAGES: usize = 64;

/// A message that a block understands, as [`BlockFacts`](crate::BlockFacts) lists it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct MessageSpec {
    /// Name; units last, `rate_hz`.
    pub name: &'static str,
    /// The kind of its value.
    pub kind: ParameterKind,
    /// Its effect.
    pub help: &'static str,
}

impl MessageSpec {
    /// Makes a message called `name`.
    #[must_use]
    pub const fn new(name: &'static str, kind: ParameterKind, help: &'static str) -> Self {
        Self { name, kind, help }
    }
}

/// Returns the position of the message `name` among those of a block.
pub(crate) fn position(
    block: &str,
    messages: &[MessageSpec],
    name: &str,
) -> Result<usize, MessageError> {
    messages.iter().position(|message| message.name == name).ok_or_else(|| {
        MessageError::UnknownMessage {
            block: block.to_owned(),
            name: name.to_owned(),
            known: messages.iter().map(|known| known.name.to_owned()).collect(),
        }
    })
}

/// Returns the error for a value of the wrong kind.
pub(crate) fn wrong(block: &str, message: &MessageSpec, found: &str) -> MessageError {
    MessageError::WrongKind {
        block: block.to_owned(),
        message: message.name.to_owned(),
        expected: message.kind.to_string(),
        found: found.to_owned(),
    }
}

/// A queued message: its position among the block's messages, and its value.
pub(crate) type Envelope = (u16, ParameterValue);
