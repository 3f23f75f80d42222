//! Order and time: classifies packets as next, late or duplicate, and counts the missing ones.

pub(super) use super::arrival::{Arrival, Damage, PacketClass, PacketGap};
use super::fates::{Fates, HISTORY, PacketFate};
use delayed::Settling;
mod delayed;
mod joined;

/// The largest jump of time that is counted in samples, ticks (16 days at 200 MHz). A larger one
/// means that a clock was set.
const JUMP_TICKS_MAX: u64 = 1 << 48;

/// The most packets that may be lost where a clock is set back; with more, it is an old packet.
const LOST_AT_JUMP_MAX: u16 = 4096;

/// The starts that are remembered behind a newer one: each of them may have begun a run.
const STARTS: usize = 4;

/// Tracks sequence numbers and time stamps of one stream.
#[derive(Debug, Clone)]
pub(super) struct Tracker {
    samples_per_packet: u64,
    ticks_per_sample: u64,
    next_seq: u16,
    /// The time of the next sample, once it is known.
    next_ticks: Option<u64>,
    /// That time follows from a packet of the current burst.
    anchored: bool,
    /// The run has an unknown end, and another one begins behind it at this time, ticks.
    interrupted: Option<u64>,
    /// The starts that were awaited before that one.
    starts: [Option<u64>; STARTS],
    /// A larger jump of time within a run, ticks, counts when a second packet confirms it, also
    /// without missing packets: any bit of a time may be wrong.
    believed: u64,
    pub(super) fates: Fates,
    /// Packets that may be missing before the next one by its number, but have been counted: the
    /// end of a burst.
    booked: u16,
    /// The sequence numbers were restarted, so they do not show how many packets are missing.
    restarted: bool,
    /// Packets that came damaged before that, and belong to the gap around it.
    damaged_before: u64,
    /// A packet with an implausible time, and the number of such packets up to it that follow each
    /// other.
    suspect: Option<Arrival>,
    suspects: u8,
    /// The packets since the restart of the numbers.
    settling: Settling,
    /// The first number behind the packets that came during the last new set-up of the stream.
    first_seq: u16,
    /// The number of the first packet that was taken since the restart of the numbers.
    began_seq: u16,
    /// The clock was set back since: packets with smaller numbers may have later times.
    set_back: bool,
    /// The newest packet, if its time was right and its number was not.
    misnumbered: Option<Arrival>,
    /// The next packet begins a capture, up to so many ticks behind the one before it.
    pause: u64,
}

impl Tracker {
    pub fn new(samples_per_packet: u64, ticks_per_sample: u64) -> Self {
        Self {
            samples_per_packet,
            ticks_per_sample,
            next_seq: 0,
            next_ticks: None,
            anchored: false,
            interrupted: None,
            starts: [None; STARTS],
            believed: JUMP_TICKS_MAX,
            fates: Fates::default(),
            booked: 0,
            restarted: false,
            damaged_before: 0,
            suspect: None,
            suspects: 0,
            settling: Settling::default(),
            first_seq: 0,
            began_seq: 0,
            set_back: false,
            misnumbered: None,
            pause: 0,
        }
    }

    /// Begins a burst: at a known time, or with its first packet.
    pub fn begin(&mut self, ticks: Option<u64>) {
        (self.next_ticks, self.anchored, self.interrupted) = (ticks, false, None);
        self.starts = [None; STARTS];
        (self.damaged_before, self.pause) = (0, 0);
    }

    /// Lets a second packet confirm each jump of time within a run beyond `believed` ticks.
    pub fn confirm_jumps(&mut self, believed: u64) {
        self.believed = believed;
    }

    /// Drops the missing packets, which do not concern later bursts.
    pub fn forget(&mut self) {
        self.fates.clear();
    }

    /// Sets the time at which the device continues, if it stops at an unknown place before.
    pub fn set_interrupted(&mut self, start: Option<u64>) {
        if start.is_some() {
            self.starts.rotate_right(1);
            self.starts[0] = self.interrupted;
        } else {
            self.starts = [None; STARTS];
        }
        self.interrupted = start;
    }

