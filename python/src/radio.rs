//! A radio: opening, settings, time and the end.

use crate::errors;
use crate::settings::{self, SettingRanges, Tuned};
use millstream_client::{
    self as client, ClientArgs, ClientError, DeviceTime, FoundRadio, StreamDirection,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::BTreeMap;
use std::time::Duration;

/// A radio that this process has claimed.
#[pyclass(subclass, frozen, module = "millstream")]
pub struct Radio {
    radio: client::Radio,
}

impl Radio {
    /// Calls the radio without the interpreter's lock.
    pub fn with<T: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&client::Radio) -> Result<T, ClientError> + Send,
    ) -> PyResult<T> {
        py.detach(|| call(&self.radio)).map_err(errors::client)
    }
}

const BOTH: [StreamDirection; 2] = [StreamDirection::Rx, StreamDirection::Tx];

/// Sets the rate of all channels, or of those of a direction; returns that of the first one.
fn set_rate(
    radio: &client::Radio,
    rate: f64,
    channel: Option<usize>,
    direction: Option<StreamDirection>,
) -> Result<f64, ClientError> {
    let mut first = None;
    for direction in BOTH.into_iter().filter(|one| direction.is_none_or(|only| only == *one)) {
        let all = 0..radio.channels(direction);
        for channel in channel.map_or(all, |channel| channel..channel + 1) {
            let taken = radio.channel(direction, channel).set_rate(rate)?;
            first.get_or_insert(taken);
        }
    }
    Ok(first.unwrap_or(rate))
}

#[pymethods]
impl Radio {
    #[new]
    fn new(py: Python<'_>, args: &str) -> PyResult<Self> {
        let open = || client::Radio::open(&args.parse::<ClientArgs>()?);
        Ok(Self { radio: py.detach(open).map_err(errors::client)? })
    }

