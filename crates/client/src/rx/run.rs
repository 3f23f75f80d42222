//! What a receive stream does with samples and gaps.

use std::time::Duration;

use millstream_radio::{
    Ledger, RxError, RxEvent, RxMetadata, RxStreamer, StreamRate, StreamSample,
};

use super::{GapPolicy, Received, StreamGap};
use crate::StreamStart;
use crate::error::ClientError;
use crate::parts::{CHANNELS_MAX, parts_mut};
use crate::status::{StatusKind, StatusQueue, StreamStatus};
use crate::time::DeviceTime;

/// The state of a receive stream.
#[derive(Debug)]
pub(super) struct RxRun {
    pub source: Option<RxStreamer>,
    pub rate: StreamRate,
    pub gaps: GapPolicy,
    /// Samples may come.
    pub active: bool,
    /// Samples of a finite stream that are to come.
    left: Option<u64>,
    /// The time at which the first sample is to come, until one has come or is missing.
    start_time: Option<DeviceTime>,
    /// The time of the next sample, once it is known.
    next_ticks: Option<u64>,
    /// What the next read returns.
    pending: Option<ReadStop>,
    /// Zeros to write before anything else.
    zeros: u64,
    /// The burst is over, behind what is pending.
    ended: bool,
    /// An error to return once, and its text for all later reads.
    failure: Option<ClientError>,
    lost: Option<String>,
    /// The latest gap.
    pub last_gap: Option<StreamGap>,
    /// The ledgers of earlier streams, one for each channel.
    earlier: Vec<Ledger>,
}

/// Why a read with samples stopped where it did: what the next read returns, without samples.
#[derive(Debug, Clone, Copy)]
enum ReadStop {
    /// Nothing: times or the rate change here.
    Break,
    /// Samples are missing.
    Gap(StreamGap),
    /// The start came after this time, its own.
    LateStart(DeviceTime),
}

impl RxRun {
    pub fn new(source: RxStreamer, gaps: GapPolicy) -> Self {
        let rate = source.rate();
        let earlier = source.ledgers().map(|_| Ledger::default()).collect();
        Self {
            source: Some(source),
            rate,
            gaps,
            active: false,
            left: None,
            start_time: None,
            next_ticks: None,
            pending: None,
            zeros: 0,
            ended: false,
            failure: None,
            lost: None,
            last_gap: None,
            earlier,
        }
    }

    fn time(&self, ticks: u64) -> DeviceTime {
        DeviceTime::from_ticks(ticks, self.rate.ticks_hz)
    }

    /// Returns whether the streams must be opened anew before a start.
    pub fn needs_source(&self) -> bool {
        self.source.is_none() || self.lost.is_some()
    }

    /// Takes new streams, which may have another rate.
    pub fn set_source(&mut self, source: RxStreamer) {
        self.drop_source();
        self.rate = source.rate();
        self.source = Some(source);
    }

    /// Drops the streams and keeps their ledgers.
    pub fn drop_source(&mut self) {
        if let Some(mut source) = self.source.take() {
            source.end();
            for (earlier, ledger) in self.earlier.iter_mut().zip(source.ledgers()) {
                earlier.merge(ledger);
            }
        }
    }

    pub fn start(&mut self, start: StreamStart) -> Result<(), ClientError> {
        let at = start.time.map(|time| time.ticks_at(self.rate.ticks_hz));
        let source = self.source.as_mut().ok_or(ClientError::Closed)?;
        match start.samples {
            Some(samples) => source.start_finite(samples, at)?,
            None => source.start_continuous(at)?,
        }
        (self.active, self.left, self.next_ticks) = (true, start.samples, at);
        (self.start_time, self.pending, self.zeros, self.ended) = (start.time, None, 0, false);
        (self.failure, self.lost) = (None, None);
        Ok(())
    }

    pub fn stop(&mut self) {
        if let Some(source) = &mut self.source {
            source.end();
        }
        (self.active, self.pending, self.zeros, self.ended) = (false, None, 0, false);
        self.failure = None;
    }

    /// Interrupts the run before its streams are replaced; returns what is left of it.
    pub fn interrupt(&mut self) -> Option<StreamStart> {
        let was = (self.active && !self.ended)
            .then_some(StreamStart { time: self.start_time, samples: self.left });
        // What no read has returned yet stays: a gap, a late start or zeros, and the end behind it.
        let told = self.pending.filter(|pending| !matches!(pending, ReadStop::Break));
        let (ended, zeros) = (self.ended, if self.ended { self.zeros } else { 0 });
        self.stop();
        self.drop_source();
        (self.pending, self.ended, self.zeros) = (told, ended, zeros);
        was
    }

