//! The receive half of a radio channel: commands in, stretches of samples out, on simulated time.

use super::rx_turn::{Acquire, Turn};
use super::transmissions::Transmissions;
use crate::time::DeviceClock;
use std::collections::VecDeque;
use std::ops::Range;

/// The commands that the core takes, with the one that it executes.
const SLOTS: u32 = 33;

/// The bursts that fit the packet buffer.
pub(crate) const SEGMENTS_MAX: usize = 64;

/// The radio's reports to the host, with the ticks of their events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RxEvent {
    /// A command began to stream.
    Started { tick: u64 },
    /// A timed command was already past; it is discarded.
    Late { tick: u64 },
    /// The packet buffer is full; the radio has stopped behind the sample of this tick.
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
    /// Whether [`RxChannel::read_antenna`] has requested any.
    begun: bool,
    /// The samples of the radio that become one of its packets.
    decimation: u64,
}

/// Ticks of one burst, for a source whose samples must be read at their time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub ticks: Range<u64>,
    /// A burst begins with them.
    pub begins: bool,
    /// The samples of the radio that become one of its packets.
    pub decimation: u64,
}

/// A packet that is complete, or the next one to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NextPacket {
    /// The first tick that it covers.
    pub tick: u64,
    pub samples: u64,
    /// Whether it ends a burst.
    pub eob: bool,
    /// The tick behind the last one that it covers.
    pub end: u64,
}

/// The radio core of one channel and the packet buffer behind it.
///
/// The antenna is a function of time, so the buffer needs no memory: it is the range between the
/// clock's tick and the last sent sample. A DDC behind the radio makes a sample of several; the
/// buffer lies behind the DDC.
#[derive(Debug)]
pub(crate) struct RxChannel {
    buffer_samples: u64,
    /// The cycles of the radio, and what passes between two captures: bursts begin with a cycle,
    /// and without a DDC have whole cycles.
    turn: Turn,
    /// The ticks of a sample in the bursts to come.
    decimation: u64,
    /// Those that wait, behind the one that is executed or whose message waits for the host.
    commands: VecDeque<(Acquire, u64)>,
    segments: VecDeque<Segment>,
    /// Whether the last segment still grows.
    running: bool,
    /// The tick since which the radio has been idle.
    idle_from: u64,
    /// A capture has been there: the radio needs time before the next one.
    has_run: bool,
    /// Whether commands wait until the host has acknowledged a message.
    is_held: bool,
    /// When the transmitter of the channel runs.
    pub transmissions: Transmissions,
}

impl RxChannel {
    /// Returns an idle channel whose packet buffer has `buffer_samples`.
    pub fn new(buffer_samples: u64) -> Self {
        Self {
            buffer_samples,
            turn: Turn::new(1, 1),
            decimation: 1,
            commands: VecDeque::with_capacity(SLOTS as usize),
            segments: VecDeque::with_capacity(SEGMENTS_MAX),
            running: false,
            idle_from: 0,
            has_run: false,
            is_held: false,
            transmissions: Transmissions::new(),
        }
    }

    /// Sets the samples that the radio processes in one cycle, or the cycles of a sample.
    pub fn with_cycle(self, samples_per_cycle: u64, cycles_per_sample: u64) -> Self {
        Self { turn: Turn::new(samples_per_cycle, cycles_per_sample), ..self }
    }

    /// Clears all state but the decimation.
    pub fn reset(&mut self) {
        let (decimation, turn) = (self.decimation, self.turn);
        *self = Self { decimation, turn, ..Self::new(self.buffer_samples) };
    }

    /// Returns whether samples enter the buffer.
    pub fn is_running(&self) -> bool {
        self.running
    }

    /// Returns the decimation of the bursts to come.
    pub fn decimation(&self) -> u64 {
        self.decimation
    }

    /// Sets the decimation of the bursts to come.
    pub fn set_decimation(&mut self, decimation: u64) {
        self.decimation = decimation;
    }

    /// Ends the burst in progress with the next full packet of `packet_samples`; the radio
    /// continues in a new burst, with the new decimation.
    pub fn split(&mut self, packet_samples: u64) {
        if !self.running {
            return;
        }
        let (decimation, full) = (self.decimation, self.is_full_of_bursts());
        let last = self.segments.back_mut().expect("a running channel has a segment");
        if !last.begun {
            last.decimation = decimation;
            return;
        }
        let packet = packet_samples * last.decimation;
        let until = last.next + (last.heard - last.next).div_ceil(packet).max(1) * packet;
        if until < last.end && !full {
            let end = std::mem::replace(&mut last.end, until);
            let (next, heard) = (until, until);
            self.segments.push_back(Segment { next, end, heard, begun: false, decimation });
        }
    }

