//! The parameters of measurements: workloads, the ends of a path, and the CPUs of both sides.

use std::net::Ipv4Addr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::named::named;

/// The workload of packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Workload {
    /// One side sends, the other receives and drops.
    Drop,
    /// One side sends; there is no receiver.
    Transmit,
    /// The other side sends all packets back, with exchanged addresses.
    Swap,
}

named!(Workload, 3, [(Drop, "receive and drop"), (Transmit, "transmit only"), (Swap, "MAC swap"),]);

/// The carrier of packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Carriage {
    /// Plain kernel sockets without our code: the base of all comparisons.
    Kernel,
    /// A port of the link: the whole path, as applications use it.
    Port,
    /// Bare frames of a private Ethernet type on the link.
    Frames,
    /// Bare frames on the link that carry IP and UDP, which the kernel processes, too.
    IpFrames,
}

/// The wait of a side for packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PacketWait {
    /// Sleeps in the kernel.
    Block,
    /// Polls again at once: owns its core.
    Spin,
    /// Polls for [`ADAPTIVE_SPIN`], then sleeps.
    Adaptive,
}

/// Spin time of an adaptive wait before it sleeps.
pub const ADAPTIVE_SPIN: Duration = Duration::from_micros(50);

/// The way of packets on one side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Half {
    /// The carrier of the packets.
    pub path: Carriage,
    /// The link string, without or with an interface; unused by [`Carriage::Kernel`].
    pub link: String,
    /// Its wait mode.
    pub wait: PacketWait,
    /// `SO_BUSY_POLL` of plain kernel sockets.
    pub busy_poll_us: Option<u32>,
    /// `SO_PRIORITY` of plain kernel sockets.
    #[serde(default)]
    pub priority: Option<u32>,
    /// Datagrams that each call of plain kernel sockets takes from a queue in which they have
    /// gathered; `None`: those that have come.
    #[serde(default)]
    pub call_takes: Option<usize>,
}

/// One end of a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndPlan {
    /// The way of its packets, with the interface.
    pub way: Half,
    /// Its IPv4 address.
    pub address: Ipv4Addr,
    /// Bytes of each packet as an Ethernet frame, without its check sequence.
    pub frame_bytes: usize,
    /// The most packets of one call, where the end can limit them.
    #[serde(default = "unlimited")]
    pub batch_max: usize,
}

/// No limit to a batch.
#[must_use]
pub fn unlimited() -> usize {
    usize::MAX
}

/// The times of one measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// Before counting begins, nanoseconds.
    pub warm_ns: u64,
    /// The counted time, nanoseconds.
    pub measure_ns: u64,
    /// Time for which a sender continues, so that the receiver's time is covered, nanoseconds.
    pub tail_ns: u64,
}

impl Span {
    /// Counts for `measure`, with suitable times around it.
    #[must_use]
    pub fn of(measure: Duration) -> Self {
        let measure_ns = u64::try_from(measure.as_nanos()).unwrap_or(u64::MAX);
        Self { warm_ns: 60_000_000, measure_ns, tail_ns: 60_000_000 }
    }

    /// The whole time.
    #[must_use]
    pub fn total_ns(&self) -> u64 {
        self.warm_ns.saturating_add(self.measure_ns).saturating_add(self.tail_ns)
    }
}
