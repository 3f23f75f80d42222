//! The receiver's status while it runs.

pub(crate) mod taps;

use crate::params::DATA_POWER;
pub use taps::EqualizerTaps;

use millstream_flow::{Counter, Gauge, Metric};
use millstream_ring::Recent;
use serde::Serialize;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use taps::TapBoard;

/// The receiver's lock state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum LockState {
    /// There are too few samples so far for a verdict.
    #[default]
    Starting,
    /// There is no pilot within 60 kHz of its nominal frequency: no ATSC signal, or a wrong
    /// frequency.
    NoPilot,
    /// A pilot was found; the search for the segment sync runs.
    Pilot,
    /// There is a spectral line at the pilot's frequency, but no segment sync: not an ATSC signal.
    NoSegmentSync,
    /// Segments are tracked; the search for the field sync runs.
    SegmentSync,
    /// There are segments but no field sync: not an 8-VSB signal that this receiver knows.
    NoFieldSync,
    /// All syncs are tracked.
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

/// Events and gaps stored for late readers.
const KEPT: usize = 64;

/// Shared status of one receiver: its stages write it without locks, any thread reads it.
#[derive(Debug, Default)]
pub struct Monitor {
    state: AtomicU8,
    pub(crate) pilot_offset_hz: Gauge,
    pub(crate) clock_offset_ppm: Gauge,
    mer_db: Gauge,
    snr_db: Gauge,
    pub(crate) taps: TapBoard,
    pub(crate) samples: Counter,
    pub(crate) bad_samples: Counter,
    missing_samples: Counter,
    pub(crate) fields: Counter,
    locks: Counter,
    pub(crate) packets: Counter,
    pub(crate) corrected_bytes: Counter,
    pub(crate) corrected_packets: Counter,
    pub(crate) uncorrected_packets: Counter,
    /// Whether a front end reports. There is at most one, because the following fields have one
    /// writer.
    has_front_end: AtomicBool,
    /// States, each with the number of samples taken by then.
    events: Recent<KEPT>,
    /// Gaps: samples taken before, and samples missing.
    gaps: Recent<KEPT>,
}

/// A change of state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct StateChange {
    /// The state entered.
    pub state: LockState,
    /// Samples taken by then.
    pub at_sample: u64,
}

/// A gap: samples that are known to be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct MissingSamples {
    /// Samples taken before.
    pub at_sample: u64,
    /// The number of missing samples.
    pub missing: u64,
}

/// The values of a [`Monitor`] at one time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ReceiverStatus {
    /// The receiver's lock state.
    pub state: LockState,
    /// Modulation error ratio after the equaliser, from the segment syncs; `None` before lock.
    pub mer_db: Option<f64>,
    /// Signal, with its echoes, over the noise before the equaliser, from the field syncs; `None`
    /// before the first.
    pub snr_db: Option<f64>,
    /// Distance of the pilot from its nominal frequency; `None` before it is found.
    pub pilot_offset_hz: Option<f64>,
    /// Symbol clock of the sender relative to the receiver's sample clock, positive if faster;
    /// `None` before lock.
    pub clock_offset_ppm: Option<f64>,
    /// Samples taken, in whole chunks of 2048; the rest at the end of a stream is not received.
    pub samples: u64,
    /// Samples that were not finite numbers, taken as zero.
    pub bad_samples: u64,
    /// Samples reported as lost before the receiver.
    pub missing_samples: u64,
    /// Field syncs passed.
    pub fields: u64,
    /// The number of locks after the first one.
    pub relocks: u64,
    /// Packets put out.
    pub packets: u64,
    /// Bytes that Reed-Solomon decoding corrected.
    pub corrected_bytes: u64,
    /// Packets with wrong bytes that Reed-Solomon decoding corrected.
    pub corrected_packets: u64,
    /// Packets put out with their transport error indicator set.
    pub uncorrected_packets: u64,
}

impl Monitor {
    /// Creates a monitor with all values at zero or unknown.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes the caller the only front end that reports here, until it [releases](Self::release)
    /// the claim; returns false if there is one already.
    pub(crate) fn claim(&self) -> bool {
        !self.has_front_end.swap(true, Ordering::AcqRel)
    }

    /// Releases the claim of the front end.
    pub(crate) fn release(&self) {
        self.has_front_end.store(false, Ordering::Release);
    }

    /// Returns the receiver's lock state.
    #[must_use]
    pub fn state(&self) -> LockState {
        LockState::ALL[self.state.load(Ordering::Relaxed) as usize]
    }

