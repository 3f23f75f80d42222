//! Queues that send packets at the times that programs set (tc-fq(8), tc-etf(8)).

use super::super::message::{NetlinkRequest, attribute};
use super::super::{Netlink, NetlinkError};
use super::{HANDLE, TC_H_ROOT, TCA_KIND, TCA_OPTIONS, fixed};
use std::io;
use std::time::Duration;

/// `linux/pkt_sched.h`.
const TCA_ETF_PARMS: u16 = 1;

/// A queue that knows launch times (`SO_TXTIME`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaunchQueue {
    /// `fq`: times of CLOCK_MONOTONIC. A packet leaves at its time or later, and a late packet
    /// leaves at once.
    Fq,
    /// `etf`: times of CLOCK_TAI. A packet leaves at its time or earlier; one that would be late is
    /// dropped, and its socket is told.
    Etf {
        /// How much earlier the kernel wakes up, and may send: longer than its timers are late.
        delta: Duration,
    },
}

impl LaunchQueue {
    /// Returns its name in the kernel.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Fq => "fq",
            Self::Etf { .. } => "etf",
        }
    }
}

impl Netlink {
    /// Gives an interface a queue that sends packets at their launch times, in place of its root
    /// queue. Counts begin at zero. Needs CAP_NET_ADMIN.
    ///
    /// # Errors
    /// [`NetlinkError::NoQueue`] where the kernel has no such queue, [`NetlinkError::Refused`] with
    /// its answer otherwise.
    pub fn launch(&mut self, interface: u32, queue: LaunchQueue) -> Result<(), NetlinkError> {
        self.unshape(interface)?;
        let flags = libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_EXCL;
        let fixed = fixed(interface, HANDLE, TC_H_ROOT);
        let request = NetlinkRequest::new(libc::RTM_NEWQDISC, flags, &fixed);
        let request = match queue {
            LaunchQueue::Fq => request.with(TCA_KIND, b"fq\0"),
            LaunchQueue::Etf { delta } => {
                // `struct tc_etf_qopt`: delta in nanoseconds, clock, flags.
                let delta_ns = i32::try_from(delta.as_nanos()).unwrap_or(i32::MAX);
                let options = [delta_ns, libc::CLOCK_TAI, 0].map(i32::to_ne_bytes).concat();
                request
                    .with(TCA_KIND, b"etf\0")
                    .with(TCA_OPTIONS, &attribute(TCA_ETF_PARMS, &options))
            }
        };
        let asked = self.socket.ask("give an interface a queue", &request, |_| None::<()>);
        asked.map(drop).map_err(|error| match error {
            NetlinkError::Refused { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                NetlinkError::NoQueue(queue.name())
            }
            other => other,
        })
    }
}
