//! Bursts and times of a transmit stream.

use std::time::Duration;

use millstream_radio::{StreamRate, StreamSample, TxEvent, TxLedger, TxMetadata, TxStreamer};

use super::TxWrite;
use crate::StreamStart;
use crate::error::ClientError;
use crate::parts;
use crate::status::{StatusKind, StatusQueue, StreamStatus};
use crate::time::DeviceTime;

/// The longest wait for room to end a burst.
const END_TIME: Duration = Duration::from_secs(1);

/// The state of a transmit stream.
#[derive(Debug)]
pub(super) struct TxRun {
    pub sink: Option<TxStreamer>,
    pub rate: StreamRate,
    /// Samples are taken.
    pub active: bool,
    /// The time of the first sample of the next burst, where the start gave one.
    start_ticks: Option<u64>,
    /// Samples until the end of the burst, where the start gave their number.
    left: Option<u64>,
    /// The time of the next sample of an open burst with time.
    next_ticks: Option<u64>,
    lost: Option<String>,
    /// The ledgers of earlier streams, one for each channel.
    earlier: Vec<TxLedger>,
}

impl TxRun {
    pub fn new(sink: TxStreamer) -> Self {
        let rate = sink.rate();
        let earlier = sink.ledgers().map(|_| TxLedger::default()).collect();
        Self {
            sink: Some(sink),
            rate,
            active: false,
            start_ticks: None,
            left: None,
            next_ticks: None,
            lost: None,
            earlier,
        }
    }

    pub fn needs_sink(&self) -> bool {
        self.sink.is_none() || self.lost.is_some()
    }

    /// Takes new streams, which may have another rate.
    pub fn set_sink(&mut self, sink: TxStreamer) {
        self.drop_sink();
        self.rate = sink.rate();
        self.sink = Some(sink);
    }

    /// Ends the streams and keeps their ledgers.
    pub fn drop_sink(&mut self) {
        if let Some(mut sink) = self.sink.take() {
            sink.end(Some(END_TIME));
            for (earlier, ledger) in self.earlier.iter_mut().zip(sink.ledgers()) {
                earlier.merge(ledger);
            }
        }
        self.next_ticks = None;
    }

    pub fn start(&mut self, start: StreamStart) {
        // A burst of no samples is over.
        self.active = start.samples != Some(0);
        self.start_ticks = start.time.map(|time| time.ticks_at(self.rate.ticks_hz));
        (self.left, self.lost) = (start.samples, None);
    }

    /// Ends an open burst.
    pub fn stop(&mut self) -> Result<(), ClientError> {
        (self.active, self.start_ticks, self.left, self.next_ticks) = (false, None, None, None);
        Ok(self.sink.as_mut().map_or(Ok(()), |sink| sink.end_burst(END_TIME))?)
    }

    pub fn interrupt(&mut self) -> Option<StreamStart> {
        // A time that no sample has taken still holds.
        let ticks_hz = self.rate.ticks_hz;
        let time = self.start_ticks.map(|ticks| DeviceTime::from_ticks(ticks, ticks_hz));
        let was = self.active.then_some(StreamStart { time, samples: self.left });
        // A burst that cannot be ended shows in the ledger.
        let _ = self.stop();
        self.drop_sink();
        was
    }

    pub fn ledger(&self, position: usize) -> Option<TxLedger> {
        let mut ledger = self.earlier.get(position)?.clone();
        if let Some(now) = self.sink.as_ref().and_then(|sink| sink.ledgers().nth(position)) {
            ledger.merge(now);
        }
        Some(ledger)
    }

    pub fn lost(&self) -> Option<ClientError> {
        self.lost.clone().map(|reason| ClientError::Lost { reason })
    }

