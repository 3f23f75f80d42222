//! How far a source has come, and where its gaps are.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use crate::{Ledger, RxEvent};

/// Gaps that wait for whoever listens; more are counted in the ledger all the same.
const GAPS_WAITING_MAX: usize = 4096;

/// Why samples are missing somewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gap {
    /// What happened to the stream.
    Stream(RxEvent),
    /// There was no room for so many samples behind the source.
    Full {
        /// Samples missing, exactly.
        samples: u64,
    },
}

/// Where a recording goes on after missing samples, or begins. Several that begin at one sample
/// say that several things happened before it; the last one has its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Samples delivered before it.
    pub first_sample: u64,
    /// Time of its first sample, ticks, where the device tells.
    pub time_ticks: Option<u64>,
    /// Why samples are missing before it; nothing at the beginning.
    pub gap: Option<Gap>,
}

/// The device discarded the command to start.
#[derive(Debug, thiserror::Error)]
#[error("the radio did not start: its time had passed the start time already; start it later")]
#[non_exhaustive]
pub struct LateStart;

/// Counts the samples of time on the way to the end, and tells where gaps are.
pub(super) struct Progress {
    segments: SyncSender<Segment>,
    gap: Option<Gap>,
    delivered: u64,
    /// Samples of time still wanted; no end when none.
    left: Option<u64>,
}

impl Progress {
    pub fn new(samples: Option<u64>) -> (Self, Receiver<Segment>) {
        let (segments, told) = sync_channel(GAPS_WAITING_MAX);
        (Self { segments, gap: None, delivered: 0, left: samples }, told)
    }

    /// How many samples may be received at once into so much room.
    pub fn room(&self, room: usize) -> usize {
        self.left.map_or(room, |left| room.min(usize::try_from(left).unwrap_or(usize::MAX)))
    }

    /// Whether all samples wanted have come or are lost.
    pub fn is_over(&self) -> bool {
        self.left == Some(0)
    }

    /// Samples came; the first of them has this time.
    pub fn deliver(&mut self, samples: u64, time_ticks: Option<u64>) {
        if samples == 0 {
            return;
        }
        if self.delivered == 0 || self.gap.is_some() {
            self.tell(time_ticks);
        }
        self.delivered += samples;
        self.pass(samples);
    }

    /// Samples came for which there was no room. True when that begins a gap.
    pub fn refuse(&mut self, samples: u64) -> bool {
        self.pass(samples);
        if let Some(Gap::Full { samples: missing }) = &mut self.gap {
            *missing += samples;
            return false;
        }
        self.missing(Gap::Full { samples });
        true
    }

    /// Something happened to the stream. True when it is a gap.
    pub fn note(&mut self, event: RxEvent) -> Result<bool, LateStart> {
        match event {
            RxEvent::None | RxEvent::Timeout => return Ok(false),
            RxEvent::LateCommand if self.delivered == 0 => return Err(LateStart),
            RxEvent::Overrun { samples } | RxEvent::SequenceGap { samples, .. } => {
                self.pass(samples);
            }
            RxEvent::LateCommand => {}
        }
        self.missing(Gap::Stream(event));
        Ok(true)
    }

    /// Nothing comes any more: tells the last gap.
    pub fn end(&mut self) {
        if self.gap.is_some() {
            self.tell(None);
        }
    }

    fn pass(&mut self, samples: u64) {
        self.left = self.left.map(|left| left.saturating_sub(samples));
    }

    /// Notes a gap; one before it at the same place is told on its own.
    fn missing(&mut self, gap: Gap) {
        self.end();
        self.gap = Some(gap);
    }

    /// Nobody has to listen, and a full list costs no more than its entry.
    fn tell(&mut self, time_ticks: Option<u64>) {
        let segment = Segment { first_sample: self.delivered, time_ticks, gap: self.gap.take() };
        let _ = self.segments.try_send(segment);
    }
}

/// The ledger up to the last sample that was handed out or lost: what is held lies behind the end.
pub(super) fn so_far(ledger: &Ledger) -> Ledger {
    let mut ledger = ledger.clone();
    ledger.expected = ledger.expected.wrapping_sub(ledger.held);
    ledger.held = 0;
    ledger
}