    /// What the device says about itself: addr, type, product, serial, name.
    #[getter]
    fn info(&self) -> BTreeMap<&'static str, String> {
        let radio = &self.radio;
        BTreeMap::from([
            ("addr", radio.address().to_string()),
            ("type", radio.device_type().to_owned()),
            ("product", radio.product().to_owned()),
            ("serial", radio.serial().to_owned()),
            ("name", radio.name().to_owned()),
        ])
    }

    /// Returns the number of channels of a direction.
    #[pyo3(signature = (direction = "rx"))]
    fn channels(&self, direction: &str) -> PyResult<usize> {
        Ok(self.radio.channels(settings::direction(direction)?))
    }

    /// Returns the sample rate of a channel, per second.
    #[pyo3(signature = (channel = 0, direction = "rx"))]
    fn rate(&self, py: Python<'_>, channel: usize, direction: &str) -> PyResult<f64> {
        let direction = settings::direction(direction)?;
        self.with(py, |radio| radio.channel(direction, channel).rate())
    }

    /// The ticks of the radio's clock per second.
    #[getter]
    fn tick_rate(&self, py: Python<'_>) -> PyResult<f64> {
        self.with(py, client::Radio::tick_rate)
    }

    /// Sets the sample rate of all channels, or of one, to the nearest one that the radio has, and
    /// returns it. Streams that run go on with the new rate.
    #[pyo3(signature = (rate, channel = None, direction = None))]
    fn set_rate(
        &self,
        py: Python<'_>,
        rate: f64,
        channel: Option<usize>,
        direction: Option<&str>,
    ) -> PyResult<f64> {
        let direction = direction.map(settings::direction).transpose()?;
        self.with(py, |radio| set_rate(radio, rate, channel, direction))
    }

    /// Tunes a channel, Hz, and returns the frequencies that the radio took. The local oscillator
    /// lies `oscillator_offset` above the frequency. With `at_ns`, a time of the radio's clock, the
    /// oscillator stays, and the frequency changes at that very sample.
    #[pyo3(signature = (
        frequency, channel = 0, direction = "rx", *, oscillator_offset = 0.0, at_ns = None
    ))]
    fn set_frequency(
        &self,
        py: Python<'_>,
        frequency: f64,
        channel: usize,
        direction: &str,
        oscillator_offset: f64,
        at_ns: Option<i64>,
    ) -> PyResult<Tuned> {
        let direction = settings::direction(direction)?;
        let offset = Some(oscillator_offset);
        let tune = |radio: &client::Radio| match at_ns {
            Some(ns) => {
                let time = DeviceTime::from_ns(ns);
                radio.channel(direction, channel).set_frequency_at(frequency, time)
            }
            None => radio.channel(direction, channel).set_frequency(frequency, offset),
        };
        Ok(self.with(py, tune)?.into())
    }

    /// Returns the frequencies of a channel.
    #[pyo3(signature = (channel = 0, direction = "rx"))]
    fn frequency(&self, py: Python<'_>, channel: usize, direction: &str) -> PyResult<Tuned> {
        let direction = settings::direction(direction)?;
        Ok(self.with(py, |radio| radio.channel(direction, channel).frequency())?.into())
    }

    /// Sets the gain of a channel, dB, and returns the one in force; outside its range is an error.
    #[pyo3(signature = (gain, channel = 0, direction = "rx"))]
    fn set_gain(
        &self,
        py: Python<'_>,
        gain: f64,
        channel: usize,
        direction: &str,
    ) -> PyResult<f64> {
        let direction = settings::direction(direction)?;
        self.with(py, |radio| radio.channel(direction, channel).set_gain(gain))
    }

    /// Returns the gain of a channel, dB.
    #[pyo3(signature = (channel = 0, direction = "rx"))]
    fn gain(&self, py: Python<'_>, channel: usize, direction: &str) -> PyResult<f64> {
        let direction = settings::direction(direction)?;
        self.with(py, |radio| radio.channel(direction, channel).gain())
    }

    /// Lets the device set the gain of a receive channel, or returns to the last gain.
    #[pyo3(signature = (on = true, channel = 0))]
    fn set_automatic_gain(&self, py: Python<'_>, on: bool, channel: usize) -> PyResult<()> {
        self.with(py, |radio| radio.rx(channel).set_automatic_gain(on))
    }

    /// Sets the bandwidth of a channel's analogue filter, Hz, and returns what the radio took.
    #[pyo3(signature = (bandwidth, channel = 0, direction = "rx"))]
    fn set_bandwidth(
        &self,
        py: Python<'_>,
        bandwidth: f64,
        channel: usize,
        direction: &str,
    ) -> PyResult<f64> {
        let direction = settings::direction(direction)?;
        self.with(py, |radio| radio.channel(direction, channel).set_bandwidth(bandwidth))
    }

    /// Returns the bandwidth of a channel's analogue filter, Hz.
    #[pyo3(signature = (channel = 0, direction = "rx"))]
    fn bandwidth(&self, py: Python<'_>, channel: usize, direction: &str) -> PyResult<f64> {
        let direction = settings::direction(direction)?;
        self.with(py, |radio| radio.channel(direction, channel).bandwidth())
    }

    /// Selects the antenna of a channel by its name.
    #[pyo3(signature = (antenna, channel = 0, direction = "rx"))]
    fn set_antenna(
        &self,
        py: Python<'_>,
        antenna: &str,
        channel: usize,
        direction: &str,
    ) -> PyResult<()> {
        let direction = settings::direction(direction)?;
        self.with(py, |radio| radio.channel(direction, channel).set_antenna(antenna))
    }

    /// Returns the antenna of a channel; empty when none can be selected.
    #[pyo3(signature = (channel = 0, direction = "rx"))]
    fn antenna(&self, py: Python<'_>, channel: usize, direction: &str) -> PyResult<&'static str> {
        let direction = settings::direction(direction)?;
        self.with(py, |radio| radio.channel(direction, channel).antenna())
    }

    /// Returns the ranges of a direction, by name: rate, frequency, gain, bandwidth, antennas.
    #[pyo3(signature = (direction = "rx"))]
    fn ranges<'py>(&self, py: Python<'py>, direction: &str) -> PyResult<Bound<'py, PyDict>> {
        let direction = settings::direction(direction)?;
        self.with(py, |radio| Ok(SettingRanges::of(radio.channel(direction, 0))))?.to_dict(py)
    }

    /// Reads the radio's time, nanoseconds: now, or at its last PPS edge (at="pps").
    #[pyo3(signature = (at = "now"))]
    fn time_ns(&self, py: Python<'_>, at: &str) -> PyResult<i64> {
        let pps = settings::is_pps(at)?;
        self.with(py, |radio| if pps { radio.last_pps() } else { radio.now() }).map(DeviceTime::ns)
    }

    /// Sets the radio's time, nanoseconds: now, or at its next PPS edge (at="pps"). Streams that
    /// run see a jump of the clock.
    #[pyo3(signature = (time_ns, at = "now"))]
    fn set_time_ns(&self, py: Python<'_>, time_ns: i64, at: &str) -> PyResult<()> {
        let (pps, time) = (settings::is_pps(at)?, DeviceTime::from_ns(time_ns));
        self.with(py, |radio| if pps { radio.set_time_at_pps(time) } else { radio.set_time(time) })
    }

    /// The sources of the reference clock and of the PPS, as they are now: clock, time.
    #[getter]
    fn sources(&self, py: Python<'_>) -> PyResult<BTreeMap<&'static str, String>> {
        self.with(py, |radio| {
            Ok(BTreeMap::from([("clock", radio.clock_source()?), ("time", radio.time_source()?)]))
        })
    }

    /// Selects the sources of the reference clock and of the PPS.
    #[pyo3(signature = (*, clock = None, time = None))]
    fn set_sources(&self, py: Python<'_>, clock: Option<&str>, time: Option<&str>) -> PyResult<()> {
        self.with(py, |radio| {
            clock.map_or(Ok(()), |source| radio.set_clock_source(source))?;
            time.map_or(Ok(()), |source| radio.set_time_source(source))
        })
    }

    /// Returns the names of the sensors: of the radio, or of a channel.
    #[pyo3(signature = (channel = None, direction = "rx"))]
    fn sensors(
        &self,
        py: Python<'_>,
        channel: Option<usize>,
        direction: &str,
    ) -> PyResult<Vec<String>> {
        let direction = settings::direction(direction)?;
        self.with(py, |radio| match channel {
            None => radio.sensors(),
            Some(channel) => radio.channel(direction, channel).sensors(),
        })
    }

    /// Reads a sensor of the radio, or of a channel: the value as text, and its unit.
    #[pyo3(signature = (name, channel = None, direction = "rx"))]
    fn sensor(
        &self,
        py: Python<'_>,
        name: &str,
        channel: Option<usize>,
        direction: &str,
    ) -> PyResult<(String, String)> {
        let direction = settings::direction(direction)?;
        let reading = self.with(py, |radio| match channel {
            None => radio.sensor(name),
            Some(channel) => radio.channel(direction, channel).sensor(name),
        })?;
        Ok((reading.value, reading.unit))
    }

    /// Adds a fault to the radio of "radio=emulated", such as "lose to_host data every=9".
    fn add_fault(&self, py: Python<'_>, fault: &str) -> PyResult<()> {
        self.with(py, |radio| radio.add_fault(fault))
    }

    /// Ends its streams and releases the radio.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.radio.close(Duration::MAX));
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyAny>) {
        self.close(py);
    }

    fn __repr__(&self) -> String {
        format!("Radio({} at {})", self.radio.product(), self.radio.address())
    }
}

/// Searches for radios: in all networks of this machine, or those that fit the arguments, such as
/// "addr=192.168.10.2". Returns a dictionary for each.
#[pyfunction]
#[pyo3(signature = (args = ""))]
pub fn find(py: Python<'_>, args: &str) -> PyResult<Vec<BTreeMap<&'static str, String>>> {
    let search = || millstream_client::find(&args.parse::<ClientArgs>()?);
    let found = py.detach(search).map_err(errors::client)?;
    let fields = |radio: FoundRadio| {
        BTreeMap::from([
            ("label", radio.label()),
            ("addr", radio.addr.map(|addr| addr.to_string()).unwrap_or_default()),
            ("type", radio.device_type),
            ("product", radio.product),
            ("serial", radio.serial),
            ("name", radio.name),
            ("claimed", radio.claimed.to_string()),
        ])
    };
    Ok(found.into_iter().map(fields).collect())
}
