//! Transmit streams.

use crate::arrays::{ArrayUse, SampleArray, SampleForm, SampleRows};
use crate::errors;
use crate::ledger::TxLedger;
use crate::radio::Radio;
use crate::wait::TimeLimit;
use millstream_client::{
    self as client, ClientError, DeviceTime, StatusKind, StreamStart, StreamStatus, TxOptions,
    TxWrite,
};
use millstream_radio::Complex32;
use pyo3::prelude::*;
use std::time::Duration;

/// A report about transmitted samples.
#[pyclass(frozen, get_all, module = "millstream")]
pub struct TxEvent {
    /// "burst_end", "underflow", "late", "sequence", "lost", "reestablished" or "other".
    kind: &'static str,
    /// The time of the event by the radio's clock, nanoseconds, if it has one.
    time_ns: Option<i64>,
    /// Lost samples, or those that may have been lost.
    samples: u64,
    /// The position of the channel among those of the stream.
    channel: usize,
}

impl From<StreamStatus> for TxEvent {
    fn from(status: StreamStatus) -> Self {
        let (kind, samples) = match status.kind {
            StatusKind::BurstEnd => ("burst_end", 0),
            StatusKind::Underflow => ("underflow", 0),
            StatusKind::Late => ("late", 0),
            StatusKind::Sequence => ("sequence", 0),
            StatusKind::Lost { samples } => ("lost", samples),
            StatusKind::Reestablished { samples } => ("reestablished", samples),
            _ => ("other", 0),
        };
        Self { kind, time_ns: status.time.map(DeviceTime::ns), samples, channel: status.channel }
    }
}

#[pymethods]
impl TxEvent {
    fn __repr__(&self) -> String {
        let Self { kind, samples, channel, .. } = self;
        let time = self.time_ns.map_or_else(|| "None".to_owned(), |ns| ns.to_string());
        format!("TxEvent(kind='{kind}', time_ns={time}, samples={samples}, channel={channel})")
    }
}

/// A transmit stream of one channel, or of several that are aligned in time.
///
/// All methods may be called from any thread at any time.
#[pyclass(subclass, frozen, module = "millstream")]
pub struct TxStream {
    writer: client::TxStream,
    form: SampleForm,
    channels: usize,
}

/// A burst's begin and end.
#[derive(Clone, Copy)]
struct BurstEdges {
    at: Option<DeviceTime>,
    end: bool,
}

impl TxStream {
    /// Writes rows.
    ///
    /// # Safety
    /// That of [`SampleRows::read`].
    unsafe fn write(
        &self,
        rows: &SampleRows,
        burst: BurstEdges,
        wait: Duration,
    ) -> Result<TxWrite, ClientError> {
        let BurstEdges { at, end } = burst;
        let writer = &self.writer;
        // SAFETY: the caller's; the form of the stream was checked with the array.
        unsafe {
            match self.form {
                SampleForm::Cf32 => {
                    rows.read::<Complex32, _>(|rows| writer.write(rows, at, end, wait))
                }
                SampleForm::Sc16 => {
                    rows.read::<[i16; 2], _>(|rows| writer.write(rows, at, end, wait))
                }
            }
        }
    }
}

#[pymethods]
impl TxStream {
    #[new]
    #[pyo3(signature = (radio, channels, *, format = "cf32", samples_per_packet = None))]
    #[expect(clippy::needless_pass_by_value, reason = "Python gives a list")]
    fn new(
        py: Python<'_>,
        radio: &Radio,
        channels: Vec<usize>,
        format: &str,
        samples_per_packet: Option<u32>,
    ) -> PyResult<Self> {
        let form = SampleForm::from_name(format)?;
        let mut options = TxOptions::default();
        if let Some(samples) = samples_per_packet {
            options = options.with_samples_per_packet(samples);
        }
        let writer = radio.with(py, |radio| {
            let writer = radio.tx_stream(&channels, options)?;
            writer.start(StreamStart::now())?;
            Ok(writer)
        })?;
        Ok(Self { writer, form, channels: channels.len() })
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
        py.detach(|| self.writer.rate_hz())
    }

    /// A good number of samples for a call.
    #[getter]
    fn samples_per_send(&self, py: Python<'_>) -> usize {
        py.detach(|| self.writer.samples_per_write())
    }

    /// The account of its first channel's samples.
    #[getter]
    fn ledger(&self, py: Python<'_>) -> TxLedger {
        py.detach(|| self.writer.ledger(0)).unwrap_or_default().into()
    }

    /// The accounts of all channels, in their order.
    #[getter]
    fn ledgers(&self, py: Python<'_>) -> Vec<TxLedger> {
        let all = |n: usize| self.writer.ledger(n).unwrap_or_default().into();
        py.detach(|| (0..self.channels).map(all).collect())
    }

    /// Sends the samples of an array, and returns how many were taken: fewer than it has at the end
    /// of `timeout` seconds. TimeoutError when none was.
    ///
    /// A burst begins with the first samples, at the time `at_ns` of the radio's clock or at once,
    /// and ends with the last sample of a call with `end`.
    #[pyo3(
        signature = (samples, *, at_ns = None, end = false, timeout = Some(10.0)),
        text_signature = "($self, samples, *, at_ns=None, end=False, timeout=10.0)"
    )]
    fn send(
        &self,
        py: Python<'_>,
        samples: &Bound<'_, PyAny>,
        at_ns: Option<i64>,
        end: bool,
        timeout: Option<f64>,
    ) -> PyResult<usize> {
        let array = SampleArray::new(samples, self.form, self.channels, ArrayUse::Read)?;
        let limit = TimeLimit::new(timeout)?;
        let (mut taken, mut burst) = (0, BurstEdges { at: at_ns.map(DeviceTime::from_ns), end });
        loop {
            let rows = array.rows_from(taken);
            let wait = limit.slice();
            // SAFETY: the array lives until this function returns; its memory is the caller's, who
            // does not change it meanwhile.
            let sent = py.detach(|| unsafe { self.write(&rows, burst, wait) });
            let sent = sent.map_err(errors::client)?;
            taken += sent.samples;
            if sent.samples > 0 {
                burst.at = None;
            }
            if taken == array.samples() && (!end || sent.end_of_burst) {
                return Ok(taken);
            }
            if limit.is_over() {
                if taken == 0 || taken == array.samples() {
                    return Err(limit.error("the radio took no sample"));
                }
                return Ok(taken);
            }
            py.check_signals()?;
        }
    }

    /// Returns the oldest event that was not fetched yet, waiting for one up to `timeout` seconds;
    /// None without one.
    #[pyo3(signature = (timeout = Some(0.0)), text_signature = "($self, timeout=0.0)")]
    fn next_event(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<TxEvent>> {
        let limit = TimeLimit::new(timeout)?;
        loop {
            let wait = limit.slice();
            if let Some(status) = py.detach(|| self.writer.take_status(wait)) {
                return Ok(Some(status.into()));
            }
            if limit.is_over() {
                return Ok(None);
            }
            py.check_signals()?;
        }
    }

    /// Ends an open burst, waits until the device has taken everything, and ends the stream.
    fn close(&self, py: Python<'_>) {
        py.detach(|| {
            // A stream that was closed already has no burst to end.
            let _ = self.writer.stop();
            self.writer.close(Duration::MAX);
        });
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyAny>) {
        self.close(py);
    }

    fn __repr__(&self) -> String {
        format!("TxStream(channels={}, format={:?})", self.channels, self.form.name())
    }
}
