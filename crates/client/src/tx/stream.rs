//! The transmit stream that threads share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use millstream_radio::graph::StreamDirection;
use millstream_radio::{StreamSample, TxLedger};

use super::run::{TxRun, WriteRequest};
use super::{TxOptions, TxWrite};
use crate::StreamStart;
use crate::closing::close_within;
use crate::error::ClientError;
use crate::radio::{OpenStream, RadioParts};
use crate::status::{StatusQueue, StreamStatus};
use crate::time::DeviceTime;
use crate::turns::{HOLD_MAX, IDLE_MAX, SliceEnd, Turns, YEAR};

/// How long a thread that waits for events leaves the stream alone.
const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// The shortest and the longest recommended write.
const WRITE_SECONDS: f64 = 0.01;
const WRITE_SAMPLES_MAX: usize = 65_536;

/// A transmit stream of one or several aligned channels.
///
/// Clones share the stream. All functions may be called at any time from any thread; two writes at
/// the same time take turns, and the second one waits no longer than its time-out.
#[derive(Debug, Clone)]
pub struct TxStream {
    parts: Arc<TxParts>,
}

#[derive(Debug)]
pub(crate) struct TxParts {
    run: Turns<TxRun>,
    channels: Vec<usize>,
    options: TxOptions,
    status: StatusQueue,
    /// The number of stops: a write that waits ends when it changes.
    stops: AtomicU64,
    closed: AtomicBool,
    /// Dropped behind the streams.
    radio: Arc<RadioParts>,
}

impl TxStream {
    pub(crate) fn open(
        radio: &Arc<RadioParts>,
        channels: &[usize],
        options: TxOptions,
    ) -> Result<Self, ClientError> {
        // A change of rates or a close sees the stream whole, or comes before it.
        let _changes = radio.lock_changes();
        let sink = radio.tx_sink(channels, &options)?;
        let parts = Arc::new(TxParts {
            run: Turns::new(TxRun::new(sink)),
            channels: channels.to_vec(),
            options,
            status: StatusQueue::default(),
            stops: AtomicU64::new(0),
            closed: AtomicBool::new(false),
            radio: Arc::clone(radio),
        });
        let stream: Arc<dyn OpenStream> = parts.clone();
        radio.register(&stream);
        Ok(Self { parts })
    }

    /// Returns its channels, in the order of the buffers.
    pub fn channels(&self) -> &[usize] {
        &self.parts.channels
    }

    /// Returns its sample rate, per second.
    pub fn rate_hz(&self) -> f64 {
        self.parts.run.command(|run| run.rate.samples_hz())
    }

    /// Returns a good number of samples for a write.
    pub fn samples_per_write(&self) -> usize {
        if let Some(samples) = self.parts.options.samples_per_write {
            return samples;
        }
        self.parts.run.command(|run| {
            let packet = run.sink.as_ref().map_or(1, |sink| sink.samples_per_packet());
            let hundredth = (run.rate.samples_hz() * WRITE_SECONDS) as usize;
            hundredth.min(WRITE_SAMPLES_MAX).max(packet)
        })
    }

    /// Lets the stream take samples. With a time, the first burst begins then; with a number of
    /// samples, it ends behind them.
    ///
    /// # Errors
    /// [`ClientError::Closed`], [`ClientError::Radio`], also for a time that has passed.
    pub fn start(&self, start: StreamStart) -> Result<(), ClientError> {
        let parts = &self.parts;
        start.time.map_or(Ok(()), |time| parts.radio.check_ahead(time))?;
        // A change of rates takes the streams away and opens them again; the start comes after it.
        let _changes = parts.radio.lock_changes();
        parts.run.command(|run| {
            parts.check_open()?;
            if run.needs_sink() {
                run.drop_sink();
                run.set_sink(parts.radio.tx_sink(&parts.channels, &parts.options)?);
            }
            run.start(start);
            Ok(())
        })
    }

    /// Ends an open burst, and takes no more samples. A write that waits returns.
    ///
    /// # Errors
    /// [`ClientError::Closed`], [`ClientError::Tx`].
    pub fn stop(&self) -> Result<(), ClientError> {
        let parts = &self.parts;
        parts.stops.fetch_add(1, Ordering::Relaxed);
        parts.run.command(|run| {
            parts.check_open()?;
            run.stop()
        })
    }

    /// Returns whether the stream takes samples.
    pub fn is_active(&self) -> bool {
        self.parts.run.command(|run| run.active)
    }

    /// Ends the stream: all calls fail with [`ClientError::Closed`] from now on, those that wait
    /// too. Waits up to `timeout` until the radio has taken what was written, and returns whether
    /// it has; otherwise the end goes on in the background. A radio that does not answer takes
    /// seconds.
    ///
    /// A stream that is dropped without being closed is closed in the background; the drop waits
    /// 0.2 s for it at most.
    pub fn close(&self, timeout: Duration) -> bool {
        close_within(&self.parts, OpenStream::close, timeout)
    }

