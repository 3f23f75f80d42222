//! The transmit half of a radio channel: packets in, samples at their ticks out, on simulated time.
//!
//! ```text
//!             first sample's tick            EOB: ack
//!   ┌ Idle ─────────────────────▶ Burst ───────────────▶ Idle
//!   │  │ time has passed: late      │ no data: underflow (ignores times)
//!   │  ▼                            ▼
//!   └─ policy 1: the next packet is checked as usual; policy 2: Skipping until EOB
//! ```

use super::tx_fifo::TxPacket;
use crate::time::DeviceClock;

/// The place to continue after a late packet or an underflow (register 0x44).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LatePolicy {
    NextPacket,
    NextBurst,
}

/// The next step of the radio with the packet at the head of its buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TxStep {
    /// The first `count` samples of the packet were sent at the ticks from `tick` on.
    Send {
        tick: u64,
        count: u64,
        /// The ticks that they took.
        ticks: u64,
        /// The first sample of them begins a burst.
        begins: bool,
        /// It directly follows another sample of its burst.
        follows: bool,
        /// The whole packet was sent.
        done: bool,
        /// The burst ends with it, as the host requested.
        ack: bool,
    },
    /// The sample of this tick was missing. The burst is over.
    Underflow { tick: u64 },
    /// The packet came after its time, as found at this tick; it is dropped.
    Late { tick: u64 },
    /// The packet is dropped: its burst had an error, and the policy is to wait for the next one.
    Skip,
}

/// The cycles between a burst and the next one that has a time: the core compares times that it
/// has stored before.
const TURN_CYCLES: u64 = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Idle,
    Burst,
    Skipping,
}

/// The radio core of one channel, behind its buffer.
///
/// Everything is decided by ticks: the arrival of a packet and the time of its samples, never by
/// the time at which this code ran.
#[derive(Debug)]
pub(crate) struct TxChannel {
    phase: Phase,
    /// In a burst the tick of the next sample, otherwise the tick since which the radio has been
    /// idle.
    next: u64,
    /// The first tick at which a burst with a time may begin.
    ready: u64,
    /// The tick behind the last sample; zeros fill the rest of its cycle.
    sent_until: u64,
    /// The ticks of a cycle of the radio, at which bursts begin.
    cycle: u64,
    /// The tick since which zeros have replaced the samples of a burst with an underflow.
    dry_from: Option<u64>,
    gap_samples: u64,
    /// The ticks of a sample, in this burst and in those to come.
    interpolation: u64,
    next_interpolation: u64,
}

impl TxChannel {
    /// Returns an idle channel.
    pub fn new() -> Self {
        Self {
            phase: Phase::Idle,
            next: 0,
            ready: 0,
            sent_until: 0,
            cycle: 1,
            dry_from: None,
            gap_samples: 0,
            interpolation: 1,
            next_interpolation: 1,
        }
    }

    /// Sets the samples that the radio processes in one cycle.
    pub fn with_cycle(self, cycle: u64) -> Self {
        Self { cycle, ..self }
    }

    /// Sets the ticks of a sample in the bursts to come: a DUC before the radio makes several
    /// samples of one.
    pub fn set_interpolation(&mut self, interpolation: u64) {
        self.next_interpolation = interpolation;
        if self.phase != Phase::Burst {
            self.interpolation = interpolation;
        }
    }

    /// Returns whether a burst is in progress.
    pub fn is_transmitting(&self) -> bool {
        self.phase == Phase::Burst
    }

    /// Returns the ticks of a sample in this burst.
    pub fn interpolation(&self) -> u64 {
        self.interpolation
    }

    /// Resets to idle, at tick 0.
    pub fn restart(&mut self) {
        let (gap_samples, next_interpolation) = (self.gap_samples, self.next_interpolation);
        let (interpolation, cycle) = (next_interpolation, self.cycle);
        *self = Self { gap_samples, interpolation, next_interpolation, cycle, ..Self::new() };
    }

    /// Returns the ticks so far between an underflow and the next sample sent.
    pub fn gap_samples(&self) -> u64 {
        self.gap_samples
    }

