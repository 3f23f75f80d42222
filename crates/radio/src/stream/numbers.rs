//! The numbers and times of packets: which one is next, what is missing before it, which ones are
//! old.
//!
//! Two of them show a gap, and neither is believed alone where they differ: a second packet has to
//! confirm a time that the numbers do not explain.

use super::arrival::Arrival;

/// The largest jump of time that is counted in samples, ticks (16 days at 200 MHz). A larger one
/// means that a clock was set.
const JUMP_TICKS_MAX: u64 = 1 << 48;

/// The most packets that may be lost where a clock is set back; with more, it is an old packet.
const LOST_AT_JUMP_MAX: u16 = 4096;

/// The packets behind a new set-up among which some may come that the device sent before it, with
/// numbers that have been restarted since.
const SETTLING: u16 = 4096;

/// How far ahead a number is believed among those.
const NEAR: u16 = 64;

/// The packets in a row that confirm another number or an earlier time among those.
const IN_A_ROW: u8 = 4;

/// The number of packets behind, and before, the next one whose fate is known.
const HISTORY: u16 = 4096;

const SIZE: usize = 2 * HISTORY as usize;

/// What is missing before a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct PacketGap {
    /// Packets missing by their numbers.
    pub packets: u64,
    /// Samples that these held.
    pub in_packets: u64,
    /// Of the packets, those that came damaged.
    pub damaged: u64,
    /// Further samples missing by time: no missing packet explains them.
    pub unsent: u64,
    /// The jump of the device's clock, ticks, if it cannot be counted in samples: backward, or very
    /// far forward. 0 without a jump.
    pub jump: i64,
    /// The numbers were restarted in the gap, so they do not show how many packets are missing.
    pub renumbered: bool,
}

impl PacketGap {
    /// Returns the missing samples in all.
    pub fn samples(&self) -> u64 {
        self.in_packets.saturating_add(self.unsent)
    }

    /// Returns whether the end of a run may be among the missing packets: they are not only whole
    /// ones of so many samples.
    pub fn may_have_an_end(&self, samples: u64) -> bool {
        let in_time = self.jump == 0 && self.unsent == 0 && self.has_whole_packets(samples);
        self.renumbered || self.packets > 0 && !in_time
    }

    /// Returns whether each missing packet had so many samples.
    pub fn has_whole_packets(&self, samples: u64) -> bool {
        self.in_packets == self.packets.saturating_mul(samples)
    }
}

/// The class of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PacketClass {
    /// The next packet.
    Next,
    /// A later packet.
    After(PacketGap),
    /// A packet that came before, or is too old to classify.
    Duplicate,
    /// A packet that was given up.
    Late,
    /// A packet with an implausible time or number, unless another one confirms it.
    Doubtful,
}

/// What became of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PacketFate {
    /// Nothing is known of it, or no longer.
    Unknown,
    Arrived,
    /// It is in the ledger as missing.
    Missing,
    /// It came damaged.
    Damaged,
}

/// The numbers and times of one stream.
#[derive(Debug)]
pub(super) struct Numbers {
    samples_per_packet: u64,
    ticks_per_sample: u64,
    next_seq: u16,
    /// The time of the next sample, once it is known.
    next_ticks: Option<u64>,
    /// That time follows from a packet of the current burst.
    anchored: bool,
    /// The run may end anywhere, and another one begins behind it at this time, ticks.
    next_start: Option<u64>,
    /// A larger jump of time within a run, ticks, counts when a second packet confirms it, also
    /// without missing packets: any bit of a time may be wrong.
    believed: u64,
    fates: Fates,
    /// Packets that may be missing before the next one by its number, but have been counted: the
    /// end of a burst.
    booked: u16,
    /// The numbers were restarted, and no packet has come since.
    renumbered: bool,
    /// The packets left of [`SETTLING`].
    settling: u16,
    /// The newest doubtful packet, and the number of them up to it that follow each other.
    doubtful: Option<Arrival>,
    in_a_row: u8,
    /// The newest packet, if its time was right and its number was not.
    misnumbered: Option<Arrival>,
    /// The next packet begins a capture, up to so many ticks behind the one before it.
    pause: u64,
}

