//! Messages to the blocks of a running graph.

use super::RunningGraph;
use super::stats::{MessageStats, Snapshot};
use crate::message::MessageError;
use crate::value::ParameterValue;
use std::sync::atomic::Ordering;

impl RunningGraph {
    /// Sends a message to a block, which takes it before its next call. The block may refuse the
    /// value; its [`MessageStats`] count that.
    ///
    /// # Errors
    /// [`MessageError`]: there is no such block or message, the value is of another kind (the error
    /// lists the valid ones), the queue is full, or the block has finished.
    pub fn send(
        &self,
        block: &str,
        message: &str,
        value: impl Into<ParameterValue>,
    ) -> Result<(), MessageError> {
        self.mailboxes.send(block, message, value.into())
    }

    /// Returns the counters of the run with those of the mailboxes.
    pub(super) fn full_snapshot(&self) -> Snapshot {
        let mut snapshot = self.counters.snapshot();
        for (node, block) in snapshot.blocks.iter_mut().enumerate() {
            let Some(counters) = self.mailboxes.counters(node) else { continue };
            block.messages = Some(MessageStats {
                taken: counters.taken.load(Ordering::Relaxed),
                refused: counters.refused.load(Ordering::Relaxed),
                refusal: counters.refusal(),
            });
        }
        snapshot
    }
}
