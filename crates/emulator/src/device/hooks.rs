//! The places in the device where faults are applied.

use super::EmulatedDevice;
use crate::mailbox::DeviceCommand;
use crate::time::DeviceClock;
use std::time::Duration;

impl EmulatedDevice {
    /// Counts datagrams that came during a power failure.
    pub fn note_unheard(&self, datagrams: usize) {
        self.counters().chdr_unheard.add(datagrams as u64);
    }

    /// Counts a failed poll of the port.
    pub fn note_deaf(&self) {
        self.counters().chdr_receive_errors.inc();
    }

    /// Clears all state, as after a power failure; `keeper` has the time after it.
    pub fn power_cycle(&mut self, keeper: DeviceClock) {
        self.counters().reboots.inc();
        self.execute(DeviceCommand::PowerCycle(keeper));
    }

    /// Returns the instant at which the device's time is `timestamp`; now if that has passed.
    pub fn instant_of(&self, timestamp: u64, now_ns: u64) -> u64 {
        let clock = self.keeper.clock();
        let tick = self.keeper.tick_of(timestamp, clock.tick_at(now_ns));
        tick.map_or(now_ns, |tick| clock.deadline_ns(tick))
    }

    /// Sends packets that faults delayed and that are due; returns the time until the next.
    pub fn release(&mut self) -> Option<Duration> {
        self.outbox.release()
    }
}
