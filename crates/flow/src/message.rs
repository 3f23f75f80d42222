//! Messages to blocks while they run.

use crate::registry::Kind;

/// A message that a block understands, as [`Block::messages`](crate::Block::messages) lists it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Message {
    /// Name; units last, `rate_hz`.
    pub name: &'static str,
    /// What its value must be.
    pub kind: Kind,
    /// What it does.
    pub help: &'static str,
}

impl Message {
    /// A message called `name`.
    #[must_use]
    pub const fn new(name: &'static str, kind: Kind, help: &'static str) -> Self {
        Self { name, kind, help }
    }
}
