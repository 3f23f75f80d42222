//! An interface limited to the rate of a port (tc-htb(8), tc-pfifo(8), tc-pfifo_fast(8)).
//!
//! One class of `htb` with almost no burst models a wire: a packet leaves when the previous one has
//! been sent, at the rate, and then the class is charged for the packet's own time.

use super::super::message::{
    NetlinkMessage, NetlinkRequest, attribute, attributes, attributes_after, text, u32_at, u64_at,
};
use super::super::{Netlink, NetlinkError};
use super::{FIXED_BYTES, HANDLE, TC_H_ROOT, TCA_KIND, TCA_OPTIONS, fixed};
use std::time::Duration;

/// The handle of the one class; `LEAF` is the queue in it.
const CLASS: u32 = HANDLE | 1;
const LEAF: u32 = 2 << 16;
/// `linux/rtnetlink.h`.
const TCA_STATS2: u16 = 7;
/// `linux/gen_stats.h`.
const TCA_STATS_BASIC: u16 = 1;
const TCA_STATS_QUEUE: u16 = 3;
/// `linux/pkt_sched.h`.
const TCA_HTB_PARMS: u16 = 1;
const TCA_HTB_INIT: u16 = 2;
const TCA_HTB_RATE64: u16 = 6;
const TCA_HTB_CEIL64: u16 = 7;
const TC_HTB_PROTOVER: u32 = 3;
const TC_LINKLAYER_ETHERNET: u8 = 1;
/// `PSCHED_SHIFT` (`net/pkt_sched.h`), as /proc/net/psched shows it.
const TICK_NS: u128 = 64;
/// The bytes that a borrowing class may send per round; there is only one class.
const QUANTUM: u32 = 10_000;

/// The order in which waiting packets are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueOrder {
    /// In the order of arrival; a packet that finds `limit` waiting is dropped (`pfifo`).
    Arrival {
        /// The largest number of waiting packets.
        limit: u32,
    },
    /// By their priority, in three bands (`pfifo_fast`, which Linux gives to hardware).
    Priority,
}

/// The properties of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortShape {
    /// Bits per second.
    pub rate_bps: u64,
    /// The bytes of a frame on the wire that the kernel does not count.
    pub overhead: u16,
    /// The least bytes of a frame on the wire, overhead included.
    pub least: u16,
    /// How far a frame may leave before its time when the previous one was late: the kernel's timer
    /// is late, and without this each delay is lost. Also the advance after an idle time.
    pub credit: Duration,
    /// The order of waiting packets.
    pub order: QueueOrder,
}

/// The counters of an interface's queue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Queued {
    /// The kind, such as `pfifo`.
    pub kind: String,
    /// The sent bytes, Ethernet headers included.
    pub bytes: u64,
    /// The sent packets.
    pub packets: u32,
    /// The dropped packets.
    pub drops: u32,
    /// The packets that wait now.
    pub waiting: u32,
}

impl Netlink {
    /// Limits an interface to the rate of a port, in place of its root queue. Counts begin at zero.
    /// Needs CAP_NET_ADMIN.
    ///
    /// # Errors
    /// [`NetlinkError::Refused`] with the kernel's answer; "not found" where it has no `htb`.
    pub fn shape(&mut self, interface: u32, shape: &PortShape) -> Result<(), NetlinkError> {
        self.unshape(interface)?;
        let flags = libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_EXCL;
        let new = |kind, handle, parent| {
            NetlinkRequest::new(kind, flags, &fixed(interface, handle, parent))
        };
        // `struct tc_htb_glob`: version, a divisor, the class of all packets, debug, a count.
        let global = [TC_HTB_PROTOVER, 10, CLASS & 0xFFFF, 0, 0].map(u32::to_ne_bytes).concat();
        let root = new(libc::RTM_NEWQDISC, HANDLE, TC_H_ROOT)
            .with(TCA_KIND, b"htb\0")
            .with(TCA_OPTIONS, &attribute(TCA_HTB_INIT, &global));
        self.socket.ask("limit the rate of an interface (htb)", &root, |_| None::<()>)?;
        let class = new(libc::RTM_NEWTCLASS, CLASS, HANDLE)
            .with(TCA_KIND, b"htb\0")
            .with(TCA_OPTIONS, &class(shape));
        self.socket.ask("give a class of htb its rate", &class, |_| None::<()>)?;
        let leaf = new(libc::RTM_NEWQDISC, LEAF, CLASS);
        let leaf = match shape.order {
            QueueOrder::Arrival { limit } => {
                leaf.with(TCA_KIND, b"pfifo\0").with(TCA_OPTIONS, &limit.to_ne_bytes())
            }
            QueueOrder::Priority => leaf.with(TCA_KIND, b"pfifo_fast\0"),
        };
        self.socket.ask("give a class of htb its queue", &leaf, |_| None::<()>).map(drop)
    }

