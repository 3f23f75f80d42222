//! Messages to the blocks of a running graph.

use super::{RunningGraph, Snapshot};
use crate::message::{MessageError, MessageSpec};
use crate::registry::ParameterValue;
use serde::Serialize;
use std::sync::atomic::Ordering;

/// How a block that understands messages has fared with them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MessageStats {
    /// Messages that the block has taken, the refused ones too.
    pub taken: u64,
    /// Messages whose values made no sense to it.
    pub refused: u64,
    /// The last of these, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
}

impl RunningGraph {
    /// Sends a message to a block, which takes it before its next call. A block may find that
    /// the value makes no sense; its [`MessageStats`] tell.
    ///
    /// # Errors
    /// [`MessageError`]: there is no such block or message, the value is of another kind (what
    /// there is, is said), too many are waiting, or the block has finished.
    pub fn send(
        &self,
        block: &str,
        message: &str,
        value: impl Into<ParameterValue>,
    ) -> Result<(), MessageError> {
        self.post.send(block, message, value.into())
    }

    /// Reads what somebody typed as the value of a message; nothing is sent.
    ///
    /// # Errors
    /// [`MessageError`]: no such block or message, or text that is no such value.
    pub fn read_message(
        &self,
        block: &str,
        message: &str,
        text: &str,
    ) -> Result<ParameterValue, MessageError> {
        self.post.read(block, message, text)
    }

    /// The messages that a block understands.
    ///
    /// # Errors
    /// [`MessageError::UnknownBlock`].
    pub fn messages(&self, block: &str) -> Result<&[MessageSpec], MessageError> {
        self.post.messages(block)
    }

    /// The counters of the board, and those of the post.
    pub(super) fn full_snapshot(&self) -> Snapshot {
        let mut snapshot = self.board.snapshot();
        for (node, block) in snapshot.blocks.iter_mut().enumerate() {
            let Some(counters) = self.post.counters(node) else { continue };
            block.messages = Some(MessageStats {
                taken: counters.taken.load(Ordering::Relaxed),
                refused: counters.refused.load(Ordering::Relaxed),
                refusal: counters.refusal(),
            });
        }
        snapshot
    }
}
