//! One direction of a stream: its numbers, times and credit.

use std::net::SocketAddrV4;

use millstream_wire::chdr::{Header, SC16_LEN, Width};
use millstream_wire::stream::{PACKETS_UNLIMITED, SequenceGap, StatusRepr};

use crate::frame::Captured;
use crate::numbered::Numbered;
use crate::open_gaps::OpenGaps;
use crate::plain::FlowProtocol;

/// What tells flows apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowKey {
    /// The sender.
    pub source: SocketAddrV4,
    /// The receiver.
    pub destination: SocketAddrV4,
    /// The receiver's endpoint; 0 in other protocols than CHDR.
    pub epid: u16,
    /// The stream identifier of VITA 49; 0 in other protocols.
    pub stream: u32,
}

/// Where samples of a flow were lost, seen from the place of the capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossPlace {
    /// The sender did not send them: their numbers are not missing, their times are.
    Sender,
    /// Between the sender and the place of the capture: numbers are missing there.
    Before,
    /// Between the place of the capture and the receiver, which reports missing what was captured.
    Behind,
}

/// The credit of a sender when it had sent the last packet before a jump of the time, by the
/// reports that had been captured until then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Credit {
    /// The packets for which there was room; none where the credit was used up.
    pub room_packets: u64,
    /// The time from the last report to that packet, nanoseconds.
    pub report_age_ns: u64,
    /// The usual time from one report to the next, nanoseconds.
    pub usual_ns: Option<u64>,
    /// The time from that packet to the next report, or to the radio's report of an overrun,
    /// nanoseconds; `None` if the next packet came first. A receiver that reads takes about a round
    /// trip, and one that is kept from it longer.
    pub next_report_ns: Option<u64>,
}

/// Samples that are missing at one point of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowGap {
    /// The position of the flow in [`super::CaptureAccount::flows`].
    pub flow: usize,
    /// When the packet behind it, or the report about it, was captured, nanoseconds.
    pub at_ns: Option<u64>,
    /// When the packet before it was captured, nanoseconds.
    pub since_ns: Option<u64>,
    /// The number of the first missing packet, or of the first packet behind it at the sender.
    pub first: u64,
    /// The numbers that were missing when it was found: packets may have come since.
    pub numbers: u64,
    /// Where they were lost.
    pub place: LossPlace,
    /// Missing packets; 0 at the sender.
    pub packets: u64,
    /// The time that is missing, ticks of the radio; `None` where it is not known.
    pub ticks: Option<u64>,
    /// The missing samples, at 16-bit I and Q; `None` where they are not known.
    pub samples: Option<u64>,
    /// The radio reported an overrun with just this time.
    pub overrun: bool,
    /// When that report was captured, nanoseconds. The radio may have sent older samples behind it.
    pub overrun_ns: Option<u64>,
    /// The sender's credit where reports were captured: at its report of an overrun, or else before
    /// the gap.
    pub credit: Option<Credit>,
    /// Nothing else explains it, and its number is exact. Otherwise the header of the packet before
    /// was cut off, and it may have ended its burst; or numbers have only four bits, and 16 packets
    /// more may be missing, or 32 and so on.
    pub is_sure: bool,
}

impl FlowGap {
    /// Returns whether something is missing yet.
    pub(crate) fn is_open(&self) -> bool {
        self.packets > 0 || self.place == LossPlace::Sender
    }
}

/// The packets of one direction of a stream.
#[derive(Debug)]
pub struct DataFlow {
    key: FlowKey,
    protocol: FlowProtocol,
    interface: u32,
    is_outgoing: Option<bool>,
    packets: u64,
    bytes: u64,
    bursts: u64,
    reordered: u64,
    duplicates: u64,
    restarts: u64,
    clock_jumps_back: u64,
    lost_before: u64,
    lost_behind: u64,
    not_sent: Option<u64>,
    captured_ns: Option<(u64, u64)>,
    ticks: Option<(u64, u64)>,
    width: Option<Width>,
    last: Option<LastPacket>,
    step: Option<PacketStep>,
    candidate: Option<PacketStep>,
    open: OpenGaps,
    received: Received,
    report: Option<Report>,
    /// Commands of the sender since the set-up, where its first packet was captured.
    commands: Option<u16>,
    /// By how much the receiver's count of packets is ahead of the numbers of data: some receivers
    /// count commands, too.
    ahead: u16,
    usual_ns: Option<u64>,
    /// When the radio reported its last overrun, and its credit then.
    overrun: Option<(Option<u64>, Option<Credit>)>,
}

