//! The ledger of a stream, its counters, and the cause of each gap.
//!
//! A gap with one known explanation has that cause: missing numbers, or an end of the device's own.
//! Where two things happened in it, nothing shows which took which sample: it is
//! [`Cause::Unknown`], with its total.

use super::arrival::Arrival;
use super::meta::{RxCounters, RxEvent};
use super::numbers::PacketGap;
use super::rate::StreamRate;
use crate::{Cause, Ledger};

/// The losses of a ledger, by cause.
pub(super) type Losses = [u64; Cause::ALL.len()];

/// What happened around a gap.
#[derive(Debug, Clone, Copy)]
pub(super) struct Around {
    /// The run before it has ended, and the next one has begun.
    pub ended: bool,
    /// That next one is the restart that was awaited.
    pub recovered: bool,
    /// A restart was awaited: the cause of what is missing until then.
    pub restart: Option<Cause>,
    /// The port's current counter.
    pub queue_drops: u64,
}

/// The books of a stream.
#[derive(Debug)]
pub(super) struct Books {
    samples_per_packet: u64,
    /// The most packets that one drop of the queue can take: a train counts once.
    packets_per_drop: u64,
    ledger: Ledger,
    counters: RxCounters,
    expectation: Expectation,
    /// Packets of unknown number that could not be decoded since the last good one.
    malformed: u64,
    /// Drops of the queue that are not yet assigned to a gap.
    drops: u64,
    drops_seen: u64,
}

impl Books {
    pub fn new(samples_per_packet: u64, packets_per_drop: u64) -> Self {
        Self {
            samples_per_packet,
            packets_per_drop,
            ledger: Ledger::default(),
            counters: RxCounters::default(),
            expectation: Expectation::default(),
            malformed: 0,
            drops: 0,
            drops_seen: 0,
        }
    }

    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    pub fn counters(&self) -> &RxCounters {
        &self.counters
    }

    /// Returns the counters, to count something.
    pub fn count(&mut self) -> &mut RxCounters {
        &mut self.counters
    }

    /// Begins a burst, at a known time or with its first packet.
    pub fn begin(&mut self, ticks: Option<u64>) {
        self.expectation.begin(ticks);
    }

    /// Counts a packet that came in order, behind `gap`.
    pub fn arrive(&mut self, arrival: &Arrival, gap: Option<&PacketGap>, rate: StreamRate) {
        self.expectation.arrive(arrival, gap, rate);
        self.ledger.expected = self.expectation.total();
        self.ledger.hold(arrival.samples);
        if gap.is_none() {
            // A good packet came without a gap before it: they did not belong to the stream.
            self.malformed = 0;
        }
    }

    /// Counts samples that the caller got. Returns the losses so far.
    pub fn deliver(&mut self, samples: u64) -> Losses {
        self.ledger.deliver(samples);
        Cause::ALL.map(|cause| self.ledger.lost(cause))
    }

    /// Counts samples that came and that the caller does not get.
    pub fn discard(&mut self, cause: Cause, samples: u64) {
        self.ledger.discard(cause, samples);
    }

    /// Counts samples that the caller got, and could not store.
    pub fn refuse(&mut self, samples: u64) {
        self.ledger.refuse(samples);
    }

    /// Ends the ledger before the last `received` samples that the caller got and the last `lost`
    /// ones of the newest gap, before which the losses were `before`.
    pub fn cut(&mut self, received: u64, lost: u64, before: &Losses) {
        self.ledger.cut(received, lost, before);
        self.expectation.add((received + lost).wrapping_neg());
    }

    /// Returns the ledger as if it ended here; what comes now is behind its end.
    pub fn closed(&self) -> Ledger {
        let mut closed = self.ledger.clone();
        closed.close();
        closed
    }

    /// Ends the ledger as it was `closed`: what has come since is behind its end.
    pub fn end(&mut self, mut closed: Ledger) {
        let after = self.ledger.expected.wrapping_sub(closed.expected);
        self.expectation.add(after.wrapping_neg());
        closed.after_end = closed.after_end.wrapping_add(after);
        self.ledger = closed;
    }

    /// Counts a packet that could not be decoded, including its number.
    pub fn note_malformed(&mut self, packets: u64) {
        self.malformed = self.malformed.saturating_add(packets);
    }

    /// Takes the port's count of datagrams that were too long for it.
    pub fn note_too_long(&mut self, count: u64) {
        self.note_malformed(count.saturating_sub(self.counters.too_long));
        self.counters.too_long = self.counters.too_long.max(count);
    }

    /// Counts samples that will not come.
    pub fn lose(&mut self, cause: Cause, samples: u64) {
        self.expectation.add(samples);
        self.ledger.expected = self.expectation.total();
        self.ledger.lose(cause, samples);
    }

    /// Counts samples at the end of a burst that will not come, like [`Books::book`].
    pub fn lose_end(&mut self, gap: &PacketGap, whole: Option<Cause>, queue_drops: u64) {
        self.expectation.add(gap.samples());
        self.ledger.expected = self.expectation.total();
        self.book(gap, whole, queue_drops);
    }

