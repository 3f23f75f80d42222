//! What a receive stream returns: samples with their time, and gaps.

use millstream_client::{DeviceTime, StreamGap};
use pyo3::prelude::*;

/// Samples that are missing in a stream.
#[pyclass(frozen, get_all, module = "millstream")]
pub struct Gap {
    /// How many samples of each channel are missing, exactly; 0 if the radio's clock jumped by an
    /// unknown time.
    samples: u64,
    /// "overrun" (the radio's buffer was full), "sequence" (lost packets) or "clock_jump".
    cause: &'static str,
    /// The time at which samples resume, nanoseconds.
    resume_ns: i64,
    /// The same in ticks of the radio's clock.
    resume_ticks: u64,
}

impl From<StreamGap> for Gap {
    fn from(gap: StreamGap) -> Self {
        let StreamGap { samples, cause, resume, .. } = gap;
        Self { samples, cause, resume_ns: resume.ns(), resume_ticks: resume.ticks() }
    }
}

#[pymethods]
impl Gap {
    /// The time at which samples resume, seconds.
    #[getter]
    fn resume(&self) -> f64 {
        self.resume_ns as f64 / 1e9
    }

    fn __repr__(&self) -> String {
        let Self { samples, cause, resume_ns, .. } = self;
        format!("Gap(samples={samples}, cause='{cause}', resume_ns={resume_ns})")
    }
}

/// The result of recv_into().
#[pyclass(frozen, module = "millstream")]
pub struct Received {
    /// Samples that were written to each row of the array, from its beginning.
    #[pyo3(get)]
    pub samples: usize,
    /// The time of the first sample.
    pub first: Option<DeviceTime>,
    pub gap: Option<StreamGap>,
    /// Whether the stream has ended: no sample follows.
    #[pyo3(get)]
    pub end: bool,
}

#[pymethods]
impl Received {
    /// The radio's time of the first sample, nanoseconds; None without samples.
    #[getter]
    fn time_ns(&self) -> Option<i64> {
        self.first.map(DeviceTime::ns)
    }

    /// The same in ticks of the radio's clock.
    #[getter]
    fn time_ticks(&self) -> Option<u64> {
        self.first.map(DeviceTime::ticks)
    }

    /// The samples that are missing directly before these; None without a gap.
    #[getter]
    fn gap(&self) -> Option<Gap> {
        self.gap.map(Gap::from)
    }

    fn __repr__(&self) -> String {
        let Self { samples, gap, end, .. } = self;
        let missing = gap.map_or(0, |gap| gap.samples);
        let time = self.time_ns().map_or_else(|| "None".to_owned(), |ns| ns.to_string());
        let end = if *end { "True" } else { "False" };
        format!("Received(samples={samples}, time_ns={time}, missing={missing}, end={end})")
    }
}
