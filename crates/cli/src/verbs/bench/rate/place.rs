//! The radio under test, and the CPUs of both sides.

use super::Args;
use crate::child_radio::{ChildRadio, ChildRadioOptions};
use crate::numbers::allowed_cpus;
use millstream_cpu::thread::pin_current_thread;
use millstream_radio::DeviceArgs;
use serde::Serialize;
use serde_json::Value;

/// The CPUs of both sides; `None` where the kernel chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SideCpus {
    /// CPU of all threads of the host, ours or UHD's.
    pub host_cpu: Option<usize>,
    /// CPU of all threads of the emulated radio.
    pub radio_cpu: Option<usize>,
}

impl SideCpus {
    /// Chooses the CPUs, and moves this process to the host's: threads that start later stay there.
    pub fn choose(args: &Args) -> anyhow::Result<Self> {
        let allowed: Vec<_> = allowed_cpus()?.iter().collect();
        let both = allowed.len() > 1 && !args.no_pin;
        let first = allowed.first().copied().filter(|_| both && args.args.is_none());
        let last = allowed.last().copied().filter(|_| both);
        let place = Self { host_cpu: args.cpu.or(last), radio_cpu: args.radio_cpu.or(first) };
        if let Some(cpu) = place.host_cpu {
            pin_current_thread(cpu)?;
        }
        Ok(place)
    }

    /// Describes them; the user's own radio has none.
    pub fn describe(&self, emulated: bool) -> String {
        let where_to = |cpu: Option<usize>| match cpu {
            Some(cpu) => format!("CPU {cpu}"),
            None => "any CPU".to_owned(),
        };
        let host = format!("the host on {}", where_to(self.host_cpu));
        match emulated {
            true => format!("place   the emulated radio on {}, {host}", where_to(self.radio_cpu)),
            false => format!("place   {host}"),
        }
    }
}

/// A radio: the user's, or an emulated one that lives as long as the measurement.
pub enum RadioUnderTest {
    Given(Box<DeviceArgs>),
    Emulated(ChildRadio),
}

impl RadioUnderTest {
    pub fn start(args: &Args, place: &SideCpus) -> anyhow::Result<Self> {
        if let Some(given) = &args.args {
            return Ok(Self::Given(Box::new(given.clone())));
        }
        let (rx, tx) = (args.rx_buffer_samples.to_string(), args.tx_buffer_samples.to_string());
        let options = ["--rx-antenna", "ramp"];
        let buffers = ["--rx-buffer-samples", &rx, "--tx-buffer-samples", &tx];
        let mtu = ["--mtu".to_owned(), args.mtu.to_string()];
        let options = options.into_iter().chain(buffers).map(str::to_owned).chain(mtu).collect();
        let options = ChildRadioOptions {
            args: options,
            cpu: place.radio_cpu,
            ..ChildRadioOptions::default()
        };
        Ok(Self::Emulated(ChildRadio::start(&options)?))
    }

    pub fn device_args(&self) -> DeviceArgs {
        match self {
            Self::Given(args) => (**args).clone(),
            Self::Emulated(radio) => DeviceArgs::new(radio.addr()),
        }
    }

    /// The process of an emulated radio.
    pub fn pid(&self) -> Option<u32> {
        match self {
            Self::Given(_) => None,
            Self::Emulated(radio) => Some(radio.pid()),
        }
    }

    pub fn describe(&self) -> String {
        match self {
            Self::Given(args) => format!("radio   {args:?}"),
            Self::Emulated(radio) => {
                format!("radio   E320 emulated by process {} at {}", radio.pid(), radio.addr())
            }
        }
    }

    /// Replaces an error by its cause in the radio, if it has one.
    pub fn explain(&mut self, error: anyhow::Error) -> anyhow::Error {
        match self {
            Self::Given(_) => error,
            Self::Emulated(radio) => radio.explain(error),
        }
    }

    /// Ends an emulated radio and returns its counters.
    pub fn stop(self) -> anyhow::Result<Option<Value>> {
        match self {
            Self::Given(_) => Ok(None),
            Self::Emulated(radio) => radio.stop().map(Some),
        }
    }
}
