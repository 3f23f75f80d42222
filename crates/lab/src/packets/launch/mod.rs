//! How near to its launch time a packet leaves: asked of the kernel's queue (`fq`, `etf`) beside a
//! thread that sleeps until the time and sends then.
//!
//! The packets carry their launch times. The receiver compares them with the kernel's time stamp of
//! each received packet: both sides are on one machine, so that their clocks are the same, and a
//! veth pair delivers a packet when the queue lets it go.

mod arrive;
mod measure;
mod offsets;
mod send;
mod table;

use std::time::Duration;

use millstream_host::netlink::LaunchQueue;
use millstream_link::launch::{LaunchClock, LaunchRefusals};
use serde::{Deserialize, Serialize};

use super::end::EndAddress;

pub(super) use arrive::ArrivalEnd;
pub use measure::{LaunchFigures, Launching, launch};
pub use offsets::LaunchOffsets;
pub(super) use send::LaunchEnd;
pub use table::LaunchLine;

/// What keeps the launch times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LaunchVia {
    /// A thread that sleeps until each time.
    Thread,
    /// The queue `fq`.
    Fq,
    /// The queue `etf`.
    Etf,
    /// Nothing: the packets carry launch times, and the interface's own queue does not know them.
    None,
}

impl LaunchVia {
    /// Returns its name in tables and records.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Thread => "thread",
            Self::Fq => "fq",
            Self::Etf => "etf",
            Self::None => "none",
        }
    }

    /// Returns the queue that it needs.
    fn queue(self, tolerance: Duration) -> Option<LaunchQueue> {
        match self {
            Self::Thread | Self::None => None,
            Self::Fq => Some(LaunchQueue::Fq),
            Self::Etf => Some(LaunchQueue::Etf { delta: tolerance }),
        }
    }

    /// Returns the link of the sender.
    fn link(self) -> &'static str {
        match self {
            Self::Thread => "udp",
            Self::Fq | Self::None => "udp:launch=fq",
            Self::Etf => "udp:launch=etf",
        }
    }
}

/// The sender's part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LaunchPlan {
    /// Destination.
    pub to: EndAddress,
    /// What keeps the times.
    pub via: LaunchVia,
    /// Packets.
    pub count: u64,
    /// From launch time to launch time, nanoseconds.
    pub interval_ns: u64,
    /// How long before the first launch time of a batch the sender hands it over, nanoseconds.
    pub lead_ns: u64,
    /// Packets of a batch.
    pub batch: usize,
}

/// What the sender did.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LaunchSent {
    /// Packets.
    pub sent: u64,
    /// Packets that the queue refused, by its reports.
    pub refusals: LaunchRefusals,
    /// CPU time of the sending thread, seconds.
    pub cpu_s: f64,
}

/// What the receiver saw.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LaunchArrivals {
    /// The time of each packet's arrival, from its launch time.
    pub offsets: LaunchOffsets,
    /// Packets that came before their time by more than the tolerance.
    pub early: u64,
    /// Packets that came after it by more than the tolerance.
    pub late: u64,
}

/// Bytes at the head of a payload: the launch time, and the number of its clock.
const MARK_BYTES: usize = 12;

/// Writes a launch time into a payload.
fn mark(payload: &mut [u8], clock: LaunchClock, at_ns: u64) {
    payload[..8].copy_from_slice(&at_ns.to_le_bytes());
    payload[8..MARK_BYTES].copy_from_slice(&clock.id().to_le_bytes());
}

/// Reads the launch time of a payload, if it has one.
fn marked(payload: &[u8]) -> Option<(LaunchClock, u64)> {
    let at_ns = u64::from_le_bytes(*payload.first_chunk()?);
    let clock = i32::from_le_bytes(*payload.get(8..)?.first_chunk()?);
    let known = [LaunchClock::Monotonic, LaunchClock::Tai];
    Some((known.into_iter().find(|known| known.id() == clock)?, at_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launch_time_is_read_as_it_was_written() {
        let mut payload = [7; 20];
        for clock in [LaunchClock::Monotonic, LaunchClock::Tai] {
            mark(&mut payload, clock, 1 << 60);
            assert_eq!(marked(&payload), Some((clock, 1 << 60)));
        }
        assert_eq!(marked(&payload[..11]), None);
        assert_eq!(marked(&[7; 20]), None, "no such clock");
    }
}
