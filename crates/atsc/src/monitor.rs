//! What the receiver tells about itself while it runs.

use crate::params::DATA_POWER;
use serde::Serialize;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

/// How far the receiver has got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum LockState {
    /// Not enough samples yet to tell anything.
    #[default]
    Starting,
    /// There is no pilot within 60 kHz of its place: no ATSC signal, or a wrong frequency.
    NoPilot,
    /// A pilot is there; segment sync is being looked for.
    Pilot,
    /// There is a line where the pilot should be, but no segment sync: not an ATSC signal.
    NoSegmentSync,
    /// Segments are tracked; field sync is being looked for.
    SegmentSync,
    /// There are segments but no field sync: not an 8-VSB signal that this receiver knows.
    NoFieldSync,
    /// Everything is tracked.
    Locked,
}

impl LockState {
    const ALL: [Self; 7] = [
        Self::Starting,
        Self::NoPilot,
        Self::Pilot,
        Self::NoSegmentSync,
        Self::SegmentSync,
        Self::NoFieldSync,
        Self::Locked,
    ];
}

impl std::fmt::Display for LockState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Starting => "starting",
            Self::NoPilot => "no pilot (no ATSC signal on this frequency)",
            Self::Pilot => "pilot found, looking for segment sync",
            Self::NoSegmentSync => "no segment sync (not an ATSC signal)",
            Self::SegmentSync => "segments found, looking for field sync",
            Self::NoFieldSync => "no field sync (not an 8-VSB signal)",
            Self::Locked => "locked",
        })
    }
}

/// Events kept for readers that come late.
const EVENTS: usize = 64;

/// Shared numbers of one receiver: written by its stages without locks, read by anyone.
#[derive(Debug)]
pub struct Monitor {
    state: AtomicU8,
    pilot_offset_hz: AtomicU64,
    clock_offset_ppm: AtomicU64,
    symbol_error_power: AtomicU64,
    samples: AtomicU64,
    bad_samples: AtomicU64,
    fields: AtomicU64,
    locks: AtomicU64,
    packets: AtomicU64,
    corrected_bytes: AtomicU64,
    uncorrected_packets: AtomicU64,
    events: [AtomicU64; EVENTS],
    event_count: AtomicU64,
}

/// A change of state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Event {
    /// The state entered.
    pub state: LockState,
    /// Samples taken by then, modulo 2^56.
    pub at_sample: u64,
}

/// The numbers of a [`Monitor`] at one time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Status {
    /// How far the receiver has got.
    pub state: LockState,
    /// Modulation error ratio after the equaliser, from the segment syncs; none before lock.
    pub mer_db: Option<f64>,
    /// Distance of the pilot from its place; none before it was found.
    pub pilot_offset_hz: Option<f64>,
    /// Symbol clock of the sender relative to the receiver's sample clock, positive if faster; none
    /// before lock.
    pub clock_offset_ppm: Option<f64>,
    /// Samples taken.
    pub samples: u64,
    /// Samples that were not finite numbers, taken as zero.
    pub bad_samples: u64,
    /// Field syncs passed.
    pub fields: u64,
    /// Times that everything was locked anew after the first time.
    pub relocks: u64,
    /// Packets put out.
    pub packets: u64,
    /// Bytes that Reed-Solomon decoding corrected.
    pub corrected_bytes: u64,
    /// Packets put out with their transport error indicator set.
    pub uncorrected_packets: u64,
}

impl Default for Monitor {
    fn default() -> Self {
        Self::new()
    }
}

impl Monitor {
    /// Everything at zero or unknown.
    #[must_use]
    pub fn new() -> Self {
        let unknown = || AtomicU64::new(f64::NAN.to_bits());
        Self {
            state: AtomicU8::new(LockState::Starting as u8),
            pilot_offset_hz: unknown(),
            clock_offset_ppm: unknown(),
            symbol_error_power: unknown(),
            samples: AtomicU64::new(0),
            bad_samples: AtomicU64::new(0),
            fields: AtomicU64::new(0),
            locks: AtomicU64::new(0),
            packets: AtomicU64::new(0),
            corrected_bytes: AtomicU64::new(0),
            uncorrected_packets: AtomicU64::new(0),
            events: [const { AtomicU64::new(0) }; EVENTS],
            event_count: AtomicU64::new(0),
        }
    }

    /// How far the receiver has got.
    #[must_use]
    pub fn state(&self) -> LockState {
        LockState::ALL[self.state.load(Relaxed) as usize]
    }

