//! The plan: which partition holds which blocks, where it runs, and how it waits.
//!
//! ```toml
//! [[partition]]
//! name = "front"
//! blocks = ["source", "filter"]
//! cpu = 2              # optional; without it the kernel chooses
//! wait = "park"        # or "spin", or "adaptive"; park is the default
//!
//! [buffers]
//! inside_bytes = 65536     # rings between blocks of one partition
//! batch_bytes = 16384      # optional: the most that a call sees of a port
//! between_bytes = 262144   # rings between partitions
//! huge_pages = false
//!
//! [buffers.outputs]        # single rings, by output
//! "filter.out" = 1048576
//!
//! [ns_per_item]            # only for display: costs by which the plan was made
//! filter = 3.25
//! ```
//!
//! Blocks that the plan does not mention are cut into runs of equal length, in the order that items
//! pass: one for each CPU that no partition of the plan takes. They are not pinned, because the
//! load on the machine is not known here. The planner (`millstream-planner`) finds better plans.

mod batch;
mod check;
mod error;
pub mod latency;
mod pins;

pub use batch::default_batch_bytes;
#[cfg(test)]
pub(crate) use check::{BATCH_BYTES_MAX, RING_BYTES_MAX};
pub use error::PlanError;
pub(crate) use latency::LatencyBound;
pub use latency::{Latency, LatencyError, Positive, SourceLatencyLimit};
pub use pins::Pins;

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Where and how a graph runs. The default leaves every choice to the runtime.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Partitions made by hand.
    #[serde(default, rename = "partition", skip_serializing_if = "Vec::is_empty")]
    pub partitions: Vec<Partition>,
    /// Sizes of rings.
    #[serde(default)]
    pub buffers: Buffers,
    /// Bounds on the items under way; see [`Latency`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Latency>,
    /// The work of blocks for each item, nanoseconds, as it was measured for this plan. It changes
    /// nothing: a display compares it with the work of a run. Blocks without a measured cost are
    /// missing.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub ns_per_item: BTreeMap<String, f64>,
}

/// Blocks that run on one thread, one after the other.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Partition {
    /// Name, also of its thread.
    pub name: String,
    /// The blocks, by name, in any order.
    pub blocks: Vec<String>,
    /// The CPU to which the thread is pinned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<usize>,
    /// How the thread waits when no block can work.
    #[serde(default)]
    pub wait: WaitMode,
}

impl Partition {
    /// Returns this name, or a similar one if one of `others` has it.
    #[must_use]
    pub fn unused_name(others: &[Self], name: &str) -> String {
        let mut name = name.to_owned();
        while others.iter().any(|other| other.name == name) {
            name.push('_');
        }
        name
    }
}

/// How a partition waits.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum WaitMode {
    /// Sleep until a neighbour wakes the thread.
    #[default]
    Park,
    /// Burn the core; give the partition a `cpu` of its own.
    Spin,
    /// Spin and yield for about the cost of a wake-up, then sleep.
    Adaptive,
}

impl From<WaitMode> for millstream_ring::Wait {
    fn from(mode: WaitMode) -> Self {
        match mode {
            WaitMode::Park => Self::Park,
            WaitMode::Spin => Self::Spin,
            WaitMode::Adaptive => Self::Adaptive,
        }
    }
}

/// Sizes of the rings. A ring is never smaller than its ports' `min_items` need, and is
/// rounded up to whole pages.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Buffers {
    /// Rings inside a partition: small enough that a chain of them stays in the L2 cache.
    pub inside_bytes: usize,
    /// The most that a block sees of one port in a call, so that a batch passes all blocks of a
    /// partition in the nearest cache. Without it: a third of the L1 cache, because a block reads
    /// one batch and writes another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch_bytes: Option<usize>,
    /// Rings between partitions: large enough to bridge a wake-up.
    pub between_bytes: usize,
    /// Whether to try 2 MiB pages.
    pub huge_pages: bool,
    /// Rings of single outputs, `"block.port"`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub outputs: BTreeMap<String, usize>,
}

impl Default for Buffers {
    fn default() -> Self {
        Self {
            inside_bytes: 64 << 10,
            batch_bytes: None,
            between_bytes: 256 << 10,
            huge_pages: false,
            outputs: BTreeMap::new(),
        }
    }
}

impl Buffers {
    /// Returns the most that a call sees of a port, in bytes, set or default.
    pub(crate) fn batch_bytes(&self) -> usize {
        self.batch_bytes.unwrap_or_else(default_batch_bytes)
    }
}

impl Plan {
    /// Reads a plan from TOML.
    ///
    /// # Errors
    /// [`PlanError::Syntax`] with line and reason.
    pub fn from_toml(text: &str) -> Result<Self, PlanError> {
        toml::from_str(text)
            .map_err(|error| PlanError::Syntax(error.to_string().trim_end().to_owned()))
    }

    /// Writes the plan as TOML.
    #[must_use]
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("a plan has nothing that TOML cannot say")
    }
}
