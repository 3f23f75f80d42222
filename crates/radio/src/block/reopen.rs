//! Opening the device of a source again, after it has stopped answering.
//!
//! A device that has rebooted has forgotten its streams and its time. The worker ends the old
//! streams, opens the device until that succeeds, makes the settings that messages had made, and
//! sets its time on: to that of the last sample and the time since then by this machine's clock. So
//! the gap has a length, as exact as that clock and the network's delay. A time in which the user
//! had stopped the streams is no part of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use millstream_flow::BlockError;

use super::gone::{NotBack, is_gone};
use super::segments::so_far;
use super::settings::{LiveSettings, choose_rates};
use crate::stream::RxError;
use crate::{Cause, Device, DeviceSet, Ledger, RxCounters, RxStreamer, StreamRate};

/// Opens the device of a source with a stream of the same channels, with all settings.
pub type OpenAgain = Box<dyn FnMut() -> Result<OpenedRadio, BlockError> + Send>;

/// A device with its stream. The set has one device.
type OpenedRadio = (DeviceSet, RxStreamer);

/// The interval between two attempts.
const AGAIN: Duration = Duration::from_millis(300);

/// How far ahead of the device's time a group starts again: enough for a machine under load.
const START_LEAD_S: f64 = 0.2;

/// The time of the end of a stream: by the device, ticks, and by this machine.
#[derive(Debug, Clone, Copy)]
struct StreamEnd {
    ticks: u64,
    at: Instant,
}

/// Makes the settings that messages had made, before the stream starts.
fn repeat(opened: OpenedRadio, settings: &LiveSettings) -> Result<OpenedRadio, BlockError> {
    let (mut devices, stream) = opened;
    settings.repeat(devices.devices_mut())?;
    let Some((rate_hz, channels)) = &settings.rate else { return Ok((devices, stream)) };
    let present = stream.rate();
    drop(stream);
    choose_rates(&mut devices, channels, *rate_hz, present)?;
    let stream = devices.rx_group(channels)?;
    Ok((devices, stream))
}

/// Starts a stream again, without an end; several channels far enough ahead for all. Returns the
/// time of the start, ticks, if it is known before the first samples.
pub(super) fn start_again(
    devices: &DeviceSet,
    stream: &mut RxStreamer,
) -> Result<Option<u64>, RxError> {
    if stream.members().len() == 1 {
        return stream.start_continuous(None).map(|()| None);
    }
    let lead = (stream.rate().ticks_hz * START_LEAD_S) as u64;
    let now = devices.devices().first().map(Device::time_ticks).transpose()?;
    let at = now.map(|now| now.wrapping_add(lead));
    stream.start_continuous(at).map(|()| at)
}

/// The result of the worker: the ledgers of the old streams, and the new ones.
struct Reopened {
    ledgers: Vec<Ledger>,
    opened: Result<OpenedRadio, BlockError>,
    open_again: OpenAgain,
}

/// The worker that ends streams and opens their device again.
struct Reopening {
    stop: Arc<AtomicBool>,
    worker: JoinHandle<Reopened>,
}

impl Reopening {
    /// Starts it. It gives up after `patience`.
    fn start(
        old: OpenedRadio,
        mut open_again: OpenAgain,
        (settings, end): (LiveSettings, Option<StreamEnd>),
        patience: Duration,
    ) -> Result<Self, BlockError> {
        let stop = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&stop);
        let work = move || {
            let began = Instant::now();
            let (devices, mut stream) = old;
            stream.end();
            let ledgers = stream.ledgers().cloned().collect();
            drop((stream, devices));
            let opened = loop {
                let opened = open_again().and_then(|opened| repeat(opened, &settings));
                match opened.and_then(|opened| set_on(opened, end)) {
                    Ok(opened) => break Ok(opened),
                    Err(last) => {
                        let waited = began.elapsed();
                        if waited >= patience || asked.load(Ordering::Relaxed) {
                            let waited_s = waited.as_secs_f64();
                            break Err(NotBack { waited_s, last }.into());
                        }
                    }
                }
                thread::sleep(AGAIN);
            };
            Reopened { ledgers, opened, open_again }
        };
        let worker = thread::Builder::new().name("radio-reopen".into()).spawn(work)?;
        Ok(Self { stop, worker })
    }

    /// Asks the worker to end after its present attempt, and returns the result.
    fn end(self) -> Result<Reopened, BlockError> {
        self.stop.store(true, Ordering::Relaxed);
        self.worker.join().map_err(|_| "the thread that opens the radio again panicked".into())
    }
}

