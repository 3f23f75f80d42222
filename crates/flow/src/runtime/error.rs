//! Errors of a run.

use crate::block::BlockError;
use crate::graph::GraphError;
use millstream_cpu::thread::PinError;
use std::any::Any;

/// The reason why a graph ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// It did not start.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// A block failed.
    #[error("block `{block}` failed: {source}")]
    Block {
        /// The block.
        block: String,
        /// Its reason.
        source: BlockError,
    },
    /// A block panicked.
    #[error("block `{block}` panicked: {message}")]
    BlockPanic {
        /// The block.
        block: String,
        /// The panic message.
        message: String,
    },
    /// A partition's thread panicked outside of a block's work.
    #[error("partition `{partition}` panicked: {message}")]
    PartitionPanic {
        /// The partition.
        partition: String,
        /// The panic message.
        message: String,
    },
    /// A partition could not run on its CPU.
    #[error("partition `{partition}`: {source}")]
    Pin {
        /// The partition.
        partition: String,
        /// The cause.
        source: PinError,
    },
}

/// The reason why a running graph was not moved to another plan.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MoveError {
    /// The plan cannot be applied.
    #[error("{0}; the graph continues with its previous plan")]
    Plan(#[from] GraphError),
    /// A block did not return from its call in time.
    #[error(
        "no block was moved, because block `{block}` of partition `{partition}` was busy for all \
         of {limit_ms} ms: a block that waits inside `work` must check `Context::may_block`"
    )]
    Busy {
        /// The block.
        block: String,
        /// Its partition.
        partition: String,
        /// The time limit, milliseconds.
        limit_ms: u64,
    },
    /// A partition's thread did not reach the end of its sweep, though none of its blocks was in a
    /// call.
    #[error(
        "no block was moved, because partition `{partition}` got no CPU time to finish its sweep \
         within {limit_ms} ms: check which other programs use its CPU"
    )]
    Late {
        /// The partition.
        partition: String,
        /// The time limit, milliseconds.
        limit_ms: u64,
    },
    /// A thread could not be started.
    #[error(
        "cannot start a thread for partition `{partition}`: {source}; the graph continues with \
         its previous plan"
    )]
    Thread {
        /// The partition.
        partition: String,
        /// The kernel's error.
        source: std::io::Error,
    },
    /// The graph has ended.
    #[error("no block can be moved, because the graph has ended or is ending")]
    Ended,
}

/// Returns the message of a panic.
pub(super) fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message").to_owned()
}
