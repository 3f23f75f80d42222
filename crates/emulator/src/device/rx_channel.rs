//! The receive half of a radio channel: commands in, stretches of samples out, on simulated time.

use crate::time::DeviceClock;
use millstream_wire::regs::radio::RX_CMD_SLOTS;
use std::collections::VecDeque;
use std::ops::Range;

/// Bursts that the packet buffer holds.
pub(crate) const SEGMENTS_MAX: usize = 64;

/// A queued receive command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Acquire {
    /// Timestamp of the first sample; `None` starts at once.
    pub start: Option<u64>,
    /// Number of samples; `None` until stopped.
    pub samples: Option<u64>,
}

/// What the radio has to tell the host, with the tick at which it happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RxEvent {
    /// A command began to stream.
    Started { tick: u64 },
    /// A timed command was already past; it is discarded.
    Late { tick: u64 },
    /// The packet buffer is full; the radio has stopped.
    Overrun { tick: u64 },
}

/// Samples that are, or will be, in the packet buffer. The last packet of each carries EOB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Segment {
    /// First sample that has not been sent.
    next: u64,
    /// One past the last sample; `u64::MAX` while nobody knows.
    end: u64,
    /// First sample that [`RxChannel::read_antenna`] has not asked for.
    heard: u64,
}

/// A packet that is ready to go, or the next that will be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NextPacket {
    /// Its first sample.
    pub tick: u64,
    pub samples: u64,
    /// Whether it ends a burst.
    pub eob: bool,
}

/// The radio core of one channel and the packet buffer behind it.
///
/// The antenna is a function of time, so the buffer needs no memory: it is the stretch between
/// what the clock has passed and what was sent.
#[derive(Debug)]
pub(crate) struct RxChannel {
    buffer_samples: u64,
    commands: VecDeque<(Acquire, u64)>,
    segments: VecDeque<Segment>,
    /// Whether the last segment still grows.
    running: bool,
    /// Since when the radio has been idle.
    idle_from: u64,
}

impl RxChannel {
    /// An idle channel whose packet buffer holds `buffer_samples`.
    pub fn new(buffer_samples: u64) -> Self {
        Self {
            buffer_samples,
            commands: VecDeque::with_capacity(RX_CMD_SLOTS as usize),
            segments: VecDeque::with_capacity(SEGMENTS_MAX),
            running: false,
            idle_from: 0,
        }
    }

    /// Forgets everything.
    pub fn reset(&mut self) {
        *self = Self::new(self.buffer_samples);
    }

    /// Command slots that are free.
    pub fn free_slots(&self) -> u32 {
        RX_CMD_SLOTS - self.commands.len() as u32
    }

    /// Queues a command that arrived at `now`; false when all slots are taken.
    pub fn push(&mut self, command: Acquire, now: u64) -> bool {
        let free = self.free_slots() > 0;
        if free {
            self.commands.push_back((command, now));
        }
        free
    }

    /// Stops: queued commands are dropped, the packet under way ends at `now` with EOB.
    pub fn stop(&mut self, now: u64) {
        self.commands.clear();
        if self.running {
            let segment = self.last();
            let end = segment.end.min(now).max(segment.next + 1).max(segment.heard);
            self.end_segment(end);
        }
    }

    /// Brings the radio to `now`. Call until it returns `None`.
    pub fn advance(&mut self, keeper: &DeviceClock, now: u64) -> Option<RxEvent> {
        if self.running {
            if let Some(event) = self.check_overrun(now) {
                return Some(event);
            }
            if self.last().end > now {
                return None;
            }
            self.end_segment(self.last().end);
        }
        let &(command, arrived) = self.commands.front()?;
        if self.is_full_of_bursts() {
            return None;
        }
        // Decided by when the radio could first look at the command, not by when this code ran.
        let seen = arrived.max(self.idle_from);
        let start = match command.start {
            None => Some(seen),
            Some(timestamp) => keeper.tick_of(timestamp, seen),
        };
        match start {
            None => {
                self.commands.pop_front();
                Some(RxEvent::Late { tick: seen })
            }
            Some(start) if start > now => None,
            Some(start) => {
                self.commands.pop_front();
                let end = command.samples.map_or(u64::MAX, |count| start.saturating_add(count));
                self.segments.push_back(Segment { next: start, end, heard: start });
                self.running = true;
                Some(RxEvent::Started { tick: start })
            }
        }
    }

