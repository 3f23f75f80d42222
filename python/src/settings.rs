//! Settings of a radio: directions, frequencies and ranges.

use millstream_client::{Channel, StreamDirection, TuneParts};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Reads a direction.
pub fn direction(name: &str) -> PyResult<StreamDirection> {
    match name {
        "rx" => Ok(StreamDirection::Rx),
        "tx" => Ok(StreamDirection::Tx),
        _ => Err(PyValueError::new_err(format!("direction is {name:?}: give \"rx\" or \"tx\""))),
    }
}

/// Reads whether a moment is a PPS edge.
pub fn is_pps(name: &str) -> PyResult<bool> {
    match name {
        "now" => Ok(false),
        "pps" => Ok(true),
        _ => Err(PyValueError::new_err(format!("at is {name:?}: give \"now\" or \"pps\""))),
    }
}

/// The frequencies that a radio took, Hz.
#[pyclass(frozen, get_all, module = "millstream")]
pub struct Tuned {
    /// The frequency in the middle of the stream's band: the sum of the others.
    frequency: f64,
    /// The local oscillator.
    oscillator: f64,
    /// How far the middle of the band lies above the oscillator: the part of the DDC or DUC.
    shift: f64,
}

#[pymethods]
impl Tuned {
    fn __repr__(&self) -> String {
        let Self { frequency, oscillator, shift } = self;
        format!("Tuned(frequency={frequency}, oscillator={oscillator}, shift={shift})")
    }
}

impl From<TuneParts> for Tuned {
    fn from(parts: TuneParts) -> Self {
        Self { frequency: parts.freq_hz, oscillator: parts.rf_hz, shift: parts.bb_hz }
    }
}

/// The ranges of a direction; without those that cannot be set from here.
pub struct SettingRanges {
    rate: (f64, f64),
    frequency: Option<(f64, f64)>,
    gain: Option<(f64, f64)>,
    bandwidth: Option<(f64, f64)>,
    antennas: &'static [&'static str],
}

impl SettingRanges {
    /// Asks the radio.
    pub fn of(channel: Channel<'_>) -> Self {
        Self {
            rate: channel.rate_range(),
            frequency: channel.rf_range(),
            gain: channel.gain_range(),
            bandwidth: channel.bandwidth_range(),
            antennas: channel.antennas(),
        }
    }

    /// Returns them as a dictionary.
    pub fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let found = PyDict::new(py);
        found.set_item("rate", self.rate)?;
        let optional =
            [("frequency", self.frequency), ("gain", self.gain), ("bandwidth", self.bandwidth)];
        for (name, range) in optional {
            if let Some(range) = range {
                found.set_item(name, range)?;
            }
        }
        found.set_item("antennas", self.antennas.to_vec())?;
        Ok(found)
    }
}
