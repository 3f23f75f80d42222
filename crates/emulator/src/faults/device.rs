//! Device faults as the device executes them.

use super::machine::{DeviceFaults, FaultKind};
use crate::device::EmulatedDevice;
use std::sync::atomic::Ordering;

/// What the device does after its faults have been applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AfterFaults {
    /// It runs; the instant of the next fault.
    Run(u64),
    /// It does nothing until this instant.
    Stall(u64),
}

impl DeviceFaults {
    /// Applies the faults whose time has come, up to the next stall.
    pub fn apply(&self, device: &mut EmulatedDevice, now_ns: u64) -> AfterFaults {
        loop {
            let event = match self.next(now_ns, |tick| device.instant_of(tick, now_ns)) {
                Ok(event) => event,
                Err(next_ns) => return AfterFaults::Run(next_ns.unwrap_or(u64::MAX)),
            };
            // The effect comes before the mark of a fault as applied, except for the length of a
            // stall.
            match event.kind {
                FaultKind::Stall { .. } => {}
                FaultKind::Reboot { silent_ns } => {
                    device.power_cycle(self.reboot(now_ns, silent_ns));
                }
                FaultKind::RpcDown { ns } => self.rpc_down(now_ns.saturating_add(ns)),
                FaultKind::Jump { ticks } => self.jump(ticks),
            }
            event.struck.store(true, Ordering::Release);
            if let FaultKind::Stall { ns } = event.kind {
                return AfterFaults::Stall(now_ns.saturating_add(ns));
            }
        }
    }
}