    /// Writes the samples of the buffers, one for each channel, and waits up to `timeout` for room.
    ///
    /// `time` is the time of the first sample, by the radio's clock; in a burst it is needed
    /// only behind a pause. `end_of_burst` ends the burst with the last sample.
    ///
    /// In the steady state it allocates nothing.
    ///
    /// # Errors
    /// [`ClientError::Closed`], [`ClientError::Buffers`]; [`ClientError::Tx`] when the radio cannot
    /// continue, and [`ClientError::Lost`] then until the next start.
    pub fn write<T: StreamSample>(
        &self,
        ins: &[&[T]],
        time: Option<DeviceTime>,
        end_of_burst: bool,
        timeout: Duration,
    ) -> Result<TxWrite, ClientError> {
        let parts = &*self.parts;
        let channels = parts.channels.len();
        let length = ins.iter().map(|one| one.len()).min().unwrap_or(0);
        if ins.len() != channels || ins.iter().any(|one| one.len() != length) {
            return Err(ClientError::Buffers { channels, given: ins.len() });
        }
        let request = WriteRequest { time, end_of_burst };
        let begin = Instant::now();
        let until = begin + timeout.min(YEAR);
        let stops = parts.stops.load(Ordering::Relaxed);
        let mut done = TxWrite::default();
        let closed = || parts.closed.load(Ordering::Relaxed);
        let stopped = || parts.stops.load(Ordering::Relaxed) != stops;
        let over = || closed() || stopped();
        let outcome = parts.run.slices(until, over, |run| {
            if closed() {
                return SliceEnd::Done(Err(ClientError::Closed));
            }
            if let Some(error) = run.lost() {
                return SliceEnd::Done(Err(error));
            }
            let now = Instant::now();
            if !run.active {
                let left = until.min(begin + IDLE_MAX).saturating_duration_since(now);
                if done.samples > 0 || stopped() || left.is_zero() {
                    return SliceEnd::Done(Ok(()));
                }
                return SliceEnd::Sleep(left);
            }
            let wait = until.saturating_duration_since(now).min(HOLD_MAX);
            match run.slice(ins, length, &request, &mut done, wait) {
                Err(error) => SliceEnd::Done(Err(error)),
                Ok(true) => SliceEnd::Done(Ok(())),
                Ok(false) if now >= until => SliceEnd::Done(Ok(())),
                Ok(false) => SliceEnd::Again,
            }
        });
        match outcome {
            Some(outcome) => outcome.map(|()| done),
            None if closed() => Err(ClientError::Closed),
            None => Ok(done),
        }
    }

    /// Returns the oldest event that was not taken yet. It waits up to `timeout` for one.
    pub fn take_status(&self, timeout: Duration) -> Option<StreamStatus> {
        let parts = &self.parts;
        let until = Instant::now() + timeout.min(YEAR);
        let closed = || parts.closed.load(Ordering::Relaxed);
        loop {
            if let Some(event) = parts.status.take() {
                return Some(event);
            }
            parts.run.command(|run| run.collect(&parts.status));
            let left = until.saturating_duration_since(Instant::now());
            let event = parts.status.wait(left.min(LOOK_AGAIN), closed);
            if event.is_some() || left.is_zero() || closed() {
                return event;
            }
        }
    }

    /// Returns the outcome of every sample of a channel, by its position among the stream's.
    pub fn ledger(&self, position: usize) -> Option<TxLedger> {
        self.parts.run.command(|run| run.ledger(position))
    }
}

impl TxParts {
    fn check_open(&self) -> Result<(), ClientError> {
        if self.closed.load(Ordering::Relaxed) { Err(ClientError::Closed) } else { Ok(()) }
    }
}

impl Drop for TxParts {
    fn drop(&mut self) {
        if let Some(sink) = self.run.command(|run| run.sink.take()) {
            self.radio.end(sink);
        }
    }
}

impl OpenStream for TxParts {
    fn direction(&self) -> StreamDirection {
        StreamDirection::Tx
    }

    fn channels(&self) -> &[usize] {
        &self.channels
    }

    fn is_active(&self) -> bool {
        self.run.command(|run| run.active)
    }

    fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        self.run.command(TxRun::drop_sink);
        self.status.wake();
    }

    fn interrupt(&self) -> Option<StreamStart> {
        self.run.command(TxRun::interrupt)
    }

    fn resume(&self, start: Option<StreamStart>) -> Result<(), ClientError> {
        self.run.command(|run| {
            if self.closed.load(Ordering::Relaxed) {
                return Ok(());
            }
            run.set_sink(self.radio.tx_sink(&self.channels, &self.options)?);
            if let Some(start) = start {
                run.start(start);
            }
            Ok(())
        })
    }

    fn tx_ledger(&self, channel: usize) -> Option<TxLedger> {
        let position = self.channels.iter().position(|own| *own == channel)?;
        self.run.command(|run| run.ledger(position))
    }
}