    /// Shows the stretches of ticks before `now` that went into the buffer since the last call, in
    /// order: for a source that has to be listened to when it speaks.
    pub fn read_antenna(&mut self, now: u64, mut listen: impl FnMut(Range<u64>)) {
        for segment in &mut self.segments {
            let until = segment.end.min(now);
            if until > segment.heard {
                listen(segment.heard..until);
                segment.heard = until;
            }
        }
    }

    /// The packet at the head of the buffer, complete or not, in packets of `packet_samples`.
    pub fn next_packet(&self, packet_samples: u64) -> Option<NextPacket> {
        let segment = self.segments.front()?;
        let left = segment.end - segment.next;
        let samples = left.min(packet_samples);
        Some(NextPacket { tick: segment.next, samples, eob: samples == left })
    }

    /// One past the last sample of the burst at the head of the buffer, as far as it is known.
    pub fn head_end(&self) -> u64 {
        self.segments.front().map_or(0, |segment| segment.end)
    }

    /// Samples that the packet buffer holds.
    pub fn buffer_samples(&self) -> u64 {
        self.buffer_samples
    }

    /// Takes the packet at the head of the buffer out.
    pub fn take(&mut self, packet: NextPacket) {
        let Some(segment) = self.segments.front_mut() else { return };
        segment.next = packet.tick + packet.samples;
        if packet.eob {
            if self.segments.len() == 1 && self.running {
                self.end_segment(packet.tick + packet.samples);
            }
            self.segments.pop_front();
        }
    }

    /// The next tick at which [`RxChannel::advance`] has something to do by itself.
    pub fn next_event(&self, keeper: &DeviceClock) -> Option<u64> {
        if self.running {
            let room = self.buffer_samples.saturating_sub(self.waiting_before_last());
            let segment = self.last();
            return Some(segment.end.min(segment.next.saturating_add(room + 1)));
        }
        let &(command, arrived) = self.commands.front()?;
        if self.is_full_of_bursts() {
            return None;
        }
        let seen = arrived.max(self.idle_from);
        command.start.and_then(|timestamp| keeper.tick_of(timestamp, seen)).or(Some(seen))
    }

    fn check_overrun(&mut self, now: u64) -> Option<RxEvent> {
        let room = self.buffer_samples.saturating_sub(self.waiting_before_last());
        let segment = self.last();
        let produced = segment.end.min(now).saturating_sub(segment.next);
        if produced <= room {
            return None;
        }
        // At least one sample remains, to carry EOB.
        let end = segment.next + room.max(1);
        self.end_segment(end);
        Some(RxEvent::Overrun { tick: end })
    }

    /// Whether commands have to wait until some of the short bursts before them are sent.
    fn is_full_of_bursts(&self) -> bool {
        self.segments.len() == SEGMENTS_MAX
    }

    /// Samples that wait in front of the growing segment.
    fn waiting_before_last(&self) -> u64 {
        let before = self.segments.len().saturating_sub(1);
        self.segments.iter().take(before).map(|segment| segment.end - segment.next).sum()
    }

    fn last(&self) -> Segment {
        *self.segments.back().expect("a running channel has a segment")
    }

    fn end_segment(&mut self, end: u64) {
        self.segments.back_mut().expect("a running channel has a segment").end = end;
        self.running = false;
        self.idle_from = end;
    }
}

#[cfg(test)]
#[path = "rx_channel_tests.rs"]
mod tests;