/// The last packet in the order of the numbers.
#[derive(Debug, Clone, Copy)]
struct LastPacket {
    seq: u16,
    length: u16,
    ticks: Option<u64>,
    ends_burst: bool,
    /// Its header was captured.
    is_seen: bool,
    /// The time of the last packet whose header was captured, and the packets of one length from
    /// there on.
    seen: Option<(u64, u64)>,
    at_ns: Option<u64>,
    /// What the receiver had reported by then.
    report: Option<Report>,
    /// When it reported next.
    reported_ns: Option<u64>,
}

/// How long the samples of a packet last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PacketStep {
    length: u16,
    ticks: u64,
}

/// What a receiver says of the numbers that came to it.
#[derive(Debug, Default)]
struct Received {
    /// What it misses, and may still come.
    open: OpenGaps,
    /// The number behind the last one that it is known to have, and from where on its packets have
    /// come in a row.
    end: Option<u16>,
    row: Option<u16>,
}

/// What the receiver reported last.
#[derive(Debug, Clone, Copy)]
struct Report {
    at_ns: Option<u64>,
    packets: u64,
    bytes: u64,
    capacity_bytes: u64,
    capacity_packets: u32,
}

/// A data packet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DataPacket {
    pub header: Header,
    pub ticks: Option<u64>,
    pub at_ns: Option<u64>,
    /// Packets before it may be missing 16 at a time besides.
    pub is_least: bool,
}

/// Bytes of a sender's command at the narrowest width.
const COMMAND_BYTES: u64 = 24;

impl DataFlow {
    pub(crate) fn new(
        key: FlowKey,
        protocol: FlowProtocol,
        interface: u32,
        is_outgoing: Option<bool>,
    ) -> Self {
        Self {
            key,
            protocol,
            interface,
            is_outgoing,
            packets: 0,
            bytes: 0,
            bursts: 0,
            reordered: 0,
            duplicates: 0,
            restarts: 0,
            clock_jumps_back: 0,
            lost_before: 0,
            lost_behind: 0,
            not_sent: Some(0),
            captured_ns: None,
            ticks: None,
            width: None,
            last: None,
            step: None,
            candidate: None,
            open: OpenGaps::default(),
            received: Received::default(),
            report: None,
            commands: None,
            ahead: 0,
            usual_ns: None,
            overrun: None,
        }
    }

    /// Returns what tells it apart.
    #[must_use]
    pub fn key(&self) -> &FlowKey {
        &self.key
    }

    /// Returns how its packets are numbered.
    #[must_use]
    pub fn protocol(&self) -> FlowProtocol {
        self.protocol
    }

    /// Returns whether this host sends it; `None` where that is not known.
    #[must_use]
    pub fn is_outgoing(&self) -> Option<bool> {
        self.is_outgoing
    }

    /// Returns its packets, each copy counted.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Returns the bytes of its packets.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the packets that end a burst.
    #[must_use]
    pub fn bursts(&self) -> u64 {
        self.bursts
    }

    /// Returns the packets that came behind later ones.
    #[must_use]
    pub fn reordered(&self) -> u64 {
        self.reordered
    }

    /// Returns the packets that came twice, or so late that this cannot be told apart.
    #[must_use]
    pub fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// Returns how often the stream was set up behind the first packet.
    #[must_use]
    pub fn restarts(&self) -> u64 {
        self.restarts
    }

    /// Returns how often the time jumped back within a burst.
    #[must_use]
    pub fn clock_jumps_back(&self) -> u64 {
        self.clock_jumps_back
    }

    /// Returns the packets that were lost before the place of the capture.
    #[must_use]
    pub fn lost_before(&self) -> u64 {
        self.lost_before
    }