/// Sets the time of a device as if it had gone on since the end of the streams.
fn set_on(opened: OpenedRadio, end: Option<StreamEnd>) -> Result<OpenedRadio, BlockError> {
    if let Some(end) = end {
        let (devices, stream) = &opened;
        let ticks = end.at.elapsed().as_secs_f64() * stream.rate().ticks_hz;
        let ticks = end.ticks.wrapping_add(ticks.round() as u64);
        devices.devices().iter().try_for_each(|device| device.set_time_now(ticks))?;
    }
    Ok(opened)
}

/// The streams of a source before the present ones, and the way to open more.
pub(super) struct Comeback {
    /// How to open the device again, and for how long to try.
    open_again: Option<OpenAgain>,
    patience: Duration,
    reopening: Option<Reopening>,
    /// The end of the samples so far, or the last start behind it; their rate.
    end: Option<StreamEnd>,
    rate: StreamRate,
    /// The end of the samples before the device was opened again, until the next ones come, and the
    /// time at which these begin, if it is known.
    end_before: Option<u64>,
    start: Option<u64>,
    /// The sums of earlier streams and the gaps behind them, for each channel.
    ledgers: Vec<Ledger>,
    counters: RxCounters,
    /// The ledgers of the streams that the worker ends.
    leaving: Vec<Ledger>,
}

impl Comeback {
    /// Returns one of a source with so many channels, which does not open its device again.
    pub fn new(channels: usize) -> Self {
        Self {
            open_again: None,
            patience: Duration::ZERO,
            reopening: None,
            end: None,
            rate: StreamRate::of_radio(1.0),
            end_before: None,
            start: None,
            ledgers: vec![Ledger::default(); channels],
            counters: RxCounters::default(),
            leaving: Vec::new(),
        }
    }

    /// Sets how to open the device again, and for how long to try.
    pub fn set(&mut self, open_again: OpenAgain, patience: Duration) {
        (self.open_again, self.patience) = (Some(open_again), patience);
    }

    /// Returns whether the device is being opened.
    pub fn is_under_way(&self) -> bool {
        self.reopening.is_some()
    }

    /// Returns whether the device is to be opened again after this error. Where no sample came
    /// since it was opened last, it would help as little again.
    pub fn is_wanted(&self, error: &RxError) -> bool {
        let in_vain = matches!(error, RxError::SamplesStopped { .. }) && self.has_gap();
        is_gone(error) && !in_vain && self.open_again.is_some()
    }

    /// Takes samples as lost before a gap: it begins behind them, at `now`.
    pub fn pass(&mut self, samples: u64, now: Instant) {
        let ticks = self.rate.ticks(samples);
        if let Some(end) = self.end.as_mut().filter(|_| samples > 0) {
            *end = StreamEnd { ticks: end.ticks.wrapping_add(ticks), at: now };
        }
    }

    /// Begins to open the device again, if that is wanted; it gets these settings.
    pub fn begin(&mut self, old: OpenedRadio, settings: &LiveSettings) -> Result<(), BlockError> {
        let Some(open_again) = self.open_again.take() else { return Ok(()) };
        self.counters.merge(&old.1.counters());
        (self.rate, self.leaving) = (old.1.rate(), old.1.ledgers().map(so_far).collect());
        let state = (settings.clone(), self.end);
        self.reopening = Some(Reopening::start(old, open_again, state, self.patience)?);
        Ok(())
    }

    /// Keeps the counters and the ledgers of a stream that has ended.
    pub fn keep(&mut self, stream: &RxStreamer) {
        self.counters.merge(&stream.counters());
        self.merge(stream.ledgers());
    }

    /// Returns the new streams once they are there; started, if they are to run.
    pub fn poll(&mut self, runs: bool) -> Result<Option<OpenedRadio>, BlockError> {
        let over = |reopening: &mut Reopening| reopening.worker.is_finished();
        let Some(reopening) = self.reopening.take_if(over) else { return Ok(None) };
        let Reopened { ledgers, opened, open_again } = reopening.end()?;
        self.leaving.clear();
        self.merge(&ledgers);
        let mut opened = opened?;
        self.open_again = Some(open_again);
        if runs {
            self.start = start_again(&opened.0, &mut opened.1)?;
            self.end_before = self.end.map(|end| end.ticks);
        }
        Ok(Some(opened))
    }

