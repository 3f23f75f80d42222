//! How a run can fail.

use crate::block::BlockError;
use crate::graph::GraphError;
use millstream_sys::thread::PinError;
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

/// What a panic said.
pub(super) fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message").to_owned()
}
