//! The search for the pilot.

use crate::Sample;
use crate::params::PILOT_OFFSET_HZ;
use millstream_dsp::rotation::counts;
use millstream_dsp::spectrum::LineFinder;

/// The largest offset of the pilot from its nominal frequency.
pub const SEARCH_REACH_HZ: f64 = 60e3;

/// The least power of a line's strongest bin over the median: noise alone reaches 25 once in ten
/// thousand searches, a pilot at 10 dB of signal to noise exceeds 1000.
const LINE_OVER_MEDIAN: f64 = 100.0;

/// The least share of a pilot in the total power: it has 7 % of its own channel's. The rounding
/// noise of a strong signal elsewhere is below.
const LEAST_SHARE: f64 = 1e-6;

/// The shortest piece of signal to search, in seconds: bins of about 100 Hz.
const SEARCH_S: f64 = 8e-3;

/// The outcome of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PilotSearch {
    /// More samples are needed.
    Unfinished,
    /// There is no line within reach.
    Absent {
        /// Samples of the piece that were not numbers.
        bad: usize,
    },
    /// The pilot was found.
    Found {
        /// Offset from the nominal pilot frequency.
        offset_hz: f64,
    },
}

/// Searches for the pilot in pieces of signal, and stores the piece in which it is found.
#[derive(Clone, Debug)]
pub struct PilotFinder {
    finder: LineFinder,
    sample_rate_hz: f64,
    re: Vec<f32>,
    im: Vec<f32>,
    piece: Vec<Sample>,
}

/// Returns the number of samples of a searched piece.
pub(super) fn piece_samples(sample_rate_hz: f64) -> usize {
    ((sample_rate_hz * SEARCH_S) as usize).next_power_of_two()
}

impl PilotFinder {
    /// Creates a finder at this sample rate.
    #[must_use]
    pub fn new(sample_rate_hz: f64) -> Self {
        let len = piece_samples(sample_rate_hz);
        let row = Vec::with_capacity(len);
        let finder = LineFinder::new(len);
        Self { finder, sample_rate_hz, re: row.clone(), im: row, piece: Vec::with_capacity(len) }
    }

    /// Takes samples, which must fill a whole number of pieces.
    pub fn push(&mut self, samples: &[Sample]) -> PilotSearch {
        self.piece.extend_from_slice(samples);
        if self.piece.len() < self.finder.len() {
            return PilotSearch::Unfinished;
        }
        let or_zero = |x: &Sample| if counts(*x) { *x } else { Sample::ZERO };
        self.re.clear();
        self.im.clear();
        self.re.extend(self.piece.iter().map(|x| or_zero(x).re));
        self.im.extend(self.piece.iter().map(|x| or_zero(x).im));
        let [centre, reach] = [PILOT_OFFSET_HZ, SEARCH_REACH_HZ].map(|f| f / self.sample_rate_hz);
        match self.finder.find(&self.re, &self.im, centre, reach) {
            Some(line) if line.over_median > LINE_OVER_MEDIAN && line.share > LEAST_SHARE => {
                let offset_hz = line.frequency * self.sample_rate_hz - PILOT_OFFSET_HZ;
                PilotSearch::Found { offset_hz }
            }
            _ => PilotSearch::Absent { bad: self.restart() },
        }
    }

    /// Restarts the search; returns how many of the dropped samples are not numbers.
    pub fn restart(&mut self) -> usize {
        self.piece.drain(..).filter(|x| !counts(*x)).count()
    }

    /// Returns the samples of the last successful search, to be received from their start, and
    /// resets the search.
    pub fn take_piece(&mut self) -> Vec<Sample> {
        let empty = Vec::with_capacity(self.finder.len());
        std::mem::replace(&mut self.piece, empty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE_HZ: f64 = 6.25e6;

    fn search(signal: impl Fn(usize) -> Sample) -> PilotSearch {
        let mut finder = PilotFinder::new(RATE_HZ);
        for start in (0..).step_by(2048) {
            let chunk: Vec<Sample> = (start..start + 2048).map(&signal).collect();
            let outcome = finder.push(&chunk);
            if outcome != PilotSearch::Unfinished {
                return outcome;
            }
        }
        unreachable!("the search ends")
    }

    fn tone(frequency_hz: f64, n: usize) -> Sample {
        let cycles = frequency_hz / RATE_HZ * n as f64;
        Sample::from_polar(0.1, (cycles.fract() * std::f64::consts::TAU) as f32)
    }

    /// Returns white noise from a counter, as a hash of its position.
    fn noise(n: usize) -> Sample {
        let hash = (n as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let hash = (hash ^ hash >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let hash = (hash ^ hash >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        let hash = hash ^ hash >> 31;
        let part = |bits: u64| (bits & 0xFFFF) as f32 / 65_536.0 - 0.5;
        Sample::new(part(hash >> 20), part(hash >> 40))
    }

    #[test]
    fn a_line_in_noise_is_found_within_its_reach() {
        for offset_hz in [-59e3, -1234.5, 0.0, 40e3] {
            match search(|n| tone(PILOT_OFFSET_HZ + offset_hz, n) + noise(n)) {
                PilotSearch::Found { offset_hz: found } => {
                    assert!((found - offset_hz).abs() < 10.0, "{offset_hz}: {found}");
                }
                other => panic!("{offset_hz}: {other:?}"),
            }
        }
    }

    #[test]
    fn noise_silence_and_lines_out_of_reach_have_no_pilot() {
        let absent = PilotSearch::Absent { bad: 0 };
        assert_eq!(search(noise), absent);
        assert_eq!(search(|_| Sample::default()), absent);
        assert_eq!(search(|n| tone(-2.5e6, n) + noise(n)), absent);
        let bad = |n: usize| Sample::new(if n < 3 { f32::NAN } else { 0.0 }, 1.0);
        assert_eq!(search(bad), PilotSearch::Absent { bad: 3 });
    }
}
