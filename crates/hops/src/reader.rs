//! All hops of one network namespace, read together.

use crate::counters::Counters;
use crate::namespace::within;
use crate::pace::Paced;
use crate::sockets::Sockets;
use crate::threads::Threads;
use millstream_host::netlink::NetlinkError;
use millstream_watch::{HopReading, InterfaceReading, SocketReading, StackReading, ThreadReading};
use std::io;
use std::net::SocketAddrV4;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

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
/// A reading costs 50 to 200 µs. Where a part of it costs more than 100 µs, because a host has
/// hundreds of interfaces, sockets or threads, that part is read for at most a hundredth of a CPU,
/// and readings repeat its last state meanwhile.
#[derive(Debug)]
pub struct HopReader {
    pid: Option<u32>,
    /// Sorted by port.
    ends: Vec<SocketAddrV4>,
    counters: Counters,
    sockets: Sockets,
    threads: Threads,
    parts: Parts,
}

/// The parts of a reading.
#[derive(Debug)]
struct Parts {
    interfaces: Paced<Vec<InterfaceReading>>,
    stack: Paced<(Option<u64>, StackReading)>,
    sockets: Paced<Vec<SocketReading>>,
    threads: Paced<Vec<ThreadReading>>,
}

impl Parts {
    fn new() -> Self {
        let none = Duration::ZERO;
        let (interfaces, stack) = (Paced::new(none), Paced::new(none));
        Self { interfaces, stack, sockets: Paced::new(none), threads: Paced::new(none) }
    }
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
        let (counters, ends) = (counters?, Vec::new());
        Ok(Self { pid, ends, counters, sockets, threads, parts: Parts::new() })
    }

    /// Sets the ends of flows on this host, whose sockets are read from now on.
    pub fn follow(&mut self, ends: &[SocketAddrV4]) {
        let mut ends = ends.to_vec();
        ends.sort_unstable_by_key(|end| (end.port(), *end.ip()));
        if self.ends != ends {
            self.ends = ends;
            self.sockets.look_again();
            self.parts.sockets = Paced::new(Duration::ZERO);
        }
    }

    /// Reads all hops. `capture_missed` goes into the reading as it is.
    pub fn read(&mut self, capture_missed: u64) -> HopReading {
        let now = Instant::now();
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let Self { ends, counters, sockets, threads, parts, .. } = self;
        let sockets = parts.sockets.read(now, || sockets.read(now, ends));
        let mut pids = Vec::from_iter(self.pid);
        for pid in sockets.iter().filter_map(|socket| socket.pid) {
            if !pids.contains(&pid) {
                pids.push(pid);
            }
        }
        let threads = parts.threads.read(now, || threads.read(now, &pids, sockets));
        let stack = parts.stack.read(now, || (counters.backlog_dropped(), counters.stack()));
        HopReading {
            at_ns: at.as_nanos() as u64,
            capture_missed,
            interfaces: parts.interfaces.read(now, || counters.interfaces(now)).clone(),
            backlog_dropped: stack.0,
            stack: stack.1.clone(),
            threads: threads.clone(),
            sockets: sockets.clone(),
            stolen_ns: counters.stolen_ns(now),
        }
    }

    /// Says what these readings leave open, and which right or command would help: a sentence each,
    /// by the last reading.
    #[must_use]
    pub fn lacks(&self) -> Vec<String> {
        [self.counters.lacks(), self.sockets.lacks(), self.threads.lacks()].concat()
    }
}
