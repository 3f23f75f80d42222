//! Device faults as the device executes them.

use super::machine::{DeviceFaults, FaultKind};
use crate::device::EmulatedDevice;
use millstream_wire::ctrl::Protocol;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The device's view of the faults.
#[derive(Debug)]
pub(crate) struct DeviceSide {
    machine: Arc<DeviceFaults>,
}

/// What the device does after its faults have been applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AfterFaults {
    /// It runs; the instant of the next fault.
    Run(u64),
    /// It does nothing until this instant.
    Stall(u64),
}

impl DeviceSide {
    /// Returns the device's side.
    pub fn new(machine: Arc<DeviceFaults>) -> Self {
        Self { machine }
    }

    /// Applies the faults whose time has come, up to the next stall.
    pub fn apply(&self, device: &mut EmulatedDevice, now_ns: u64) -> AfterFaults {
        loop {
            let event = match self.machine.next(now_ns, |tick| device.instant_of(tick, now_ns)) {
                Ok(event) => event,
                Err(next_ns) => return AfterFaults::Run(next_ns.unwrap_or(u64::MAX)),
            };
            // The effect comes before the mark of a fault as applied, except for the length of a
            // stall.
            match event.kind {
                FaultKind::Stall { .. } => {}
                FaultKind::Reboot { silent_ns } => {
                    device.power_cycle(self.machine.reboot(now_ns, silent_ns));
                }
                FaultKind::RpcDown { ns } => self.machine.rpc_down(now_ns.saturating_add(ns)),
                FaultKind::Jump { ticks } => self.machine.jump(ticks),
            }
            event.struck.store(true, Ordering::Release);
            if let FaultKind::Stall { ns } = event.kind {
                return AfterFaults::Stall(now_ns.saturating_add(ns));
            }
        }
    }

    /// Takes notice of the protocol that the image speaks: the classes of packets depend on it.
    pub fn note_protocol(&self, protocol: Protocol) {
        self.machine.protocol.set(protocol);
    }

    /// Returns whether the device has no power.
    pub fn is_silent(&self, now_ns: u64) -> bool {
        self.machine.is_silent(now_ns)
    }
}
