//! From one receive command to the next: the steps of the radio core.

use super::transmissions::Transmissions;
use crate::time::DeviceClock;

/// A queued receive command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Acquire {
    /// Timestamp of the first sample; `None` starts at once.
    pub start: Option<u64>,
    /// Number of samples; `None` until stopped.
    pub samples: Option<u64>,
    /// Without a time it starts when the transmitter of the channel runs.
    pub with_transmitter: bool,
}

impl Acquire {
    /// Starts at once, until stopped.
    #[cfg(test)]
    pub const NOW: Self = Self { start: None, samples: None, with_transmitter: false };
}

/// The ticks that the core needs between two captures: it leaves one, takes the next command and
/// compares its time, a step in each cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Turn {
    /// The samples that it processes in one cycle.
    pub cycle: u64,
    /// Those that are lost before a capture without a time.
    untimed: u64,
    /// Those before which no capture with a time begins.
    timed: u64,
    /// Those after which one is found late at the earliest.
    late: u64,
}

impl Turn {
    /// Returns those of a core with this number of samples in a cycle, or of cycles for a sample.
    pub const fn new(samples_per_cycle: u64, cycles_per_sample: u64) -> Self {
        let cycle = samples_per_cycle;
        match cycles_per_sample {
            1 => Self { cycle, untimed: 3 * cycle, timed: 3 * cycle, late: 2 * cycle },
            _ => Self { cycle, untimed: 1, timed: 2, late: 1 },
        }
    }

    /// Returns the tick at which a command begins that came at `arrived`: that of the first cycle
    /// then, and `u64::MAX` while that is not known. A capture before it ended at `idle_from`.
    ///
    /// Decided by the earliest time at which the radio could read the command, not by the time of
    /// this call.
    ///
    /// # Errors
    /// The tick at which it is found late.
    pub fn start_of(
        self,
        command: &Acquire,
        keeper: &DeviceClock,
        arrived: u64,
        idle_from: Option<u64>,
        sent: &Transmissions,
    ) -> Result<u64, u64> {
        let after = |ticks| idle_from.map_or(arrived, |from| arrived.max(from + ticks));
        let whole = |tick: u64| tick.checked_next_multiple_of(self.cycle).unwrap_or(tick);
        let Some(timestamp) = command.start else {
            let start = after(self.untimed);
            let start = if command.with_transmitter { sent.first_from(start) } else { Some(start) };
            return Ok(start.map_or(u64::MAX, whole));
        };
        match keeper.tick_of(timestamp, after(self.timed)) {
            Some(tick) => Ok(whole(tick)),
            None => {
                // Its time may still come before it is found late.
                let passed = keeper.tick_of(timestamp, idle_from.unwrap_or(arrived));
                Err(after(self.late).max(passed.map_or(0, |tick| tick + 1)))
            }
        }
    }
}
