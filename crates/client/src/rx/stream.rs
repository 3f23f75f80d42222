//! The receive stream that threads share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use millstream_radio::graph::StreamDirection;
use millstream_radio::{Ledger, StreamSample};

use super::run::RxRun;
use super::{Received, RxOptions, StreamGap};
use crate::StreamStart;
use crate::closing::close_within;
use crate::error::ClientError;
use crate::radio::{OpenStream, RadioParts};
use crate::status::{StatusQueue, StreamStatus};
use crate::turns::{HOLD_MAX, IDLE_MAX, SliceEnd, Turns, YEAR};

/// The length of a read that [`RxStream::samples_per_read`] recommends: seconds, and at most so
/// many samples.
const READ_SECONDS: f64 = 0.01;
const READ_SAMPLES_MAX: usize = 65_536;

/// How long a full read waits for the packet behind it, which tells whether a gap follows.
const LOOK_BEHIND_MAX: Duration = Duration::from_millis(100);

/// A receive stream of one or several aligned channels.
///
/// Clones share the stream. All functions may be called at any time from any thread; two reads at
/// the same time take turns, and the second one waits no longer than its time-out.
#[derive(Debug, Clone)]
pub struct RxStream {
    parts: Arc<RxParts>,
}

#[derive(Debug)]
pub(crate) struct RxParts {
    run: Turns<RxRun>,
    channels: Vec<usize>,
    options: RxOptions,
    status: StatusQueue,
    /// The number of stops: a read that waits ends when it changes.
    stops: AtomicU64,
    closed: AtomicBool,
    /// Dropped behind the streams.
    radio: Arc<RadioParts>,
}

