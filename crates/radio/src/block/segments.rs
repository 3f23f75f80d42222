//! The progress of a source, and the places of its gaps.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use millstream_flow::{Item, Out, TagTime, TagValue, keys};

use crate::{Cause, Ledger, RxEvent, StreamRate};

/// Samples by cause, in the order of [`Cause::ALL`].
type Losses = [u64; Cause::ALL.len()];

/// The most gaps that wait for the reader; the ledger counts further ones too.
const GAPS_WAITING_MAX: usize = 4096;

/// The most tunings that wait for their samples.
const TUNINGS_WAITING: usize = 16;

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

    /// Returns the samples missing before it, by cause, as counted when it was reported. A packet
    /// that comes too late after that moves its samples from `network_loss` to `late`.
    pub fn losses(&self) -> impl Iterator<Item = (Cause, u64)> + '_ {
        let known = Cause::ALL.into_iter().zip(self.lost).filter(|loss| loss.1 > 0);
        let is_known = self.lost != [0; Cause::ALL.len()];
        let as_a_rule = self.gap.filter(|_| !is_known).map(GapCause::loss);
        known.chain(as_a_rule)
    }

    /// Tags the next item of `out`: `rx_time` if the device reports it; `loss_cause` and
    /// `loss_items` for a gap before the item; `rx_rate_hz` where the stream begins anew.
    pub(super) fn tag<T: Item>(&self, out: &mut Out<T>, rate: StreamRate) {
        if self.is_restart {
            out.tag(0, keys::RX_RATE_HZ, rate.samples_hz());
        }
        for (cause, samples) in self.losses() {
            out.tag(0, keys::LOSS_CAUSE, TagValue::text(cause.name()));
            out.tag(0, keys::LOSS_ITEMS, samples);
        }
        if let Some(ticks) = self.time_ticks {
            out.tag(0, keys::RX_TIME, TagTime::from_ticks(ticks, rate.ticks_hz));
        }
    }
}

/// The device discarded the command to start.
#[derive(Debug, thiserror::Error)]
#[error(
    "the radio did not start, because its clock had already passed the start time: give a later \
     start time"
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
    /// Frequencies that samples have from a time on, ticks, the next one first.
    tunings: VecDeque<(u64, TunedOutput)>,
    /// Reported segments that the source has not yet taken for its tags.
    untagged: Vec<RecordingSegment>,
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
            left: samples,
        };
        (this, told)
    }

    /// Returns how many samples may be received at once into `room` places.
    pub fn room(&self, room: usize) -> usize {
        self.left.map_or(room, |left| room.min(usize::try_from(left).unwrap_or(usize::MAX)))
    }

    /// Returns whether all wanted samples have been delivered or are lost.
    pub fn is_over(&self) -> bool {
        self.left == Some(0)
    }

    /// Takes the segments to be tagged on the next sample, before it is produced.
    pub fn untagged(&mut self) -> impl Iterator<Item = RecordingSegment> + '_ {
        self.untagged.drain(..)
    }

    /// Counts delivered samples; `time_ticks` is the time of the first.
    pub fn deliver(&mut self, samples: u64, time_ticks: Option<u64>) {
        if samples == 0 {
            return;
        }
        if self.is_restart {
            // A gap before it is reported by itself.
            self.end();
        }
        let mut is_told = false;
        while let Some(tuned) = self.take_tuning(time_ticks) {
            self.tell(time_ticks, Some(tuned));
            is_told = true;
        }
        if !is_told && (self.delivered == 0 || self.gap.is_some() || self.is_restart) {
            self.tell(time_ticks, None);
        }
        self.delivered += samples;
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

    /// Records the gap before a new stream, whose ledger begins at zero. The radio has the settings
    /// of the start again.
    pub fn reopen(&mut self, samples: u64) {
        self.tunings.clear();
        self.pass(samples);
        self.missing(GapCause::Reopened { samples });
        (self.lost, self.booked) = ([0; Cause::ALL.len()], [0; Cause::ALL.len()]);
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

    /// Begins a segment with the first samples from the time `at` on, ticks: they are from another
    /// frequency. The device's time was read behind the tuning, so those are a packet's samples too
    /// late at most.
    pub fn tune(&mut self, at: u64, tuned: TunedOutput) {
        if self.tunings.len() == TUNINGS_WAITING {
            self.tunings.pop_front();
        }
        self.tunings.push_back((at, tuned));
    }

    /// Takes the next tuning before samples of this time.
    fn take_tuning(&mut self, time_ticks: Option<u64>) -> Option<TunedOutput> {
        let (at, _) = self.tunings.front()?;
        let is_due = time_ticks.is_none_or(|ticks| ticks.wrapping_sub(*at) < 1 << 63);
        if is_due { self.tunings.pop_front().map(|(_, tuned)| tuned) } else { None }
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
mod tests {
    use millstream_flow::{Block, BlockError, Context, Mock, PortVisitor, Ports, Work};

    use super::*;

    /// Ten samples, a gap with two causes, ten more; ten after a stop, and twenty around a tuning.
    struct Gappy(SampleCount, Out<u8>);

    impl Gappy {
        fn give(&mut self, ticks: u64) {
            self.0.deliver(10, Some(ticks));
            let rate = StreamRate::of_radio(20.0);
            self.0.untagged().for_each(|segment| segment.tag(&mut self.1, rate));
            self.1.produce(10);
        }
    }

    impl Ports for Gappy {
        fn ports(&mut self, ports: &mut dyn PortVisitor) {
            ports.output("out", &mut self.1);
        }
    }

    impl Block for Gappy {
        fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
            self.give(30);
            self.0.refuse(4);
            self.0.refuse(3);
            self.0.note(RxEvent::Overrun { samples: 5 }, None)?;
            self.give(52);
            self.0.restart(false);
            self.give(900);
            // From tick 915 on; the samples before it are not from there.
            self.0.tune(915, TunedOutput { output: 0, freq_hz: 1e9 });
            self.give(910);
            self.give(920);
            Ok(Work::Finished)
        }
    }

    #[test]
    fn the_first_sample_after_a_gap_says_when_it_came_and_what_is_missing() {
        let mut mock = Mock::new(Gappy(SampleCount::new(None).0, Out::new()));
        mock.run().unwrap();
        let told: Vec<String> = mock
            .take_tags("out")
            .iter()
            .map(|tag| format!("{} {} {}", tag.offset, tag.key, tag.value))
            .collect();
        assert_eq!(
            told,
            [
                "0 rx_time 1.500000000 s",
                "10 loss_cause consumer_full",
                "10 loss_items 7",
                "10 loss_cause device_overrun",
                "10 loss_items 5",
                "10 rx_time 2.600000000 s",
                "20 rx_rate_hz 20",
                "20 rx_time 45.000000000 s",
                "40 rx_time 46.000000000 s",
            ]
        );
    }
}
