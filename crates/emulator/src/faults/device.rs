//! Device faults as executed by the device thread.

use super::machine::{DeviceFaults, FaultKind};
use crate::device::EmulatedDevice;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The longest time that the stop flag waits for a stalled device.
const NAP_NS_MAX: u64 = 20_000_000;

/// The device thread's view of the faults.
#[derive(Debug)]
pub(crate) struct DeviceSide {
    machine: Arc<DeviceFaults>,
    now: fn() -> u64,
}

impl DeviceSide {
    /// Returns the device thread's side; `now` reads the clock of the other methods' instants.
    pub fn new(machine: Arc<DeviceFaults>, now: fn() -> u64) -> Self {
        Self { machine, now }
    }

    /// Applies the faults whose time has come; returns the instant of the next. A stall takes its
    /// time here.
    pub fn apply(&self, device: &mut EmulatedDevice, stop: &AtomicBool) -> u64 {
        loop {
            let now_ns = (self.now)();
            let event = match self.machine.next(now_ns, |tick| device.instant_of(tick, now_ns)) {
                Ok(event) => event,
                Err(next_ns) => return next_ns.unwrap_or(u64::MAX),
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
                self.sleep_until(now_ns.saturating_add(ns), stop);
            }
        }
    }

    /// Returns whether the device has no power.
    pub fn is_silent(&self) -> bool {
        self.machine.is_silent((self.now)())
    }

    fn sleep_until(&self, until_ns: u64, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
            let left_ns = until_ns.saturating_sub((self.now)());
            if left_ns == 0 {
                break;
            }
            std::thread::sleep(Duration::from_nanos(left_ns.min(NAP_NS_MAX)));
        }
    }
}
