//! The live line of a search.

use crate::interrupt;
use crate::live::Live;
use millstream_planner::tune::TuningProgress;
use std::time::Instant;

/// Shows the progress of a search; returns `false` when the user wants it to end.
pub fn show(live: &mut Live, progress: &TuningProgress, is_bounded: bool) -> bool {
    live.show(Instant::now(), || {
        let TuningProgress { stage, what, kept, gain, spent, budget, measured } = progress;
        let left = budget.saturating_sub(*spent).as_secs();
        let time = match is_bounded {
            true => format!("{left:3} s left"),
            false => format!("{:3} s", spent.as_secs()),
        };
        let gain = (gain - 1.0) * 100.0;
        format!("{time}  {measured:4} runs  best {gain:+.1} %: {kept}  |  {stage}: {what}")
    });
    !interrupt::asked()
}
