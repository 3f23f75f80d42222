//! The progress of a source, and the places of its gaps.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use millstream_flow::{Item, Out, TagTime, TagValue, keys};

use crate::{Cause, Ledger, RxEvent, StreamRate};

/// Samples by cause, in the order of [`Cause::ALL`].
type Losses = [u64; Cause::ALL.len()];

/// The most gaps that wait for the reader; the ledger counts further ones too.
const GAPS_WAITING_MAX: usize = 4096;

/// The most tunings that wait for their samples: the last one of each output at least.
const TUNINGS_WAITING: usize = crate::stream::RX_CHANNELS_MAX;

/// The gaps at one place for which memory is allocated at the start.
const SEGMENTS_UNTAGGED: usize = 64;

/// Why samples are missing at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GapCause {
    /// An event of the stream.
    Stream(RxEvent),
    /// The device had stopped answering, and was opened again.
    Reopened {
        /// The number of missing samples, by this machine's clock.
        samples: u64,
    },
    /// There was no space behind the source.
    Full {
        /// The number of missing samples, exact.
        samples: u64,
    },
}

/// The place at which a recording begins, or continues after missing samples, or at another
/// frequency. Several at one sample record several events before it; the last one has its time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RecordingSegment {
    /// Samples delivered before it.
    pub first_sample: u64,
    /// Time of its first sample, ticks, if the device reports it.
    pub time_ticks: Option<u64>,
    /// Why samples are missing before it; `None` at the beginning.
    pub gap: Option<GapCause>,
    lost: Losses,
    is_restart: bool,
    tuned: Option<TunedOutput>,
}

/// The frequency to which a message tuned an output of a source.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TunedOutput {
    /// The number of the output, from 0.
    pub output: usize,
    /// The frequency in the middle of its band, Hz.
    pub freq_hz: f64,
}

impl GapCause {
    /// Returns the usual cause of such a gap in the ledger, and the missing samples.
    fn loss(self) -> (Cause, u64) {
        match self {
            Self::Full { samples } => (Cause::ConsumerFull, samples),
            Self::Reopened { samples } => (Cause::Reopened, samples),
            Self::Stream(event) => {
                let cause = match event {
                    RxEvent::Overrun { .. } => Cause::DeviceOverrun,
                    RxEvent::ClockJump { .. } => Cause::ClockJump,
                    RxEvent::SequenceGap { .. } => Cause::NetworkLoss,
                    RxEvent::LateCommand | RxEvent::None | RxEvent::Timeout => Cause::LateCommand,
                };
                (cause, event.missing())
            }
        }
    }
}

impl RecordingSegment {
    /// Returns a segment from a stream's events.
    pub fn new(first_sample: u64, time_ticks: Option<u64>, gap: Option<GapCause>) -> Self {
        let lost = [0; Cause::ALL.len()];
        Self { first_sample, time_ticks, gap, lost, is_restart: false, tuned: None }
    }

    /// Returns the segment at which reception goes on after the user had stopped it. Nothing is
    /// lost there: the samples of the time between were not wanted.
    pub fn restart(first_sample: u64, time_ticks: Option<u64>) -> Self {
        Self { is_restart: true, ..Self::new(first_sample, time_ticks, None) }
    }

    /// Returns the segment at which the samples come from another frequency.
    pub fn tuned(first_sample: u64, time_ticks: Option<u64>, tuned: TunedOutput) -> Self {
        Self { tuned: Some(tuned), ..Self::new(first_sample, time_ticks, None) }
    }

    /// Returns the frequency from there on, if a message has changed it.
    pub fn tuning(&self) -> Option<TunedOutput> {
        self.tuned
    }

    /// Returns whether reception goes on there after the user had stopped it.
    pub fn is_restart(&self) -> bool {
        self.is_restart
    }

    /// Returns the samples missing before it, by cause.
    pub fn losses(&self) -> impl Iterator<Item = (Cause, u64)> + '_ {
        let known = Cause::ALL.into_iter().zip(self.lost).filter(|loss| loss.1 > 0);
        let is_known = self.lost != [0; Cause::ALL.len()];
        let as_a_rule = self.gap.filter(|_| !is_known).map(GapCause::loss);
        known.chain(as_a_rule)
    }

    /// Tags an item of output number `output`, which is not produced yet, by its `index`: `rx_time`
    /// if the device reports it; `loss_cause` and `loss_items` for a gap before the item;
    /// `rx_rate_hz` where the stream begins anew; `rx_freq_hz` where a message has tuned this
    /// output.
    pub(super) fn tag<T: Item>(
        &self,
        (output, index): (usize, usize),
        out: &mut Out<T>,
        rate: StreamRate,
    ) {
        if self.is_restart {
            out.tag(index, keys::RX_RATE_HZ, rate.samples_hz());
        }
        for (cause, samples) in self.losses() {
            out.tag(index, keys::LOSS_CAUSE, TagValue::text(cause.name()));
            out.tag(index, keys::LOSS_ITEMS, samples);
        }
        if let Some(tuned) = self.tuned.filter(|tuned| tuned.output == output) {
            out.tag(index, keys::RX_FREQ_HZ, tuned.freq_hz);
        }
        if let Some(ticks) = self.time_ticks {
            out.tag(index, keys::RX_TIME, TagTime::from_ticks(ticks, rate.ticks_hz));
        }
    }
}

