//! How fast the clock of a device runs, compared with that of this machine. That of an emulated
//! radio may be slower or faster.

use std::thread;
use std::time::{Duration, Instant};

use super::Device;
use crate::RadioError;

/// The shortest and the longest time between two readings.
const WINDOW: (Duration, Duration) = (Duration::from_millis(50), Duration::from_millis(400));

/// The part of that time that a reading may take.
const SHARE_MAX: f64 = 0.02;

/// Speeds that count as the same: others are told apart, and the clocks of radios differ by far
/// less.
const SAME: f64 = 0.05;

/// The time of a device, read between two moments of this machine.
#[derive(Debug, Clone, Copy)]
struct ClockReading {
    before: Instant,
    ticks: u64,
    after: Instant,
}

impl ClockReading {
    fn of(device: &Device) -> Result<Self, RadioError> {
        let before = Instant::now();
        let ticks = device.time_ticks()?;
        Ok(Self { before, ticks, after: Instant::now() })
    }

    /// Returns the least and the greatest time from a first reading to this one, seconds.
    fn since(&self, first: &Self) -> (f64, f64) {
        let least = self.before.saturating_duration_since(first.after);
        (least.as_secs_f64(), (self.after - first.before).as_secs_f64())
    }
}

impl Device {
    /// Compares the device's clock with this machine's, for a part of a second. Returns its speed
    /// if it does not run as fast: 0.5 is half as fast.
    ///
    /// # Errors
    /// [`RadioError::Rpc`], [`RadioError::Silent`].
    pub fn other_clock_speed(&self) -> Result<Option<f64>, RadioError> {
        let first = ClockReading::of(self)?;
        let mut window = WINDOW.0;
        loop {
            thread::sleep(window);
            let last = ClockReading::of(self)?;
            let (least_s, most_s) = last.since(&first);
            // On a busy machine the readings take long: then more time passes between them.
            if most_s - least_s > SHARE_MAX * least_s && window < WINDOW.1 {
                window *= 2;
                continue;
            }
            let device_s = last.ticks.wrapping_sub(first.ticks) as f64 / self.tick_rate_hz();
            return Ok(other_speed(device_s, least_s, most_s));
        }
    }
}

/// Returns the speed of a clock that went on by `device_s` while this machine's went on by
/// `least_s` to `most_s`; `None` if they may be as fast.
fn other_speed(device_s: f64, least_s: f64, most_s: f64) -> Option<f64> {
    let same = least_s * (1.0 - SAME)..=most_s * (1.0 + SAME);
    (!same.contains(&device_s)).then(|| 2.0 * device_s / (least_s + most_s))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_speed_is_another_one_only_beyond_the_doubt() {
        assert_eq!(other_speed(0.1, 0.099, 0.102), None);
        assert_eq!(other_speed(0.104, 0.099, 0.1), None);
        assert_eq!(other_speed(0.05, 0.1, 0.1), Some(0.5));
        assert_eq!(other_speed(0.2, 0.1, 0.1), Some(2.0));
        // The readings took longer than the time between them.
        assert_eq!(other_speed(0.2, 0.01, 0.3), None);
    }
}
