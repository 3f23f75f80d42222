//! Packets whose number or time may be of another time: delayed over a restart of the numbers, or
//! behind a clock that was set. Others confirm or disown them.

use super::{Arrival, HISTORY, JUMP_TICKS_MAX, Tracker};

/// The packets after a restart of the numbers among which packets with old numbers may come, which
/// the network had delayed.
pub(super) const SETTLING: u16 = 4096;

/// The first of them that may all be such delayed ones.
const DELAYED_MAX: u16 = 16;

/// The packets that may be lost where a clock is set back among those.
const LOST_AT_SET_BACK_MAX: u16 = 64;

/// The consecutive packets that confirm a clock set back among those.
const CONFIRMED: u8 = 4;

/// The packets that came since a restart of the numbers.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Settling {
    /// Those left of [`SETTLING`].
    left: u16,
    /// Those that were taken, and not passed over.
    taken: u16,
}

impl Settling {
    /// Returns the state behind a restart.
    pub fn begin() -> Self {
        Self { left: SETTLING, taken: 0 }
    }

    /// Counts a packet that was taken.
    pub fn take(&mut self) {
        self.left = self.left.saturating_sub(1);
        self.taken = self.taken.saturating_add(1);
    }
}

impl Tracker {
    /// Restarts the packet numbers at 0; the packets before `first_seq` have come already.
    pub fn restart_before(&mut self, first_seq: u16) {
        self.first_seq = first_seq;
        self.restart();
    }

    /// Returns whether the numbers were restarted so recently that packets with old ones may come.
    pub fn is_settling(&self) -> bool {
        self.settling.left > 0
    }

    /// Counts a packet that is passed over, because it was delayed over the restart.
    pub fn note_passed_over(&mut self) {
        self.settling.left = self.settling.left.saturating_sub(1);
    }

    /// Restarts the numbers once more where the packets since their restart were delayed ones with
    /// old numbers: a later packet has a smaller number. Returns whether it does.
    pub fn disown_delayed(&mut self, arrival: &Arrival) -> bool {
        if self.settling.left == 0 || arrival.seq.wrapping_sub(self.next_seq) < 0x8000 {
            return false;
        }
        // Before the first packets with new numbers all may be delayed ones.
        let ticks = arrival.ticks.unwrap_or_default();
        let starts = self.interrupted.is_some_and(|start| ticks.wrapping_sub(start) < 1 << 63);
        let is_near = |seq: u16, first: u16| seq.wrapping_sub(first) < DELAYED_MAX;
        // Behind another one of them it is late.
        let begins = |first| {
            let began = is_near(self.began_seq, first) && is_near(arrival.seq, self.began_seq);
            is_near(arrival.seq, first) && !began
        };
        let is_first = (begins(0) || begins(self.first_seq)) && (starts || !self.set_back);
        let most = if is_first { SETTLING } else { DELAYED_MAX };
        let is_near = (1..=most).contains(&self.settling.taken);
        let ahead = arrival.ticks.zip(self.next_ticks).map(|(at, due)| at.wrapping_sub(due));
        let disowned = is_near && ahead.is_some_and(|ahead| ahead < JUMP_TICKS_MAX);
        disowned.then(|| self.restart()).is_some()
    }

    /// Stores a packet with an implausible time: another one may confirm it.
    pub fn suspect(&mut self, arrival: &Arrival) {
        self.suspects = if self.follows_suspect(arrival) { self.suspects + 1 } else { 1 };
        self.suspect = Some(*arrival);
    }

    /// Takes a packet that waits for an earlier one. Where it fits those before it, suspects that
    /// came before it show no clock that was set back.
    pub fn note_waiting(&mut self, arrival: &Arrival) {
        if self.fits(arrival) {
            self.suspects = 0;
        }
    }

    /// Returns whether a packet comes right behind the suspect, by its number and its time.
    fn follows_suspect(&self, arrival: &Arrival) -> bool {
        self.suspect.is_some_and(|suspect| {
            let length = suspect.samples.wrapping_mul(self.ticks_per_sample);
            let end = suspect.ticks.map(|ticks| ticks.wrapping_add(length));
            suspect.seq.wrapping_add(1) == arrival.seq && end.is_some() && end == arrival.ticks
        })
    }

    /// Returns whether a packet may have a number from before a restart of the numbers: one ahead,
    /// and an old time, within a run. Otherwise the device's clock was set back. A short packet
    /// ends a run, so no other could confirm it.
    pub fn may_be_delayed(&self, arrival: &Arrival) -> bool {
        let Some((ticks, due)) = arrival.ticks.zip(self.next_ticks) else { return false };
        let is_ahead = arrival.seq.wrapping_sub(self.next_seq) < 0x8000;
        let is_behind = (1..=JUMP_TICKS_MAX).contains(&due.wrapping_sub(ticks));
        let in_run = self.anchored && self.interrupted.is_none() && !self.restarted;
        let full = arrival.samples == self.samples_per_packet;
        self.settling.left > 0 && in_run && full && is_ahead && is_behind
    }

    /// Returns whether a run was told to begin at this time, and another one behind it.
    pub fn is_earlier_start(&self, ticks: Option<u64>) -> bool {
        ticks.is_some() && self.starts.contains(&ticks)
    }

    /// Returns whether a packet's number is neither due soon nor a recent one, and its time is
    /// over: too much would have to be lost where the clock was set back.
    pub fn is_far_back(&self, arrival: &Arrival) -> bool {
        let Some((ticks, due)) = arrival.ticks.zip(self.next_ticks) else { return false };
        let missing = arrival.seq.wrapping_sub(self.next_seq);
        let is_far = missing >= LOST_AT_SET_BACK_MAX && missing.wrapping_neg() > HISTORY;
        let is_behind = (1..=JUMP_TICKS_MAX).contains(&due.wrapping_sub(ticks));
        self.anchored && !self.restarted && is_far && is_behind
    }

    /// Returns whether nothing confirms that such a packet is not a delayed one: those before it
    /// would have to follow each other.
    pub fn is_unconfirmed(&self, arrival: &Arrival) -> bool {
        let confirmed = self.suspects + 1 >= CONFIRMED && self.follows_suspect(arrival);
        self.may_be_delayed(arrival) && !confirmed
    }

    /// Returns whether the times of `arrival` and of the suspect are as far apart as their numbers.
    pub fn confirms(&self, arrival: &Arrival) -> bool {
        let Some(suspect) = &self.suspect else { return false };
        let ahead = arrival.seq.wrapping_sub(suspect.seq) as i16;
        let (first, second) = if ahead < 0 { (arrival, suspect) } else { (suspect, arrival) };
        let packets = ahead.unsigned_abs();
        let Some((begin, end)) = first.ticks.zip(second.ticks) else { return false };
        let full = u64::from(packets.saturating_sub(1)) * self.samples_per_packet;
        let apart = first.samples.wrapping_add(full).wrapping_mul(self.ticks_per_sample);
        (1..HISTORY).contains(&packets) && end.wrapping_sub(begin) == apart
    }

    /// Records that a packet with a later time and a smaller number is an old one from here on.
    pub(super) fn trust_numbers(&mut self) {
        let Settling { left, taken } = &mut self.settling;
        (*left, *taken) = ((*left).min(SETTLING - DELAYED_MAX - 1), (*taken).max(DELAYED_MAX + 1));
        self.set_back = true;
    }
}
