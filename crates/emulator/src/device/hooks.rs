//! Where faults take hold of the device.

use super::{EmulatedDevice, Fabric};
use crate::mailbox::DeviceCommand;
use crate::time::DeviceClock;
use std::time::Duration;

impl EmulatedDevice {
    /// Counts datagrams that came while there was no power.
    pub fn note_unheard(&self, datagrams: usize) {
        self.counters().chdr_unheard.add(datagrams as u64);
    }

    /// Counts a look at the port that failed.
    pub fn note_deaf(&self) {
        self.counters().chdr_receive_errors.inc();
    }

    /// Forgets everything, as if the power had gone; `keeper` has the time after it came back.
    pub fn power_cycle(&mut self, keeper: DeviceClock) {
        self.counters().reboots.inc();
        self.execute(DeviceCommand::PowerCycle(keeper));
        self.fabric = Fabric::new();
        self.control_seq = 0;
        self.message_seq = 0;
    }

    /// When the device's time is, or was, `timestamp`; now for what has passed.
    pub fn instant_of(&self, timestamp: u64, now_ns: u64) -> u64 {
        let clock = self.keeper.clock();
        let tick = self.keeper.tick_of(timestamp, clock.tick_at(now_ns));
        tick.map_or(now_ns, |tick| clock.deadline_ns(tick))
    }

    /// Sends what faults kept back and is due; the time until more is.
    pub fn release(&mut self) -> Option<Duration> {
        self.outbox.release()
    }
}
