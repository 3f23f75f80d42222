//! Launch times: the kernel's queue sends each datagram at a time that the program sets, and not
//! when the program gets a CPU (`SO_TXTIME`; tc-fq(8), tc-etf(8)).
//!
//! The queue of the interface must be one that knows launch times: `fq` or `etf`. Any other queue
//! sends at once and tells nobody. `millstream-lab latency launch` shows which of them is the case.

use std::io;
use std::net::SocketAddrV4;

use serde::{Deserialize, Serialize};

/// The clock of launch times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LaunchClock {
    /// `CLOCK_MONOTONIC`, which `fq` follows.
    Monotonic,
    /// `CLOCK_TAI`, which `etf` and cards follow.
    Tai,
}

impl LaunchClock {
    /// Returns its number (clock_gettime(2)).
    #[must_use]
    pub fn id(self) -> i32 {
        match self {
            Self::Monotonic => libc::CLOCK_MONOTONIC,
            Self::Tai => libc::CLOCK_TAI,
        }
    }

    /// Returns the time of this clock, nanoseconds.
    #[must_use]
    pub fn now_ns(self) -> u64 {
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the kernel writes one live `timespec`; both clocks exist on every Linux.
        let rc = unsafe { libc::clock_gettime(self.id(), &raw mut now) };
        debug_assert_eq!(rc, 0);
        now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
    }
}

/// Datagrams that a queue refused to send, by reason. Only `etf` reports them; `fq` sends a late
/// datagram at once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchRefusals {
    /// The launch time had passed when the datagram reached the queue, or its clock is not the
    /// queue's.
    pub invalid: u64,
    /// The launch time passed while the datagram waited in the queue.
    pub missed: u64,
}

impl LaunchRefusals {
    /// Returns the number of all.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.invalid + self.missed
    }
}

/// The part of a transmit half that sends at set times.
pub trait LaunchTx {
    /// Returns the clock of its launch times.
    fn clock(&self) -> LaunchClock;

    /// Sends datagrams of `segment_bytes` each that lie back to back in `train` (the last one may
    /// be shorter): the first at `at_ns` of the [clock](Self::clock), each other one `gap_ns` after
    /// the one before. The call returns when the queue has them, one system call for a batch.
    ///
    /// `fq` keeps 100 packets of a flow (`flow_limit`), and none that is more than 10 s ahead
    /// (`horizon`): it drops the others without a report. `etf` refuses datagrams without a launch
    /// time, which those of the port's other calls are.
    ///
    /// # Errors
    /// The link's; `InvalidInput` where no datagram may have `segment_bytes`. A datagram that the
    /// queue refuses later is no error of this call: it counts in [`refusals`](Self::refusals).
    fn send_spaced(
        &mut self,
        train: &[u8],
        segment_bytes: usize,
        to: SocketAddrV4,
        at_ns: u64,
        gap_ns: u64,
    ) -> io::Result<()>;

    /// Returns the datagrams that the queue has reported as refused since the port was opened. The
    /// kernel drops reports while the socket's receive queue is full, so there may be more.
    fn refusals(&mut self) -> LaunchRefusals;
}