    /// Continues with the commands that wait, at `now`: the host has acknowledged the message about
    /// the first one, which leaves the queue. A stop that came before has emptied it: then the core
    /// drops what has come since, as in hardware.
    pub fn release(&mut self, now: u64) {
        if std::mem::take(&mut self.is_held) {
            self.commands.pop_front();
            self.idle_from = self.idle_from.max(now);
            self.has_run = true;
        }
    }

    /// Free command slots.
    pub fn free_slots(&self) -> u32 {
        SLOTS - self.commands.len() as u32
    }

    /// Queues a command that arrived at `now`. Without a free slot it is lost: the block that has
    /// the request waits for one.
    pub fn push(&mut self, command: Acquire, now: u64) {
        debug_assert!(self.free_slots() > 0);
        if self.free_slots() > 0 {
            self.commands.push_back((command, now));
        }
    }

    /// Stops: queued commands are dropped, the current packet ends with the sample of tick `now`.
    pub fn stop(&mut self, now: u64) {
        self.commands.clear();
        if self.running {
            let segment = self.last();
            let end = segment.end.min(now + 1).max(segment.next + 1).max(segment.heard);
            // Whole samples, so that there is one for EOB.
            let unit = self.unit(&segment);
            let units = (end - segment.next).div_ceil(unit);
            self.end_segment((segment.next + units * unit).min(segment.end));
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
            self.finish(self.last().end);
        }
        self.drop_empty();
        let &(command, arrived) = self.commands.front()?;
        if self.is_held || self.is_full_of_bursts() {
            return None;
        }
        match self.start_of(&command, keeper, arrived) {
            Err(tick) if tick > now => None,
            Err(tick) => {
                self.is_held = true;
                Some(RxEvent::Late { tick })
            }
            Ok(start) if start > now => None,
            Ok(start) => {
                let end = command.samples.map_or(u64::MAX, |count| start.saturating_add(count));
                let decimation = self.decimation;
                let (next, heard) = (start, start);
                self.segments.push_back(Segment { next, end, heard, begun: false, decimation });
                self.running = true;
                Some(RxEvent::Started { tick: start })
            }
        }
    }

    /// Passes the ticks before `now` that entered the buffer since the last call, in order, at most
    /// `most` of them.
    pub fn read_antenna(&mut self, now: u64, most: u64, mut listen: impl FnMut(Stretch)) {
        let mut most = most;
        for segment in &mut self.segments {
            let until = segment.end.min(now).min(segment.heard.saturating_add(most));
            if until > segment.heard {
                most -= until - segment.heard;
                listen(Stretch {
                    ticks: segment.heard..until,
                    begins: !segment.begun,
                    decimation: segment.decimation,
                });
                (segment.heard, segment.begun) = (until, true);
            }
        }
    }

    /// Returns the tick before which [`RxChannel::read_antenna`] has passed the burst at the head
    /// of the buffer.
    pub fn head_heard(&self) -> u64 {
        self.segments.front().map_or(0, |segment| segment.heard)
    }

    /// Returns whether [`RxChannel::read_antenna`] has ticks before `now` to pass.
    pub fn is_behind(&self, now: u64) -> bool {
        self.segments.iter().any(|segment| segment.heard < segment.end.min(now))
    }

    /// Returns the packet at the head of the buffer, complete or not, in packets of
    /// `packet_samples`.
    pub fn next_packet(&self, packet_samples: u64) -> Option<NextPacket> {
        let &Segment { next: tick, end, decimation, .. } = self.segments.front()?;
        if decimation == 1 {
            let left = end - tick;
            let samples = left.min(packet_samples);
            return Some(NextPacket { tick, samples, eob: samples == left, end: tick + samples });
        }
        // A remainder of the radio's samples is dropped.
        let left = (end - tick) / decimation;
        let samples = left.min(packet_samples);
        let end = tick + samples * decimation;
        (left > 0).then_some(NextPacket { tick, samples, eob: samples == left, end })
    }

    /// Returns the samples that wait at `now`.
    pub fn waiting_samples(&self, now: u64) -> u64 {
        let of = |segment: &Segment| {
            segment.end.min(now).saturating_sub(segment.next) / segment.decimation
        };
        self.segments.iter().map(of).sum()
    }

