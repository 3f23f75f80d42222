//! The device's progress through the packets: which it took, and which it passed over.
//!
//! The device reports each data packet whose number is not one more than the last one's, with the
//! expected number and the number that came. So between two reports it took packets one by one, and
//! as long as no report is missing, the outcome of every packet follows:
//! ```text
//! due 5, came 7     due 9, came 5     due 6, came 9
//!   ── took 7, 8 ────▶ took 5 ───────────▶ took 9, 10, …
//!   5, 6 are skipped   5 came late         nothing is new
//! ```
//! A missing report (the reports have numbers) may have been about any packet sent until then. So
//! what is not decided at that moment is *open* for ever: it was transmitted or lost. The next
//! report tells the device's place again, and from there on everything is known as before.

/// The packets that are remembered: half the range of their 16-bit numbers.
const REMEMBERED: u64 = 1 << 15;

/// The packets by which a number in a report may be behind the newest one, with a margin.
const REACH: u64 = 30_000;

/// The most packets in flight, so that their numbers distinguish them.
const IN_FLIGHT_MAX: u64 = 20_000;

/// The outcome of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    InFlight,
    Taken,
    /// The device passed it over: it is lost, unless it comes late.
    Skipped,
    /// Taken or lost; the report about it may be missing.
    Open,
}

/// A packet that was sent.
#[derive(Debug, Clone, Copy)]
struct SentPacket {
    /// Time of its first sample, ticks.
    ticks: u64,
    is_timed: bool,
    /// It does not begin where the packet before it ends.
    is_apart: bool,
    outcome: Outcome,
    flow_bytes: u32,
    /// Samples of the caller.
    samples: u32,
}

/// Packets and their lengths in flow control.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Totals {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

/// Samples by the outcome of their packets, since the stream began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Outcomes {
    /// Taken once or more often.
    pub taken: u64,
    /// Passed over, and the number of such packets, with those that came later.
    pub skipped: u64,
    pub skipped_packets: u64,
    /// Taken or lost.
    pub open: u64,
    /// Taken once more, for each time.
    pub again: u64,
    /// The packets of `again`.
    pub copies: u64,
    /// Taken after the device had passed them over.
    pub came_late: u64,
    /// A report was missing, so packets may have been taken once more without one.
    pub is_blurred: bool,
}

/// The packets since the handshake, counted from 0 without wrapping, and what became of them.
#[derive(Debug)]
pub(super) struct DeviceProgress {
    packets: Box<[SentPacket]>,
    sent: u64,
    /// The outcome of all packets before this one is decided.
    decided: u64,
    /// The packet that the device expects.
    place: u64,
    /// Packets before this one may have been taken without a report.
    blurred_to: u64,
    /// A report is missing before the next one.
    is_blind: bool,
    /// No packet before this one is skipped.
    skipped_from: u64,
    /// The packets sent at the last report of a fault.
    trouble_to: u64,
    in_flight: Totals,
    samples_in_flight: u64,
    /// Bytes of packets that were skipped, and may come late, or that came unexpectedly.
    loose_bytes: u64,
    /// The time behind the last packet sent, ticks.
    due_ticks: Option<u64>,
    ticks_per_sample: u64,
    outcomes: Outcomes,
}

impl DeviceProgress {
    /// Returns the progress of a stream that has sent nothing, and whose samples last
    /// `ticks_per_sample` ticks each.
    pub fn new(ticks_per_sample: u64) -> Self {
        let none = SentPacket {
            ticks: 0,
            is_timed: false,
            is_apart: false,
            outcome: Outcome::InFlight,
            flow_bytes: 0,
            samples: 0,
        };
        Self {
            packets: vec![none; REMEMBERED as usize].into(),
            sent: 0,
            decided: 0,
            place: 0,
            blurred_to: 0,
            is_blind: false,
            skipped_from: 0,
            trouble_to: 0,
            in_flight: Totals::default(),
            samples_in_flight: 0,
            loose_bytes: 0,
            due_ticks: None,
            ticks_per_sample,
            outcomes: Outcomes::default(),
        }
    }

    /// Begins anew with the numbers, behind another handshake. What is in flight is open.
    pub fn restart(&mut self) {
        self.close();
        (self.sent, self.decided, self.place, self.blurred_to) = (0, 0, 0, 0);
        (self.skipped_from, self.trouble_to, self.loose_bytes) = (0, 0, 0);
    }