    /// Returns whether streams were started whose first samples have not come.
    pub fn has_gap(&self) -> bool {
        self.end_before.is_some()
    }

    /// Ends the gap at a stop by the user: what comes after it is not wanted. `ticks` is the
    /// device's time, if it is there. Returns the samples of the gap of each channel, if there is
    /// one.
    pub fn stop(&mut self, ticks: Option<u64>, now: Instant, wanted: u64) -> Option<u64> {
        if self.is_under_way() {
            (self.end_before, self.start) = (self.end.map(|end| end.ticks), None);
        }
        // Without an answer of the device this machine's clock says it.
        let ticks = ticks.or_else(|| Some(self.ticks_at(now)?.ticks));
        let is_before = |start: &u64| ticks.is_some_and(|t| t.wrapping_sub(*start) < 1 << 63);
        self.start = self.start.filter(is_before);
        self.close_gap(ticks, self.rate, wanted)
    }

    /// Begins anew at a start by the user: a gap can only begin there.
    pub fn go_on(&mut self, now: Instant) {
        self.end = self.ticks_at(now);
    }

    /// Returns the device's time at `now` as it follows from this machine's clock.
    fn ticks_at(&self, now: Instant) -> Option<StreamEnd> {
        let end = self.end?;
        let passed = now.duration_since(end.at).as_secs_f64() * self.rate.ticks_hz;
        Some(StreamEnd { ticks: end.ticks.wrapping_add(passed.round() as u64), at: now })
    }

    /// Records that samples of this rate up to `end` were received at `now`.
    pub fn note_end(&mut self, end: Option<u64>, rate: StreamRate, now: Instant) {
        (self.end, self.rate) = (end.map(|ticks| StreamEnd { ticks, at: now }), rate);
    }

    /// Books the gap before the first samples of new streams, which begin at `time_ticks` or at
    /// their start. Returns the samples of each channel, if there is a gap; the rest of it behind
    /// the `wanted` samples is not missing.
    pub fn close_gap(
        &mut self,
        time_ticks: Option<u64>,
        rate: StreamRate,
        wanted: u64,
    ) -> Option<u64> {
        let before = self.end_before.take()?;
        let begin = self.start.take().or(time_ticks);
        let ahead = begin.map_or(0, |ticks| ticks.wrapping_sub(before));
        // The clock may be set back by the network's delay.
        let gap = if ahead < 1 << 63 { rate.samples(ahead) } else { 0 };
        let missing = gap.min(wanted);
        for ledger in &mut self.ledgers {
            ledger.after_end = ledger.after_end.wrapping_add(gap - missing);
            ledger.expected = ledger.expected.wrapping_add(missing);
            ledger.lose(Cause::Reopened, missing);
        }
        Some(missing)
    }

    /// Returns the sum of all ledgers of each channel, with those of the present streams.
    pub fn totals<'a>(
        &'a self,
        present: impl Iterator<Item = Ledger> + 'a,
    ) -> impl Iterator<Item = Ledger> + 'a {
        let (mut present, mut leaving) = (present, self.leaving.iter());
        self.ledgers.iter().map(move |earlier| {
            let mut sum = earlier.clone();
            leaving.next().into_iter().for_each(|leaving| sum.merge(leaving));
            present.next().into_iter().for_each(|present| sum.merge(&present));
            sum
        })
    }

    /// Returns the sum of the counters of earlier streams.
    pub fn counters(&self) -> &RxCounters {
        &self.counters
    }

    /// Ends an attempt to open the device.
    pub fn end(&mut self) -> Result<(), BlockError> {
        let Some(reopening) = self.reopening.take() else { return Ok(()) };
        let reopened = reopening.end()?;
        self.leaving.clear();
        self.merge(&reopened.ledgers);
        Ok(())
    }

    fn merge<'a>(&mut self, ledgers: impl IntoIterator<Item = &'a Ledger>) {
        self.ledgers.iter_mut().zip(ledgers).for_each(|(sum, ledger)| sum.merge(ledger));
    }
}