    /// Restarts the packet numbers at 0.
    pub fn restart(&mut self) {
        self.damaged_before += (0..HISTORY)
            .map(|ahead| self.fates.get(self.next_seq.wrapping_add(ahead), self.next_seq))
            .filter(|fate| *fate == PacketFate::Damaged)
            .count() as u64;
        (self.next_seq, self.booked, self.restarted) = (0, 0, true);
        (self.settling, self.set_back) = (Settling::begin(), false);
        (self.anchored, self.suspect, self.misnumbered) = (false, None, None);
        self.fates.clear();
    }

    /// Returns whether the numbers were restarted, and no packet has come since.
    pub fn has_restarted(&self) -> bool {
        self.restarted
    }

    /// Returns whether a packet of the current burst has come.
    pub fn has_begun(&self) -> bool {
        self.anchored
    }

    /// Returns the time of the next sample, if it is known.
    pub fn next_ticks(&self) -> Option<u64> {
        self.next_ticks
    }

    /// Returns the packets that `arrival` shows to be missing before it; 0 for an older one.
    pub fn missing_before(&self, arrival: &Arrival) -> u64 {
        if self.is_due(arrival) {
            return 0;
        }
        let missing = arrival.seq.wrapping_sub(self.next_seq);
        if missing < 0x8000 && !self.restarted { self.unbooked(missing).into() } else { 0 }
    }

    /// Returns whether it follows by its time within a burst: nothing can be missing then.
    fn is_due(&self, arrival: &Arrival) -> bool {
        let follows = self.anchored && !self.restarted && self.booked == 0;
        follows && arrival.samples > 0 && arrival.ticks.is_some_and(|t| Some(t) == self.next_ticks)
    }

    /// Returns whether the packet with the next number has a time that a second packet has to
    /// confirm.
    pub fn is_doubtful(&self, arrival: &Arrival) -> bool {
        let ahead = match arrival.ticks.zip(self.next_ticks) {
            Some((ticks, due)) if ticks != due => ticks.wrapping_sub(due),
            _ => return false,
        };
        let is_next = arrival.seq == self.next_seq && self.anchored;
        is_next
            && !self.may_be_delayed(arrival)
            && self.by_time(arrival, ahead, 0) == PacketClass::Nonsense
    }

    /// Returns whether its time and its number are equally far ahead.
    pub fn fits(&self, arrival: &Arrival) -> bool {
        let Some((ticks, due)) = arrival.ticks.zip(self.next_ticks) else { return false };
        let packets = u64::from(arrival.seq.wrapping_sub(self.next_seq));
        let full = self.samples_per_packet.wrapping_mul(self.ticks_per_sample);
        ticks.wrapping_sub(due) == packets.wrapping_mul(full)
    }

    /// Returns a packet whose time is right with the next number: its own is damaged. When the next
    /// packet's number continues from the damaged one, the device counts so.
    fn numbered(&mut self, arrival: &Arrival) -> Arrival {
        let before = self.misnumbered.take();
        if !self.is_due(arrival) || arrival.seq == self.next_seq {
            return *arrival;
        }
        if before.is_some_and(|before| before.seq.wrapping_add(1) == arrival.seq) {
            self.suspect = before;
            return *arrival;
        }
        self.misnumbered = Some(*arrival);
        Arrival { seq: self.next_seq, ..*arrival }
    }

    /// Returns how many of the packets missing by number have not been counted.
    fn unbooked(&self, missing: u16) -> u16 {
        if missing < 0x8000 { missing.saturating_sub(self.booked) } else { missing }
    }

    /// Counts the lost end of a burst: `samples` samples, in `packets` packets at most.
    pub fn lose_end(&mut self, packets: u64, samples: u64) {
        self.pass_over(0, samples);
        self.booked = self.booked.saturating_add(packets.min(0x7FFF) as u16);
    }

    /// Returns how many of the `samples` samples of a lost end were in damaged packets.
    pub fn damaged_in_end(&self, samples: u64) -> u64 {
        let packets = samples.div_ceil(self.samples_per_packet).min(0x7FFF);
        let of = |packet: u64| {
            let seq = self.next_seq.wrapping_add(packet as u16);
            let length = self.samples_per_packet.min(samples - packet * self.samples_per_packet);
            if self.fates.get(seq, self.next_seq) == PacketFate::Damaged { length } else { 0 }
        };
        (0..packets).map(of).sum()
    }