    /// Returns the packets that the receiver missed although they were captured.
    #[must_use]
    pub fn lost_behind(&self) -> u64 {
        self.lost_behind
    }

    /// Returns the samples that the sender did not send within bursts; `None` where it is not known
    /// how many.
    #[must_use]
    pub fn not_sent(&self) -> Option<u64> {
        self.not_sent
    }

    /// Returns when the first and the last packet were captured, nanoseconds.
    #[must_use]
    pub fn captured_ns(&self) -> Option<(u64, u64)> {
        self.captured_ns
    }

    /// Returns when the last packet was captured, nanoseconds.
    #[must_use]
    pub fn last_ns(&self) -> Option<u64> {
        Some(self.captured_ns?.1)
    }

    /// Returns the time from the first to the last packet, seconds.
    #[must_use]
    pub fn seconds(&self) -> Option<f64> {
        self.captured_ns.map(|(first, last)| last.saturating_sub(first) as f64 / 1e9)
    }

    /// Returns the samples of a packet of the usual length, at 16-bit I and Q.
    #[must_use]
    pub fn samples_per_packet(&self) -> Option<u64> {
        self.samples_of(self.step?.length)
    }

    /// Returns the ticks that a sample lasts, where a packet lasts a whole number of them a sample.
    #[must_use]
    pub fn ticks_per_sample(&self) -> Option<u64> {
        let step = self.step?;
        let samples = self.samples_of(step.length)?;
        (samples > 0 && step.ticks % samples == 0).then(|| step.ticks / samples)
    }

    /// Returns the sample rate as the clock of the capture saw it, samples per second. It is rough.
    #[must_use]
    pub fn rate_hz(&self) -> Option<f64> {
        let ((first, last), seconds) = (self.ticks?, self.seconds()?);
        let samples = last.wrapping_sub(first) as f64 / self.ticks_per_sample()? as f64;
        (seconds > 0.0 && self.bursts < 2).then(|| samples / seconds)
    }

    pub(crate) fn width(&self) -> Option<Width> {
        self.width
    }

    /// Takes the width of the device's CHDR packets, once it is known.
    pub(crate) fn set_width(&mut self, width: Width) {
        self.width = Some(width);
    }

    /// Returns whether a frame passed the interface where the flow is followed: the first one, or
    /// another one once nothing has passed that for a second.
    pub(crate) fn passes(&mut self, frame: &Captured<'_>) -> bool {
        if self.interface != frame.interface {
            let last = self.captured_ns.map(|(_, last)| last);
            let pause = frame.at_ns.zip(last).map(|(now, last)| now.saturating_sub(last));
            if pause.is_some_and(|pause| pause < 1_000_000_000) {
                return false;
            }
            self.interface = frame.interface;
        }
        true
    }

    /// Begins the numbers anew: the stream is set up.
    pub(crate) fn set_up(&mut self) {
        self.restarts += u64::from(self.packets > 0);
        self.last = None;
        self.open.clear();
        self.received = Received::default();
        (self.report, self.commands, self.ahead) = (None, None, 0);
    }

    /// Counts a command of the sender besides the set-up.
    pub(crate) fn commanded(&mut self) {
        self.commands = self.commands.map(|commands| commands.saturating_add(1));
    }

    /// Returns the time behind the last sample, ticks.
    pub(crate) fn end_ticks(&self) -> Option<u64> {
        let last = self.last?;
        Some(last.ticks?.wrapping_add(self.ticks_of(last.length)?))
    }