impl Numbers {
    pub fn new(samples_per_packet: u64, ticks_per_sample: u64, believed: u64) -> Self {
        Self {
            samples_per_packet,
            ticks_per_sample,
            next_seq: 0,
            next_ticks: None,
            anchored: false,
            next_start: None,
            believed,
            fates: Fates::default(),
            booked: 0,
            renumbered: false,
            settling: 0,
            doubtful: None,
            in_a_row: 0,
            misnumbered: None,
            pause: 0,
        }
    }

    /// Begins a burst: at a known time, or with its first packet.
    pub fn begin(&mut self, ticks: Option<u64>) {
        (self.next_ticks, self.anchored, self.next_start) = (ticks, false, None);
        self.pause = 0;
    }

    /// Begins a burst behind the one before, at its end or up to `pause` ticks later: the radio
    /// makes no samples meanwhile.
    pub fn join(&mut self, pause: u64) {
        self.pause = pause;
    }

    /// Lets a second packet confirm each jump of time.
    pub fn confirm_all_jumps(&mut self) {
        self.believed = 0;
    }

    /// Drops the missing packets, which do not concern later bursts.
    pub fn forget(&mut self) {
        self.fates.0.fill(PacketFate::Unknown);
    }

    /// Sets the time at which the device starts again, if it may stop anywhere before.
    pub fn set_next_start(&mut self, start: Option<u64>) {
        self.next_start = start;
    }

    /// Restarts the packet numbers at 0.
    pub fn renumber(&mut self) {
        (self.next_seq, self.booked, self.renumbered) = (0, 0, true);
        (self.anchored, self.doubtful, self.in_a_row) = (false, None, 0);
        (self.settling, self.misnumbered) = (SETTLING, None);
        self.forget();
    }

    /// Returns whether a packet of the current burst has come.
    pub fn has_begun(&self) -> bool {
        self.anchored
    }

    /// Returns the time of the next sample, if it is known.
    pub fn next_ticks(&self) -> Option<u64> {
        self.next_ticks
    }

    /// Returns the next number.
    pub fn next_seq(&self) -> u16 {
        self.next_seq
    }

    /// Returns the packets that `arrival` shows to be missing before it; 0 for an older one.
    pub fn missing_before(&self, arrival: &Arrival) -> u64 {
        if self.is_due(arrival) {
            return 0;
        }
        let missing = arrival.seq.wrapping_sub(self.next_seq);
        if missing < 0x8000 && !self.renumbered { self.unbooked(missing).into() } else { 0 }
    }

    /// Returns whether it follows by its time within a burst: nothing can be missing then.
    fn is_due(&self, arrival: &Arrival) -> bool {
        let follows = self.anchored && !self.renumbered && self.booked == 0;
        follows && arrival.samples > 0 && arrival.ticks.is_some_and(|t| Some(t) == self.next_ticks)
    }

    /// Returns whether the packet with the next number has a time that a second packet has to
    /// confirm.
    pub fn is_doubtful(&self, arrival: &Arrival) -> bool {
        let Some((ticks, due)) = arrival.ticks.zip(self.next_ticks) else { return false };
        let is_next = arrival.seq == self.next_seq && self.anchored && self.settling == 0;
        let ahead = ticks.wrapping_sub(due);
        is_next && ahead != 0 && self.by_time(arrival, ahead, 0) == PacketClass::Doubtful
    }