    /// Returns all current values.
    #[must_use]
    pub fn status(&self) -> ReceiverStatus {
        let known = |gauge: &Gauge| Some(gauge.get()).filter(|value| value.is_finite());
        ReceiverStatus {
            state: self.state(),
            mer_db: known(&self.mer_db),
            snr_db: known(&self.snr_db),
            pilot_offset_hz: known(&self.pilot_offset_hz),
            clock_offset_ppm: known(&self.clock_offset_ppm),
            samples: self.samples.get(),
            bad_samples: self.bad_samples.get(),
            missing_samples: self.missing_samples.get(),
            fields: self.fields.get(),
            relocks: self.locks.get().saturating_sub(1),
            packets: self.packets.get(),
            corrected_bytes: self.corrected_bytes.get(),
            corrected_packets: self.corrected_packets.get(),
            uncorrected_packets: self.uncorrected_packets.get(),
        }
    }

    /// Returns the state changes from number `first` on (counting from 0) that are still stored.
    #[must_use]
    pub fn events_since(&self, first: u64) -> Vec<StateChange> {
        let event = |[state, at_sample]: [u64; 2]| StateChange {
            state: LockState::ALL[state as usize % LockState::ALL.len()],
            at_sample,
        };
        self.events.since(first).into_iter().map(event).collect()
    }

    /// Returns the gaps from number `first` on (counting from 0) that are still stored.
    #[must_use]
    pub fn gaps_since(&self, first: u64) -> Vec<MissingSamples> {
        let gap = |[at_sample, missing]: [u64; 2]| MissingSamples { at_sample, missing };
        self.gaps.since(first).into_iter().map(gap).collect()
    }

    /// Returns the equaliser's taps as of the last field sync.
    #[must_use]
    pub fn equalizer_taps(&self) -> EqualizerTaps {
        self.taps.read()
    }

    /// Returns the metrics of the front end.
    pub(crate) fn front_end_metrics(&self) -> Vec<(&'static str, Metric)> {
        vec![
            ("pilot_offset_hz", (&self.pilot_offset_hz).into()),
            ("clock_offset_ppm", (&self.clock_offset_ppm).into()),
            ("bad_samples", (&self.bad_samples).into()),
            ("missing_samples", (&self.missing_samples).into()),
            ("fields", (&self.fields).into()),
            ("locks", (&self.locks).into()),
        ]
    }

    /// Returns the metrics of the equaliser.
    pub(crate) fn equalizer_metrics(&self) -> Vec<(&'static str, Metric)> {
        vec![("mer_db", (&self.mer_db).into()), ("snr_db", (&self.snr_db).into())]
    }

    /// Returns the metrics of the Reed-Solomon decoder.
    pub(crate) fn outer_metrics(&self) -> Vec<(&'static str, Metric)> {
        vec![
            ("corrected_bytes", (&self.corrected_bytes).into()),
            ("corrected_packets", (&self.corrected_packets).into()),
            ("uncorrected_packets", (&self.uncorrected_packets).into()),
        ]
    }

    /// Returns the metrics of the packet output.
    pub(crate) fn packet_metrics(&self) -> Vec<(&'static str, Metric)> {
        vec![("packets", (&self.packets).into())]
    }

    /// Enters a state, and records an event if it differs. Only the front end calls this.
    pub(crate) fn enter(&self, state: LockState) {
        if self.state.swap(state as u8, Ordering::Relaxed) == state as u8 {
            return;
        }
        self.events.push([state as u64, self.samples.get()]);
        if state == LockState::Locked {
            self.locks.add(1);
        }
    }

    pub(crate) fn add_gap(&self, missing: u64) {
        self.gaps.push([self.samples.get(), missing]);
        self.missing_samples.add(missing);
    }

    /// Sets the mean square error of symbols, whose mean square is 21.
    pub(crate) fn set_symbol_error_power(&self, power: f64) {
        self.mer_db.set(10.0 * (f64::from(DATA_POWER) / power.max(1e-9)).log10());
    }

    pub(crate) fn set_snr(&self, ratio: f64) {
        self.snr_db.set(10.0 * ratio.max(1e-9).log10());
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
            monitor.samples.add(10);
            let state = if n % 2 == 0 { LockState::NoPilot } else { LockState::Pilot };
            monitor.enter(state);
            monitor.enter(state);
        }
        let events = monitor.events_since(0);
        assert_eq!(events.len(), KEPT);
        assert_eq!(events[KEPT - 1], StateChange { state: LockState::Pilot, at_sample: 1000 });
        assert_eq!(monitor.events_since(99).len(), 1);
        assert_eq!(monitor.status().relocks, 0);
        monitor.add_gap(7);
        assert_eq!(monitor.gaps_since(0), [MissingSamples { at_sample: 1000, missing: 7 }]);
        assert_eq!(monitor.status().missing_samples, 7);
    }
}
