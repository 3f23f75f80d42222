//! Prices of connections between different CPUs.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The distance of two CPUs: the nearest resource that they share.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Distance {
    /// One CPU; two partitions on it alternate.
    SameCpu,
    /// Hardware threads of one core: they share every cache.
    Sibling,
    /// Cores that share the L2 cache.
    SharedL2,
    /// Cores that share the L3 cache.
    SharedL3,
    /// Cores of one NUMA node that share no cache.
    SameNode,
    /// Cores of different NUMA nodes.
    OtherNode,
}

impl Distance {
    /// All distances, from the nearest.
    pub const ALL: [Self; 6] = [
        Self::SameCpu,
        Self::Sibling,
        Self::SharedL2,
        Self::SharedL3,
        Self::SameNode,
        Self::OtherNode,
    ];
}

impl fmt::Display for Distance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SameCpu => "the same CPU",
            Self::Sibling => "SMT siblings of one core",
            Self::SharedL2 => "a shared L2",
            Self::SharedL3 => "a shared L3",
            Self::SameNode => "no shared cache, one node",
            Self::OtherNode => "two NUMA nodes",
        })
    }
}

/// The price of a connection at one distance, beyond that inside a partition.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Nanoseconds per byte for the reader: its cache fetches lines that are modified in the
    /// writer's.
    pub read_ns: f64,
    /// Nanoseconds per byte for the writer: it takes lines back that the reader's cache holds.
    pub write_ns: f64,
}

/// The model's prices. Every one can be replaced by a measured one.
///
/// The defaults for bytes are times of published cache-to-cache transfers of a 64-byte line (core
/// to core round trips of 20 to 30 ns between siblings, 40 to 70 ns inside an L3, 110 to 140 ns
/// between CCXs and 130 to 200 ns between sockets: AnandTech and Chips and Cheese, bounce tests of
/// Broadwell-E, Zen, Ice Lake-SP and Alder Lake; half a round trip is one transfer), divided by the
/// 4 lines that a prefetched stream has under way. Writers pay half: stores are posted.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Costs {
    /// Hardware threads of one core.
    pub sibling: Price,
    /// Cores with one L2.
    pub shared_l2: Price,
    /// Cores with one L3.
    pub shared_l3: Price,
    /// Cores of one node without a shared cache.
    pub same_node: Price,
    /// Cores of different nodes.
    pub other_node: Price,
    /// Nanoseconds for each of two threads when a batch passes from one to the other: a poll, and
    /// sometimes a wake-up (futex, about 1.5 µs for the waking thread and 3 µs for the woken one;
    /// in a busy graph one batch in four finds a sleeping thread).
    pub batch_ns: f64,
    /// Factor by which work takes longer while the sibling of its core works too. 1.6 follows from
    /// a core whose two threads together do a quarter more than one (Intel's figure for SMT).
    pub smt: f64,
    /// Relative difference of loads that counts as equal, 0.01 for 1 %.
    pub resolution: f64,
    /// The gain below which more CPUs are not used, 0.05 for 5 %.
    pub worthwhile: f64,
}

impl Default for Costs {
    fn default() -> Self {
        let price = |read_ns: f64| Price { read_ns, write_ns: read_ns / 2.0 };
        Self {
            sibling: price(0.04),
            shared_l2: price(0.06),
            shared_l3: price(0.11),
            same_node: price(0.24),
            other_node: price(0.35),
            batch_ns: 1000.0,
            smt: 1.6,
            resolution: 0.01,
            worthwhile: 0.05,
        }
    }
}

impl Costs {
    /// Returns the price at a distance.
    #[must_use]
    pub fn price(&self, distance: Distance) -> Price {
        match distance {
            Distance::SameCpu => Price { read_ns: 0.0, write_ns: 0.0 },
            Distance::Sibling => self.sibling,
            Distance::SharedL2 => self.shared_l2,
            Distance::SharedL3 => self.shared_l3,
            Distance::SameNode => self.same_node,
            Distance::OtherNode => self.other_node,
        }
    }
}
