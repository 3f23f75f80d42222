//! A radio and its host in one process.

use super::{FaultCase, MatrixError, PACKET_SAMPLES, RATE_HZ};
use crate::Direction;
use millstream_emulator::{CounterSnapshot, Radio, RadioConfig, RunningRadio};
use millstream_radio::{Device, DeviceArgs};
use std::net::Ipv4Addr;

/// Samples without trouble before the faults.
pub const SAMPLES_BEFORE: u64 = 50_000;

pub struct FaultSetup {
    pub radio: RunningRadio,
    pub device: Device,
    specs: Vec<String>,
    throughout: bool,
}

impl FaultSetup {
    /// Starts a radio whose antenna sends the time of each sample, and opens its device.
    pub fn start(case: &FaultCase, direction: Direction) -> Result<Self, MatrixError> {
        let radio = Radio::start(RadioConfig {
            discovery_port: 0,
            rpc_port: 0,
            chdr_port: 0,
            rx_antennas: vec!["ramp".to_owned()],
            rx_buffer_samples: case.rx_buffer_samples,
            ..RadioConfig::default()
        })?;
        let (specs, throughout) = (case.specs(direction), case.throughout);
        if throughout {
            add_all(&radio, &specs)?;
        }
        let mut device = Device::open(DeviceArgs {
            discovery_port: radio.discovery_addr().port(),
            rpc_port: radio.rpc_addr().port(),
            ..DeviceArgs::new(Ipv4Addr::LOCALHOST)
        })?;
        device.set_rate(RATE_HZ)?;
        Ok(Self { radio, device, specs, throughout })
    }

    /// Switches on the faults of the middle.
    pub fn strike(&self) -> Result<(), MatrixError> {
        if self.throughout { Ok(()) } else { add_all(&self.radio, &self.specs) }
    }

    /// Whether all finite faults have ended.
    pub fn is_over(&self) -> bool {
        let endless = |fault: &str| {
            !["count=", "for_ms=", "ms=", "ticks="].iter().any(|key| fault.contains(key))
        };
        self.radio.faults().list().iter().all(|state| state.done || endless(&state.fault))
    }

    /// Ends the faults of the middle; returns the hits of all.
    pub fn end_faults(&self) -> u64 {
        let hits = self.radio.faults().list().iter().map(|state| state.hit).sum();
        if !self.throughout {
            self.radio.faults().clear();
        }
        hits
    }

    /// Returns the device and stops the radio.
    pub fn stop(self) -> CounterSnapshot {
        drop(self.device);
        self.radio.stop()
    }
}

fn add_all(radio: &RunningRadio, specs: &[String]) -> Result<(), MatrixError> {
    Ok(specs.iter().try_for_each(|spec| radio.faults().add(spec).map(drop))?)
}

/// Samples of a packet as an index.
pub const PACKET: usize = PACKET_SAMPLES as usize;
