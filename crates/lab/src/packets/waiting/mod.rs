//! What each wait mode costs the thread that receives, and how soon it sees a packet.
//!
//! One side sends a packet at each moment of its clock, and spins in between, so that its own
//! wake-ups are in no figure. The packet carries the time at which it was sent. The other side
//! waits at a port, and records how long ago that was when it has the packet: both are on one
//! machine, so the clock is the same.

mod listen;
mod measure;
mod table;
mod tick;

use millstream_stats::Histogram;
use serde::{Deserialize, Serialize};

use super::end::EndAddress;

pub(super) use listen::ListenEnd;
pub use measure::{WaitCase, WaitFigures, wait};
pub use millstream_ring::Wait;
pub use table::WaitLine;
pub(super) use tick::tick;

/// The parameters of packets at the moments of a clock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TickPlan {
    /// Destination.
    pub to: EndAddress,
    /// Packets per second.
    pub rate_pps: f64,
    /// Duration, nanoseconds.
    pub span_ns: u64,
}

/// What a waiting thread saw, and what it took.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Delivered {
    /// From the sending of a packet until the thread had it.
    pub delays: Histogram,
    /// CPU time of the thread over the time from the first packet to the last; `None` if both came
    /// too soon after each other.
    pub cpu_share: Option<f64>,
    /// Times per second at which the thread went to sleep; `None` in the same case.
    pub sleeps_hz: Option<f64>,
}

/// Returns the link string of a port whose thread waits in a mode: on a frame link, the user's
/// thread drives the link itself, so that it is the I/O thread.
#[must_use]
pub fn link_with(link: &str, wait: Wait) -> String {
    let separator = if link.contains(':') { ',' } else { ':' };
    let wait = wait.name();
    if millstream_link::registry::carries_frames(link) {
        format!("{link}{separator}io=inline,user_wait={wait}")
    } else {
        format!("{link}{separator}wait={wait}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_link_has_its_own_word_for_the_wait_of_its_thread() {
        assert_eq!(link_with("udp", Wait::Spin), "udp:wait=spin");
        assert_eq!(link_with("udp:gro=off", Wait::Park), "udp:gro=off,wait=park");
        assert_eq!(link_with("packet", Wait::Adaptive), "packet:io=inline,user_wait=adaptive");
        for wait in Wait::ALL {
            millstream_link::check_options(&link_with("udp", wait)).unwrap();
        }
    }
}
