//! The equaliser's taps, for pictures: one thread writes them without locks, any thread reads them.

use serde::Serialize;
use std::sync::atomic::{AtomicU32, Ordering};

/// Symbols before and behind the wanted one at which forward taps may be.
pub(crate) const FORWARD_BEFORE: usize = 128;
pub(crate) const FORWARD_BEHIND: usize = 448;

/// The reach of the feedback, decisions.
pub(crate) const FEEDBACK: usize = FORWARD_BEFORE + FORWARD_BEHIND;

/// The taps of an equaliser at one time; zero where there is no tap.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct EqualizerTaps {
    /// The position of the first forward tap, symbols relative to the wanted one.
    pub first_forward: i32,
    /// Taps on received symbols.
    pub forward: Vec<f32>,
    /// Taps on decisions, that of the last symbol first; their sum is subtracted from the filter's
    /// output.
    pub feedback: Vec<f32>,
}

#[derive(Debug)]
pub(crate) struct TapBoard {
    forward: Box<[AtomicU32]>,
    feedback: Box<[AtomicU32]>,
}

impl Default for TapBoard {
    fn default() -> Self {
        let row = |len| (0..len).map(|_| AtomicU32::new(0)).collect();
        Self { forward: row(FORWARD_BEFORE + FORWARD_BEHIND), feedback: row(FEEDBACK) }
    }
}

impl TapBoard {
    /// Writes forward taps with their positions, and feedback taps with their delays in symbols. A
    /// concurrent reader may see some of the old values.
    pub(crate) fn write(
        &self,
        forward: impl Iterator<Item = (isize, f32)>,
        feedback: impl Iterator<Item = (usize, f32)>,
    ) {
        let all = self.forward.iter().chain(&self.feedback);
        all.for_each(|tap| tap.store(0, Ordering::Relaxed));
        for (on, tap) in forward {
            let index = (on + FORWARD_BEFORE as isize) as usize;
            self.forward[index].store(tap.to_bits(), Ordering::Relaxed);
        }
        for (ago, tap) in feedback {
            self.feedback[ago - 1].store(tap.to_bits(), Ordering::Relaxed);
        }
    }

    pub(crate) fn read(&self) -> EqualizerTaps {
        let values = |row: &[AtomicU32]| {
            row.iter().map(|tap| f32::from_bits(tap.load(Ordering::Relaxed))).collect()
        };
        EqualizerTaps {
            first_forward: -(FORWARD_BEFORE as i32),
            forward: values(&self.forward),
            feedback: values(&self.feedback),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taps_are_read_where_they_were_written_and_old_ones_are_gone() {
        let board = TapBoard::default();
        board.write([(5, 9.0)].into_iter(), [(7, 9.0)].into_iter());
        board.write([(-128, 0.5), (0, 1.0)].into_iter(), [(1, 0.25), (576, -1.0)].into_iter());
        let taps = board.read();
        let set = |row: &[f32]| -> Vec<(usize, f32)> {
            row.iter().copied().enumerate().filter(|(_, tap)| *tap != 0.0).collect()
        };
        assert_eq!((taps.first_forward, set(&taps.forward)), (-128, vec![(0, 0.5), (128, 1.0)]));
        assert_eq!(set(&taps.feedback), [(0, 0.25), (575, -1.0)]);
    }
}