    /// Returns the samples by outcome.
    pub fn outcomes(&self) -> &Outcomes {
        &self.outcomes
    }

    /// Returns the number of the next packet.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Returns the number of the first packet without an outcome.
    pub fn decided(&self) -> u64 {
        self.decided
    }

    /// Returns whether every packet has an outcome, and no report about them is missing.
    pub fn is_known(&self) -> bool {
        self.decided == self.sent && !self.is_blind
    }

    /// Returns whether a packet counts as lost that may come late.
    pub fn has_skipped(&self) -> bool {
        let first = self.skipped_from.max(self.sent.saturating_sub(REMEMBERED));
        (first..self.decided).any(|number| self.at(number).outcome == Outcome::Skipped)
    }

    /// Returns the number behind the packets that the last reported fault may be about.
    pub fn trouble_to(&self) -> u64 {
        self.trouble_to
    }

    /// Returns the packets without an outcome.
    pub fn in_flight(&self) -> Totals {
        self.in_flight
    }

    /// Returns the samples in them.
    pub fn samples_in_flight(&self) -> u64 {
        self.samples_in_flight
    }

    /// Returns how many more packets can be told apart.
    pub fn room_packets(&self) -> u64 {
        IN_FLIGHT_MAX.saturating_sub(self.sent - self.decided)
    }

    /// Returns the bytes of packets that were skipped or came unexpectedly since the last call.
    pub fn take_loose_bytes(&mut self) -> u64 {
        std::mem::take(&mut self.loose_bytes)
    }

    /// Returns whether packets in flight have times.
    pub fn has_times(&self) -> bool {
        (self.decided..self.sent).any(|number| self.at(number).is_timed)
    }

    /// Returns the first time later than `now` for which the device waits, if less than `bytes` are
    /// in flight before it.
    pub fn next_start(&self, now: u64, bytes: u64) -> Option<u64> {
        let mut before = 0;
        for number in self.decided..self.sent {
            let packet = self.at(number);
            if before >= bytes {
                return None;
            }
            let is_start = packet.is_timed && (packet.is_apart || number == self.decided);
            if is_start && (packet.ticks.wrapping_sub(now) as i64) > 0 {
                return Some(packet.ticks);
            }
            before += u64::from(packet.flow_bytes);
        }
        None
    }

    /// Returns the samples of the first `count` packets from `first` on; `None` if they are no
    /// longer remembered.
    pub fn samples_of(&self, first: u64, count: u64) -> Option<u64> {
        let is_remembered = self.sent - first.min(self.sent) <= REMEMBERED;
        let samples = |number| u64::from(self.at(number).samples);
        is_remembered.then(|| (first..first + count).map(samples).sum())
    }

    /// Records a sent packet.
    pub fn send(&mut self, flow_bytes: u64, samples: u64, ticks: Option<u64>) {
        let index = (self.sent % REMEMBERED) as usize;
        self.packets[index] = SentPacket {
            ticks: ticks.unwrap_or(0),
            is_timed: ticks.is_some(),
            is_apart: ticks != self.due_ticks,
            outcome: Outcome::InFlight,
            flow_bytes: flow_bytes as u32,
            samples: samples as u32,
        };
        let length = samples.wrapping_mul(self.ticks_per_sample);
        self.due_ticks = ticks.map(|ticks| ticks.wrapping_add(length));
        self.sent += 1;
        self.in_flight.packets += 1;
        self.in_flight.bytes += flow_bytes;
        self.samples_in_flight += samples;
    }

    /// Notes that a report is missing before the next one, or says nothing that can be used.
    pub fn miss(&mut self) {
        self.is_blind = true;
        self.trouble_to = self.sent;
    }

    /// Takes the number of the packet that the device expects. Returns that packet; `None` if there
    /// is no such one.
    pub fn reach(&mut self, expected: u16) -> Option<u64> {
        let place = near(expected, self.place);
        let is_sent = place <= self.sent && self.sent - place <= REACH;
        if !is_sent {
            self.miss();
            return None;
        }
        if self.is_blind || place < self.place {
            // Only a packet that no report told about leads back.
            self.blur(place);
        }
        (self.place..place).for_each(|number| self.take(number));
        self.place = place;
        Some(place)
    }