    /// Does one slice of a write. Returns whether the write is complete.
    pub fn slice<T: StreamSample>(
        &mut self,
        ins: &[&[T]],
        length: usize,
        request: &WriteRequest,
        done: &mut TxWrite,
        wait: Duration,
    ) -> Result<bool, ClientError> {
        let in_burst = self.sink.as_ref().is_some_and(TxStreamer::is_in_burst);
        // A burst of given length ends by itself, and takes nothing of the buffer behind its end.
        let room = length - done.samples;
        let rest = self.left.map_or(room, |left| room.min(left.try_into().unwrap_or(room)));
        let end = done.samples + rest;
        let ends = self.left == Some(rest as u64) || (request.end_of_burst && end == length);
        let mut meta = TxMetadata { time_ticks: None, end_of_burst: ends };
        if done.samples == 0 {
            let asked = request.time.map(|time| time.ticks_at(self.rate.ticks_hz));
            meta.time_ticks = match asked {
                // A time that continues the burst, but for rounding, is none.
                Some(ticks) if in_burst && self.is_next(ticks) => None,
                Some(ticks) => Some(ticks),
                None if in_burst => None,
                None => self.start_ticks,
            };
        }
        let Some(sink) = &mut self.sink else { return Err(ClientError::Closed) };
        match parts::parts(ins, &(done.samples..end), |ins| sink.send_all(ins, meta, wait)) {
            Ok(sent) => {
                if sent.samples > 0 {
                    let first = meta.time_ticks.or(self.next_ticks.filter(|_| in_burst));
                    let behind =
                        |ticks: u64| ticks.wrapping_add(self.rate.ticks(sent.samples as u64));
                    self.next_ticks = first.map(behind);
                    self.start_ticks = None;
                    self.left = self.left.map(|left| left.saturating_sub(sent.samples as u64));
                }
                done.samples += sent.samples;
                if sent.end_of_burst {
                    (done.end_of_burst, self.next_ticks) = (true, None);
                    if self.left.take().is_some() {
                        self.active = false;
                    }
                }
                Ok(done.samples == end && (!ends || done.end_of_burst))
            }
            Err(error) => {
                (self.active, self.lost) = (false, Some(error.to_string()));
                Err(error.into())
            }
        }
    }

    /// Returns whether a time is that of the next sample, less than half a sample apart.
    fn is_next(&self, ticks: u64) -> bool {
        let half = self.rate.ticks(1) / 2 + 1;
        self.next_ticks.is_some_and(|next| (ticks.wrapping_sub(next) as i64).unsigned_abs() < half)
    }

    /// Moves events into the queue.
    pub fn collect(&mut self, status: &StatusQueue) {
        let ticks_hz = self.rate.ticks_hz;
        let Some(sink) = &mut self.sink else { return };
        loop {
            match sink.poll_event() {
                Ok(Some((channel, event))) => {
                    if let Some(event) = status_of(channel, event, ticks_hz) {
                        status.push(event);
                    }
                }
                Ok(None) => return,
                Err(error) => {
                    (self.active, self.lost) = (false, Some(error.to_string()));
                    return;
                }
            }
        }
    }
}

/// What a write asks for.
pub(super) struct WriteRequest {
    pub time: Option<DeviceTime>,
    pub end_of_burst: bool,
}

fn status_of(channel: usize, event: TxEvent, ticks_hz: f64) -> Option<StreamStatus> {
    let (ticks, kind) = match event {
        TxEvent::Underflow { time_ticks } => (Some(time_ticks), StatusKind::Underflow),
        TxEvent::Late { time_ticks } => (Some(time_ticks), StatusKind::Late),
        TxEvent::BurstAck { time_ticks } => (Some(time_ticks), StatusKind::BurstEnd),
        TxEvent::SequenceError => (None, StatusKind::Sequence),
        TxEvent::Lost { samples, .. } => (None, StatusKind::Lost { samples }),
        TxEvent::Reestablished { samples } => (None, StatusKind::Reestablished { samples }),
        _ => return None,
    };
    let time = ticks.map(|ticks| DeviceTime::from_ticks(ticks, ticks_hz));
    Some(StreamStatus { channel, time, kind })
}
