//! The budget of a packet: its copies and its delay. The calls and wake-ups are in the window.

use std::io;

use millstream_link::frame::Copies;
use millstream_stats::Histogram;
use serde::{Deserialize, Serialize};

use super::end::{Look, PathEnd};
use super::job::JobResult;
use super::plan::Workload;
use millstream_cpu::alarm::now_ns;

/// Copies of a packet's content on one side. `None` where a driver decides them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct PacketCopies {
    /// Of a sent packet.
    pub send: Option<f64>,
    /// Of a received packet.
    pub receive: Option<f64>,
}

impl PacketCopies {
    /// The copies of a link, and those that a port counted: `joined` datagrams of `delivered` were
    /// copied together out of several parts.
    #[must_use]
    pub fn new(link: Copies, joined: u64, delivered: u64) -> Self {
        let joins = joined as f64 / delivered.max(1) as f64;
        Self {
            send: link.send.map(f64::from),
            receive: link.receive.map(|copies| f64::from(copies) + joins),
        }
    }
}

/// The parts of a packet's budget that no window counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct PacketBudget {
    /// Copies by the side that sends.
    pub sender_copies: Option<f64>,
    /// Copies by the other side.
    pub receiver_copies: Option<f64>,
    /// Median of the time from the call that sends a packet to its delivery, microseconds.
    pub delay_median_us: Option<f64>,
    /// 99th percentile of that time, microseconds.
    pub delay_p99_us: Option<f64>,
}

impl PacketBudget {
    pub(super) fn of(workload: Workload, sender: &JobResult, receiver: &JobResult) -> Self {
        let both = |copies: PacketCopies| Some(copies.send? + copies.receive?);
        let (sender_copies, receiver_copies) = match workload {
            Workload::Drop => (sender.copies.send, receiver.copies.receive),
            Workload::Transmit => (sender.copies.send, None),
            Workload::Swap => (both(sender.copies), both(receiver.copies)),
        };
        let delays = receiver.delays.as_ref().filter(|delays| delays.count() > 0);
        let delay_us = |quantile| delays.map(|delays| delays.quantile_ns(quantile) as f64 / 1e3);
        Self {
            sender_copies,
            receiver_copies,
            delay_median_us: delay_us(0.5),
            delay_p99_us: delay_us(0.99),
        }
    }
}

/// From one packet with a time to the next, nanoseconds: rare enough to cost nothing.
const STAMP_NS: u64 = 500_000;

/// Sends packets whose number is the time at which they were sent.
#[derive(Debug, Default)]
pub(super) struct Stamps {
    next_ns: u64,
}

impl Stamps {
    /// Sends one when it is time; returns how many were sent.
    pub fn send(&mut self, end: &mut dyn PathEnd) -> io::Result<u64> {
        let now_ns = now_ns();
        if now_ns < self.next_ns {
            return Ok(0);
        }
        self.next_ns = now_ns + STAMP_NS;
        Ok(end.send_among(now_ns)? as u64)
    }
}

/// The delays of packets with times.
#[derive(Debug, Default)]
pub(super) struct StampedDelays {
    numbers: Vec<u64>,
    pub delays: Histogram,
}

impl StampedDelays {
    /// Takes the packets that came; returns their number.
    pub fn take(&mut self, end: &mut dyn PathEnd, look: Look) -> io::Result<usize> {
        self.numbers.clear();
        let count = end.take_numbers(look, &mut self.numbers)?;
        if !self.numbers.is_empty() {
            let now_ns = now_ns();
            self.numbers.iter().for_each(|sent| self.delays.record(now_ns.saturating_sub(*sent)));
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(copies: PacketCopies) -> JobResult {
        JobResult { copies, ..JobResult::default() }
    }

    #[test]
    fn each_workload_has_the_copies_of_its_ways() {
        let sender = result(PacketCopies { send: Some(0.0), receive: Some(1.0) });
        let mut receiver = result(PacketCopies { send: None, receive: Some(2.0) });
        receiver.delays = Some(Histogram::default());
        for (workload, expected) in [
            (Workload::Drop, (Some(0.0), Some(2.0))),
            (Workload::Transmit, (Some(0.0), None)),
            (Workload::Swap, (Some(1.0), None)),
        ] {
            let budget = PacketBudget::of(workload, &sender, &receiver);
            assert_eq!((budget.sender_copies, budget.receiver_copies), expected);
            assert_eq!(budget.delay_median_us, None, "no packet had a time");
        }
    }

    #[test]
    fn what_a_port_joins_is_a_copy_more() {
        let joined = PacketCopies::new(Copies::ONCE, 25, 100);
        assert_eq!(joined, PacketCopies { send: Some(1.0), receive: Some(1.25) });
        assert_eq!(PacketCopies::new(Copies::NONE, 0, 0).receive, Some(0.0));
        assert_eq!(PacketCopies::new(Copies::default(), 1, 1).receive, None);
    }
}