    /// Takes the report that a packet came in place of the expected one.
    pub fn gap(&mut self, expected: u16, actual: u16) {
        let Some(due) = self.reach(expected) else { return };
        let came = near(actual, due);
        if came >= self.sent || self.sent - came > REACH {
            return self.miss();
        }
        self.trouble_to = self.sent;
        self.skip(came);
        self.take(came);
        self.place = came + 1;
    }

    /// Takes the answer to a query that was sent behind `sent` packets: those that have not come
    /// are skipped.
    pub fn settle(&mut self, sent: u64) {
        if sent > self.decided {
            self.trouble_to = self.sent;
            self.skip(sent);
        }
    }

    /// Ends the reports: packets in flight are open.
    pub fn close(&mut self) {
        if self.decided < self.sent || self.is_blind {
            self.blur(self.sent);
        }
    }

    /// Makes open what is not decided before `place`, and what seems lost.
    fn blur(&mut self, place: u64) {
        (self.is_blind, self.outcomes.is_blurred) = (false, true);
        (self.blurred_to, self.trouble_to) = (self.sent, self.sent);
        let from = self.skipped_from.max(self.sent.saturating_sub(REMEMBERED));
        for number in from..self.decided {
            let packet = &mut self.packets[(number % REMEMBERED) as usize];
            if packet.outcome == Outcome::Skipped {
                packet.outcome = Outcome::Open;
                self.outcomes.skipped -= u64::from(packet.samples);
                self.outcomes.open += u64::from(packet.samples);
            }
        }
        self.skip(place);
        (self.skipped_from, self.place) = (self.decided, place);
    }

    /// Decides that the device has not taken the packets in flight before `to`.
    fn skip(&mut self, to: u64) {
        for number in self.decided..to {
            if number < self.blurred_to {
                self.outcomes.open += self.decide(number, Outcome::Open);
            } else {
                self.outcomes.skipped += self.decide(number, Outcome::Skipped);
                self.outcomes.skipped_packets += 1;
                self.loose_bytes += u64::from(self.at(number).flow_bytes);
            }
        }
    }

    /// Decides that the device has taken a packet.
    fn take(&mut self, number: u64) {
        if number >= self.decided {
            self.outcomes.taken += self.decide(number, Outcome::Taken);
            return;
        }
        let packet = &mut self.packets[(number % REMEMBERED) as usize];
        let samples = u64::from(packet.samples);
        self.loose_bytes += u64::from(packet.flow_bytes);
        match std::mem::replace(&mut packet.outcome, Outcome::Taken) {
            Outcome::InFlight | Outcome::Taken => {
                self.outcomes.again += samples;
                self.outcomes.copies += 1;
            }
            Outcome::Skipped => {
                self.outcomes.skipped -= samples;
                self.outcomes.taken += samples;
                self.outcomes.came_late += samples;
            }
            Outcome::Open => {
                self.outcomes.open -= samples;
                self.outcomes.taken += samples;
                self.outcomes.came_late += samples;
            }
        }
    }

    /// Sets the outcome of the first packet without one. Returns its samples.
    fn decide(&mut self, number: u64, outcome: Outcome) -> u64 {
        debug_assert_eq!(number, self.decided, "outcomes are decided in order");
        let packet = &mut self.packets[(number % REMEMBERED) as usize];
        packet.outcome = outcome;
        self.decided = number + 1;
        self.in_flight.packets -= 1;
        self.in_flight.bytes -= u64::from(packet.flow_bytes);
        self.samples_in_flight -= u64::from(packet.samples);
        packet.samples.into()
    }

    fn at(&self, number: u64) -> &SentPacket {
        &self.packets[(number % REMEMBERED) as usize]
    }
}

