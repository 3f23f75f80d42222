//! The causes of the gaps before a restart: each run that began since the newest samples has one of
//! its own behind it.

use crate::Cause;

/// The most gaps behind the first one; with more, the last one has the newest cause.
const BEHIND: usize = 3;

/// The causes of the samples that were not sent before a restart, gap by gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GapCauses {
    /// That of the next gap.
    pub next: Cause,
    behind: [Option<Cause>; BEHIND],
}

impl GapCauses {
    /// Returns that of one gap.
    pub fn of(next: Cause) -> Self {
        Self { next, behind: [None; BEHIND] }
    }

    /// Returns the causes with one more gap, behind a run that has begun.
    pub fn and(mut self, cause: Cause) -> Self {
        let free = self.behind.iter().position(Option::is_none).unwrap_or(BEHIND - 1);
        self.behind[free] = Some(cause);
        self
    }

    /// Goes on behind the next gap; the last cause stays.
    pub fn pass(&mut self) {
        if let Some(cause) = self.behind[0].take() {
            self.next = cause;
            self.behind.rotate_left(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_gap_has_its_cause_and_the_last_one_stays() {
        use Cause::{Alignment, DeviceOverrun, Late, NetworkLoss, Unknown};
        let mut causes = GapCauses::of(DeviceOverrun).and(Alignment).and(Late);
        let mut all = Vec::new();
        for _ in 0..4 {
            all.push(causes.next);
            causes.pass();
        }
        assert_eq!(all, [DeviceOverrun, Alignment, Late, Late]);
        let mut many = causes.and(Alignment).and(Alignment).and(NetworkLoss).and(Unknown);
        (0..3).for_each(|_| many.pass());
        assert_eq!(many.next, Unknown);
    }
}