    /// Takes a data packet; `number` is the position of the flow. `overran` says whether the radio
    /// has reported an overrun at the end of the packet before.
    pub(crate) fn data(
        &mut self,
        number: usize,
        packet: &DataPacket,
        overran: impl Fn() -> bool,
        found: &mut Numbered<FlowGap>,
    ) {
        let DataPacket { header, ticks, at_ns, is_least } = *packet;
        self.packets += 1;
        self.bytes += u64::from(header.length);
        self.bursts += u64::from(header.eob);
        if let Some(at_ns) = at_ns {
            self.captured_ns.get_or_insert((at_ns, at_ns)).1 = at_ns;
        }
        let Some(last) = self.last else {
            self.commands = (header.seq == 0).then_some(0);
            return self.pass(packet);
        };
        let ahead = header.seq.wrapping_sub(last.seq.wrapping_add(1));
        if ahead >= 1 << 15 {
            return self.old(header.seq, found);
        }
        // Between bursts anything may pass, but an overrun ends its burst, too.
        let jump = self.jump(&last, ticks);
        let overrun = jump.is_some_and(|jump| jump > 0) && overran();
        let jump = jump.filter(|_| overrun || !last.ends_burst);
        if ahead > 0 {
            // What they can have had; the rest was not sent, or a burst ended among them.
            let most = self.step.map(|step| step.ticks.saturating_mul(ahead.into()));
            let all = jump.and_then(|jump| u64::try_from(jump).ok());
            let ticks = all.zip(most).map(|(all, most)| all.min(most));
            let rest = all.zip(ticks).map_or(0, |(all, ticks)| all - ticks);
            let first = last.seq.wrapping_add(1);
            self.open.push(first, ahead, found.next());
            self.lost_before += u64::from(ahead);
            found.push(FlowGap {
                flow: number,
                at_ns,
                since_ns: last.at_ns,
                first: first.into(),
                numbers: ahead.into(),
                place: LossPlace::Before,
                packets: ahead.into(),
                ticks,
                samples: ticks.and_then(|ticks| self.samples_in(ticks)),
                overrun: false,
                overrun_ns: None,
                credit: None,
                is_sure: !is_least,
            });
            if rest > 0 {
                found.push(self.pause(number, packet, &last, rest, overrun, overrun));
            }
        } else if let Some(jump) = jump.filter(|jump| *jump != 0) {
            match u64::try_from(jump) {
                Ok(ticks) => {
                    let is_sure = overrun || last.is_seen;
                    found.push(self.pause(number, packet, &last, ticks, overrun, is_sure));
                }
                Err(_) => self.clock_jumps_back += 1,
            }
        } else if jump.is_none() {
            self.learn(&last, ticks);
        }
        self.pass(packet);
    }

    /// Returns samples that were not sent before a packet.
    fn pause(
        &mut self,
        flow: usize,
        packet: &DataPacket,
        last: &LastPacket,
        ticks: u64,
        overrun: bool,
        is_sure: bool,
    ) -> FlowGap {
        let samples = self.samples_in(ticks);
        let told = self.overrun.filter(|_| overrun);
        self.not_sent =
            self.not_sent.zip(samples).map(|(sum, samples)| sum.saturating_add(samples));
        FlowGap {
            flow,
            at_ns: packet.at_ns,
            since_ns: last.at_ns,
            first: packet.header.seq.into(),
            numbers: 0,
            place: LossPlace::Sender,
            packets: 0,
            ticks: Some(ticks),
            samples,
            overrun,
            overrun_ns: told.and_then(|(at_ns, _)| at_ns),
            credit: told.map_or_else(|| self.credit(last), |(_, credit)| credit),
            is_sure,
        }
    }

    /// Notes that its radio has reported an overrun.
    pub(crate) fn overran(&mut self, at_ns: Option<u64>) {
        let credit = self.last.and_then(|last| {
            // What has been reported by now counts; what it has not freed has lasted so long.
            let credit = self.credit(&LastPacket { report: self.report, ..last })?;
            let silent = at_ns.zip(last.at_ns).map(|(now, last)| now.saturating_sub(last));
            Some(Credit { next_report_ns: silent, ..credit })
        });
        self.overrun = Some((at_ns, credit));
    }

    /// Returns when its radio reported its last overrun, and its credit then.
    pub(crate) fn overrun(&self) -> Option<(Option<u64>, Option<Credit>)> {
        self.overrun
    }