/// The device discarded the command to start.
#[derive(Debug, thiserror::Error)]
#[error(
    "the radio did not start, because its clock had passed the start time before the command came: \
     try again, with less load on this machine"
)]
#[non_exhaustive]
pub struct LateStart;

/// Counts the samples of time up to the end, and reports gaps.
pub(super) struct SampleCount {
    segments: SyncSender<RecordingSegment>,
    gap: Option<GapCause>,
    /// The samples lost in the latest gap, and those in the ledger up to then, by cause.
    lost: Losses,
    booked: Losses,
    delivered: u64,
    /// Whether the next samples are the first ones after a stop.
    is_restart: bool,
    /// Frequencies that samples have from a time on, ticks, or at once; the next one first.
    tunings: VecDeque<(Option<u64>, TunedOutput)>,
    /// Reported segments that the source has not yet taken for its tags, and the samples delivered
    /// before the last ones.
    untagged: Vec<RecordingSegment>,
    begin: u64,
    /// Samples of time still wanted; `None` without an end.
    left: Option<u64>,
}

impl SampleCount {
    pub fn new(samples: Option<u64>) -> (Self, Receiver<RecordingSegment>) {
        let (segments, told) = sync_channel(GAPS_WAITING_MAX);
        let untagged = Vec::with_capacity(SEGMENTS_UNTAGGED);
        let none = [0; Cause::ALL.len()];
        let this = Self {
            segments,
            gap: None,
            lost: none,
            booked: none,
            delivered: 0,
            is_restart: false,
            tunings: VecDeque::with_capacity(TUNINGS_WAITING),
            untagged,
            begin: 0,
            left: samples,
        };
        (this, told)
    }

    /// Returns how many samples may be received at once into `room` places.
    pub fn room(&self, room: usize) -> usize {
        room.min(usize::try_from(self.wanted()).unwrap_or(usize::MAX))
    }

    /// Returns the samples of time that are still wanted; all counts of them end there.
    pub fn wanted(&self) -> u64 {
        self.left.unwrap_or(u64::MAX)
    }

    /// Returns whether all wanted samples have been delivered or are lost.
    pub fn is_over(&self) -> bool {
        self.left == Some(0)
    }