    /// Returns whether the numbers were restarted so recently that a packet with this number and
    /// time may be one from before that.
    pub fn may_be_from_before(&self, arrival: &Arrival) -> bool {
        let missing = arrival.seq.wrapping_sub(self.next_seq);
        let ahead = arrival.ticks.zip(self.next_ticks).map(|(at, due)| at.wrapping_sub(due));
        let is_back = ahead.is_some_and(|ahead| ahead > JUMP_TICKS_MAX);
        // Number and time agree: only packets are missing before it.
        let lost = u64::from(self.unbooked(missing)).wrapping_mul(self.packet_ticks());
        if self.anchored && missing < 0x8000 && ahead == Some(lost) {
            return false;
        }
        let is_known =
            missing >= 0x8000 && self.fates.get(arrival.seq, self.next_seq) != PacketFate::Unknown;
        self.settling > 0 && !is_known && (missing >= NEAR || is_back)
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

    /// Returns how many of the next packets, which will not come, came damaged.
    pub fn damaged_ahead(&self, packets: u64) -> u64 {
        let packets = packets.min(HISTORY.into()) as u16;
        let fate = |ahead| self.fates.get(self.next_seq.wrapping_add(ahead), self.next_seq);
        (0..packets).filter(|ahead| fate(*ahead) == PacketFate::Damaged).count() as u64
    }

    /// Skips packets with their samples, which will not come.
    pub fn pass_over(&mut self, packets: u64, samples: u64) {
        self.fates.miss(self.next_seq, packets.min(0x7FFF) as u16);
        self.next_seq = self.next_seq.wrapping_add(packets as u16);
        let length = samples.wrapping_mul(self.ticks_per_sample);
        self.next_ticks = self.next_ticks.map(|ticks| ticks.wrapping_add(length));
    }

    /// Records that packet `seq` came damaged. Returns false where its number is far from the next
    /// one.
    pub fn damage(&mut self, seq: u16) -> bool {
        let is_ahead = seq.wrapping_sub(self.next_seq) < HISTORY;
        let fate = self.fates.get(seq, self.next_seq);
        if fate == PacketFate::Unknown && is_ahead {
            self.fates.set(seq, self.next_seq, PacketFate::Damaged);
        }
        is_ahead || fate != PacketFate::Unknown
    }

    /// Classifies a packet. One that is [`PacketClass::Next`] or [`PacketClass::After`] counts as
    /// arrived.
    pub fn judge(&mut self, arrival: &Arrival) -> PacketClass {
        self.begin_joined(arrival);
        let arrival = &self.numbered(arrival);
        let missing = arrival.seq.wrapping_sub(self.next_seq);
        let mut class = match (arrival.ticks, self.next_ticks) {
            (Some(ticks), Some(due)) => self.by_time(arrival, ticks.wrapping_sub(due), missing),
            _ => self.by_number(arrival, missing),
        };
        match &mut class {
            PacketClass::Next => drop(self.advance(arrival, missing, 0)),
            PacketClass::After(gap) => {
                gap.damaged = self.advance(arrival, missing, gap.samples());
            }
            // Stored, so that a second copy is distinguished from a first late arrival.
            PacketClass::Late => self.fates.set(arrival.seq, self.next_seq, PacketFate::Arrived),
            PacketClass::Doubtful => self.doubt(arrival),
            PacketClass::Duplicate => {}
        }
        class
    }

    /// Lets a joined burst begin where its first packet says, if that is within the pause.
    fn begin_joined(&mut self, arrival: &Arrival) {
        let missing = arrival.seq.wrapping_sub(self.next_seq);
        if self.pause == 0 || missing >= 0x8000 {
            return;
        }
        let Some((ticks, due)) = arrival.ticks.zip(self.next_ticks) else { return };
        let lost = u64::from(self.unbooked(missing)) * self.packet_ticks();
        let later = ticks.wrapping_sub(due).wrapping_sub(lost);
        if later <= self.pause {
            self.next_ticks = Some(due.wrapping_add(later));
            self.pause = 0;
        }
    }

    /// Returns a packet whose time is due with the next number: its own is damaged. When the next
    /// packet's number continues from the damaged one, the device counts so.
    fn numbered(&mut self, arrival: &Arrival) -> Arrival {
        let before = self.misnumbered.take();
        if !self.is_due(arrival) || arrival.seq == self.next_seq {
            return *arrival;
        }
        if before.is_some_and(|before| before.seq.wrapping_add(1) == arrival.seq) {
            self.doubtful = before;
            return *arrival;
        }
        self.misnumbered = Some(*arrival);
        Arrival { seq: self.next_seq, ..*arrival }
    }

    fn packet_ticks(&self) -> u64 {
        self.samples_per_packet.wrapping_mul(self.ticks_per_sample)
    }

    fn by_time(&self, arrival: &Arrival, ahead: u64, missing: u16) -> PacketClass {
        if self.may_be_from_before(arrival)
            && !(self.in_a_row >= IN_A_ROW - 1 && self.follows_doubtful(arrival))
        {
            return PacketClass::Doubtful;
        }
        let lost = self.unbooked(missing);
        let lost_ticks = u64::from(lost).wrapping_mul(self.packet_ticks());
        let numbers_count = self.anchored && !self.renumbered && missing < 0x8000;
        // A time before the next start is one of the run before it, whose packets are full ones.
        let in_run = self.next_start.is_none_or(|start| {
            let ticks = self.next_ticks.unwrap_or_default().wrapping_add(ahead);
            (1..1 << 63).contains(&start.wrapping_sub(ticks))
        });
        // Behind the end of a run, whose last packet may be a short one, they lack more.
        let slack = if in_run { 0 } else { 2 * self.packet_ticks() };
        let is_short =
            numbers_count && ahead < lost_ticks && ahead.saturating_add(slack) <= lost_ticks;
        let is_back = ahead > JUMP_TICKS_MAX;
        // A device that sends whole samples has no packet between two of them.
        let is_between = ahead != 0 && ahead % self.ticks_per_sample != 0;
        if is_short || is_back || is_between {
            return match missing {
                0..0x8000 if self.confirms(arrival) => self.set_clock(ahead, lost),
                0 if ahead.wrapping_neg() <= self.believed => self.set_clock(ahead, 0),
                _ if self.settling > 0 && self.may_be_from_before(arrival) => {
                    self.set_clock(ahead, 0)
                }
                0 => PacketClass::Doubtful,
                _ if is_short || self.renumbered => PacketClass::Doubtful,
                1..=LOST_AT_JUMP_MAX if self.anchored => PacketClass::Doubtful,
                _ => self.older(arrival.seq),
            };
        }
        if ahead == 0 {
            return PacketClass::Next;
        }
        let is_far = ahead > self.believed && missing == 0 && self.next_start.is_none();
        if is_far && self.anchored && !self.renumbered && !self.confirms(arrival) {
            return PacketClass::Doubtful;
        }
        let samples = ahead / self.ticks_per_sample;
        let by_time = PacketGap { unsent: samples, ..PacketGap::default() };
        if self.renumbered {
            return PacketClass::After(PacketGap { renumbered: true, ..by_time });
        }
        let packets = samples / self.samples_per_packet;
        if packets as u16 == lost && samples % self.samples_per_packet == 0 {
            // The whole gap is one by number too, which wraps every 65 536 packets.
            let gap = PacketGap { packets, in_packets: samples, ..PacketGap::default() };
            return PacketClass::After(gap);
        }
        if missing >= 0x8000 {
            if missing.wrapping_neg() <= HISTORY && !self.may_be_from_before(arrival) {
                // An old packet, from before the clock was set back.
                return self.older(arrival.seq);
            }
            return PacketClass::After(PacketGap { renumbered: true, ..by_time });
        }
        let packets = u64::from(lost);
        let in_packets = samples.min(packets * self.samples_per_packet);
        let unsent = samples - in_packets;
        PacketClass::After(PacketGap { packets, in_packets, unsent, ..PacketGap::default() })
    }

    /// Classifies a packet whose time does not show what is missing: the clock was set.
    fn set_clock(&self, ahead: u64, lost: u16) -> PacketClass {
        let packets = if self.renumbered { 0 } else { u64::from(lost) };
        let in_packets = packets * self.samples_per_packet;
        let jump = ahead.wrapping_sub(packets.wrapping_mul(self.packet_ticks())) as i64;
        let renumbered = self.renumbered;
        let gap = PacketGap { packets, in_packets, jump, renumbered, ..PacketGap::default() };
        PacketClass::After(gap)
    }

    fn by_number(&self, arrival: &Arrival, missing: u16) -> PacketClass {
        match self.unbooked(missing) {
            _ if self.renumbered => PacketClass::Next,
            0 => PacketClass::Next,
            lost @ 1..0x8000 => {
                let packets = u64::from(lost);
                let in_packets = packets * self.samples_per_packet;
                PacketClass::After(PacketGap { packets, in_packets, ..PacketGap::default() })
            }
            _ => self.older(arrival.seq),
        }
    }

    fn older(&self, seq: u16) -> PacketClass {
        match self.fates.get(seq, self.next_seq) {
            PacketFate::Missing | PacketFate::Damaged => PacketClass::Late,
            PacketFate::Arrived | PacketFate::Unknown => PacketClass::Duplicate,
        }
    }

    /// Advances past a packet behind `missing` missing ones with `samples` samples. Returns how
    /// many of these came damaged.
    fn advance(&mut self, arrival: &Arrival, missing: u16, samples: u64) -> u64 {
        let damaged = if missing < 0x8000 { self.fates.miss(self.next_seq, missing) } else { 0 };
        self.fates.arrive(arrival.seq);
        self.next_seq = arrival.seq.wrapping_add(1);
        (self.booked, self.renumbered, self.anchored) = (0, false, true);
        (self.doubtful, self.in_a_row) = (None, 0);
        self.settling = self.settling.saturating_sub(1);
        let gap = samples.wrapping_mul(self.ticks_per_sample);
        let begin = arrival.ticks.or(self.next_ticks.map(|due| due.wrapping_add(gap)));
        let length = arrival.samples.wrapping_mul(self.ticks_per_sample);
        self.next_ticks = begin.map(|ticks| ticks.wrapping_add(length));
        damaged
    }

    /// Stores a doubtful packet: another one may confirm it.
    pub fn doubt(&mut self, arrival: &Arrival) {
        let is_copy = |before: &Arrival| (before.seq, before.ticks) == (arrival.seq, arrival.ticks);
        if self.doubtful.as_ref().is_some_and(is_copy) {
            return;
        }
        let before = if self.follows_doubtful(arrival) { self.in_a_row } else { 0 };
        self.in_a_row = before.saturating_add(1);
        self.doubtful = Some(*arrival);
    }

    /// Returns whether a packet comes right behind the doubtful one, by its number and its time.
    fn follows_doubtful(&self, arrival: &Arrival) -> bool {
        self.doubtful.is_some_and(|before| {
            let length = before.samples.wrapping_mul(self.ticks_per_sample);
            let end = before.ticks.map(|ticks| ticks.wrapping_add(length));
            before.seq.wrapping_add(1) == arrival.seq && end.is_some() && end == arrival.ticks
        })
    }

    /// Returns whether the times of `arrival` and of the doubtful packet are as far apart as their
    /// numbers.
    pub fn confirms(&self, arrival: &Arrival) -> bool {
        let Some(doubtful) = &self.doubtful else { return false };
        let ahead = arrival.seq.wrapping_sub(doubtful.seq) as i16;
        let (first, second) = if ahead < 0 { (arrival, doubtful) } else { (doubtful, arrival) };
        let packets = ahead.unsigned_abs();
        let Some((begin, end)) = first.ticks.zip(second.ticks) else { return false };
        let full = u64::from(packets.saturating_sub(1)) * self.samples_per_packet;
        let apart = first.samples.wrapping_add(full).wrapping_mul(self.ticks_per_sample);
        (1..HISTORY).contains(&packets) && end.wrapping_sub(begin) == apart
    }
}

/// The fates of packets around the next one. Numbers wrap every 65 536 packets, so those further
/// away are dropped.
#[derive(Debug)]
struct Fates(Box<[PacketFate; SIZE]>);

impl Default for Fates {
    fn default() -> Self {
        Self(Box::new([PacketFate::Unknown; SIZE]))
    }
}

impl Fates {
    /// Returns the fate of packet `seq` when `next_seq` is the next one.
    fn get(&self, seq: u16, next_seq: u16) -> PacketFate {
        if is_near(seq, next_seq) { self.0[slot(seq)] } else { PacketFate::Unknown }
    }