    /// Goes on behind a packet.
    fn pass(&mut self, packet: &DataPacket) {
        let DataPacket { header, ticks, at_ns, .. } = *packet;
        self.open.pass(header.seq);
        if let Some(ticks) = ticks {
            self.ticks.get_or_insert((ticks, ticks)).1 = ticks;
        }
        let Header { seq, length, eob, .. } = header;
        let (ends_burst, report) = (eob, self.report);
        let seen = ticks.map(|ticks| (ticks, 1));
        self.last = Some(LastPacket {
            seq,
            length,
            ticks,
            ends_burst,
            is_seen: true,
            seen,
            at_ns,
            report,
            reported_ns: None,
        });
    }

    /// Goes on behind the packets of a train whose headers were cut off: `bytes` bytes in parts of
    /// `part` bytes.
    pub(crate) fn unseen(&mut self, part: u16, bytes: usize, at_ns: Option<u64>) {
        let mut left = bytes;
        while let (Some(last), true) = (self.last, left > 0 && part > 0) {
            let ticks = self.end_ticks();
            let length = left.min(part.into());
            left -= length;
            self.packets += 1;
            self.bytes += length as u64;
            let (seq, length) = (last.seq.wrapping_add(1), length as u16);
            let seen = last.seen.filter(|_| length == last.length);
            let seen = seen.map(|(ticks, packets)| (ticks, packets + 1));
            self.last =
                Some(LastPacket { seq, length, ticks, is_seen: false, seen, at_ns, ..last });
        }
    }

    /// Takes a packet behind later ones.
    fn old(&mut self, seq: u16, found: &mut Numbered<FlowGap>) {
        let (step, per_sample) = (self.step.map(|step| step.ticks), self.ticks_per_sample());
        let samples_in = |ticks| Some(ticks / per_sample?);
        if self.open.come((seq, 1), found, step, samples_in) == 0 {
            self.duplicates += 1;
            return;
        }
        self.reordered += 1;
        self.lost_before -= 1;
    }

    /// Returns by how much the time of a packet differs from the end of the last one; `None` where
    /// that is not known.
    fn jump(&self, last: &LastPacket, ticks: Option<u64>) -> Option<i64> {
        let (before, ticks) = (last.ticks?, ticks?);
        Some(ticks.wrapping_sub(before).wrapping_sub(self.ticks_of(last.length)?) as i64)
    }

    /// Learns how long a packet lasts: two in a row agree.
    fn learn(&mut self, last: &LastPacket, ticks: Option<u64>) {
        let (Some((before, packets)), Some(ticks), false) = (last.seen, ticks, last.ends_burst)
        else {
            return;
        };
        let ticks = ticks.wrapping_sub(before);
        if ticks % packets != 0 {
            return;
        }
        let seen = PacketStep { length: last.length, ticks: ticks / packets };
        if self.candidate == Some(seen) {
            self.step = Some(seen);
        }
        self.candidate = Some(seen);
    }

    /// Returns how long the samples of a packet of this length last, ticks.
    fn ticks_of(&self, length: u16) -> Option<u64> {
        let step = self.step?;
        if length == step.length {
            return Some(step.ticks);
        }
        self.samples_of(length)?.checked_mul(self.ticks_per_sample()?)
    }

    fn samples_of(&self, length: u16) -> Option<u64> {
        let header =
            Header { kind: millstream_wire::chdr::PacketType::TimedData, ..Header::default() };
        let bytes = usize::from(length).checked_sub(header.len(self.width?))?;
        Some((bytes / SC16_LEN) as u64)
    }

    fn samples_in(&self, ticks: u64) -> Option<u64> {
        Some(ticks / self.ticks_per_sample()?)
    }

