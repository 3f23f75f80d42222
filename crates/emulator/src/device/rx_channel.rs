//! The receive half of a radio channel: commands in, stretches of samples out, on simulated time.

use crate::time::DeviceClock;
use millstream_wire::regs::radio::RX_CMD_SLOTS;
use std::collections::VecDeque;
use std::ops::Range;

/// The bursts that fit the packet buffer.
pub(crate) const SEGMENTS_MAX: usize = 64;

/// A queued receive command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Acquire {
    /// Timestamp of the first sample; `None` starts at once.
    pub start: Option<u64>,
    /// Number of samples; `None` until stopped.
    pub samples: Option<u64>,
}

/// The radio's reports to the host, with the ticks of their events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RxEvent {
    /// A command began to stream.
    Started { tick: u64 },
    /// A timed command was already past; it is discarded.
    Late { tick: u64 },
    /// The packet buffer is full; the radio has stopped.
    Overrun { tick: u64 },
}

/// Samples that are, or will be, in the packet buffer. The last packet of each segment has EOB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Segment {
    /// First sample that has not been sent.
    next: u64,
    /// One past the last sample; `u64::MAX` while unknown.
    end: u64,
    /// First sample that [`RxChannel::read_antenna`] has not yet requested.
    heard: u64,
}

/// A packet that is complete, or the next one to be.
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
/// The antenna is a function of time, so the buffer needs no memory: it is the range between the
/// clock's tick and the last sent sample.
#[derive(Debug)]
pub(crate) struct RxChannel {
    buffer_samples: u64,
    commands: VecDeque<(Acquire, u64)>,
    segments: VecDeque<Segment>,
    /// Whether the last segment still grows.
    running: bool,
    /// The tick since which the radio has been idle.
    idle_from: u64,
}

impl RxChannel {
    /// Returns an idle channel whose packet buffer has `buffer_samples`.
    pub fn new(buffer_samples: u64) -> Self {
        Self {
            buffer_samples,
            commands: VecDeque::with_capacity(RX_CMD_SLOTS as usize),
            segments: VecDeque::with_capacity(SEGMENTS_MAX),
            running: false,
            idle_from: 0,
        }
    }

    /// Clears all state.
    pub fn reset(&mut self) {
        *self = Self::new(self.buffer_samples);
    }

    /// Free command slots.
    pub fn free_slots(&self) -> u32 {
        RX_CMD_SLOTS - self.commands.len() as u32
    }

    /// Queues a command that arrived at `now`; returns false when all slots are taken.
    pub fn push(&mut self, command: Acquire, now: u64) -> bool {
        let free = self.free_slots() > 0;
        if free {
            self.commands.push_back((command, now));
        }
        free
    }

    /// Stops: queued commands are dropped, the current packet ends at `now` with EOB.
    pub fn stop(&mut self, now: u64) {
        self.commands.clear();
        if self.running {
            let segment = self.last();
            let end = segment.end.min(now).max(segment.next + 1).max(segment.heard);
            self.end_segment(end);
        }
    }

    /// Advances the radio to `now`. Call until it returns `None`.
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
        // Decided by the earliest time at which the radio could read the command, not by the time
        // of this call.
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

    /// Passes the ranges of ticks before `now` that entered the buffer since the last call, in
    /// order: for a source whose samples must be read at their time.
    pub fn read_antenna(&mut self, now: u64, mut listen: impl FnMut(Range<u64>)) {
        for segment in &mut self.segments {
            let until = segment.end.min(now);
            if until > segment.heard {
                listen(segment.heard..until);
                segment.heard = until;
            }
        }
    }

    /// Returns the packet at the head of the buffer, complete or not, in packets of
    /// `packet_samples`.
    pub fn next_packet(&self, packet_samples: u64) -> Option<NextPacket> {
        let segment = self.segments.front()?;
        let left = segment.end - segment.next;
        let samples = left.min(packet_samples);
        Some(NextPacket { tick: segment.next, samples, eob: samples == left })
    }

    /// Returns the tick after the last sample of the burst at the head of the buffer, as far as
    /// known.
    pub fn head_end(&self) -> u64 {
        self.segments.front().map_or(0, |segment| segment.end)
    }

    /// Returns the capacity of the packet buffer in samples.
    pub fn buffer_samples(&self) -> u64 {
        self.buffer_samples
    }

    /// Removes the packet at the head of the buffer.
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

    /// Returns the next tick at which [`RxChannel::advance`] has an event.
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

    /// Returns whether commands have to wait until some of the short bursts before them are sent.
    fn is_full_of_bursts(&self) -> bool {
        self.segments.len() == SEGMENTS_MAX
    }

    /// Returns the samples that wait before the growing segment.
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