    /// Continues behind an interruption. What is left may be no multiple of the samples that the
    /// radio makes at a time: then it makes a few more.
    pub fn resume(&mut self, start: StreamStart) -> Result<(), ClientError> {
        let gap = self.pending;
        match self.start(start) {
            Err(ClientError::Rx(RxError::BadLength { samples, multiple, .. })) if samples > 0 => {
                let samples = samples.checked_next_multiple_of(multiple.into());
                self.start(StreamStart { samples: samples.or(start.samples), ..start })?;
            }
            other => other?,
        }
        self.pending = Some(gap.unwrap_or(ReadStop::Break));
        Ok(())
    }

    /// Returns the outcome of every sample of a channel, by its position.
    pub fn ledger(&self, position: usize) -> Option<Ledger> {
        let mut ledger = self.earlier.get(position)?.clone();
        if let Some(now) = self.source.as_ref().and_then(|source| source.ledgers().nth(position)) {
            ledger.merge(now);
        }
        Some(ledger)
    }

    /// Does one slice of a read. Returns whether the read is complete.
    pub fn slice<T: StreamSample>(
        &mut self,
        outs: &mut [&mut [T]],
        room: usize,
        got: &mut Received,
        wait: Duration,
        status: &StatusQueue,
    ) -> Result<bool, ClientError> {
        if self.zeros > 0 {
            self.write_zeros(outs, room, got);
            return Ok(got.samples == room || got.end_of_burst);
        }
        if let Some(pending) = self.pending {
            if got.samples > 0 {
                got.abrupt_end = true;
                return Ok(true);
            }
            self.pending = None;
            match pending {
                ReadStop::Break => {}
                // An end behind the gap is left for the next read.
                ReadStop::Gap(gap) if self.gaps == GapPolicy::Error => {
                    return Err(ClientError::Gap(gap));
                }
                ReadStop::Gap(gap) => {
                    got.gap = Some(gap);
                    self.end_if_over(got);
                    return Ok(true);
                }
                ReadStop::LateStart(time) => {
                    self.end_if_over(got);
                    return Err(ClientError::LateStart { time });
                }
            }
        }
        if self.ended {
            self.end_if_over(got);
            return Ok(true);
        }
        let Some(source) = &mut self.source else { return Err(ClientError::Closed) };
        match parts_mut(outs, &(got.samples..room), |outs| source.recv_all(outs, wait)) {
            Ok(meta) => {
                self.take(meta, got, status);
                Ok(got.samples == room || got.end_of_burst)
            }
            Err(error) => {
                (self.active, self.lost) = (false, Some(error.to_string()));
                if got.samples == 0 {
                    return Err(error.into());
                }
                self.failure = Some(error.into());
                Ok(true)
            }
        }
    }

    /// Finds out whether the stream is interrupted or ends directly behind the samples of a read,
    /// and marks the read so. Returns whether that is known, after waiting up to `wait`.
    ///
    /// Where zeros stand for missing samples it waits for nothing.
    pub fn look_behind(
        &mut self,
        got: &mut Received,
        wait: Duration,
        status: &StatusQueue,
    ) -> bool {
        if got.end_of_burst || got.abrupt_end || self.zeros > 0 {
            return true;
        }
        if self.pending.is_none() && !self.ended && self.active {
            let wait = if self.gaps == GapPolicy::Zeros { Duration::ZERO } else { wait };
            let Some(source) = &mut self.source else { return true };
            match peek(source, wait) {
                Ok(RxMetadata { event: RxEvent::Timeout, .. }) => {
                    return self.gaps == GapPolicy::Zeros;
                }
                Ok(meta) => self.take(meta, got, status),
                Err(error) => {
                    (self.active, self.lost) = (false, Some(error.to_string()));
                    self.failure = Some(error.into());
                }
            }
        }
        got.abrupt_end = self.pending.is_some();
        true
    }

    /// Returns whether something other than a sample is to be returned.
    pub fn has_news(&self) -> bool {
        self.pending.is_some() || self.zeros > 0 || self.ended
    }

    /// Returns the error of a run that an error has ended.
    pub fn lost(&mut self) -> Option<ClientError> {
        let again = || self.lost.clone().map(|reason| ClientError::Lost { reason });
        self.failure.take().or_else(again)
    }

