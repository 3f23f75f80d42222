//! What one host says of the hops of its network path at one moment. Crate `hops` reads it from the
//! kernel; here it is data.
//!
//! All times are nanoseconds of `CLOCK_REALTIME`, as the kernel stamps captured packets. All
//! counters only grow, but may wrap or begin anew; `None` is a counter that this kernel or card
//! does not have, or that may not be read.

use std::net::SocketAddrV4;

use serde::{Deserialize, Serialize};

/// The state of all hops at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HopReading {
    /// When it was read, nanoseconds.
    pub at_ns: u64,
    /// The inode of the network namespace that is read: the number in `/proc/PID/ns/net`.
    pub namespace: Option<u32>,
    /// Packets that our own capture missed since it began.
    pub capture_missed: u64,
    /// The interfaces that are watched.
    pub interfaces: Vec<InterfaceReading>,
    /// Packets dropped because a CPU's backlog was full (`/proc/net/softnet_stat`, column 2), all
    /// CPUs.
    pub backlog_dropped: Option<u64>,
    /// The IPv4 and UDP layers of the watched network namespace.
    pub stack: StackReading,
    /// The sockets of the flows.
    pub sockets: Vec<SocketReading>,
    /// The threads of the programs that own these sockets.
    pub threads: Vec<ThreadReading>,
    /// Time that the hypervisor has taken from all CPUs, nanoseconds (`/proc/stat`, steal).
    pub stolen_ns: Option<u64>,
}

/// The counters of an interface and of its queueing discipline.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InterfaceReading {
    /// Its name.
    pub name: String,
    /// Packets for which the card's ring had no room: `rx_missed_errors`, `rx_fifo_errors`,
    /// `rx_over_errors`, and the card's own names for them. `None` where the driver does not count
    /// them; 0 for an interface without a ring.
    pub ring_full: Option<u64>,
    /// Packets that came damaged: checksum, framing, length.
    pub damaged: Option<u64>,
    /// Packets that the driver or the kernel dropped on receiving (`rx_dropped`). Those of a full
    /// backlog and those of an unknown protocol count here, too, and with some drivers those of a
    /// full ring.
    pub receive_dropped: Option<u64>,
    /// Packets that the driver dropped on sending (`tx_dropped`, `tx_errors`).
    pub send_dropped: Option<u64>,
    /// Packets that the queueing discipline dropped, modulo 2³². `None` without one.
    pub queue_dropped: Option<u64>,
    /// Entries of the card's receive ring, and the most that it can have.
    pub ring_entries: Option<(u32, u32)>,
}

/// The counters of `/proc/net/snmp`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StackReading {
    /// Packets that IPv4 discarded or could not deliver (`InDiscards`, `InHdrErrors`,
    /// `InAddrErrors`).
    pub ip_discarded: Option<u64>,
    /// Datagrams that could not be put together (`ReasmFails`).
    pub reassembly_failed: Option<u64>,
    /// Datagrams with a wrong checksum (`Udp: InCsumErrors`).
    pub udp_damaged: Option<u64>,
    /// Datagrams for which a socket had no room (`Udp: RcvbufErrors`), all sockets.
    pub udp_no_room: Option<u64>,
    /// Datagrams that could not be sent (`Udp: SndbufErrors`, `Ip: OutDiscards`).
    pub send_dropped: Option<u64>,
}

/// A UDP socket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SocketReading {
    /// Its address.
    pub local: SocketAddrV4,
    /// The other end, if it is connected.
    pub remote: Option<SocketAddrV4>,
    /// Its inode, which names it.
    pub inode: u64,
    /// The process that has it open, if that may be seen.
    pub pid: Option<u32>,
    /// Memory that unread datagrams take, bytes as the kernel counts them (with its own overhead).
    pub queued_bytes: u64,
    /// The most that they may take, bytes counted the same way; 0 where the kernel does not say it.
    pub buffer_bytes: u64,
    /// Memory that datagrams not yet sent take, bytes.
    pub send_queued_bytes: u64,
    /// Datagrams for which there was no room, and damaged ones; modulo 2³².
    pub dropped: u64,
}

impl SocketReading {
    /// Returns whether it gets what is sent to `end`.
    #[must_use]
    pub fn receives(&self, end: SocketAddrV4) -> bool {
        let is_here = *self.local.ip() == *end.ip() || self.local.ip().is_unspecified();
        self.local.port() == end.port() && is_here
    }

    /// Returns whether it is the end `here` of a flow whose other end is `there`.
    #[must_use]
    pub fn is_of(&self, here: SocketAddrV4, there: SocketAddrV4) -> bool {
        self.receives(here) && self.remote.is_none_or(|remote| remote == there)
    }
}

/// A thread of a program that is watched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThreadReading {
    /// Its process.
    pub pid: u32,
    /// Its number.
    pub tid: u32,
    /// Its name, up to 15 bytes.
    pub name: String,
    /// The CPU that it ran on last.
    pub cpu: u32,
    /// Its state: `R` runs or waits for a CPU, `S` sleeps, `D` waits for a device, `T` is stopped
    /// (proc_pid_stat(5)).
    pub state: char,
    /// CPU time, nanoseconds.
    pub cpu_ns: u64,
    /// Time in which it was ready and waited for a CPU, nanoseconds.
    pub run_delay_ns: Option<u64>,
    /// Page faults that needed a disk.
    pub major_faults: u64,
    /// Moves to another CPU, where the kernel says it.
    pub migrations: Option<u64>,
    /// The inode of the socket that it was last seen to read or to wait for.
    pub reads: Option<u64>,
}

/// A packet of a flow that the kernel dropped, by its tracepoint `skb:kfree_skb`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DroppedPacket {
    /// When, nanoseconds.
    pub at_ns: u64,
    /// Why, in the kernel's word without its prefix (`SOCKET_RCVBUFF`, `CPU_BACKLOG`). Linux before
    /// 5.17 has no word (`UNKNOWN`). `NOT_SPECIFIED` on the way out may be a packet that was sent:
    /// some drivers free it that way.
    pub reason: String,
    /// The inode of the network namespace that had it, where the kernel still knew it: the number
    /// in `/proc/PID/ns/net`.
    pub namespace: Option<u32>,
    /// The datagrams in it: more than one for a train (GSO, GRO), whose first one `header` is of.
    pub segments: u32,
    /// The sender.
    pub source: SocketAddrV4,
    /// The receiver.
    pub destination: SocketAddrV4,
    /// The first bytes of the datagram: the CHDR header. `None` where it has fewer, or where the
    /// kernel holds them elsewhere than the packet's headers (Linux before 6.12 hands none out).
    pub header: Option<[u8; 8]>,
}

/// A time in which a thread was ready and did not run, by the kernel's tracepoints `sched`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThreadWait {
    /// The thread.
    pub tid: u32,
    /// From when it was ready, nanoseconds.
    pub from_ns: u64,
    /// When it ran, nanoseconds.
    pub until_ns: u64,
    /// The CPU that it waited for.
    pub cpu: u32,
    /// The thread that ran there the longest meanwhile: its number and name.
    pub instead: Option<(u32, String)>,
}
