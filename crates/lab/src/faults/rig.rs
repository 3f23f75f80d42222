//! An emulated radio in this process.

use super::FaultCase;
use crate::soak::{ActiveFault, SoakRadio, TX_BUFFER_SAMPLES};
use millstream_emulator::{Error, FaultState, Radio, RadioConfig, RunningRadio};
use millstream_radio::DeviceArgs;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::PathBuf;

/// A radio whose antenna sends the time of each sample.
pub(super) struct FaultRadio(RunningRadio);

impl FaultRadio {
    /// Starts it with the receive buffer of a case.
    pub fn start(case: &FaultCase) -> Result<Self, Error> {
        let radio = Radio::start(RadioConfig {
            discovery_port: 0,
            rpc_port: 0,
            chdr_port: 0,
            rx_antennas: vec!["ramp".to_owned()],
            rx_buffer_samples: case.rx_buffer_samples,
            tx_buffer_samples: TX_BUFFER_SAMPLES,
            ..RadioConfig::default()
        });
        radio.map(Self)
    }
}

impl SoakRadio for FaultRadio {
    fn args(&self) -> DeviceArgs {
        DeviceArgs {
            discovery_port: self.0.discovery_addr().port(),
            rpc_port: self.0.rpc_addr().port(),
            ..DeviceArgs::new(Ipv4Addr::LOCALHOST)
        }
    }

    fn threads(&self) -> PathBuf {
        PathBuf::from("/proc/self/task")
    }

    fn counters(&mut self) -> Result<BTreeMap<String, u64>, String> {
        let all = self.0.counters().entries().into_iter();
        Ok(all.map(|(name, count)| (name.to_owned(), count)).collect())
    }

    fn add_fault(&mut self, spec: &str) -> Result<u64, String> {
        self.0.faults().add(spec).map_err(|error| error.to_string())
    }

    fn faults(&mut self) -> Result<Vec<ActiveFault>, String> {
        let active = |FaultState { id, fault, hit, done, .. }| ActiveFault { id, fault, hit, done };
        Ok(self.0.faults().list().into_iter().map(active).collect())
    }

    fn remove_fault(&mut self, id: u64) -> Result<(), String> {
        self.0.faults().remove(id);
        Ok(())
    }
}
