//! Messages from block to block.

use super::Envelope;
use crate::metric::Counter;
use crate::value::{ParameterKind, ParameterValue};
use millstream_ring::{ChangeFlag, spsc};
use std::sync::Arc;

/// A block's output for messages to other blocks: a field of the block, which
/// [`Ports`](crate::Ports) shows as it shows a port.
#[derive(Debug)]
pub struct Emitter {
    kind: ParameterKind,
    links: Vec<MessageConnection>,
    lost: Counter,
}

impl Emitter {
    /// Sends values of this kind.
    #[must_use]
    pub fn new(kind: ParameterKind) -> Self {
        Self { kind, links: Vec::new(), lost: Counter::new() }
    }

    /// Returns the kind of its values.
    #[must_use]
    pub fn kind(&self) -> ParameterKind {
        self.kind
    }

    /// Sends a value to every connected message. Numbers need no allocation. A block whose queue is
    /// full, or which has finished, does not get it; this is [counted](Self::lost).
    ///
    /// # Panics
    /// If the value is not of this emitter's kind.
    pub fn emit(&mut self, value: impl Into<ParameterValue>) {
        let value = value.into();
        assert!(value.kind() == self.kind, "an emitter of {} sent {value}", self.kind);
        for link in &mut self.links {
            if !link.send(&value) {
                self.lost.add(1);
            }
        }
    }

    /// Returns the count of messages that were lost. A block may list it among its metrics.
    #[must_use]
    pub fn lost(&self) -> &Counter {
        &self.lost
    }

    pub(crate) fn link(&mut self, link: MessageConnection) {
        self.links.push(link);
    }
}

/// Wakes the thread that runs this node.
pub(crate) type Wake = Arc<dyn Fn(usize) + Send + Sync>;

/// One connection.
pub(crate) struct MessageConnection {
    pub(crate) sender: spsc::Sender<Envelope>,
    pub(crate) message: u16,
    /// The kind that the receiving block takes; the emitter's kind converts to it.
    pub(crate) kind: ParameterKind,
    /// The receiving block.
    pub(crate) node: usize,
    pub(crate) pending: Arc<ChangeFlag>,
    pub(crate) wake: Wake,
}

impl MessageConnection {
    fn send(&mut self, value: &ParameterValue) -> bool {
        let Some(value) = value.clone().into_kind(self.kind) else { return false };
        if self.sender.push((self.message, value)).is_err() {
            return false;
        }
        self.pending.tell();
        (self.wake)(self.node);
        true
    }
}

impl std::fmt::Debug for MessageConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MessageConnection").field("message", &self.message).finish_non_exhaustive()
    }
}
