//! Order and time: which packet follows, and what is missing when another one comes.

/// Largest jump of time that is believed, ticks (16 days at 200 MHz). Beyond lies nonsense.
const JUMP_TICKS_MAX: u64 = 1 << 48;

/// Packets before the next one whose arrival is remembered, to tell copies from late arrivals.
const HISTORY: u16 = 128;

/// What the tracker needs to know of a data packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Arrival {
    pub seq: u16,
    pub ticks: Option<u64>,
    pub samples: u64,
}

/// Samples missing before a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Gap {
    /// Packets missing by sequence number.
    pub packets: u64,
    /// Samples those packets held.
    pub in_packets: u64,
    /// Samples missing beyond them: the device never sent these.
    pub unsent: u64,
}

/// What a packet is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The next one.
    Next,
    /// A later one.
    After(Gap),
    /// One that has been here before.
    Duplicate,
    /// One that was given up.
    Late,
    /// One whose time makes no sense.
    Nonsense,
}

/// Follows sequence numbers and time stamps of one stream.
#[derive(Debug, Clone)]
pub(super) struct Tracker {
    samples_per_packet: u64,
    ticks_per_sample: u64,
    next_seq: u16,
    /// The time at which the next sample is due, once it is known.
    next_ticks: Option<u64>,
    /// Bit i: packet `next_seq - 1 - i` arrived.
    seen: u128,
    /// Packets that may be missing before the next one by its number, but have been booked: the
    /// end of a burst.
    booked: u16,
    /// The sequence numbers began anew, so they say nothing about what is missing.
    restarted: bool,
}

impl Tracker {
    pub fn new(samples_per_packet: u64, ticks_per_sample: u64) -> Self {
        Self {
            samples_per_packet,
            ticks_per_sample,
            next_seq: 0,
            next_ticks: None,
            seen: 0,
            booked: 0,
            restarted: false,
        }
    }

    /// A burst begins: at a known time, or whenever its first packet comes.
    pub fn begin(&mut self, ticks: Option<u64>) {
        self.next_ticks = ticks;
    }

    /// The device counts packets from 0 again.
    pub fn restart(&mut self) {
        (self.next_seq, self.seen, self.booked, self.restarted) = (0, 0, 0, true);
    }

    /// The time at which the next sample is due, if it is known.
    pub fn next_ticks(&self) -> Option<u64> {
        self.next_ticks
    }

    /// Packets that `arrival` shows to be missing before it; none for an older one.
    pub fn missing_before(&self, arrival: &Arrival) -> u64 {
        let missing = arrival.seq.wrapping_sub(self.next_seq);
        if missing < 0x8000 && !self.restarted { self.unbooked(missing).into() } else { 0 }
    }

    /// Of packets missing by number, those that have not been booked.
    fn unbooked(&self, missing: u16) -> u16 {
        if missing < 0x8000 { missing.saturating_sub(self.booked) } else { missing }
    }

    /// The end of a burst is lost: so many samples, and at most so many packets, for the device may
    /// not have sent them.
    pub fn lose_end(&mut self, packets: u64, samples: u64) {
        self.pass_over(0, samples);
        self.booked = self.booked.saturating_add(packets.min(0x7FFF) as u16);
    }

    /// Passes over so many packets with so many samples, which will not come.
    pub fn pass_over(&mut self, packets: u64, samples: u64) {
        self.next_seq = self.next_seq.wrapping_add(packets as u16);
        self.seen = self.seen.checked_shl(packets.min(128) as u32).unwrap_or(0);
        let length = samples * self.ticks_per_sample;
        self.next_ticks = self.next_ticks.map(|ticks| ticks.wrapping_add(length));
    }

    /// The sequence number that follows.
    pub fn next_seq(&self) -> u16 {
        self.next_seq
    }

    /// Judges a packet. One that is [`Verdict::Next`] or [`Verdict::After`] counts as arrived.
    pub fn judge(&mut self, arrival: &Arrival) -> Verdict {
        let missing = arrival.seq.wrapping_sub(self.next_seq);
        let verdict = match (arrival.ticks, self.next_ticks) {
            (Some(ticks), Some(due)) => self.by_time(ticks, due, missing),
            _ => self.by_sequence(self.unbooked(missing)),
        };
        match verdict {
            Verdict::Next | Verdict::After(_) => self.advance(arrival, missing),
            // Remembered, so that a second copy is told from a first late arrival.
            Verdict::Late => self.remember(missing),
            Verdict::Duplicate | Verdict::Nonsense => {}
        }
        verdict
    }

    fn by_time(&self, ticks: u64, due: u64, missing: u16) -> Verdict {
        let ahead = ticks.wrapping_sub(due);
        if ahead == 0 {
            return Verdict::Next;
        }
        if ahead > JUMP_TICKS_MAX {
            // Behind. Only a device whose clock was set back sends a new packet with an old time.
            let behind = ahead.wrapping_neg();
            return match missing {
                0 if behind <= JUMP_TICKS_MAX => Verdict::After(Gap::default()),
                0 => Verdict::Nonsense,
                _ => self.older(missing),
            };
        }
        if !ahead.is_multiple_of(self.ticks_per_sample) {
            return Verdict::Nonsense;
        }
        let (samples, missing) = (ahead / self.ticks_per_sample, self.unbooked(missing));
        if self.restarted {
            let packets = samples.div_ceil(self.samples_per_packet);
            return Verdict::After(Gap { packets, in_packets: samples, unsent: 0 });
        }
        let packets = samples / self.samples_per_packet;
        if packets as u16 == missing && samples.is_multiple_of(self.samples_per_packet) {
            // All of it by sequence number too, which goes round every 65 536 packets.
            return Verdict::After(Gap { packets, in_packets: samples, unsent: 0 });
        }
        let packets = u64::from(missing);
        let in_packets = samples.min(packets * self.samples_per_packet);
        Verdict::After(Gap { packets, in_packets, unsent: samples - in_packets })
    }

    fn by_sequence(&self, missing: u16) -> Verdict {
        match missing {
            0 => Verdict::Next,
            _ if self.restarted => Verdict::Next,
            1..0x8000 => {
                let packets = u64::from(missing);
                let in_packets = packets * self.samples_per_packet;
                Verdict::After(Gap { packets, in_packets, unsent: 0 })
            }
            _ => self.older(missing),
        }
    }

    fn older(&self, missing: u16) -> Verdict {
        let age = missing.wrapping_neg();
        let seen = (1..=HISTORY).contains(&age) && self.seen >> (age - 1) & 1 == 1;
        if seen { Verdict::Duplicate } else { Verdict::Late }
    }

    fn remember(&mut self, missing: u16) {
        let age = missing.wrapping_neg();
        if (1..=HISTORY).contains(&age) {
            self.seen |= 1 << (age - 1);
        }
    }

    fn advance(&mut self, arrival: &Arrival, missing: u16) {
        let steps = u32::from(missing) + 1;
        self.seen = self.seen.checked_shl(steps).unwrap_or(0) | 1;
        self.next_seq = arrival.seq.wrapping_add(1);
        (self.booked, self.restarted) = (0, false);
        let begin = arrival.ticks.or(self.next_ticks);
        let length = arrival.samples * self.ticks_per_sample;
        self.next_ticks = begin.map(|ticks| ticks.wrapping_add(length));
    }
}

#[cfg(test)]
#[path = "tracker_tests.rs"]
mod tests;