    /// Takes a report of the receiver, which may miss packets that were captured.
    pub(crate) fn status(
        &mut self,
        number: usize,
        status: &StatusRepr,
        at_ns: Option<u64>,
        found: &mut Numbered<FlowGap>,
    ) {
        if let Some(last) = &mut self.last {
            last.reported_ns = last.reported_ns.or(at_ns);
            // It cannot count data that was not sent.
            let ahead = (status.count_packets as u16).wrapping_sub(last.seq.wrapping_add(1));
            if ahead < 1 << 15 {
                let most = self.commands.unwrap_or(u16::MAX);
                self.ahead = self.ahead.max(ahead.min(most));
            }
        }
        let before = self.report.replace(Report {
            at_ns,
            packets: status.count_packets,
            bytes: status.count_bytes,
            capacity_bytes: status.capacity_bytes,
            capacity_packets: status.capacity_packets,
        });
        let passed = at_ns.zip(before.and_then(|report| report.at_ns));
        if let Some(passed) = passed.map(|(now, before)| now.saturating_sub(before)) {
            let usual = self.usual_ns.unwrap_or(passed);
            // A pause hardly counts.
            self.usual_ns =
                Some((7 * (usual / 8)).saturating_add(passed.min(usual.saturating_mul(4)) / 8));
        }
        if status.status != millstream_wire::stream::StreamCondition::SequenceError {
            return;
        }
        let gap = SequenceGap::from_info(status.error_info).filter(|gap| gap.kind.is_data());
        let Some(gap) = gap else { return };
        let SequenceGap { expected, actual, .. } = gap;
        let Received { open, end, row } = &mut self.received;
        let begin = end.unwrap_or(expected);
        // Since its last report its packets have come in a row, and now one that is out of it.
        let in_row = row.map(|row| (row, expected.wrapping_sub(row)));
        let late = (actual.wrapping_sub(begin) >= 1 << 15).then_some((actual, 1));
        for came in in_row.into_iter().chain(late).filter(|came| came.1 < 1 << 15) {
            self.lost_behind -= open.come(came, found, None, |_| None);
        }
        let newest = |one: u16, other: u16| {
            if other.wrapping_sub(one) < 1 << 15 { other } else { one }
        };
        let first = newest(begin, expected);
        (*row, *end) = (Some(actual.wrapping_add(1)), Some(newest(first, actual.wrapping_add(1))));
        let missed = actual.wrapping_sub(first);
        if late.is_some() || missed >= 1 << 15 {
            return;
        }
        // Those that did not come here, and have not come later, were lost before.
        let packets = u64::from(missed).saturating_sub(self.open.missing(first, missed));
        if packets == 0 {
            return;
        }
        open.push_partly(first, missed, missed.saturating_sub(packets as u16), found.next());
        self.lost_behind += packets;
        found.push(FlowGap {
            flow: number,
            at_ns,
            since_ns: before.and_then(|report| report.at_ns),
            first: first.into(),
            numbers: missed.into(),
            place: LossPlace::Behind,
            packets,
            ticks: None,
            samples: None,
            overrun: false,
            overrun_ns: None,
            credit: None,
            is_sure: true,
        });
    }

    /// Returns the credit behind a packet.
    fn credit(&self, last: &LastPacket) -> Option<Credit> {
        let (report, step) = (last.report?, self.step?);
        let behind_last = last.seq.wrapping_add(1).wrapping_add(self.ahead);
        let in_flight = behind_last.wrapping_sub(report.packets as u16);
        let in_flight = if in_flight < 1 << 15 { u64::from(in_flight) } else { 0 };
        let word = self.width.map_or(8, Width::bytes);
        let length = usize::from(step.length).next_multiple_of(word).max(word) as u64;
        // The count of bytes may be behind that of packets, and it is the one that gives credit.
        let ahead = u64::from(self.ahead);
        let data_bytes = report.packets.saturating_sub(ahead).saturating_mul(length);
        let behind = data_bytes.checked_sub(report.bytes.saturating_sub(ahead * COMMAND_BYTES));
        let behind = behind.filter(|bytes| *bytes < 64 * length).unwrap_or(0);
        let mut capacity = report.capacity_bytes.saturating_sub(behind) / length;
        if report.capacity_packets != PACKETS_UNLIMITED {
            capacity = capacity.min(report.capacity_packets.into());
        }
        let at_ns = last.at_ns?;
        Some(Credit {
            room_packets: capacity.saturating_sub(in_flight),
            report_age_ns: at_ns.saturating_sub(report.at_ns?),
            usual_ns: self.usual_ns,
            next_report_ns: last.reported_ns.map(|next| next.saturating_sub(at_ns)),
        })
    }
}
