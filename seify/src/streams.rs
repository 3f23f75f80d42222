//! Streams, with their gaps and times.

use std::sync::PoisonError;
use std::time::{Duration, Instant};

use millstream_client::{
    DeviceTime, Radio, Received, RxOptions, RxStream, StatusKind, StreamGap, StreamStart,
    TxOptions, TxStream,
};
use num_complex::Complex32;
use seify::{Args, Capability, Error, RxDevice, RxStreamer, TxDevice, TxStreamer};

use crate::{GAPS_MAX, GapList, MillstreamDevice, error, timeout};

/// Missing samples of a receive stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReceiveGap {
    /// The first channel of the stream; the others miss the same samples.
    pub channel: usize,
    /// The place of the first missing sample in the stream, counted from its first sample, missing
    /// ones included.
    pub place: u64,
    /// How many are missing, why, and at which time of the radio samples resume.
    pub gap: StreamGap,
}

/// A receive stream.
#[derive(Debug)]
pub struct MillstreamRx {
    stream: RxStream,
    radio: Radio,
    gaps: GapList,
    /// The time of the first sample, in samples.
    first: Option<u64>,
    last: Received,
}

/// A transmit stream.
#[derive(Debug)]
pub struct MillstreamTx {
    stream: TxStream,
    radio: Radio,
}

impl MillstreamRx {
    /// Returns the stream itself.
    pub fn stream(&self) -> &RxStream {
        &self.stream
    }

    /// Returns what the latest read that did not fail was: its time, above all.
    pub fn last(&self) -> Received {
        self.last
    }

    /// Keeps a gap for [`MillstreamDevice::take_gaps`].
    fn note(&mut self, gap: StreamGap) {
        let begin = gap.resume.ticks_at(self.stream.rate_hz()).saturating_sub(gap.samples);
        let place = begin.saturating_sub(*self.first.get_or_insert(begin));
        let mut gaps = self.gaps.lock().unwrap_or_else(PoisonError::into_inner);
        if gaps.len() == GAPS_MAX {
            gaps.pop_front();
        }
        gaps.push_back(ReceiveGap { channel: self.stream.channels()[0], place, gap });
    }
}

impl MillstreamTx {
    /// Returns the stream itself: its events say what was late or lost.
    pub fn stream(&self) -> &TxStream {
        &self.stream
    }
}

/// Returns the begin of a stream that is to start after some nanoseconds.
fn start_after(radio: &Radio, time_ns: Option<i64>) -> Result<StreamStart, Error> {
    Ok(StreamStart { time: after(radio, time_ns)?, ..StreamStart::now() })
}

/// Returns the radio's time after some nanoseconds.
fn after(radio: &Radio, time_ns: Option<i64>) -> Result<Option<DeviceTime>, Error> {
    let Some(time_ns) = time_ns else { return Ok(None) };
    let wait = Duration::from_nanos(time_ns.try_into().unwrap_or(0));
    Ok(Some(radio.now().map_err(error)? + wait))
}

fn no_later_end(time_ns: Option<i64>) -> Result<(), Error> {
    time_ns.map_or(Ok(()), |_| Err(Error::unsupported(Capability::TimedDeactivation)))
}

fn no_keys(args: &Args) -> Result<(), Error> {
    match args.iter().next() {
        Some((key, _)) => Err(Error::invalid_argument(key, "streams of this driver have no keys")),
        None => Ok(()),
    }
}

impl RxDevice for MillstreamDevice {
    type RxStreamer = MillstreamRx;

    fn rx_streamer(&self, channels: &[usize], args: Args) -> Result<MillstreamRx, Error> {
        no_keys(&args)?;
        let options = RxOptions::default().with_gaps(self.policy);
        let stream = self.radio.rx_stream(channels, options).map_err(error)?;
        let (radio, gaps) = (self.radio.clone(), self.gaps.clone());
        Ok(MillstreamRx { stream, radio, gaps, first: None, last: Received::default() })
    }
}

impl TxDevice for MillstreamDevice {
    type TxStreamer = MillstreamTx;

    fn tx_streamer(&self, channels: &[usize], args: Args) -> Result<MillstreamTx, Error> {
        no_keys(&args)?;
        let stream = self.radio.tx_stream(channels, TxOptions::default()).map_err(error)?;
        Ok(MillstreamTx { stream, radio: self.radio.clone() })
    }
}

impl RxStreamer for MillstreamRx {
    fn mtu(&self) -> Result<usize, Error> {
        Ok(self.stream.samples_per_read())
    }

    fn activate_at(&mut self, time_ns: Option<i64>) -> Result<(), Error> {
        let start = start_after(&self.radio, time_ns)?;
        self.first = None;
        self.stream.start(start).map_err(error)
    }

    fn deactivate_at(&mut self, time_ns: Option<i64>) -> Result<(), Error> {
        no_later_end(time_ns)?;
        self.stream.stop().map_err(error)
    }

    /// Returns no sample at the end of the time, and [`Error::Overrun`] where samples are missing.
    fn read(&mut self, buffers: &mut [&mut [Complex32]], timeout_us: i64) -> Result<usize, Error> {
        let outcome = self.stream.read(buffers, timeout(timeout_us));
        if let Ok(got) = outcome {
            self.last = got;
            let first = got.time.map(|time| time.ticks_at(self.stream.rate_hz()));
            self.first = self.first.or(first);
        }
        while let Some(status) = self.stream.take_status(Duration::ZERO) {
            if let StatusKind::Gap(gap) = status.kind {
                self.note(gap);
            }
        }
        let got = outcome.map_err(error)?;
        if got.samples == 0 && !self.stream.is_active() {
            return Err(Error::StreamInactive);
        }
        Ok(got.samples)
    }
}

impl TxStreamer for MillstreamTx {
    fn mtu(&self) -> Result<usize, Error> {
        Ok(self.stream.samples_per_write())
    }

    fn activate_at(&mut self, time_ns: Option<i64>) -> Result<(), Error> {
        let start = start_after(&self.radio, time_ns)?;
        self.stream.start(start).map_err(error)
    }

    fn deactivate_at(&mut self, time_ns: Option<i64>) -> Result<(), Error> {
        no_later_end(time_ns)?;
        self.stream.stop().map_err(error)
    }

    fn write(
        &mut self,
        buffers: &[&[Complex32]],
        at_ns: Option<i64>,
        end_burst: bool,
        timeout_us: i64,
    ) -> Result<usize, Error> {
        let time = after(&self.radio, at_ns)?;
        let done = self.stream.write(buffers, time, end_burst, timeout(timeout_us));
        let done = done.map_err(error)?;
        if done.samples == 0 && !self.stream.is_active() && !done.end_of_burst {
            return Err(Error::StreamInactive);
        }
        Ok(done.samples)
    }

    fn write_all(
        &mut self,
        buffers: &[&[Complex32]],
        at_ns: Option<i64>,
        end_burst: bool,
        timeout_us: i64,
    ) -> Result<(), Error> {
        let until = Instant::now() + timeout(timeout_us);
        let length = buffers.iter().map(|one| one.len()).min().unwrap_or(0);
        let (mut sent, mut at_ns) = (0, at_ns);
        loop {
            let rest: Vec<&[Complex32]> = buffers.iter().map(|one| &one[sent..]).collect();
            let left = until.saturating_duration_since(Instant::now()).as_micros() as i64;
            sent += self.write(&rest, at_ns.take(), end_burst, left)?;
            if sent >= length {
                return Ok(());
            }
            if left == 0 {
                return Err(Error::Timeout);
            }
        }
    }
}
