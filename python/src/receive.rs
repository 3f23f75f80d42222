//! Receive streams.

use crate::arrays::{ArrayUse, SampleArray, SampleForm, SampleRows};
use crate::errors::{self, GapError, StreamError};
use crate::ledger::Ledger;
use crate::radio::Radio;
use crate::received::{Gap, Received};
use crate::wait::{TimeLimit, lock};
use millstream_client::{
    self as client, ClientError, DeviceTime, GapPolicy, LineTurn, RxOptions, StreamGap,
    StreamSample, StreamStart, TurnLine,
};
use millstream_radio::Complex32;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Samples that are dropped at a time.
const DROPPED: usize = 65_536;
const ZERO: Complex32 = Complex32::new(0.0, 0.0);

/// A receive stream of one channel, or of several that are aligned in time.
///
/// All methods may be called from any thread at any time.
#[pyclass(subclass, frozen, module = "millstream")]
pub struct RxStream {
    reader: client::RxStream,
    form: SampleForm,
    channels: usize,
    /// A gap is an exception.
    raises: bool,
    started: AtomicBool,
    ended: AtomicBool,
    /// The reads of several threads: each has contiguous samples, although it asks the reader more
    /// than once.
    line: TurnLine,
    /// A gap that follows samples which were returned before it.
    ahead: Mutex<Option<StreamGap>>,
}

impl RxStream {
    /// Reads into rows.
    ///
    /// # Safety
    /// That of [`SampleRows::fill`].
    unsafe fn read(
        &self,
        rows: &mut SampleRows,
        wait: Duration,
    ) -> Result<client::Received, ClientError> {
        // SAFETY: the caller's; the form of the stream was checked with the array.
        unsafe {
            match self.form {
                SampleForm::Cf32 => rows.fill(|rows| self.reader.read::<Complex32>(rows, wait)),
                SampleForm::Sc16 => rows.fill(|rows| self.reader.read::<[i16; 2]>(rows, wait)),
            }
        }
    }

    /// Reads up to `most` samples into memory of its own.
    fn drop_into<T: StreamSample>(
        &self,
        room: &mut [Vec<T>],
        most: usize,
        wait: Duration,
    ) -> Result<client::Received, ClientError> {
        let mut rows: Vec<_> = room.iter_mut().map(|row| &mut row[..most]).collect();
        self.reader.read(&mut rows, wait)
    }

    /// Returns the gap before the next sample, unless the caller wants it as an exception.
    fn take_gap(&self) -> PyResult<Option<StreamGap>> {
        let gap = lock(&self.ahead).take();
        match gap {
            Some(gap) if self.raises => Python::attach(|py| Err(gap_error(py, gap))),
            gap => Ok(gap),
        }
    }