    /// Enters the gap before a packet. Returns the event of missing samples, and that of a jump of
    /// the clock.
    pub fn explain(
        &mut self,
        gap: &PacketGap,
        around: &Around,
        rate: StreamRate,
    ) -> (RxEvent, RxEvent) {
        let Around { ended, recovered, restart, queue_drops } = *around;
        let is_whole = gap.has_whole_packets(self.samples_per_packet);
        let jumped = gap.jump != 0;
        let with_packets = gap.in_packets > 0;
        let other = gap.unsent > 0 || ended || !is_whole || (jumped && restart.is_some());
        let whole = match () {
            () if gap.renumbered || (with_packets && other) => Some(Cause::Unknown),
            () if with_packets => None,
            () if ended => Some(restart.unwrap_or(Cause::DeviceOverrun)),
            () => Some(Cause::ClockJump),
        };
        let is_measured = !jumped || !(ended || gap.renumbered || (with_packets && other));
        self.counters.unmeasured_gaps += u64::from(!is_measured);
        self.book(gap, whole, queue_drops);

        let in_time = if whole == Some(Cause::ClockJump) { gap.unsent } else { 0 };
        let jump = match (gap.jump, rate.ticks(in_time) as i64) {
            (0, 0) => RxEvent::None,
            (0, ticks) => RxEvent::ClockJump { ticks, samples: in_time },
            (ticks, _) => RxEvent::ClockJump { ticks, samples: 0 },
        };
        self.counters.clock_jumps += u64::from(jump != RxEvent::None);
        let samples = gap.samples() - in_time;
        let packets = gap.packets.max(samples.div_ceil(self.samples_per_packet));
        let event = match samples {
            _ if recovered => RxEvent::Overrun { samples },
            0 => RxEvent::None,
            _ if ended && gap.packets == 0 => RxEvent::Overrun { samples },
            _ => RxEvent::SequenceGap { packets, samples },
        };
        (event, jump)
    }

    /// Enters the samples of a gap into the ledger, all of them for the cause `whole`. Without one
    /// they were in packets: those that came damaged are known by their numbers, the next ones are
    /// those that the queue dropped, and the network lost the others. `queue_drops` is the port's
    /// current counter.
    pub fn book(&mut self, gap: &PacketGap, whole: Option<Cause>, queue_drops: u64) {
        self.drops += queue_drops.saturating_sub(self.drops_seen);
        self.drops_seen = self.drops_seen.max(queue_drops);
        let malformed = std::mem::take(&mut self.malformed);
        let damaged = gap.damaged.saturating_add(malformed).min(gap.packets);
        let most = self.drops.saturating_mul(self.packets_per_drop);
        let dropped = most.min(gap.packets - damaged);
        self.drops -= dropped.div_ceil(self.packets_per_drop);
        if let Some(cause) = whole {
            return self.ledger.lose(cause, gap.samples());
        }
        let samples = |packets: u64| packets.saturating_mul(self.samples_per_packet);
        let damaged = samples(damaged).min(gap.samples());
        let dropped = samples(dropped).min(gap.samples() - damaged);
        self.ledger.lose(Cause::Malformed, damaged);
        self.ledger.lose(Cause::HostQueueDrop, dropped);
        self.ledger.lose(Cause::NetworkLoss, gap.samples() - damaged - dropped);
    }
}

/// The samples that a stream should have had, from time stamps alone.
///
/// It is the expected side of the ledger: it measures from the start of a burst to the end of its
/// newest packet, and so does not depend on the counting of packets and gaps. It counts modulo 2⁶⁴,
/// as the ledger does: a faulty device time can overflow.
#[derive(Debug, Default)]
struct Expectation {
    /// Samples before the current span.
    before: u64,
    /// The beginning of the current span of continuous time, ticks.
    start: Option<u64>,
    /// Samples of the current span.
    span: u64,
}

impl Expectation {
    /// Begins a burst, at a known time or with its first packet.
    fn begin(&mut self, ticks: Option<u64>) {
        (self.before, self.span, self.start) = (self.total(), 0, ticks);
    }

    /// Returns the samples so far.
    fn total(&self) -> u64 {
        self.before.wrapping_add(self.span)
    }

    /// Counts a packet that came behind `gap`.
    fn arrive(&mut self, arrival: &Arrival, gap: Option<&PacketGap>, rate: StreamRate) {
        let missing = gap.map_or(0, PacketGap::samples);
        let Some(ticks) = arrival.ticks else {
            self.span = self.span.wrapping_add(missing).wrapping_add(arrival.samples);
            return;
        };
        // Behind a clock that was set, time is measured from a new start.
        if gap.is_some_and(|gap| gap.jump != 0) {
            self.add(missing);
            self.start = Some(ticks);
        }
        // Samples without time before it are part of the span, too.
        let before = self.span.wrapping_add(missing);
        let start = *self.start.get_or_insert(ticks.wrapping_sub(rate.ticks(before)));
        let since = ticks.wrapping_sub(start);
        // A packet in its place needs no division.
        let since = if since == rate.ticks(self.span) { self.span } else { rate.samples(since) };
        self.span = since.wrapping_add(arrival.samples);
    }

    /// Adds requested samples that will not come; or, modulo 2⁶⁴, removes samples that came and are
    /// not expected.
    fn add(&mut self, samples: u64) {
        (self.before, self.span, self.start) = (self.total().wrapping_add(samples), 0, None);
    }
}

#[cfg(test)]
#[path = "books_tests.rs"]
mod tests;
