//! The tolerance of a level before it is measured anew.

/// Bounds of the root mean square of samples relative to a level, and the number of samples for
/// which it may be outside on either side: a longer louder signal is lasting, while a fade passes.
const LOUD: f64 = 4.0;
const LOUD_SAMPLES: usize = 1 << 13;
const QUIET: f64 = 0.25;
const QUIET_SAMPLES: usize = 1 << 16;

/// The strength of samples relative to a measured level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beside {
    /// About as strong.
    Near,
    /// Weaker, so far for a while.
    Below,
    /// Stronger, so far for a while.
    Above,
    /// Weaker or stronger for so long that the level must be measured anew.
    Moved,
}

/// Tolerates samples far from their level for a while.
#[derive(Clone, Copy, Debug, Default)]
pub struct LevelTolerance {
    /// Samples since the level was last within bounds.
    off: usize,
}

impl LevelTolerance {
    /// Takes samples whose root mean square is `ratio` times the level.
    pub fn judge(&mut self, ratio: f64, samples: usize) -> Beside {
        let (beside, patience) = match ratio {
            _ if ratio > LOUD => (Beside::Above, LOUD_SAMPLES),
            _ if ratio < QUIET => (Beside::Below, QUIET_SAMPLES),
            _ => (Beside::Near, usize::MAX),
        };
        self.off = if beside == Beside::Near { 0 } else { self.off + samples };
        if self.off < patience {
            return beside;
        }
        self.off = 0;
        Beside::Moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_is_borne_and_what_stays_moves_the_level() {
        let mut patience = LevelTolerance::default();
        for (ratio, calls, beside) in [(5.0, 4, Beside::Above), (0.1, 32, Beside::Below)] {
            for _ in 0..3 {
                for _ in 1..calls {
                    assert_eq!(patience.judge(ratio, 2048), beside);
                }
                assert_eq!(patience.judge(1.0, 2048), Beside::Near);
            }
            let last = (0..calls).map(|_| patience.judge(ratio, 2048)).last();
            assert_eq!(last, Some(Beside::Moved));
            assert_eq!(patience.judge(ratio, 2047), beside, "it begins anew");
            patience.judge(1.0, 1);
        }
        assert_eq!(patience.judge(f64::NAN, usize::MAX), Beside::Near);
    }
}