    /// Stores the fate of a near packet.
    fn set(&mut self, seq: u16, next_seq: u16, fate: PacketFate) {
        if is_near(seq, next_seq) {
            self.0[slot(seq)] = fate;
        }
    }

    /// Stores `packets` packets from `next_seq` on as missing. Returns how many of them came
    /// damaged.
    fn miss(&mut self, next_seq: u16, packets: u16) -> u64 {
        let mut damaged = 0;
        for step in 0..packets {
            let seq = next_seq.wrapping_add(step);
            self.0[slot(seq.wrapping_add(HISTORY))] = PacketFate::Unknown;
            match &mut self.0[slot(seq)] {
                PacketFate::Damaged => damaged += 1,
                fate => *fate = PacketFate::Missing,
            }
        }
        damaged
    }

    /// Stores packet `next_seq` as arrived.
    fn arrive(&mut self, next_seq: u16) {
        self.0[slot(next_seq.wrapping_add(HISTORY))] = PacketFate::Unknown;
        self.0[slot(next_seq)] = PacketFate::Arrived;
    }
}

fn is_near(seq: u16, next_seq: u16) -> bool {
    let age = next_seq.wrapping_sub(seq);
    age <= HISTORY || age.wrapping_neg() < HISTORY
}

fn slot(seq: u16) -> usize {
    usize::from(seq) % SIZE
}

#[cfg(test)]
#[path = "numbers_tests.rs"]
mod tests;