    /// Returns the first tick of the packet that a capture makes at `now`, and the ticks of each of
    /// its packets of `packet_samples`.
    pub fn packet_in_progress(&self, packet_samples: u64, now: u64) -> Option<(u64, u64)> {
        let Segment { next, decimation, .. } = self.running.then(|| self.last())?;
        let ticks = packet_samples * decimation;
        Some((now - now.saturating_sub(next) % ticks, ticks))
    }

    /// Returns the tick after the last sample of the burst at the head of the buffer, as far as
    /// known.
    pub fn head_end(&self) -> u64 {
        self.segments.front().map_or(0, |segment| segment.end)
    }

    /// Returns the capacity of the packet buffer in ticks, at the present decimation.
    pub fn buffer_ticks(&self) -> u64 {
        self.buffer_samples * self.decimation
    }

    /// Removes the packet at the head of the buffer.
    pub fn take(&mut self, packet: NextPacket) {
        let Some(segment) = self.segments.front_mut() else { return };
        segment.next = packet.end;
        let end = segment.end;
        if packet.eob {
            if self.segments.len() == 1 && self.running {
                self.finish(end);
            }
            self.segments.pop_front();
            self.drop_empty();
        }
    }

    /// Returns the next tick at which [`RxChannel::advance`] has an event.
    pub fn next_event(&self, keeper: &DeviceClock) -> Option<u64> {
        if self.running {
            let segment = self.last();
            return Some(segment.end.min(segment.next.saturating_add(self.room() + 1)));
        }
        let &(command, arrived) = self.commands.front()?;
        if self.is_held || self.is_full_of_bursts() {
            return None;
        }
        let start = self.start_of(&command, keeper, arrived).unwrap_or_else(|late| late);
        (start < u64::MAX).then_some(start)
    }

    /// Returns the tick at which a command begins that came at `arrived`, or `Err` with the tick at
    /// which it is found late.
    fn start_of(&self, command: &Acquire, keeper: &DeviceClock, arrived: u64) -> Result<u64, u64> {
        let idle_from = self.has_run.then_some(self.idle_from);
        self.turn.start_of(command, keeper, arrived, idle_from, &self.transmissions)
    }

    /// Returns the ticks of which a segment has a whole number.
    fn unit(&self, segment: &Segment) -> u64 {
        if segment.decimation == 1 { self.turn.cycle } else { segment.decimation }
    }

    fn check_overrun(&mut self, now: u64) -> Option<RxEvent> {
        let (room, segment) = (self.room(), self.last());
        let produced = segment.end.min(now).saturating_sub(segment.next);
        if produced <= room {
            return None;
        }
        // At least one sample remains, to carry EOB.
        let end = (segment.next + room.max(self.unit(&segment))).min(segment.end);
        self.end_segment(end);
        self.is_held = true;
        Some(RxEvent::Overrun { tick: end - 1 })
    }

    /// Returns whether commands have to wait until some of the short bursts before them are sent.
    fn is_full_of_bursts(&self) -> bool {
        self.segments.len() == SEGMENTS_MAX
    }

    /// Returns the ticks of the growing segment for which the buffer has room.
    fn room(&self) -> u64 {
        let before = self.segments.len().saturating_sub(1);
        let samples = |segment: &Segment| (segment.end - segment.next) / segment.decimation;
        let waiting: u64 = self.segments.iter().take(before).map(samples).sum();
        let (last, left) = (self.last(), self.buffer_samples.saturating_sub(waiting));
        let unit = self.unit(&last);
        left * last.decimation / unit * unit
    }

    /// Removes ended bursts that are too short for a sample.
    fn drop_empty(&mut self) {
        let is_over = |segment: &Segment| segment.end - segment.next < segment.decimation;
        while !(self.running && self.segments.len() == 1)
            && self.segments.front().is_some_and(is_over)
        {
            self.segments.pop_front();
        }
    }

    fn last(&self) -> Segment {
        *self.segments.back().expect("a running channel has a segment")
    }

    /// Ends the capture that is done, whose command leaves the queue.
    fn finish(&mut self, end: u64) {
        self.end_segment(end);
        self.commands.pop_front();
    }

    fn end_segment(&mut self, end: u64) {
        self.segments.back_mut().expect("a running channel has a segment").end = end;
        self.running = false;
        (self.idle_from, self.has_run) = (end, true);
    }
}

#[cfg(test)]
#[path = "rx_channel_tests.rs"]
mod tests;
