//! All hops of one network namespace, read together.

use crate::counters::Counters;
use crate::namespace::within;
use crate::sockets::Sockets;
use crate::threads::Threads;
use millstream_host::netlink::NetlinkError;
use millstream_watch::HopReading;
use std::io;
use std::net::SocketAddrV4;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Why the hops cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HopError {
    /// The network namespace of the program cannot be entered.
    #[error(transparent)]
    Namespace(#[from] io::Error),
    /// The network namespace has no such interface, or the kernel refused.
    #[error(transparent)]
    Network(#[from] NetlinkError),
}

/// Reads the hops of a network namespace: its interfaces, the backlog, the stack, the sockets of
/// flows with their owners, and the owners' threads.
///
/// A reading costs some tens of microseconds. What may cost more (a card's driver, a walk through
/// all processes, the threads of a program with many) is read less often: for at most a hundredth
/// of the time.
#[derive(Debug)]
pub struct HopReader {
    pid: Option<u32>,
    /// Sorted by port.
    ends: Vec<SocketAddrV4>,
    counters: Counters,
    sockets: Sockets,
    threads: Threads,
}

impl HopReader {
    /// Opens the hops of the namespace that process `pid` is in, or of ours, with these interfaces
    /// or all. The sockets and threads of `pid` are read, too.
    ///
    /// # Errors
    /// [`HopError::Namespace`] where the process has ended or its namespace may not be entered;
    /// [`HopError::Network`] where there is no such interface.
    pub fn open(pid: Option<u32>, interfaces: &[String]) -> Result<Self, HopError> {
        let (counters, sockets) = within(pid, || (Counters::open(interfaces), Sockets::open(pid)))?;
        let threads = Threads::default();
        Ok(Self { pid, ends: Vec::new(), counters: counters?, sockets, threads })
    }

    /// Sets the ends of flows on this host, whose sockets are read from now on.
    pub fn follow(&mut self, ends: &[SocketAddrV4]) {
        let mut ends = ends.to_vec();
        ends.sort_unstable_by_key(|end| (end.port(), *end.ip()));
        if self.ends != ends {
            self.ends = ends;
            self.sockets.look_again();
        }
    }

    /// Reads all hops. `capture_missed` goes into the reading as it is.
    pub fn read(&mut self, capture_missed: u64) -> HopReading {
        let now = Instant::now();
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let sockets = self.sockets.read(now, &self.ends);
        let mut pids = Vec::from_iter(self.pid);
        for pid in sockets.iter().filter_map(|socket| socket.pid) {
            if !pids.contains(&pid) {
                pids.push(pid);
            }
        }
        HopReading {
            at_ns: at.as_nanos() as u64,
            capture_missed,
            interfaces: self.counters.interfaces(now),
            backlog_dropped: self.counters.backlog_dropped(),
            stack: self.counters.stack(),
            threads: self.threads.read(now, &pids, &sockets),
            sockets,
            stolen_ns: self.counters.stolen_ns(now),
        }
    }

    /// Says what these readings leave open, and which right or command would help: a sentence each,
    /// by the last reading.
    #[must_use]
    pub fn lacks(&self) -> Vec<String> {
        [self.counters.lacks(), self.sockets.lacks(), self.threads.lacks()].concat()
    }
}
