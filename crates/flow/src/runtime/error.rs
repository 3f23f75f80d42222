//! How a run can fail.

use crate::block::BlockError;
use crate::graph::GraphError;
use millstream_cpu::thread::PinError;
use std::any::Any;

/// Why a graph ended before its time.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// It did not start.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// A block gave up.
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
        /// What it said.
        message: String,
    },
    /// A partition's thread panicked outside of a block's work.
    #[error("partition `{partition}` panicked: {message}")]
    PartitionPanic {
        /// The partition.
        partition: String,
        /// What it said.
        message: String,
    },
    /// A partition could not run on its CPU.
    #[error("partition `{partition}`: {source}")]
    Pin {
        /// The partition.
        partition: String,
        /// Why.
        source: PinError,
    },
}

/// Why a running graph was not moved to another plan.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MoveError {
    /// The plan cannot be obeyed.
    #[error("{0}; the graph goes on by the plan before")]
    Plan(#[from] GraphError),
    /// A block was at work all the time.
    #[error(
        "the graph was not moved: block `{block}` of partition `{partition}` was at work for all \
         of {limit_ms} ms; a block that waits inside `work` should heed `Context::may_block`"
    )]
    Busy {
        /// The block.
        block: String,
        /// Its partition.
        partition: String,
        /// How long was waited, milliseconds.
        limit_ms: u64,
    },
    /// A partition's thread did not get to the end of its sweep, though no block held it.
    #[error(
        "the graph was not moved: partition `{partition}` had no CPU to finish its sweep within \
         {limit_ms} ms; see what else runs there"
    )]
    Late {
        /// The partition.
        partition: String,
        /// How long was waited, milliseconds.
        limit_ms: u64,
    },
    /// A thread was refused.
    #[error(
        "no thread can be started for partition `{partition}`: {source}; the graph goes on by the \
         plan before"
    )]
    Thread {
        /// The partition.
        partition: String,
        /// What the kernel answered.
        source: std::io::Error,
    },
    /// There is nothing to move any more.
    #[error("the graph has ended, or is about to; there is nothing to move")]
    Ended,
}

/// What a panic said.
pub(super) fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message").to_owned()
}