/// Returns the packet nearest to `place` with these low bits of its number.
fn near(low: u16, place: u64) -> u64 {
    let step = i64::from(low.wrapping_sub(place as u16) as i16);
    place.wrapping_add_signed(step)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SAMPLES: u64 = 100;

    /// A device that reports each packet whose number does not follow the last one's.
    struct Device {
        progress: DeviceProgress,
        due: u64,
        /// How often it has taken each packet.
        times: Vec<u64>,
        is_report_missing: bool,
    }

    impl Device {
        /// Returns a device to which so many packets were sent.
        fn of(packets: usize) -> Self {
            let mut progress = DeviceProgress::new(1);
            (0..packets).for_each(|_| progress.send(8 + 4 * SAMPLES, SAMPLES, None));
            Self { progress, due: 0, times: vec![0; packets], is_report_missing: false }
        }

        fn report(&mut self, is_lost: bool, tell: impl FnOnce(&mut DeviceProgress)) {
            if std::mem::replace(&mut self.is_report_missing, is_lost) && !is_lost {
                self.progress.miss();
            } else if is_lost {
                return;
            }
            tell(&mut self.progress);
        }

        fn take(&mut self, number: u64, loses_report: bool) {
            let due = std::mem::replace(&mut self.due, number + 1);
            self.times[number as usize] += 1;
            if due != number {
                self.report(loses_report, |progress| progress.gap(due as u16, number as u16));
            } else if number & 3 == 0 {
                self.report(loses_report, |progress| _ = progress.reach(number as u16 + 1));
            }
        }

        /// Answers a query behind all packets.
        fn answer(&mut self) -> Outcomes {
            let (due, sent) = (self.due, self.progress.sent());
            self.report(false, |progress| {
                progress.reach(due as u16);
                progress.settle(sent);
            });
            assert!(self.progress.is_known());
            assert_eq!(self.progress.in_flight(), Totals::default());
            *self.progress.outcomes()
        }
    }

    fn after(taken: &[u64]) -> Outcomes {
        let mut device = Device::of(10);
        taken.iter().for_each(|number| device.take(*number, false));
        device.answer()
    }

    #[test]
    fn what_came_late_was_not_lost_and_what_came_twice_is_known() {
        let outcomes = after(&[0, 1, 4, 2, 5, 5, 6, 9]);
        assert_eq!((outcomes.taken, outcomes.skipped, outcomes.open), (700, 300, 0));
        assert_eq!((outcomes.again, outcomes.copies, outcomes.came_late), (100, 1, 100));
        assert!(!outcomes.is_blurred);
    }

    #[test]
    fn a_missing_report_opens_what_was_sent_until_then_and_no_more() {
        let mut device = Device::of(10);
        for (number, loses_report) in [(0, false), (1, false), (3, true), (4, false)] {
            device.take(number, loses_report);
        }
        // Packets 1 to 4 may have been taken or not, and those behind it once before.
        assert_eq!((device.progress.outcomes().taken, device.progress.outcomes().open), (100, 400));
        device.progress.send(408, SAMPLES, None);
        device.progress.send(408, SAMPLES, None);
        device.times.resize(12, 0);
        for number in [5, 6, 7, 8, 9, 11] {
            device.take(number, false);
        }
        let outcomes = device.answer();
        assert_eq!((outcomes.taken, outcomes.skipped, outcomes.open), (700, 100, 400));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

        #[test]
        fn the_outcomes_hold_what_the_device_took(
            fates in prop::collection::vec((0u8..12, any::<bool>()), 1..120),
            loses_reports in any::<bool>(),
        ) {
            let mut arrivals = Vec::new();
            for (number, (fate, _)) in fates.iter().enumerate() {
                match fate {
                    0 => {}
                    1 => arrivals.extend([number, number]),
                    2 => arrivals.insert(arrivals.len().saturating_sub(3), number),
                    3 if number > 2 => arrivals.extend([number, number - 2]),
                    _ => arrivals.push(number),
                }
            }
            let mut device = Device::of(fates.len());
            for number in arrivals {
                device.take(number as u64, loses_reports && fates[number].1);
            }
            let outcomes = device.answer();
            let once = SAMPLES * device.times.iter().filter(|times| **times > 0).count() as u64;
            let again: u64 = device.times.iter().map(|times| times.saturating_sub(1)).sum();
            let never = SAMPLES * fates.len() as u64 - once;
            prop_assert!((outcomes.taken..=outcomes.taken + outcomes.open).contains(&once));
            prop_assert!((outcomes.skipped..=outcomes.skipped + outcomes.open).contains(&never));
            prop_assert!(outcomes.again <= SAMPLES * again);
            if !outcomes.is_blurred {
                prop_assert_eq!((outcomes.open, outcomes.again), (0, SAMPLES * again));
            }
            prop_assert!(loses_reports || !outcomes.is_blurred);
        }
    }
}
