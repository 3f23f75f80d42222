//! What a side is told to do, and what it answers: one JSON line each.

use serde::{Deserialize, Serialize};

use crate::explain::{LateTrip, Stop};
use millstream_measure::Histogram;

use super::end::EndAddress;
use super::plan::{EndPlan, Span};
use super::window::WindowCounts;

/// A side's part in one measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SideJob {
    /// What to open.
    pub end: EndPlan,
    /// What to do with it.
    pub role: Role,
    /// Have the kernel count system calls, which slows them down a little.
    pub trace: bool,
    /// SCHED_FIFO at this priority; none: the ordinary class.
    pub fifo: Option<u32>,
}

/// What a side does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Opens its end and does nothing until it is told to stop.
    Hold,
    /// Receives and forgets until it is told to stop.
    Receive(Span),
    /// Sends everything back until it is told to stop.
    Turn(Span),
    /// Sends as fast as the link takes, or at a rate.
    Transmit {
        /// How long.
        span: Span,
        /// Where to.
        to: EndAddress,
        /// Packets per second; none: as many as possible.
        rate_pps: Option<f64>,
        /// Takes, and counts, what comes back.
        drain: bool,
    },
    /// Sends numbered packets back, and drops all others, until it is told to stop.
    Echo,
    /// Measures round trips.
    Ping(PingPlan),
    /// Sends bursts until it is told to stop.
    Bulk(BulkPlan),
}

/// Bulk beside a measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BulkPlan {
    /// Where to.
    pub to: EndAddress,
    /// Packets of a burst.
    pub burst: u32,
    /// From burst to burst, nanoseconds.
    pub period_ns: u64,
    /// Bursts come by the clock; otherwise each so long after the one before it, however late that
    /// was.
    pub by_clock: bool,
}

/// How round trips are measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PingPlan {
    /// Where to.
    pub to: EndAddress,
    /// Round trips.
    pub count: u64,
    /// Probes per second by the clock; none: the next as soon as the last one is back.
    pub rate_pps: Option<f64>,
    /// Packets of load per second beside the probes, as a flow of its own.
    pub load_pps: Option<f64>,
    /// Round trips before counting begins.
    pub warm: u64,
    /// A probe that is not back after this long is lost, nanoseconds.
    pub patience_ns: u64,
    /// The first round trip that is too long stops a ring of trace events.
    #[serde(default)]
    pub stop: Option<Stop>,
}

/// What a side says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SideReply {
    /// It is in its place.
    Ready(EndAddress),
    /// It has done its part.
    Done(Box<JobResult>),
    /// It cannot.
    Failed(String),
}

/// What a side found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct JobResult {
    /// Within the window.
    pub counted: WindowCounts,
    /// Packets of the whole run: sent, received, or turned.
    pub total: u64,
    /// Packets that came back (a transmitter that drains).
    pub returned: u64,
    /// Packets that came in before they were turned.
    pub came: u64,
    /// What the link counted, by name.
    pub events: Vec<(String, u64)>,
    /// Round trips.
    pub trips: Option<RoundTrips>,
}

/// Round trips measured.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RoundTrips {
    /// From the moment that a probe was sent.
    pub from_sent: Histogram,
    /// From the moment that it was due: corrected for coordinated omission.
    pub from_due: Histogram,
    /// Probes that never came back.
    pub lost: u64,
    /// Packets of load that the link took.
    pub load_sent: u64,
    /// CPU time over time of this side.
    pub cpu_share: f64,
    /// The one that stopped the ring.
    #[serde(default)]
    pub late: Option<LateTrip>,
}