    /// All numbers now.
    #[must_use]
    pub fn status(&self) -> Status {
        let known = |cell: &AtomicU64| {
            let value = f64::from_bits(cell.load(Relaxed));
            value.is_finite().then_some(value)
        };
        let error_power = known(&self.symbol_error_power);
        Status {
            state: self.state(),
            mer_db: error_power.map(|p| 10.0 * (f64::from(DATA_POWER) / p.max(1e-9)).log10()),
            pilot_offset_hz: known(&self.pilot_offset_hz),
            clock_offset_ppm: known(&self.clock_offset_ppm),
            samples: self.samples.load(Relaxed),
            bad_samples: self.bad_samples.load(Relaxed),
            fields: self.fields.load(Relaxed),
            relocks: self.locks.load(Relaxed).saturating_sub(1),
            packets: self.packets.load(Relaxed),
            corrected_bytes: self.corrected_bytes.load(Relaxed),
            uncorrected_packets: self.uncorrected_packets.load(Relaxed),
        }
    }

    /// State changes from number `first` on (counting from 0), as far as they are still kept.
    #[must_use]
    pub fn events_since(&self, first: u64) -> Vec<Event> {
        let count = self.event_count.load(std::sync::atomic::Ordering::Acquire);
        let oldest = count.saturating_sub(EVENTS as u64);
        (first.max(oldest)..count)
            .map(|n| {
                let packed = self.events[n as usize % EVENTS].load(Relaxed);
                let state = LockState::ALL[(packed >> 56) as usize % LockState::ALL.len()];
                Event { state, at_sample: packed & (u64::MAX >> 8) }
            })
            .collect()
    }

    /// Enters a state; an event if it is another one. Only the front end calls this.
    pub(crate) fn enter(&self, state: LockState) {
        if self.state.swap(state as u8, Relaxed) == state as u8 {
            return;
        }
        let count = self.event_count.load(Relaxed);
        let at = self.samples.load(Relaxed) & (u64::MAX >> 8);
        self.events[count as usize % EVENTS].store((state as u64) << 56 | at, Relaxed);
        self.event_count.store(count + 1, std::sync::atomic::Ordering::Release);
        if state == LockState::Locked {
            self.locks.fetch_add(1, Relaxed);
        }
    }

    pub(crate) fn add_samples(&self, count: u64) {
        self.samples.fetch_add(count, Relaxed);
    }

    pub(crate) fn set_bad_samples(&self, count: u64) {
        self.bad_samples.store(count, Relaxed);
    }

    pub(crate) fn set_pilot_offset_hz(&self, offset_hz: f64) {
        self.pilot_offset_hz.store(offset_hz.to_bits(), Relaxed);
    }

    pub(crate) fn set_clock_offset_ppm(&self, offset_ppm: f64) {
        self.clock_offset_ppm.store(offset_ppm.to_bits(), Relaxed);
    }

    pub(crate) fn set_symbol_error_power(&self, power: f64) {
        self.symbol_error_power.store(power.to_bits(), Relaxed);
    }

    pub(crate) fn add_field(&self) {
        self.fields.fetch_add(1, Relaxed);
    }

    pub(crate) fn add_packet(&self) {
        self.packets.fetch_add(1, Relaxed);
    }

    pub(crate) fn add_corrected(&self, bytes: u64) {
        self.corrected_bytes.fetch_add(bytes, Relaxed);
    }

    pub(crate) fn add_uncorrected(&self) {
        self.uncorrected_packets.fetch_add(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_numbers_are_none_and_known_ones_are_not() {
        let monitor = Monitor::new();
        assert_eq!(monitor.status().mer_db, None);
        monitor.set_symbol_error_power(0.21);
        assert!((monitor.status().mer_db.unwrap() - 20.0).abs() < 1e-4);
    }

    #[test]
    fn events_are_changes_of_state_and_the_last_ones_are_kept() {
        let monitor = Monitor::new();
        for n in 0..100 {
            monitor.add_samples(10);
            let state = if n % 2 == 0 { LockState::NoPilot } else { LockState::Pilot };
            monitor.enter(state);
            monitor.enter(state);
        }
        let events = monitor.events_since(0);
        assert_eq!(events.len(), EVENTS);
        assert_eq!(events[EVENTS - 1], Event { state: LockState::Pilot, at_sample: 1000 });
        assert_eq!(monitor.events_since(99).len(), 1);
        assert_eq!(monitor.status().relocks, 0);
    }
}