    /// Takes the segments to be tagged on the samples that were delivered last, before these are
    /// produced, each with the index of its sample.
    pub fn untagged(&mut self) -> impl Iterator<Item = (usize, RecordingSegment)> + '_ {
        let begin = self.begin;
        let index = move |segment: &RecordingSegment| segment.first_sample.saturating_sub(begin);
        self.untagged.drain(..).map(move |segment| (index(&segment) as usize, segment))
    }

    /// Tags these segments on all outputs.
    pub fn tag<T: Item>(&mut self, outs: &mut [Out<T>], rate: StreamRate) {
        for (index, segment) in self.untagged() {
            for (output, out) in outs.iter_mut().enumerate() {
                segment.tag((output, index), out, rate);
            }
        }
    }

    /// Counts delivered samples; `time_ticks` is the time of the first.
    pub fn deliver(&mut self, samples: u64, time_ticks: Option<u64>, rate: StreamRate) {
        // Also without samples: a gap may be tagged before them.
        self.begin = self.delivered;
        if samples == 0 {
            return;
        }
        if self.is_restart {
            // A gap before it is reported by itself.
            self.end();
        }
        let mut begins = self.delivered == 0 || self.gap.is_some() || self.is_restart;
        let mut left = samples;
        while let Some((ahead, tuned)) = self.next_tuning(time_ticks, rate) {
            let before = ahead.saturating_sub(samples - left);
            if before >= left {
                break;
            }
            self.tunings.pop_front();
            if before > 0 && std::mem::take(&mut begins) {
                self.tell(time_ticks, None);
            }
            self.delivered += before;
            left -= before;
            let passed = rate.ticks(samples - left);
            self.tell(time_ticks.map(|ticks| ticks.wrapping_add(passed)), Some(tuned));
            begins = false;
        }
        if begins {
            self.tell(time_ticks, None);
        }
        self.delivered += left;
        self.pass(samples);
    }

    /// Counts samples that found no space. Returns true when that begins a gap.
    pub fn refuse(&mut self, samples: u64) -> bool {
        self.pass(samples);
        if let Some(GapCause::Full { samples: missing }) = &mut self.gap {
            *missing += samples;
            return false;
        }
        self.missing(GapCause::Full { samples });
        true
    }

    /// Records an event of the stream; `ledger`, if there is only one stream, has the missing
    /// samples. Returns true when the event is a gap.
    pub fn note(&mut self, event: RxEvent, ledger: Option<&Ledger>) -> Result<bool, LateStart> {
        match event {
            RxEvent::None | RxEvent::Timeout => return Ok(false),
            RxEvent::LateCommand if self.delivered == 0 => return Err(LateStart),
            _ => self.pass(event.missing()),
        }
        self.missing(GapCause::Stream(event));
        if let Some(ledger) = ledger {
            let booked = Cause::ALL.map(|cause| ledger.lost(cause));
            let new = booked.iter().zip(self.booked).map(|(now, then)| now.saturating_sub(then));
            self.lost.iter_mut().zip(new).for_each(|(lost, new)| *lost = new);
            // Losses at the consumer are reported separately.
            self.lost[Cause::ConsumerFull as usize] = 0;
            self.booked = booked;
        }
        Ok(true)
    }

    /// Records the gap before a new stream, or the part of it before a stop.
    pub fn reopen(&mut self, samples: u64) {
        self.pass(samples);
        self.missing(GapCause::Reopened { samples });
        self.lost = [0; Cause::ALL.len()];
    }

    /// Takes the frequencies of outputs behind a device's opening, where messages had changed any;
    /// without such, the radio has the settings of the start again. The ledger begins at zero.
    pub fn opened_again(&mut self, tuned: Vec<TunedOutput>) {
        self.booked = [0; Cause::ALL.len()];
        self.tunings.clear();
        self.tunings.extend(tuned.into_iter().map(|tuned| (None, tuned)));
    }

    /// Begins a segment with the next samples: the user had stopped the stream. `is_new`: the
    /// ledger begins at zero.
    pub fn restart(&mut self, is_new: bool) {
        self.end();
        self.is_restart = true;
        if is_new {
            (self.lost, self.booked) = ([0; Cause::ALL.len()], [0; Cause::ALL.len()]);
        }
    }

    /// Begins a segment with the first sample from the time `at` on, ticks, or at once: it is from
    /// another frequency. The device's time was read behind the tuning, so samples before it may
    /// be, too.
    pub fn tune(&mut self, at: Option<u64>, tuned: TunedOutput) {
        if self.tunings.len() == TUNINGS_WAITING {
            // With as many places as outputs, a later one of the same output is there.
            let outputs = || self.tunings.iter().map(|(_, tuned)| tuned.output);
            let later = |(index, output): (usize, usize)| {
                let mut behind = outputs().skip(index + 1).chain([tuned.output]);
                behind.any(|other| other == output).then_some(index)
            };
            let superseded = outputs().enumerate().find_map(later);
            self.tunings.remove(superseded.unwrap_or(0));
        }
        self.tunings.push_back((at, tuned));
    }

    /// Returns the next tuning, and the number of samples before it from this time on.
    fn next_tuning(&self, time_ticks: Option<u64>, rate: StreamRate) -> Option<(u64, TunedOutput)> {
        let &(at, tuned) = self.tunings.front()?;
        let ahead = at.zip(time_ticks).map_or(0, |(at, ticks)| at.wrapping_sub(ticks));
        // A time that has passed is far ahead, modulo 2⁶⁴.
        let ahead = if ahead < 1 << 63 { ahead } else { 0 };
        Some((rate.samples(ahead + rate.ticks(1) - 1), tuned))
    }

    /// Reports the last gap, after the end of the samples.
    pub fn end(&mut self) {
        if self.gap.is_some() {
            self.tell(None, None);
        }
    }

    fn pass(&mut self, samples: u64) {
        self.left = self.left.map(|left| left.saturating_sub(samples));
    }

    /// Records a gap; an earlier one at the same place is reported separately.
    fn missing(&mut self, gap: GapCause) {
        self.end();
        self.gap = Some(gap);
    }

    /// Sends the gap; the receiver may have been dropped, and a full list loses only this entry.
    fn tell(&mut self, time_ticks: Option<u64>, tuned: Option<TunedOutput>) {
        let lost = std::mem::take(&mut self.lost);
        let (first_sample, gap) = (self.delivered, self.gap.take());
        let is_restart = self.is_restart && gap.is_none();
        let segment = RecordingSegment { first_sample, time_ticks, gap, lost, is_restart, tuned };
        self.is_restart &= !is_restart;
        let _ = self.segments.try_send(segment);
        self.untagged.push(segment);
    }
}

/// Returns the ledger up to the last sample that was handed out or lost; held samples lie behind
/// the end.
pub(super) fn so_far(ledger: &Ledger) -> Ledger {
    let mut ledger = ledger.clone();
    ledger.expected = ledger.expected.wrapping_sub(ledger.held);
    ledger.held = 0;
    ledger
}

#[cfg(test)]
#[path = "segments_tests.rs"]
mod tests;