    fn take(&mut self, meta: RxMetadata, got: &mut Received, status: &StatusQueue) {
        if meta.samples > 0 {
            let ticks = meta.time_ticks.or(self.next_ticks).unwrap_or(0);
            self.deliver(got, ticks, meta.samples);
        }
        self.ended |= meta.end_of_burst;
        match meta.event {
            RxEvent::None | RxEvent::Timeout => {}
            RxEvent::LateCommand => {
                let ticks = meta.time_ticks.or(self.next_ticks).unwrap_or(0);
                let time = self.time(ticks);
                self.pending = Some(ReadStop::LateStart(time));
                self.ended = true;
                let (channel, kind) = (meta.channel, StatusKind::LateStart);
                status.push(StreamStatus { channel, time: Some(time), kind });
            }
            _ => self.gap(meta, status),
        }
        if self.ended && self.pending.is_none() && self.zeros == 0 && got.samples > 0 {
            self.end_if_over(got);
        }
    }

    /// Counts samples into a read.
    fn deliver(&mut self, got: &mut Received, ticks: u64, samples: usize) {
        if got.samples == 0 {
            got.time = Some(self.time(ticks));
        }
        got.samples += samples;
        self.start_time = None;
        self.next_ticks = Some(ticks.wrapping_add(self.rate.ticks(samples as u64)));
        self.left = self.left.map(|left| left.saturating_sub(samples as u64));
    }

    /// Treats a gap, and those that follow it without a sample between, by the policy.
    fn gap(&mut self, first: RxMetadata, status: &StatusQueue) {
        let (mut samples, mut ticks) = (first.event.missing(), first.time_ticks);
        self.start_time = None;
        while let Some(source) = self.source.as_mut().filter(|_| !self.ended) {
            let meta = match peek(source, Duration::ZERO) {
                Ok(meta) => meta,
                Err(error) => {
                    // The stream gives it once; reads return it behind the gap.
                    (self.active, self.lost) = (false, Some(error.to_string()));
                    self.failure = Some(error.into());
                    break;
                }
            };
            self.ended |= meta.end_of_burst;
            if cause(&meta.event).is_none() {
                break;
            }
            samples += meta.event.missing();
            ticks = meta.time_ticks.or(ticks);
        }
        let after = self.next_ticks.map(|next| next.wrapping_add(self.rate.ticks(samples)));
        let resume_ticks = ticks.or(after).unwrap_or(0);
        let gap = StreamGap {
            samples,
            cause: cause(&first.event).unwrap_or("sequence"),
            resume: self.time(resume_ticks),
        };
        self.last_gap = Some(gap);
        let (channel, time) = (first.channel, Some(gap.resume));
        status.push(StreamStatus { channel, time, kind: StatusKind::Gap(gap) });
        match self.gaps {
            GapPolicy::Error | GapPolicy::Report => {
                self.left = self.left.map(|left| left.saturating_sub(samples));
                self.next_ticks = Some(resume_ticks);
                self.pending = Some(ReadStop::Gap(gap));
            }
            GapPolicy::Zeros if samples > 0 => {
                self.next_ticks = Some(resume_ticks.wrapping_sub(self.rate.ticks(samples)));
                self.zeros = samples;
            }
            GapPolicy::Zeros | GapPolicy::Drop => {
                self.left = self.left.map(|left| left.saturating_sub(samples));
                self.next_ticks = Some(resume_ticks);
                self.pending = Some(ReadStop::Break);
            }
        }
    }

    fn write_zeros<T: StreamSample>(
        &mut self,
        outs: &mut [&mut [T]],
        room: usize,
        got: &mut Received,
    ) {
        let left = usize::try_from(self.zeros).unwrap_or(usize::MAX);
        let samples = left.min(room - got.samples);
        for out in outs {
            out[got.samples..][..samples].fill(T::zeroed());
        }
        self.zeros -= samples as u64;
        self.deliver(got, self.next_ticks.unwrap_or(0), samples);
        if self.ended && self.zeros == 0 && self.pending.is_none() {
            self.end_if_over(got);
        }
    }

    /// Ends the run if nothing is pending.
    fn end_if_over(&mut self, got: &mut Received) {
        if self.ended && self.pending.is_none() && self.zeros == 0 {
            (self.active, self.ended) = (false, false);
            got.end_of_burst = true;
        }
    }
}

/// Returns what comes next without receiving a sample: an event directly behind the last one, or
/// none if it is a sample. Waits up to `timeout` until that is known.
fn peek(source: &mut RxStreamer, timeout: Duration) -> Result<RxMetadata, RxError> {
    let mut none: [&mut [[i16; 2]]; CHANNELS_MAX] = Default::default();
    let channels = source.members().len();
    source.recv_all(&mut none[..channels], timeout)
}

/// Returns the name of a gap's cause; `None` for other events.
fn cause(event: &RxEvent) -> Option<&'static str> {
    match event {
        RxEvent::Overrun { .. } => Some("overrun"),
        RxEvent::SequenceGap { .. } => Some("sequence"),
        RxEvent::ClockJump { .. } => Some("clock_jump"),
        _ => None,
    }
}
