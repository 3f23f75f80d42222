//! The loops of both sides. Each works on any end, and stops on request.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use millstream_cpu::usage::{process_cpu_time, process_sleeps};

use super::budget::{StampedDelays, Stamps};
use super::end::{EchoMode, Look, PathEnd};
use super::job::{JobResult, Role};
use super::pace::{Pace, PollPolicy};
use super::plan::{PacketWait, Span};
use super::trace::SyscallTrace;
use super::waiting::tick;
use super::window::{CountsAt, IdleShare, MeasuringWindow};
use super::{bulk, ping, window};

/// After a stop request, a receiver continues until no packet has come for this long, nanoseconds.
const SILENCE_NS: u64 = 30_000_000;
/// Polls of a transmitter for returned packets, per batch.
const DRAIN_LOOKS: usize = 4;

/// Empty polls of a spinning receiver between two readings of the clock, each of which costs about
/// as much as a poll: frequent polls see a packet sooner.
pub(super) const LOOKS_PER_CLOCK: u32 = 16;

/// The window of a role that counts nothing.
const NOTHING: Span = Span { warm_ns: 0, measure_ns: 0, tail_ns: 0 };

/// The resources of a loop.
pub struct PacketSide<'a> {
    /// The end, with its peer set.
    pub end: &'a mut dyn PathEnd,
    /// A second end for load, where flows need sockets of their own.
    pub load: Option<&'a mut dyn PathEnd>,
    /// Its wait mode.
    pub wait: PacketWait,
    /// Set when it must stop.
    pub stop: &'a AtomicBool,
    /// The kernel's count of system calls.
    pub trace: Option<SyscallTrace>,
}

impl PacketSide<'_> {
    /// Plays a role to its end.
    ///
    /// # Errors
    /// The link's.
    pub fn play(&mut self, role: &Role) -> io::Result<JobResult> {
        match role {
            Role::Hold => Ok(self.hold()),
            Role::Receive { span, stamped } => self.receive(*span, None, *stamped),
            Role::Turn(span) => self.receive(*span, Some(EchoMode::All), false),
            Role::Echo => self.receive(NOTHING, Some(EchoMode::Numbered), false),
            Role::Transmit { span, rate_pps, batch_max, drain, stamped, .. } => {
                let stamps = stamped.then(Stamps::default);
                self.transmit(*span, rate_pps.map(Pace::new), *batch_max, *drain, stamps)
            }
            Role::Ping(plan) => ping::run(self, plan),
            Role::Bulk(plan) => bulk::run(self, plan),
            Role::Tick(plan) => tick(self.end, plan, self.stop),
            // They have ends of their own.
            Role::Launch(_) | Role::Arrive { .. } | Role::Listen => {
                Err(io::ErrorKind::Unsupported.into())
            }
        }
    }

    fn hold(&self) -> JobResult {
        while !self.stop.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(10));
        }
        JobResult::default()
    }

    /// Receives, and sends back the packets of `turn`, until there are no more.
    fn receive(
        &mut self,
        span: Span,
        turn: Option<EchoMode>,
        stamped: bool,
    ) -> io::Result<JobResult> {
        let start = Instant::now();
        let (mut window, mut idle) = (MeasuringWindow::new(span), IdleShare::default());
        let mut governor = PollPolicy::new(self.wait);
        let (mut came, mut turned, mut look) = (0, 0, Look::Glance);
        let mut vain = 0;
        let mut stamped = stamped.then(StampedDelays::default);
        loop {
            // Before the look: a thread that had no CPU since must look once more.
            let last_look = self.stop.load(Ordering::Relaxed);
            let (some, back) = match (turn, &mut stamped) {
                (Some(which), _) => self.end.echo(look, which)?,
                (None, Some(stamped)) => (stamped.take(self.end, look)?, 0),
                (None, None) => (self.end.take(look)?, 0),
            };
            vain = if some > 0 || look == Look::Sleep { 0 } else { vain + 1 };
            if vain > 1 && vain % LOOKS_PER_CLOCK != 0 {
                turned += back as u64;
                continue;
            }
            came += some as u64;
            turned += back as u64;
            let now_ns = ns_since(start);
            idle.note(now_ns, some > 0);
            look = governor.next(now_ns, some > 0);
            let counts = if turn.is_none() { came } else { turned };
            window.step(now_ns, some > 0, || self.moment(start, counts, &idle));
            let silent = idle.since_ns().is_some_and(|since_ns| now_ns - since_ns > SILENCE_NS);
            if silent && some == 0 && last_look {
                break;
            }
        }
        let total = if turn.is_none() { came } else { turned };
        let counted = window.end(|| self.moment(start, total, &idle));
        let (events, copies) = (self.end.events(), self.end.copies());
        let delays = stamped.map(|stamped| stamped.delays);
        Ok(JobResult { counted, total, came, events, copies, delays, ..JobResult::default() })
    }

    /// Sends until the time is up.
    fn transmit(
        &mut self,
        span: Span,
        pace: Option<Pace>,
        batch_max: usize,
        drain: bool,
        mut stamps: Option<Stamps>,
    ) -> io::Result<JobResult> {
        // The first packets may wait for a neighbour's address, which does not count as part of the
        // span.
        let batch = self.end.batch().min(batch_max);
        let first = if pace.is_none() { self.end.send(batch)? as u64 } else { 0 };
        let start = Instant::now();
        let (mut window, mut idle) = (MeasuringWindow::new(span), IdleShare::default());
        let (mut sent, mut returned) = (first, 0u64);
        loop {
            let now_ns = ns_since(start);
            if now_ns >= span.total_ns() || self.stop.load(Ordering::Relaxed) {
                break;
            }
            let due = pace.map_or(u64::MAX, |pace| pace.due(now_ns));
            let count = (due - sent).min(batch as u64) as usize;
            if let Some(stamps) = &mut stamps
                && count > 0
            {
                sent += stamps.send(self.end)?;
            }
            let count = (due - sent).min(count as u64) as usize;
            if count > 0 {
                let took = self.end.send(count)?;
                sent += took as u64;
                idle.note(ns_since(start), took > 0);
            }
            for _ in 0..if drain { DRAIN_LOOKS } else { 0 } {
                match self.end.take(Look::Glance)? {
                    0 => break,
                    back => returned += back as u64,
                }
            }
            window.step(now_ns, true, || self.moment(start, sent, &idle));
        }
        let counted = window.end(|| self.moment(start, sent, &idle));
        while drain && idle_for(start, span) {
            returned += self.end.take(Look::Sleep)? as u64;
        }
        let (events, copies) = (self.end.events(), self.end.copies());
        Ok(JobResult { counted, total: sent, returned, events, copies, ..JobResult::default() })
    }

    fn moment(&mut self, start: Instant, packets: u64, idle: &IdleShare) -> window::CountsAt {
        let calls = self.end.calls();
        let at_ns = ns_since(start);
        CountsAt {
            at_ns,
            packets,
            cpu_ns: process_cpu_time().as_nanos() as u64,
            sleeps: process_sleeps(),
            idle_ns: idle.total_ns(at_ns),
            calls,
            traced: self.trace.as_mut().and_then(|trace| trace.count().ok()),
        }
    }
}

/// Packets in flight get this long after the last packet was sent.
fn idle_for(start: Instant, span: Span) -> bool {
    ns_since(start) < span.total_ns() + SILENCE_NS
}

/// Nanoseconds since `start`.
pub(super) fn ns_since(start: Instant) -> u64 {
    start.elapsed().as_nanos() as u64
}