    /// Skips packets with their samples, which will not come.
    pub fn pass_over(&mut self, packets: u64, samples: u64) {
        self.fates.miss(self.next_seq, packets.min(0x7FFF) as u16);
        self.next_seq = self.next_seq.wrapping_add(packets as u16);
        let length = samples.wrapping_mul(self.ticks_per_sample);
        self.next_ticks = self.next_ticks.map(|ticks| ticks.wrapping_add(length));
    }

    /// Returns the next sequence number.
    pub fn next_seq(&self) -> u16 {
        self.next_seq
    }

    /// Records that packet `seq` came damaged.
    pub fn damage(&mut self, seq: u16) -> Damage {
        let ahead = seq.wrapping_sub(self.next_seq);
        match self.fates.get(seq, self.next_seq) {
            PacketFate::Missing => {
                self.fates.set(seq, self.next_seq, PacketFate::Damaged);
                Damage::OfMissing
            }
            PacketFate::Arrived | PacketFate::Damaged => Damage::OfCopy,
            PacketFate::Unknown if ahead < HISTORY => {
                self.fates.set(seq, self.next_seq, PacketFate::Damaged);
                Damage::Noted
            }
            PacketFate::Unknown => Damage::Unknown,
        }
    }

    /// Classifies a packet. One that is [`PacketClass::Next`] or [`PacketClass::After`] counts as
    /// arrived.
    pub fn judge(&mut self, arrival: &Arrival) -> PacketClass {
        self.begin_joined(arrival);
        let arrival = &self.numbered(arrival);
        let missing = arrival.seq.wrapping_sub(self.next_seq);
        let mut verdict = match (arrival.ticks, self.next_ticks) {
            (Some(ticks), Some(due)) => self.by_time(arrival, ticks.wrapping_sub(due), missing),
            _ => self.by_sequence(arrival.seq, self.unbooked(missing)),
        };
        match &mut verdict {
            PacketClass::Next => drop(self.advance(arrival, missing, 0)),
            PacketClass::After(gap) => {
                let damaged = self.advance(arrival, missing, gap.samples());
                let damaged = damaged + std::mem::take(&mut self.damaged_before);
                gap.damaged = damaged * self.samples_per_packet;
                // Later times and smaller numbers are old packets from here on.
                if gap.jump < 0 {
                    self.trust_numbers();
                }
            }
            // Stored, so that a second copy is distinguished from a first late arrival.
            PacketClass::Late { .. } => {
                self.fates.set(arrival.seq, self.next_seq, PacketFate::Arrived)
            }
            PacketClass::Nonsense => self.suspect(arrival),
            PacketClass::Duplicate => {}
        }
        verdict
    }