impl RxStream {
    pub(crate) fn open(
        radio: &Arc<RadioParts>,
        channels: &[usize],
        options: RxOptions,
    ) -> Result<Self, ClientError> {
        // A change of rates or a close sees the stream whole, or comes before it.
        let _changes = radio.lock_changes();
        let source = radio.rx_source(channels, &options)?;
        let parts = Arc::new(RxParts {
            run: Turns::new(RxRun::new(source, options.gaps)),
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

    /// Returns the rate of its ticks, per second.
    pub fn tick_rate_hz(&self) -> f64 {
        self.parts.run.command(|run| run.rate.ticks_hz)
    }

    /// Returns a good number of samples for a read: enough that calls cost little, and few enough
    /// that a display moves smoothly.
    pub fn samples_per_read(&self) -> usize {
        if let Some(samples) = self.parts.options.samples_per_read {
            return samples;
        }
        self.parts.run.command(|run| {
            let packet = run.source.as_ref().map_or(1, |source| source.samples_per_packet());
            let hundredth = (run.rate.samples_hz() * READ_SECONDS) as usize;
            hundredth.min(READ_SAMPLES_MAX).max(packet as usize)
        })
    }

    /// Starts the stream; one that runs is started anew.
    ///
    /// # Errors
    /// [`ClientError::Closed`], [`ClientError::Radio`], [`ClientError::Rx`].
    pub fn start(&self, start: StreamStart) -> Result<(), ClientError> {
        let parts = &self.parts;
        // A change of rates takes the streams away and opens them again; the start comes after it.
        let _changes = parts.radio.lock_changes();
        parts.run.command(|run| {
            parts.check_open()?;
            run.stop();
            if run.needs_source() {
                run.drop_source();
                run.set_source(parts.radio.rx_source(&parts.channels, &parts.options)?);
            }
            run.start(start)
        })
    }

    /// Stops the stream. A read that waits returns; what is in flight is dropped.
    ///
    /// # Errors
    /// [`ClientError::Closed`].
    pub fn stop(&self) -> Result<(), ClientError> {
        let parts = &self.parts;
        parts.stops.fetch_add(1, Ordering::Relaxed);
        parts.run.command(|run| {
            parts.check_open()?;
            run.stop();
            Ok(())
        })
    }

    /// Returns whether the stream was started and has not ended.
    pub fn is_active(&self) -> bool {
        self.parts.run.command(|run| run.active)
    }

    /// Ends the stream: all reads fail with [`ClientError::Closed`] from now on, those that wait
    /// too. Waits up to `timeout` until the radio has been told, and returns whether it has;
    /// otherwise it will be, in the background. A radio that does not answer takes seconds.
    ///
    /// A stream that is dropped without being closed is closed in the background; the drop waits
    /// 0.2 s for it at most.
    pub fn close(&self, timeout: Duration) -> bool {
        close_within(&self.parts, OpenStream::close, timeout)
    }

    /// Reads until the buffers are full, one for each channel; less at a gap, at the end of the
    /// stream, or at the end of `timeout`. With a `timeout` of zero it takes what is there.
    ///
    /// A full read that ends with a packet waits for the next one, at most 0.1 s, because only that
    /// one tells whether a gap follows.
    ///
    /// In the steady state it allocates nothing, and takes locks that no other thread holds.
    ///
    /// # Errors
    /// [`ClientError::Gap`] where samples are missing, unless another [`super::GapPolicy`] was
    /// chosen: the next read goes on behind the gap. [`ClientError::LateStart`] when the time of
    /// the start had passed. [`ClientError::Closed`], [`ClientError::Buffers`];
    /// [`ClientError::Rx`] when the radio cannot continue, and [`ClientError::Lost`] then until
    /// the next start.
    pub fn read<T: StreamSample>(
        &self,
        outs: &mut [&mut [T]],
        timeout: Duration,
    ) -> Result<Received, ClientError> {
        self.read_until(outs, timeout, false)
    }

    /// Reads like [`RxStream::read`], but returns with the first samples that are there.
    ///
    /// # Errors
    /// Those of [`RxStream::read`].
    pub fn read_some<T: StreamSample>(
        &self,
        outs: &mut [&mut [T]],
        timeout: Duration,
    ) -> Result<Received, ClientError> {
        self.read_until(outs, timeout, true)
    }

    fn read_until<T: StreamSample>(
        &self,
        outs: &mut [&mut [T]],
        timeout: Duration,
        some: bool,
    ) -> Result<Received, ClientError> {
        let parts = &*self.parts;
        let channels = parts.channels.len();
        if outs.len() != channels {
            return Err(ClientError::Buffers { channels, given: outs.len() });
        }
        let mut room = outs.iter().map(|out| out.len()).min().unwrap_or(0);
        if some {
            room = room.min(parts.some_max());
        }
        let begin = Instant::now();
        let until = begin + timeout.min(YEAR);
        let stops = parts.stops.load(Ordering::Relaxed);
        let (mut got, mut full_until) = (Received::default(), None);
        let closed = || parts.closed.load(Ordering::Relaxed);
        let stopped = || parts.stops.load(Ordering::Relaxed) != stops;
        let over = || closed() || stopped();
        let outcome = parts.run.slices(until, over, |run| {
            if closed() {
                return SliceEnd::Done(Err(ClientError::Closed));
            }
            let now = Instant::now();
            if !run.active && !run.has_news() {
                if got.samples == 0 {
                    if let Some(error) = run.lost() {
                        return SliceEnd::Done(Err(error));
                    }
                }
                let left = until.min(begin + IDLE_MAX).saturating_duration_since(now);
                if got.samples > 0 || stopped() || left.is_zero() {
                    return SliceEnd::Done(Ok(()));
                }
                return SliceEnd::Sleep(left);
            }
            let wait = until.saturating_duration_since(now).min(HOLD_MAX);
            if got.samples < room || room == 0 {
                match run.slice(outs, room, &mut got, wait, &parts.status) {
                    Err(error) => return SliceEnd::Done(Err(error)),
                    Ok(true) if got.samples < room || room == 0 => return SliceEnd::Done(Ok(())),
                    // An event that is known is not left behind.
                    Ok(false) if now >= until && !run.has_news() => {}
                    Ok(false) if !some || got.samples == 0 => return SliceEnd::Again,
                    Ok(_) => {}
                }
            }
            if got.samples == 0 {
                return SliceEnd::Done(Ok(()));
            }
            let full_until = *full_until.get_or_insert(now + LOOK_BEHIND_MAX);
            let wait = if some { Duration::ZERO } else { wait };
            let known = run.look_behind(&mut got, wait, &parts.status);
            if known || some || now >= until.min(full_until) {
                return SliceEnd::Done(Ok(()));
            }
            SliceEnd::Again
        });
        match outcome {
            Some(outcome) => outcome.map(|()| got),
            None if closed() => Err(ClientError::Closed),
            None => Ok(got),
        }
    }

    /// Returns the oldest event that was not taken yet. It waits up to `timeout` for one.
    pub fn take_status(&self, timeout: Duration) -> Option<StreamStatus> {
        self.parts.status.wait(timeout, || self.parts.closed.load(Ordering::Relaxed))
    }

    /// Returns the outcome of every sample of a channel, by its position among the stream's.
    pub fn ledger(&self, position: usize) -> Option<Ledger> {
        self.parts.run.command(|run| run.ledger(position))
    }
}

impl RxParts {
    fn check_open(&self) -> Result<(), ClientError> {
        if self.closed.load(Ordering::Relaxed) { Err(ClientError::Closed) } else { Ok(()) }
    }

    /// Returns the most samples of a read that wants the first ones: a few packets.
    fn some_max(&self) -> usize {
        let packet =
            |run: &mut RxRun| run.source.as_ref().map(|source| source.samples_per_packet());
        self.run.command(packet).map_or(1, |packet| packet as usize)
    }
}

impl Drop for RxParts {
    fn drop(&mut self) {
        if let Some(source) = self.run.command(|run| run.source.take()) {
            self.radio.end(source);
        }
    }
}

impl OpenStream for RxParts {
    fn direction(&self) -> StreamDirection {
        StreamDirection::Rx
    }

    fn channels(&self) -> &[usize] {
        &self.channels
    }

    fn is_active(&self) -> bool {
        self.run.command(|run| run.active)
    }

    fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        self.run.command(|run| {
            run.stop();
            run.drop_source();
        });
        self.status.wake();
    }

    fn interrupt(&self) -> Option<StreamStart> {
        self.run.command(RxRun::interrupt)
    }

    fn resume(&self, start: Option<StreamStart>) -> Result<(), ClientError> {
        self.run.command(|run| {
            if self.closed.load(Ordering::Relaxed) {
                return Ok(());
            }
            run.set_source(self.radio.rx_source(&self.channels, &self.options)?);
            start.map_or(Ok(()), |start| run.resume(start))
        })
    }

    fn last_gap(&self, channel: usize) -> Option<StreamGap> {
        self.channels.contains(&channel).then(|| self.run.command(|run| run.last_gap))?
    }

    fn rx_ledger(&self, channel: usize) -> Option<Ledger> {
        let position = self.channels.iter().position(|own| *own == channel)?;
        self.run.command(|run| run.ledger(position))
    }
}
