//! The transmit half of a radio channel: packets in, samples at their ticks out, on simulated time.
//!
//! ```text
//!             first sample's tick            EOB: ack
//!   ┌ Idle ─────────────────────▶ Burst ───────────────▶ Idle
//!   │  │ time has passed: late      │ no data: underflow (a time is no matter)
//!   │  ▼                            ▼
//!   └─ policy 1: the next packet is looked at anew; policy 2: Skipping until EOB
//! ```

use super::tx_fifo::TxPacket;
use crate::time::DeviceClock;

/// Where to go on after a late packet or an underflow (facts section 10, register 0x44).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LatePolicy {
    NextPacket,
    NextBurst,
}

/// What the radio does next with the packet at the end of its buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TxStep {
    /// The first `count` samples of the packet left at the ticks from `tick` on.
    Send {
        tick: u64,
        count: u64,
        /// The first sample of them begins a burst.
        begins: bool,
        /// It comes right behind another sample of its burst.
        follows: bool,
        /// The whole packet has left.
        done: bool,
        /// And with it the burst ends, as the host wanted.
        ack: bool,
    },
    /// The sample of this tick was not there. The burst is over.
    Underflow { tick: u64 },
    /// The packet came after its time, as was seen at this tick; it is dropped.
    Late { tick: u64 },
    /// The packet is dropped: the burst is spoilt, and the policy is to wait for the next one.
    Skip,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Idle,
    Burst,
    Skipping,
}

/// The radio core of one channel; its buffer lies in front of it.
///
/// Everything is decided by ticks: when a packet came and when its samples are due, never by when
/// this code ran.
#[derive(Debug)]
pub(crate) struct TxChannel {
    phase: Phase,
    /// In a burst the tick of the next sample, otherwise since when the radio has been idle.
    next: u64,
    /// Since when zeros have replaced the samples of a burst that ran dry.
    dry_from: Option<u64>,
    gap_samples: u64,
}

impl TxChannel {
    /// An idle channel.
    pub fn new() -> Self {
        Self { phase: Phase::Idle, next: 0, dry_from: None, gap_samples: 0 }
    }

    /// Idle, at the beginning of time.
    pub fn restart(&mut self) {
        *self = Self { gap_samples: self.gap_samples, ..Self::new() };
    }

    /// Ticks so far between an underflow and the next sample sent.
    pub fn gap_samples(&self) -> u64 {
        self.gap_samples
    }

    /// Brings the radio closer to `now`, with `head` at the end of its buffer. Call until it
    /// returns `None`; take what it says out of the buffer in between.
    pub fn step(
        &mut self,
        keeper: &DeviceClock,
        policy: LatePolicy,
        head: Option<TxPacket>,
        now: u64,
    ) -> Option<TxStep> {
        let in_burst = self.phase == Phase::Burst;
        let dry = in_burst && self.next < now;
        let Some(head) = head else { return dry.then(|| self.underflow(policy)) };
        if self.phase == Phase::Skipping {
            self.leave_skipping(&head);
            return Some(TxStep::Skip);
        }
        if in_burst && head.arrived > self.next {
            return Some(self.underflow(policy));
        }
        // When the radio could first look at the packet.
        let seen = head.arrived.max(self.next);
        if seen > now {
            return None;
        }
        let Some(start) = self.start_of(keeper, &head, seen) else {
            return Some(self.late(policy, &head, seen));
        };
        let count = now.checked_sub(start)?.min(head.samples);
        // A packet without samples, which no host should send, passes at its time.
        (count > 0 || head.samples == 0).then(|| self.send(&head, start, count))
    }

    /// The next tick at which [`TxChannel::step`] has something to do that cannot wait: the end of
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
        Some(start.saturating_add(head.samples.max(patience)))
    }

    /// The tick of the first sample of `head`; `None` when its time has passed.
    ///
    /// In a burst a time matters only behind missing packets, where it says how long the gap is.
    /// UHD 4.3 counts the times of all packets of a call but the first by the rate at which it
    /// opened a radio without DUC: below that rate they look late, above it they would leave gaps.
    fn start_of(&self, keeper: &DeviceClock, head: &TxPacket, seen: u64) -> Option<u64> {
        let Some(time) = head.timestamp else { return Some(seen) };
        let start = keeper.tick_of(time, seen);
        if self.phase != Phase::Burst {
            return start;
        }
        start.filter(|_| head.gap.is_some()).or(Some(seen))
    }

    fn send(&mut self, head: &TxPacket, start: u64, count: u64) -> TxStep {
        let begins = self.phase == Phase::Idle;
        let follows = !begins && start == self.next;
        if let Some(dry_from) = self.dry_from.take() {
            self.gap_samples += start.saturating_sub(dry_from);
        }
        let done = count == head.samples;
        let ack = done && head.eob;
        self.phase = if ack { Phase::Idle } else { Phase::Burst };
        self.next = start + count;
        TxStep::Send { tick: start, count, begins, follows, done, ack }
    }

    fn underflow(&mut self, policy: LatePolicy) -> TxStep {
        self.dry_from = Some(self.next);
        self.phase = match policy {
            LatePolicy::NextPacket => Phase::Idle,
            LatePolicy::NextBurst => Phase::Skipping,
        };
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