    fn by_time(&self, arrival: &Arrival, ahead: u64, missing: u16) -> PacketClass {
        if self.is_unconfirmed(arrival) {
            return PacketClass::Nonsense;
        }
        let lost = self.unbooked(missing);
        let lost_ticks = u64::from(lost) * self.samples_per_packet * self.ticks_per_sample;
        // Full packets are missing, and their time is not.
        // A time before the new start is one of the run before it.
        let is_before = |start: u64| {
            let ticks = self.next_ticks.unwrap_or_default().wrapping_add(ahead);
            (1..1 << 63).contains(&start.wrapping_sub(ticks))
        };
        let in_run = self.anchored && self.interrupted.is_none_or(is_before);
        let full = in_run && !self.restarted && missing < 0x8000;
        // Behind the end of a run, whose last packet may be a short one, they lack more.
        let ended = self.anchored && !self.restarted && missing < 0x8000;
        let packet_ticks = self.samples_per_packet * self.ticks_per_sample;
        let is_short = full && ahead < lost_ticks
            || ended && ahead.saturating_add(2 * packet_ticks) <= lost_ticks;
        let is_behind = ahead > JUMP_TICKS_MAX;
        // A device that sends whole samples has no packet between two of them.
        let is_between = ahead != 0 && ahead % self.ticks_per_sample != 0;
        if is_short || is_behind || is_between {
            // Any sender can write a time: a second packet must confirm such a jump.
            if missing < 0x8000 && self.confirms(arrival) {
                return self.set_clock(ahead, lost);
            }
            return match missing {
                0 if ahead.wrapping_neg() <= self.believed => self.set_clock(ahead, 0),
                0 => PacketClass::Nonsense,
                _ if is_short || self.restarted => PacketClass::Nonsense,
                1..=LOST_AT_JUMP_MAX if self.anchored => PacketClass::Nonsense,
                _ => self.older(arrival.seq),
            };
        }
        if ahead == 0 {
            return PacketClass::Next;
        }
        // A run that was told to begin then needs no other packet.
        let in_run = in_run && !self.restarted && !self.is_earlier_start(arrival.ticks);
        if ahead > self.believed && missing == 0 && in_run && !self.confirms(arrival) {
            return PacketClass::Nonsense;
        }
        let samples = ahead / self.ticks_per_sample;
        if self.restarted {
            let packets = samples.div_ceil(self.samples_per_packet);
            let gap = PacketGap { packets, in_packets: samples, ..PacketGap::default() };
            return PacketClass::After(gap);
        }
        let packets = samples / self.samples_per_packet;
        if packets as u16 == lost && samples % self.samples_per_packet == 0 {
            // The whole gap is one by sequence number too, which wraps every 65 536 packets.
            let gap = PacketGap { packets, in_packets: samples, ..PacketGap::default() };
            return PacketClass::After(gap);
        }
        if missing.wrapping_neg() <= HISTORY && missing != 0 {
            // An old packet, from before the clock was set back.
            return self.older(arrival.seq);
        }
        let packets = u64::from(lost);
        let in_packets = samples.min(packets * self.samples_per_packet);
        PacketClass::After(PacketGap {
            packets,
            in_packets,
            unsent: samples - in_packets,
            ..PacketGap::default()
        })
    }

    /// Classifies a packet whose time does not show what is missing: the clock was set.
    fn set_clock(&self, ahead: u64, lost: u16) -> PacketClass {
        let in_packets = u64::from(lost) * self.samples_per_packet;
        let jump = ahead.wrapping_sub(in_packets * self.ticks_per_sample) as i64;
        PacketClass::After(PacketGap {
            packets: lost.into(),
            in_packets,
            jump,
            ..PacketGap::default()
        })
    }

    fn by_sequence(&self, seq: u16, missing: u16) -> PacketClass {
        match missing {
            0 => PacketClass::Next,
            _ if self.restarted => PacketClass::Next,
            1..0x8000 => {
                let packets = u64::from(missing);
                let in_packets = packets * self.samples_per_packet;
                PacketClass::After(PacketGap { packets, in_packets, ..PacketGap::default() })
            }
            _ => self.older(seq),
        }
    }

    fn older(&self, seq: u16) -> PacketClass {
        match self.fates.get(seq, self.next_seq) {
            PacketFate::Missing => PacketClass::Late { damaged: false },
            PacketFate::Damaged => PacketClass::Late { damaged: true },
            PacketFate::Arrived | PacketFate::Unknown => PacketClass::Duplicate,
        }
    }

    /// Advances past a packet behind `missing` missing ones with `samples` samples. Returns how
    /// many samples of these came damaged.
    fn advance(&mut self, arrival: &Arrival, missing: u16, samples: u64) -> u64 {
        let damaged = if missing < 0x8000 { self.fates.miss(self.next_seq, missing) } else { 0 };
        self.fates.arrive(arrival.seq);
        self.began_seq = if self.restarted { arrival.seq } else { self.began_seq };
        self.next_seq = arrival.seq.wrapping_add(1);
        (self.booked, self.restarted, self.anchored) = (0, false, true);
        (self.suspect, self.suspects) = (None, 0);
        self.settling.take();
        let gap = samples.wrapping_mul(self.ticks_per_sample);
        let begin = arrival.ticks.or(self.next_ticks.map(|due| due.wrapping_add(gap)));
        let length = arrival.samples.wrapping_mul(self.ticks_per_sample);
        self.next_ticks = begin.map(|ticks| ticks.wrapping_add(length));
        damaged
    }
}

#[cfg(test)]
#[path = "tracker_tests.rs"]
mod tests;
