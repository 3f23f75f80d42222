//! The beginning of a burst that follows directly behind another one.

use super::{Arrival, Tracker};

impl Tracker {
    /// Begins a burst behind the one before, at its end or up to `pause` ticks later: the radio
    /// makes no samples meanwhile.
    pub fn join(&mut self, pause: u64) {
        self.pause = pause;
    }

    /// Lets the burst begin where its first packet says, if that is within the pause.
    pub(super) fn begin_joined(&mut self, arrival: &Arrival) {
        let missing = arrival.seq.wrapping_sub(self.next_seq);
        if self.pause == 0 || missing >= 0x8000 {
            return;
        }
        let Some((ticks, due)) = arrival.ticks.zip(self.next_ticks) else { return };
        let lost = u64::from(self.unbooked(missing)) * self.samples_per_packet;
        let later = ticks.wrapping_sub(due).wrapping_sub(lost.wrapping_mul(self.ticks_per_sample));
        if later <= self.pause {
            self.next_ticks = Some(due.wrapping_add(later));
            self.pause = 0;
        }
    }
}
