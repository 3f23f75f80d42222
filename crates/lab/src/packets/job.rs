//! The job of a side, and its answer: one JSON line each.

use serde::{Deserialize, Serialize};

use crate::explain::{LateTrip, Stop};
use millstream_stats::Histogram;

use super::budget::PacketCopies;
use super::end::EndAddress;
use super::launch::{LaunchArrivals, LaunchPlan, LaunchSent};
use super::plan::{EndPlan, Span};
use super::waiting::{Delivered, TickPlan};
use super::window::WindowCounts;

/// A side's part in one measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SideJob {
    /// The end to open.
    pub end: EndPlan,
    /// The role.
    pub role: Role,
    /// Whether the kernel counts system calls, which slows them down a little.
    pub trace: bool,
    /// SCHED_FIFO at this priority; `None`: the ordinary class.
    pub fifo: Option<u32>,
}

/// The role of a side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Opens its end and waits for the stop request.
    Hold,
    /// Receives and drops packets until the stop request.
    Receive {
        /// Duration.
        span: Span,
        /// Whether some packets carry the time at which they were sent.
        stamped: bool,
    },
    /// Sends all packets back until the stop request.
    Turn(Span),
    /// Sends as fast as the link allows, or at a rate.
    Transmit {
        /// Duration.
        span: Span,
        /// Destination.
        to: EndAddress,
        /// Packets per second; `None`: as many as possible.
        rate_pps: Option<f64>,
        /// The most packets of one call.
        batch_max: usize,
        /// Whether it takes, and counts, returned packets.
        drain: bool,
        /// Whether some packets carry the time at which they are sent.
        stamped: bool,
    },
    /// Sends numbered packets back, and drops all others, until the stop request.
    Echo,
    /// Measures round trips.
    Ping(PingPlan),
    /// Sends bursts until the stop request.
    Bulk(BulkPlan),
    /// Sends packets with launch times.
    Launch(LaunchPlan),
    /// Receives packets with launch times until the stop request.
    Arrive {
        /// A packet within this time of its launch time is in time, nanoseconds.
        tolerance_ns: u64,
    },
    /// Sends a packet at each moment of its clock.
    Tick(TickPlan),
    /// Waits for packets until the stop request.
    Listen,
}

/// Bulk during a measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BulkPlan {
    /// Destination.
    pub to: EndAddress,
    /// Packets of a burst.
    pub burst: u32,
    /// From burst to burst, nanoseconds.
    pub period_ns: u64,
    /// Whether bursts come by the clock; otherwise each this long after the one before it, however
    /// late that was.
    pub by_clock: bool,
}

/// The parameters of round trips.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PingPlan {
    /// Destination.
    pub to: EndAddress,
    /// Round trips.
    pub count: u64,
    /// Probes per second by the clock; `None`: the next when the last one is back.
    pub rate_pps: Option<f64>,
    /// Packets of load per second beside the probes, as a flow of its own.
    pub load_pps: Option<f64>,
    /// Round trips before counting begins.
    pub warm: u64,
    /// A probe that is not back after this long is lost, nanoseconds.
    pub patience_ns: u64,
    /// The stop condition of a ring of trace events: the first round trip that is too long.
    #[serde(default)]
    pub stop: Option<Stop>,
}

/// A reply of a side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SideReply {
    /// It is ready.
    Ready(EndAddress),
    /// It has finished.
    Done(Box<JobResult>),
    /// It failed.
    Failed(String),
}

/// The results of a side.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct JobResult {
    /// Within the window.
    pub counted: WindowCounts,
    /// Packets of the whole run: sent, received, or returned.
    pub total: u64,
    /// Returned packets (a transmitter that drains).
    pub returned: u64,
    /// Received packets, before they were returned.
    pub came: u64,
    /// The link's counts, by name.
    pub events: Vec<(String, u64)>,
    /// Copies of a packet's content.
    #[serde(default)]
    pub copies: PacketCopies,
    /// Times from sending to delivery (a receiver of packets with times).
    #[serde(default)]
    pub delays: Option<Histogram>,
    /// Round trips.
    pub trips: Option<RoundTrips>,
    /// Packets sent with launch times.
    pub launched: Option<LaunchSent>,
    /// Packets received with launch times.
    pub arrived: Option<LaunchArrivals>,
    /// What a waiting thread saw.
    pub waited: Option<Delivered>,
}

/// Round trips measured.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RoundTrips {
    /// From the time that a probe was sent.
    pub from_sent: Histogram,
    /// From the time that it was due: corrected for coordinated omission.
    pub from_due: Histogram,
    /// Probes that never came back.
    pub lost: u64,
    /// Packets of load that the link took.
    pub load_sent: u64,
    /// CPU time over time of this side.
    pub cpu_share: f64,
    /// The round trip that stopped the ring.
    #[serde(default)]
    pub late: Option<LateTrip>,
}