    /// Removes the root queue of an interface; the kernel installs its default.
    ///
    /// # Errors
    /// [`NetlinkError::Refused`] with the kernel's answer; a missing queue is not an error.
    pub fn unshape(&mut self, interface: u32) -> Result<(), NetlinkError> {
        let fixed = fixed(interface, 0, TC_H_ROOT);
        let request = NetlinkRequest::new(libc::RTM_DELQDISC, libc::NLM_F_ACK, &fixed);
        // An interface without its own root queue has one of two errors.
        let missing = [libc::ENOENT, libc::EINVAL];
        let what = "take an interface's queue away";
        self.socket.ask_for(what, &request, &missing, |_| None::<()>).map(drop)
    }

    /// Returns the counters of an interface that was [shaped](Self::shape); `None` where there is
    /// no such queue.
    ///
    /// # Errors
    /// [`NetlinkError::Refused`] with the kernel's answer.
    pub fn queued(&mut self, interface: u32) -> Result<Option<Queued>, NetlinkError> {
        self.counters(interface, LEAF)
    }

    /// Returns the counters of the queue that an interface has from
    /// [`launch`](Self::launch); `None` where there is no such queue.
    ///
    /// # Errors
    /// [`NetlinkError::Refused`] with the kernel's answer.
    pub fn launched(&mut self, interface: u32) -> Result<Option<Queued>, NetlinkError> {
        self.counters(interface, HANDLE)
    }

    /// Returns the counters of the queue at each interface's root, which include those of the
    /// queues below it, with the number of the interface. An interface may have no queue.
    ///
    /// # Errors
    /// [`NetlinkError::Refused`] with the kernel's answer.
    pub fn root_queues(&mut self) -> Result<Vec<(u32, Queued)>, NetlinkError> {
        let fixed = fixed(0, 0, 0);
        // A request for one queue would be answered to all listeners of the namespace (RTNLGRP_TC).
        let request = NetlinkRequest::new(libc::RTM_GETQDISC, libc::NLM_F_DUMP, &fixed);
        let parse = |message: &NetlinkMessage<'_>| {
            let is_root = u32_at(message.body, 12)? == TC_H_ROOT;
            is_root.then_some((u32_at(message.body, 4)?, parse(message.body)))
        };
        self.socket.ask("ask for the interfaces' queues", &request, parse)
    }

    fn counters(&mut self, interface: u32, queue: u32) -> Result<Option<Queued>, NetlinkError> {
        let fixed = fixed(interface, 0, 0);
        let request = NetlinkRequest::new(libc::RTM_GETQDISC, libc::NLM_F_DUMP, &fixed);
        let parse = |message: &NetlinkMessage<'_>| {
            let is = |at, value| u32_at(message.body, at) == Some(value);
            (is(4, interface) && is(8, queue)).then(|| parse(message.body))
        };
        let found = self.socket.ask("ask for an interface's queues", &request, parse)?;
        Ok(found.into_iter().next())
    }
}

fn class(shape: &PortShape) -> Vec<u8> {
    let bytes_per_s = shape.rate_bps / 8;
    // `struct tc_ratespec`: log of cells, link layer, overhead, alignment, least, rate (or all
    // ones, and the attribute has it).
    let mut rate = vec![0, TC_LINKLAYER_ETHERNET];
    rate.extend(shape.overhead.to_ne_bytes());
    rate.extend(0u16.to_ne_bytes());
    rate.extend(shape.least.to_ne_bytes());
    rate.extend(u32::try_from(bytes_per_s).unwrap_or(u32::MAX).to_ne_bytes());
    // `struct tc_htb_opt`: rate, ceiling, bursts of both in ticks, quantum, level, priority.
    let credit = (shape.credit.as_nanos() / TICK_NS) as u32;
    let rest = [credit, credit, QUANTUM, 0, 0].map(u32::to_ne_bytes).concat();
    let parameters = [rate.clone(), rate, rest].concat();
    let wide = bytes_per_s.to_ne_bytes();
    [
        attribute(TCA_HTB_PARMS, &parameters),
        attribute(TCA_HTB_RATE64, &wide),
        attribute(TCA_HTB_CEIL64, &wide),
    ]
    .concat()
}

fn parse(body: &[u8]) -> Queued {
    let mut queued = Queued::default();
    for (kind, value) in attributes_after(body, FIXED_BYTES) {
        match kind {
            TCA_KIND => queued.kind = text(value),
            TCA_STATS2 => attributes(value).for_each(|(kind, value)| match kind {
                // `struct gnet_stats_basic`: bytes, packets.
                TCA_STATS_BASIC => {
                    queued.bytes = u64_at(value, 0).unwrap_or(0);
                    queued.packets = u32_at(value, 8).unwrap_or(0);
                }
                // `struct gnet_stats_queue`: length, backlog, drops, requeues, overlimits.
                TCA_STATS_QUEUE => {
                    queued.waiting = u32_at(value, 0).unwrap_or(0);
                    queued.drops = u32_at(value, 8).unwrap_or(0);
                }
                _ => {}
            }),
            _ => {}
        }
    }
    queued
}