    /// Waits until no other thread reads.
    fn turn(&self, py: Python<'_>, limit: TimeLimit) -> PyResult<LineTurn<'_>> {
        if let Some(turn) = self.line.take() {
            return Ok(turn);
        }
        loop {
            let until = Instant::now() + limit.slice();
            if let Some(turn) = py.detach(|| self.line.wait(until, || false)) {
                return Ok(turn);
            }
            if limit.is_over() {
                return Err(limit.error("another thread read"));
            }
            py.check_signals()?;
        }
    }

    /// Converts an error of a read.
    fn read_error(&self, error: ClientError) -> PyErr {
        match error {
            ClientError::LateStart { time } => {
                self.ended.store(true, Ordering::Relaxed);
                StreamError::new_err(format!(
                    "the stream could not start at {} ns, because that time had passed when the \
                     radio got the command: start it later, or at once (at_ns=None)",
                    time.ns()
                ))
            }
            other => errors::client(other),
        }
    }

    fn fill(&self, py: Python<'_>, array: &SampleArray, limit: TimeLimit) -> PyResult<Received> {
        let _turn = self.turn(py, limit)?;
        let mut got = Received { samples: 0, first: None, gap: self.take_gap()?, end: false };
        let mut stopped = false;
        loop {
            if self.ended.load(Ordering::Relaxed) {
                got.end = true;
                return Ok(got);
            }
            let mut rows = array.rows_from(got.samples);
            let wait = if stopped { Duration::ZERO } else { limit.slice() };
            // SAFETY: the array lives until this function returns; its memory is the caller's, who
            // does not use it meanwhile.
            let read = py.detach(|| unsafe { self.read(&mut rows, wait) });
            let read = read.map_err(|error| self.read_error(error))?;
            if got.samples == 0 && read.samples > 0 {
                got.first = read.time;
            }
            got.samples += read.samples;
            // Another thread may have started it again.
            stopped &= read.samples == 0;
            got.end = read.end_of_burst;
            if got.end {
                self.ended.store(true, Ordering::Relaxed);
            }
            if let Some(gap) = read.gap {
                *lock(&self.ahead) = Some(gap);
                if got.samples > 0 || got.gap.is_some() {
                    got.end = false;
                    return Ok(got);
                }
                got.gap = self.take_gap()?;
            } else if is_empty(&read) {
                if !py.detach(|| self.reader.is_active()) {
                    // It was stopped, or closed: another read tells.
                    self.ended.store(stopped, Ordering::Relaxed);
                    stopped = true;
                    continue;
                }
                if limit.is_over() {
                    if got.samples == 0 && got.gap.is_none() && array.samples() > 0 {
                        return Err(limit.error("no sample came"));
                    }
                    return Ok(got);
                }
                stopped = false;
            }
            if got.end || read.abrupt_end || got.samples == array.samples() {
                return Ok(got);
            }
            py.check_signals()?;
        }
    }
}

fn gap_error(py: Python<'_>, gap: StreamGap) -> PyErr {
    let StreamGap { samples, cause, resume, .. } = gap;
    let resume_ns = resume.ns();
    let error = GapError::new_err(format!(
        "{samples} samples are missing ({cause}); samples resume at {resume_ns} ns: read on, or \
         open the stream with gaps=\"event\" to get gaps with the samples"
    ));
    match Py::new(py, Gap::from(gap)).and_then(|gap| error.value(py).setattr("gap", gap)) {
        Ok(()) => error,
        Err(failure) => failure,
    }
}

/// Returns whether a read brought nothing in its time.
fn is_empty(read: &client::Received) -> bool {
    read.samples == 0 && read.gap.is_none() && !read.end_of_burst
}

fn policy(name: &str) -> PyResult<(GapPolicy, bool)> {
    if name == "raise" {
        return Ok((GapPolicy::Report, true));
    }
    let policy = GapPolicy::named(name).ok_or_else(|| {
        let names = GapPolicy::NAMES.join(", ");
        PyValueError::new_err(format!("gaps is {name:?}: give one of {names}, raise"))
    })?;
    Ok((policy, false))
}

#[pymethods]
impl RxStream {
    #[new]
    #[pyo3(signature = (
        radio, channels, *, format = "cf32", gaps = "event", samples_per_packet = None,
        recv_queue_bytes = None
    ))]
    #[expect(clippy::needless_pass_by_value, reason = "Python gives a list")]
    fn new(
        py: Python<'_>,
        radio: &Radio,
        channels: Vec<usize>,
        format: &str,
        gaps: &str,
        samples_per_packet: Option<u32>,
        recv_queue_bytes: Option<usize>,
    ) -> PyResult<Self> {
        let form = SampleForm::from_name(format)?;
        let (policy, raises) = policy(gaps)?;
        let mut options = RxOptions::default().with_gaps(policy);
        if let Some(samples) = samples_per_packet {
            options = options.with_samples_per_packet(samples);
        }
        if let Some(bytes) = recv_queue_bytes {
            options = options.with_recv_queue_bytes(bytes);
        }
        let reader = radio.with(py, |radio| radio.rx_stream(&channels, options))?;
        Ok(Self {
            reader,
            form,
            channels: channels.len(),
            raises,
            started: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            line: TurnLine::default(),
            ahead: Mutex::new(None),
        })
    }

    /// The number of channels.
    #[getter]
    fn channels(&self) -> usize {
        self.channels
    }

    /// The form of its samples: "cf32" or "sc16".
    #[getter]
    fn format(&self) -> &'static str {
        self.form.name()
    }

    /// Its sample rate, per second.
    #[getter]
    fn rate(&self, py: Python<'_>) -> f64 {
        py.detach(|| self.reader.rate_hz())
    }

    /// The rate of the radio's ticks, per second.
    #[getter]
    fn tick_rate(&self, py: Python<'_>) -> f64 {
        py.detach(|| self.reader.tick_rate_hz())
    }

    /// Whether it was started and has not ended.
    #[getter]
    fn running(&self, py: Python<'_>) -> bool {
        py.detach(|| self.reader.is_active())
    }

    /// A good number of samples for a call.
    #[getter]
    fn samples_per_read(&self, py: Python<'_>) -> usize {
        py.detach(|| self.reader.samples_per_read())
    }

    /// The account of its first channel's samples.
    #[getter]
    fn ledger(&self, py: Python<'_>) -> Ledger {
        py.detach(|| self.reader.ledger(0)).unwrap_or_default().into()
    }

    /// The accounts of all channels, in their order.
    #[getter]
    fn ledgers(&self, py: Python<'_>) -> Vec<Ledger> {
        let all = |n: usize| self.reader.ledger(n).unwrap_or_default().into();
        py.detach(|| (0..self.channels).map(all).collect())
    }

    /// Starts the stream, also anew: for `samples` samples or without an end, at the time `at_ns`
    /// of the radio's clock or at once.
    #[pyo3(signature = (samples = None, *, at_ns = None))]
    fn start(&self, py: Python<'_>, samples: Option<u64>, at_ns: Option<i64>) -> PyResult<()> {
        let start = StreamStart { time: at_ns.map(DeviceTime::from_ns), samples };
        py.detach(|| self.reader.start(start)).map_err(errors::client)?;
        *lock(&self.ahead) = None;
        self.ended.store(false, Ordering::Relaxed);
        self.started.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Stops the stream. Reads that wait return; what is in flight is dropped.
    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.reader.stop()).map_err(errors::client)
    }

    /// Ends the stream. Reads that wait raise ClosedError.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.reader.close(Duration::MAX));
    }

    /// Fills an array, and returns how many samples it got: fewer before a gap, at the end of the
    /// stream, or at the end of `timeout` seconds. TimeoutError when none came in time.
    ///
    /// The array has the element type of the stream's format, and the shape (n,) or (channels, n),
    /// for "sc16" with a last dimension of 2. Nothing is copied but the conversion of the samples.
    /// As with every function that fills an array, do not use it in another thread meanwhile.
    #[pyo3(signature = (out, timeout = Some(10.0)), text_signature = "($self, out, timeout=10.0)")]
    fn recv_into(
        &self,
        py: Python<'_>,
        out: &Bound<'_, PyAny>,
        timeout: Option<f64>,
    ) -> PyResult<Received> {
        let array = SampleArray::new(out, self.form, self.channels, ArrayUse::Fill)?;
        let limit = TimeLimit::new(timeout)?;
        if !self.started.load(Ordering::Relaxed) {
            return Err(StreamError::new_err("the stream does not run: call its start() first"));
        }
        self.fill(py, &array, limit)
    }

    /// Reads `samples` samples and drops them, for example until a filter has settled. Returns how
    /// many it dropped: fewer at the end of the stream, or when `timeout` seconds pass without one.
    #[pyo3(
        signature = (samples, timeout = Some(10.0)),
        text_signature = "($self, samples, timeout=10.0)"
    )]
    fn skip(&self, py: Python<'_>, samples: u64, timeout: Option<f64>) -> PyResult<u64> {
        let mut floats = vec![Vec::<Complex32>::new(); self.channels];
        let mut pairs = vec![Vec::<[i16; 2]>::new(); self.channels];
        match self.form {
            SampleForm::Cf32 => floats.iter_mut().for_each(|row| row.resize(DROPPED, ZERO)),
            SampleForm::Sc16 => pairs.iter_mut().for_each(|row| row.resize(DROPPED, [0; 2])),
        }
        let (mut dropped, mut stopped) = (0, false);
        let mut limit = TimeLimit::new(timeout)?;
        if samples == 0 {
            return Ok(0);
        }
        let _turn = self.turn(py, limit)?;
        // A gap ahead lies before the samples that are dropped.
        self.take_gap()?;
        while dropped < samples && !self.ended.load(Ordering::Relaxed) {
            let wait = limit.slice();
            let most = usize::try_from(samples - dropped).unwrap_or(DROPPED).min(DROPPED);
            let read = py.detach(|| match self.form {
                SampleForm::Cf32 => self.drop_into(&mut floats, most, wait),
                SampleForm::Sc16 => self.drop_into(&mut pairs, most, wait),
            });
            let read = read.map_err(|error| self.read_error(error))?;
            dropped += read.samples as u64;
            if let Some(gap) = read.gap {
                *lock(&self.ahead) = Some(gap);
                if dropped > 0 && self.raises {
                    // The next call raises it: what was dropped is told first.
                    return Ok(dropped);
                }
                self.take_gap()?;
                limit = TimeLimit::new(timeout)?;
            }
            if read.end_of_burst {
                self.ended.store(true, Ordering::Relaxed);
            } else if read.samples > 0 {
                (limit, stopped) = (TimeLimit::new(timeout)?, false);
            } else if is_empty(&read) && !py.detach(|| self.reader.is_active()) {
                // It was stopped, or closed: another read tells.
                self.ended.store(stopped, Ordering::Relaxed);
                stopped = true;
            } else if limit.is_over() {
                break;
            }
            py.check_signals()?;
        }
        Ok(dropped)
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyAny>) {
        self.close(py);
    }

    fn __repr__(&self) -> String {
        format!("RxStream(channels={}, format={:?})", self.channels, self.form.name())
    }
}
