//! The errors of plans.

use millstream_cpu::CpuSet;

/// The reason why a plan cannot be applied.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// Not TOML, or not a plan.
    #[error("cannot read the plan: {0}")]
    Syntax(String),
    /// A block that the graph does not have.
    #[error(
        "partition `{partition}` of the plan contains block `{block}`, which is not in the graph"
    )]
    UnknownBlock {
        /// The partition.
        partition: String,
        /// The block.
        block: String,
    },
    /// A block in two places.
    #[error(
        "block `{block}` is in partition `{first}` and in partition `{second}`: keep it in one of \
         them"
    )]
    BlockTwice {
        /// The block.
        block: String,
        /// One partition.
        first: String,
        /// The other.
        second: String,
    },
    /// Two partitions of one name.
    #[error("two partitions have the name `{0}`: give each partition its own name")]
    DuplicatePartition(String),
    /// A name that a thread cannot have.
    #[error(
        "{0:?} cannot be the name of a partition: write at least one character, and no control \
         characters"
    )]
    PartitionName(String),
    /// A CPU that is not allowed.
    #[error(
        "the plan puts partition `{partition}` on CPU {cpu}, but this process may use only CPUs \
         {allowed}"
    )]
    Cpu {
        /// The partition.
        partition: String,
        /// The CPU.
        cpu: usize,
        /// CPUs that are allowed.
        allowed: CpuSet,
    },
    /// A pin of a block that the graph does not have.
    #[error("the plan puts block `{block}` on CPU {cpu}, but this block is not in the graph")]
    PinnedBlock {
        /// The block.
        block: String,
        /// The CPU.
        cpu: usize,
    },
    /// A pin to a CPU that is not allowed.
    #[error("the plan puts block `{block}` on CPU {cpu}, but it may use only CPUs {allowed}")]
    PinnedCpu {
        /// The block.
        block: String,
        /// The CPU.
        cpu: usize,
        /// CPUs that are allowed.
        allowed: CpuSet,
    },
    /// A buffer that no machine has memory for.
    #[error("buffers.{name} is {bytes} bytes: give 0 to {most}")]
    BufferSize {
        /// The key.
        name: String,
        /// Its value.
        bytes: usize,
        /// The largest value.
        most: usize,
    },
    /// A buffer size for an output that does not exist.
    #[error("buffers.outputs contains `{name}`, which is not an output of a block: {reason}")]
    UnknownOutput {
        /// The key.
        name: String,
        /// The reason.
        reason: String,
    },
}
