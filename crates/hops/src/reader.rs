//! All hops of one network namespace, read together.

use crate::counters::Counters;
use crate::namespace::within;
use crate::pace::Paced;
use crate::sockets::Sockets;
use crate::threads::Threads;
use millstream_cpu::usage::thread_cpu_time;
use millstream_host::netlink::NetlinkError;
use millstream_watch::{HopReading, ThreadReading};
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

/// The times that a reading is made while the thread is kept from it for longer than `AWAY_MAX`:
/// on a busy host its counters would be of different moments.
const TRIES: usize = 3;
const AWAY_MAX: Duration = Duration::from_millis(1);
/// The share of a CPU that readings may cost: 1 in so many.
const SHARE: u32 = 50;

/// Reads the hops of a network namespace: its interfaces, the backlog, the stack, the sockets of
/// flows with their owners, and the owners' threads.
///
/// A reading costs 50 to 250 µs, and more on a host with hundreds of interfaces or sockets. A card
/// that counts by itself is asked ten times a second at most; the threads of a program with many,
/// and the owners of new sockets, are looked for in a hundredth of a CPU.
#[derive(Debug)]
pub struct HopReader {
    pid: Option<u32>,
    /// Sorted by port.
    ends: Vec<SocketAddrV4>,
    counters: Counters,
    sockets: Sockets,
    threads: Threads,
    thread_readings: Paced<Vec<ThreadReading>>,
    cost: Duration,
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
        Ok(Self {
            pid,
            ends: Vec::new(),
            counters: counters?,
            sockets,
            threads: Threads::default(),
            thread_readings: Paced::new(Duration::ZERO),
            cost: Duration::ZERO,
        })
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
        let (now, before) = (Instant::now(), thread_cpu_time());
        let mut reading = HopReading { capture_missed, ..Default::default() };
        let mut listed = Vec::new();
        for _ in 0..TRIES {
            let (begin, before) = (Instant::now(), thread_cpu_time());
            let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            listed = self.sockets.list();
            reading.stack = self.counters.stack();
            reading.backlog_dropped = self.counters.backlog_dropped();
            reading.interfaces = self.counters.interfaces(now);
            let took = begin.elapsed();
            reading.at_ns = (at + took / 2).as_nanos() as u64;
            if took.saturating_sub(thread_cpu_time().saturating_sub(before)) < AWAY_MAX {
                break;
            }
        }
        reading.sockets = self.sockets.read(now, listed, &self.ends);
        reading.stolen_ns = self.counters.stolen_ns(now);
        let mut pids = Vec::from_iter(self.pid);
        for pid in reading.sockets.iter().filter_map(|socket| socket.pid) {
            if !pids.contains(&pid) {
                pids.push(pid);
            }
        }
        let threads = || self.threads.read(now, &pids, &reading.sockets);
        reading.threads = self.thread_readings.read(now, threads).clone();
        self.cost = thread_cpu_time().saturating_sub(before);
        reading
    }

    /// Returns the least time until the next reading, by what the last one cost: readings may cost
    /// 2 % of a CPU.
    #[must_use]
    pub fn rest(&self) -> Duration {
        self.cost * SHARE
    }

    /// Says what these readings leave open, and which right or command would help: a sentence each,
    /// by the last reading.
    #[must_use]
    pub fn lacks(&self) -> Vec<String> {
        [self.counters.lacks(), self.sockets.lacks(), self.threads.lacks()].concat()
    }
}
