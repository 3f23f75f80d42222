//! The inventory: every I/O thread of this process, its links and their ports, and their counters.

use std::net::SocketAddrV4;
use std::sync::atomic::{AtomicU64, Ordering};

use millstream_link::frame::{FrameCounts, LinkCounters, LinkInfo};

use crate::port::{Lane, bump};
use crate::stack::StackCounters;

use super::host::Host;
use super::registry;

/// How a thread spent its time without work, since it was started. Only that thread writes it.
#[derive(Debug, Default)]
pub(super) struct WaitStats {
    busy_ns: AtomicU64,
    spinning_ns: AtomicU64,
    yielding_ns: AtomicU64,
    sleeping_ns: AtomicU64,
    sleeps: AtomicU64,
}

impl WaitStats {
    pub fn busy(&self, ns: u64) {
        bump(&self.busy_ns, ns);
    }

    pub fn spun(&self, ns: u64) {
        bump(&self.spinning_ns, ns);
    }

    pub fn yielded(&self, ns: u64) {
        bump(&self.yielding_ns, ns);
    }

    pub fn slept(&self, ns: u64) {
        bump(&self.sleeping_ns, ns);
        bump(&self.sleeps, 1);
    }

    pub fn report(&self) -> WaitReport {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        WaitReport {
            busy_ns: get(&self.busy_ns),
            spinning_ns: get(&self.spinning_ns),
            yielding_ns: get(&self.yielding_ns),
            sleeping_ns: get(&self.sleeping_ns),
            sleeps: get(&self.sleeps),
        }
    }
}

/// How a thread spent its time, nanoseconds since it was started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WaitReport {
    /// At work.
    pub busy_ns: u64,
    /// Polling repeatedly.
    pub spinning_ns: u64,
    /// Yielding to other threads of its core.
    pub yielding_ns: u64,
    /// Asleep in the kernel.
    pub sleeping_ns: u64,
    /// Times that it went to sleep and woke up.
    pub sleeps: u64,
}

/// One I/O thread.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ThreadReport {
    /// Its name in the kernel: `ms-io-veth0`.
    pub name: String,
    /// Its number, as in `ps -L` and /proc/PID/task.
    pub tid: i32,
    /// Its assigned CPU.
    pub cpu: Option<usize>,
    /// SCHED_FIFO priority. `None` in the ordinary class.
    pub priority: Option<u8>,
    /// Its wait mode: `spin`, `adaptive`, `park`.
    pub wait: &'static str,
    /// How it spent its time.
    pub waits: WaitReport,
    /// Settings that could not be applied.
    pub notes: Vec<String>,
    /// Whether it has panicked; its ports have ended with an error.
    pub dead: bool,
    /// The links that it owns.
    pub links: Vec<LinkReport>,
    /// The result of the [probe](super::set_probe) on that thread; 0 without one.
    pub probe: u64,
}

/// One link, driven by a thread or by its users.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LinkReport {
    /// The properties of the link.
    pub info: LinkInfo,
    /// The counters of the link.
    pub link: LinkCounters,
    /// Why wanted frames do not reach it and what to do about it, if a reason is known.
    pub advice: Option<String>,
    /// The number of its frames in each place.
    pub census: FrameCounts,
    /// The counters of its stack.
    pub stack: StackCounters,
    /// Its ports.
    pub ports: Vec<PortReport>,
    /// Frames that closed ports did not give back.
    pub leaked_frames: u64,
    /// It is gone, or permanently broken.
    pub dead: bool,
}

/// One UDP port on a link.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PortReport {
    /// Its bound address.
    pub local: SocketAddrV4,
    /// Datagrams put into its ring.
    pub delivered: u64,
    /// Datagrams lost because its user was slow.
    pub queue_drops: u64,
    /// Datagrams copied together out of several parts.
    pub joined: u64,
    /// Datagrams sent.
    pub sent: u64,
    /// Datagrams not sent: no such neighbour, no route, too many waiting.
    pub unsent: u64,
    /// Received frames in its rings, or lent to its user.
    pub held_receive: usize,
    /// Frames to transmit in its rings, or lent to its user.
    pub held_transmit: usize,
}

impl PortReport {
    fn of(lane: &Lane) -> Self {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let counters = &lane.state.counters;
        let held = lane.held();
        Self {
            local: lane.local,
            delivered: get(&counters.delivered),
            queue_drops: get(&counters.queue_drops),
            joined: get(&counters.joined),
            sent: get(&counters.sent),
            unsent: get(&counters.unsent),
            held_receive: held.receive,
            held_transmit: held.transmit,
        }
    }
}

impl LinkReport {
    pub(super) fn of(host: &mut Host) -> Self {
        Self {
            info: host.link().info().clone(),
            link: host.link().counters(),
            advice: host.link().explain(),
            census: host.link().census(),
            stack: host.stack().counters(),
            ports: host.ports().map(PortReport::of).collect(),
            leaked_frames: host.leaked(),
            dead: host.is_dead(),
        }
    }
}

/// All threads and links of this process.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Inventory {
    /// The I/O threads, in their order of starting.
    pub threads: Vec<ThreadReport>,
    /// Links that their users drive.
    pub inline: Vec<LinkReport>,
}

/// Collects the inventory. Each thread answers between two steps.
#[must_use]
pub fn inventory() -> Inventory {
    registry::inventory()
}
