//! The emulated radio inside the Python process.

use crate::errors;
use crate::wait::lock;
use millstream_emulator::scene::Scene;
use millstream_emulator::{
    ClockRates, CounterSnapshot, DeviceKind, Radio as EmulatorRadio, RadioConfig, RunningRadio,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;

/// Samples that each channel of the radio keeps while no credit comes, unless the caller says more:
/// a quarter of a second at 16 MS/s, so that a busy machine shows no overrun.
const BUFFER_SAMPLES: u64 = 1 << 22;

/// Starts a radio on free ports of the loopback interface.
fn start(config: RadioConfig) -> PyResult<RunningRadio> {
    let config = RadioConfig { discovery_port: 0, rpc_port: 0, chdr_port: 0, ..config };
    EmulatorRadio::start(config).map_err(errors::emulator)
}

/// Returns the device of this name.
fn device(name: &str) -> PyResult<DeviceKind> {
    DeviceKind::named(name).ok_or_else(|| {
        let names = DeviceKind::ALL.map(DeviceKind::name).join(", ");
        PyValueError::new_err(format!("device is {name:?}: the devices are {names}"))
    })
}

/// An emulated E320 in this process, on free ports of the loopback interface.
///
/// Radio(emulated.args) opens it. It ends with close(), or at the end of a `with` block.
#[pyclass(subclass, frozen, module = "millstream")]
pub struct EmulatedRadio {
    running: Mutex<Option<RunningRadio>>,
    args: String,
    last: Mutex<Option<CounterSnapshot>>,
}

impl EmulatedRadio {
    fn with<T>(&self, work: impl FnOnce(&RunningRadio) -> PyResult<T>) -> PyResult<T> {
        work(lock(&self.running).as_ref().ok_or_else(|| {
            errors::ClosedError::new_err("the emulated radio is closed: start a new one")
        })?)
    }
}

#[pymethods]
impl EmulatedRadio {
    #[new]
    #[pyo3(signature = (
        antennas = Vec::new(), *, scene = None, device = "e320", clock_rate = None,
        buffer_samples = BUFFER_SAMPLES, transmit_files = Vec::new(), faults = Vec::new(),
        time_scale = 1.0, mtu = 9000, any_rate = false
    ))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn new(
        py: Python<'_>,
        antennas: Vec<String>,
        scene: Option<PathBuf>,
        device: &str,
        clock_rate: Option<f64>,
        buffer_samples: u64,
        transmit_files: Vec<PathBuf>,
        faults: Vec<String>,
        time_scale: f64,
        mtu: usize,
        any_rate: bool,
    ) -> PyResult<Self> {
        let scene = scene.map(|path| Scene::load(&path)).transpose().map_err(errors::emulator)?;
        let device = self::device(device)?;
        let config = RadioConfig {
            device,
            rx_antennas: antennas,
            scene,
            any_tuning: any_rate,
            tx_out: transmit_files,
            time_scale,
            master_clock_rate_hz: clock_rate.unwrap_or(device.default_rate_hz()),
            rates: if any_rate { ClockRates::ANY } else { device.rates() },
            rx_buffer_samples: buffer_samples,
            mtu,
            faults,
            ..RadioConfig::default()
        };
        let radio = py.detach(|| start(config))?;
        let args = format!(
            "addr={},discovery_port={},rpc_port={}",
            radio.rpc_addr().ip(),
            radio.discovery_addr().port(),
            radio.rpc_addr().port()
        );
        Ok(Self { running: Mutex::new(Some(radio)), args, last: Mutex::default() })
    }

    /// The arguments that open it.
    #[getter]
    fn args(&self) -> &str {
        &self.args
    }

    /// Adds a fault, such as "lose to_host data every=100", and returns its number.
    fn add_fault(&self, fault: &str) -> PyResult<u64> {
        self.with(|radio| {
            radio.faults().add(fault).map_err(|error| PyValueError::new_err(error.to_string()))
        })
    }

    /// Removes a fault by its number; returns whether there was one.
    fn remove_fault(&self, number: u64) -> PyResult<bool> {
        self.with(|radio| Ok(radio.faults().remove(number).is_some()))
    }

    /// Returns what the radio counted: packets, samples, events. After close() they are final.
    fn counters(&self) -> BTreeMap<&'static str, u64> {
        let now = lock(&self.running).as_ref().map(RunningRadio::counters);
        let counters = now.or_else(|| *lock(&self.last));
        counters.map(|counters| counters.entries().into_iter().collect()).unwrap_or_default()
    }

    /// Ends the radio and waits for its threads.
    fn close(&self, py: Python<'_>) {
        py.detach(|| {
            let radio = lock(&self.running).take();
            if let Some(radio) = radio {
                *lock(&self.last) = Some(radio.stop());
            }
        });
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyAny>) {
        self.close(py);
    }

    fn __repr__(&self) -> String {
        format!("EmulatedRadio({:?})", self.args)
    }
}