    /// Advances the radio towards `now`, with `head` at the head of its buffer. Call until it
    /// returns `None`; between calls, remove the samples of the returned step from the buffer.
    pub fn step(
        &mut self,
        keeper: &DeviceClock,
        policy: LatePolicy,
        head: Option<TxPacket>,
        now: u64,
    ) -> Option<TxStep> {
        let in_burst = self.phase == Phase::Burst;
        if !in_burst {
            self.interpolation = self.next_interpolation;
        }
        let dry = in_burst && self.next < now;
        let Some(head) = head else { return dry.then(|| self.underflow()) };
        if self.phase == Phase::Skipping {
            self.leave_skipping(&head);
            return Some(TxStep::Skip);
        }
        if in_burst && head.arrived > self.next {
            return Some(self.underflow());
        }
        // The earliest tick at which the radio could read the packet.
        let seen = head.arrived.max(self.next);
        if seen > now {
            return None;
        }
        let Some(start) = self.start_of(keeper, &head, seen) else {
            return Some(self.late(policy, &head, seen));
        };
        let count = (now.checked_sub(start)? / self.interpolation).min(head.samples);
        // A packet without samples, which is not a normal one, passes at its time.
        (count > 0 || head.samples == 0).then(|| self.send(&head, start, count))
    }

    /// Returns the next tick at which [`TxChannel::step`] has an event that cannot wait: the end of
    /// the packet `head`, or of those behind it up to `patience` samples, or the underflow then.
    pub fn next_event(
        &self,
        keeper: &DeviceClock,
        head: Option<TxPacket>,
        patience: u64,
    ) -> Option<u64> {
        let Some(head) = head else {
            return (self.phase == Phase::Burst).then(|| self.next.saturating_add(1));
        };
        let seen = head.arrived.max(self.next);
        let start = self.start_of(keeper, &head, seen).unwrap_or(seen);
        let ticks = head.samples.max(patience).saturating_mul(self.interpolation);
        Some(start.saturating_add(ticks))
    }

    /// Returns the tick of the first sample of `head`; `None` when its time has passed.
    ///
    /// In a burst no time is used: the samples of a packet follow those of the last one that came.
    fn start_of(&self, keeper: &DeviceClock, head: &TxPacket, seen: u64) -> Option<u64> {
        // The first cycle then.
        let whole = |tick: u64| tick.checked_next_multiple_of(self.cycle).unwrap_or(tick);
        if self.phase == Phase::Burst {
            return Some(seen);
        }
        match head.timestamp {
            None => Some(whole(seen)),
            Some(time) => keeper.tick_of(time, seen.max(self.ready)).map(whole),
        }
    }

    fn send(&mut self, head: &TxPacket, start: u64, count: u64) -> TxStep {
        let begins = self.phase == Phase::Idle;
        let follows = !begins && start == self.sent_until;
        if let Some(dry_from) = self.dry_from.take() {
            self.gap_samples += start.saturating_sub(dry_from);
        }
        let done = count == head.samples;
        let ack = done && head.eob;
        self.phase = if ack { Phase::Idle } else { Phase::Burst };
        let ticks = count * self.interpolation;
        self.sent_until = start + ticks;
        self.next = self.sent_until;
        if done && self.interpolation == 1 {
            // The radio takes whole cycles from a packet.
            self.next = self.next.next_multiple_of(self.cycle);
        }
        if ack {
            self.ready = self.next + TURN_CYCLES * self.cycle;
        }
        TxStep::Send { tick: start, count, ticks, begins, follows, done, ack }
    }

    /// Between two packets it ends the burst whatever the policy is: the next packet is looked at
    /// anew.
    fn underflow(&mut self) -> TxStep {
        self.dry_from = Some(self.next);
        self.phase = Phase::Idle;
        TxStep::Underflow { tick: self.next }
    }

    fn late(&mut self, policy: LatePolicy, head: &TxPacket, seen: u64) -> TxStep {
        self.phase = match policy {
            LatePolicy::NextBurst if !head.eob => Phase::Skipping,
            _ => Phase::Idle,
        };
        TxStep::Late { tick: seen }
    }

    fn leave_skipping(&mut self, head: &TxPacket) {
        if head.eob {
            self.phase = Phase::Idle;
            self.next = self.next.max(head.arrived);
        }
    }
}

#[cfg(test)]
#[path = "tx_channel_tests.rs"]
mod tests;
