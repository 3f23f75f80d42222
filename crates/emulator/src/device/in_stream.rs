//! Host to device: counts the host's packets and grants credit.

use super::endpoint::CreditWindow;
use millstream_wire::Epid;
use millstream_wire::chdr::PacketType;
use millstream_wire::stream::{
    CommandOp, CommandRepr, PACKETS_MASK, SequenceGap, StatusRepr, StreamCondition,
};

/// The receiving half of a stream endpoint, at the output of its buffer: numbers, counts, credit.
///
/// A packet is consumed when it leaves the endpoint's buffer. So the host may have in flight the
/// capacity of the buffer, and of the socket's receive queue before it.
#[derive(Debug, Clone, Default)]
pub(crate) struct InStream {
    /// Whether a host has begun a stream; data without a stream are not taken.
    begun: bool,
    src_epid: Epid,
    window: CreditWindow,
    period_bytes: u64,
    period_packets: u64,
    consumed: Totals,
    /// The totals at the last status.
    reported: Totals,
    next_seq: u16,
    /// The expected number of the next command; any number is accepted for the first one behind
    /// INIT.
    next_command_seq: Option<u16>,
    /// The number of the last command.
    command_seq: u16,
    status_seq: u16,
}

/// What has been consumed since the stream began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Totals {
    pub bytes: u64,
    pub packets: u64,
}

/// The cause of a status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// A command.
    Command,
    /// A period is over.
    Period(Moment),
    /// A number did not follow the last one.
    Gap(SequenceGap, Moment),
}

/// The totals while a status leaves: the packet that caused it goes on meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment {
    /// Those that it shows.
    shown: Totals,
    /// Those with which the next period begins.
    begins: Totals,
}

/// The bytes that leave the buffer between the cause of a status and the reading of its counts, and
/// those until the next period begins.
const STATUS_LAG_BYTES: u64 = 80;
const PERIOD_LAG_BYTES: u64 = 208;

/// The bit of a status that is sent because a period is over.
const PERIOD_OVER: u64 = 1 << 47;

impl InStream {
    /// Returns a stream that has not been initialised, with this window.
    pub fn new(window: CreditWindow) -> Self {
        Self { window, ..Self::default() }
    }

    /// Clears the stream.
    pub fn reset(&mut self) {
        *self = Self::new(self.window);
    }

    /// Returns whether a stream has begun.
    pub fn has_begun(&self) -> bool {
        self.begun
    }

    /// Begins a stream with INIT, which has come.
    pub fn begin(&mut self) {
        self.begun = true;
    }

    /// Counts a data packet that leaves the buffer, of this kind and number; those within the
    /// device have none. Returns the causes of statuses.
    pub fn consume(
        &mut self,
        number: Option<(PacketType, u16)>,
        flow_bytes: u64,
    ) -> [Option<Cause>; 3] {
        let gap = number.and_then(|(kind, actual)| {
            let expected = std::mem::replace(&mut self.next_seq, actual.wrapping_add(1));
            (expected != actual).then_some(SequenceGap { kind, expected, actual })
        });
        let before = self.consumed;
        let period = self.count(flow_bytes);
        let told = |gap| Cause::Gap(gap, before.moment(0, flow_bytes));
        [gap.map(told), period.map(Cause::Period), None]
    }

    /// Executes a stream command that leaves the buffer and has this number; `None` is one whose
    /// operation does not exist, which is counted and not answered. Returns the causes of statuses.
    pub fn execute(
        &mut self,
        seq: u16,
        command: Option<&CommandRepr>,
        flow_bytes: u64,
    ) -> [Option<Cause>; 3] {
        let next = self.next_command_seq.replace(seq.wrapping_add(1));
        self.command_seq = seq;
        let before = self.consumed;
        let period = self.count(flow_bytes);
        let gap = next.filter(|&expected| expected != seq).map(|expected| {
            let gap = SequenceGap { kind: PacketType::StreamCommand, expected, actual: seq };
            Cause::Gap(gap, before.moment(0, flow_bytes))
        });
        let Some(command) = command else { return [gap, period.map(Cause::Period), None] };
        self.src_epid = command.src_epid;
        let CommandRepr { bytes, packets, .. } = *command;
        match command.op {
            CommandOp::Init => {
                (self.period_bytes, self.period_packets) = (bytes, packets);
                (self.consumed, self.reported) = (Totals::default(), Totals::default());
                (self.next_seq, self.next_command_seq, self.status_seq) = (0, None, 0);
                return [None, Some(Cause::Command), None];
            }
            CommandOp::Ping => {}
            // They are the sender's totals, with or without this packet.
            CommandOp::Resync => self.consumed = Totals { bytes, packets },
        }
        [gap, Some(Cause::Command), period.map(|_| Cause::Period(self.consumed.at_rest()))]
    }

    /// Counts a packet; returns the moment of a status when a period is over.
    ///
    /// As in hardware it is the edge that counts: without one of the periods it is always over, and
    /// nothing is reported.
    fn count(&mut self, flow_bytes: u64) -> Option<Moment> {
        let (bytes, packets) = self.until_report();
        let before = self.consumed;
        self.consumed = Totals {
            bytes: before.bytes.wrapping_add(flow_bytes),
            packets: before.packets.wrapping_add(1) & PACKETS_MASK,
        };
        if bytes > 0 && bytes <= flow_bytes {
            Some(before.moment(bytes, flow_bytes))
        } else if packets == 1 {
            Some(self.consumed.at_rest())
        } else {
            None
        }
    }

    /// Returns the bytes and packets that may be consumed before a status is due; 0 when a period
    /// has been over since then.
    pub fn until_report(&self) -> (u64, u64) {
        let Self { period_bytes, period_packets, consumed, reported, .. } = self;
        if *period_bytes == 0 || *period_packets == 0 {
            return (u64::MAX, u64::MAX);
        }
        let packets = consumed.packets.wrapping_sub(reported.packets) & PACKETS_MASK;
        (
            period_bytes.saturating_sub(consumed.bytes.wrapping_sub(reported.bytes)),
            period_packets.saturating_sub(packets),
        )
    }

    /// Returns the status to be sent now.
    ///
    /// A host that counts packets indicates that by a report period in packets. Before that, and
    /// without it, it gets the limit for hosts that count only bytes: UHD takes its window from the
    /// answer to its first INIT, which requests no reports, and never updates it.
    pub fn report(&mut self, own: Epid, cause: Cause) -> StatusRepr {
        let seq = self.status_seq;
        self.status_seq = seq.wrapping_add(1);
        let counts_packets = self.period_packets > 0;
        let info = u64::from(self.next_seq) << 16 | u64::from(self.command_seq);
        let (status, moment, error_info) = match cause {
            Cause::Command => (StreamCondition::Ok, self.consumed.at_rest(), info),
            Cause::Period(moment) => (StreamCondition::Ok, moment, PERIOD_OVER | info),
            Cause::Gap(gap, moment) => (StreamCondition::SequenceError, moment, gap.to_info()),
        };
        let Moment { shown, begins } = moment;
        let CreditWindow { bytes: capacity_bytes, cautious_bytes, packets } = self.window;
        self.reported = begins;
        let (bytes_left, packets_left) = self.until_report();
        if bytes_left == 0 || packets_left == 0 {
            // A period that is shorter than the rest of a packet does not end in it.
            self.reported = self.consumed;
        }
        StatusRepr {
            dst_epid: self.src_epid,
            seq,
            src_epid: own,
            status,
            capacity_bytes: if counts_packets { capacity_bytes } else { cautious_bytes },
            capacity_packets: packets,
            count_packets: shown.packets,
            count_bytes: shown.bytes,
            buffer_info: 0,
            error_info,
        }
    }
}

impl Totals {
    /// Returns the moment of a status that leaves between packets.
    fn at_rest(self) -> Moment {
        Moment { shown: self, begins: self }
    }

    /// Returns the moment of a status that is caused when `at` bytes of the next packet, which has
    /// `flow_bytes`, have left.
    fn moment(self, at: u64, flow_bytes: u64) -> Moment {
        let at = at.next_multiple_of(8);
        Moment {
            shown: self.with(at.saturating_add(STATUS_LAG_BYTES), flow_bytes),
            begins: self.with(at.saturating_add(PERIOD_LAG_BYTES), flow_bytes),
        }
    }

    /// Returns the totals with a part of the next packet, or all of it.
    fn with(self, part: u64, flow_bytes: u64) -> Self {
        let part = part.min(flow_bytes);
        let packets = self.packets.wrapping_add(u64::from(part == flow_bytes)) & PACKETS_MASK;
        Self { bytes: self.bytes.wrapping_add(part), packets }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: Epid = Epid(2);
    const DATA: PacketType = PacketType::Data;

    fn command(op: CommandOp, bytes: u64, packets: u64) -> CommandRepr {
        let (dst_epid, src_epid) = (OWN, Epid(9));
        CommandRepr { dst_epid, seq: 0, src_epid, op, op_data: 0, packets, bytes }
    }

    /// Executes a command; returns its statuses.
    fn execute(stream: &mut InStream, seq: u16, command: Option<CommandRepr>) -> Vec<StatusRepr> {
        let causes = stream.execute(seq, command.as_ref(), 24);
        causes.into_iter().flatten().map(|cause| stream.report(OWN, cause)).collect()
    }

    /// Consumes a packet; returns its statuses.
    fn consume(stream: &mut InStream, seq: u16, bytes: u64) -> Vec<StatusRepr> {
        let causes = stream.consume(Some((DATA, seq)), bytes);
        causes.into_iter().flatten().map(|cause| stream.report(OWN, cause)).collect()
    }

    fn init(stream: &mut InStream, seq: u16, bytes: u64, packets: u64) -> StatusRepr {
        execute(stream, seq, Some(command(CommandOp::Init, bytes, packets)))[0]
    }

    fn counts(status: &StatusRepr) -> (u64, u64, u64) {
        (status.count_packets, status.count_bytes, status.error_info)
    }

    fn begun(period_bytes: u64, period_packets: u64) -> InStream {
        let mut stream =
            InStream::new(CreditWindow { bytes: 50_000, cautious_bytes: 40_000, packets: 700 });
        stream.begin();
        init(&mut stream, 0, period_bytes, period_packets);
        stream
    }

    #[test]
    fn init_states_the_capacity_and_begins_all_counts_and_numbers() {
        let mut stream = begun(0, 0);
        consume(&mut stream, 0, 1000);
        let status = init(&mut stream, 77, 6250, 88);
        assert_eq!((status.dst_epid, status.src_epid, status.seq), (Epid(9), OWN, 0));
        assert_eq!((status.capacity_bytes, status.capacity_packets), (50_000, 700));
        assert_eq!(counts(&status), (0, 0, 77), "a wrong number leaves no trace");
        assert_eq!(stream.until_report(), (6250, 88));
        assert!(consume(&mut stream, 0, 104).is_empty());
    }

    #[test]
    fn a_host_that_counts_bytes_alone_is_granted_fewer() {
        let mut stream = begun(0, 0);
        assert_eq!(init(&mut stream, 0, 5000, 0).capacity_bytes, 40_000);
        let status = init(&mut stream, 0, 5000, 88);
        assert_eq!((status.capacity_bytes, status.capacity_packets), (50_000, 700));
    }

    /// The packets of 240 bytes after which a status comes, with its packets and bytes, as in the
    /// recorded exchange 32.
    #[test]
    fn a_status_is_due_on_the_edge_of_a_period_of_bytes_or_packets() {
        const OFF: u64 = 0xff_ffff;
        for (period_bytes, period_packets, want) in [
            (960, OFF, vec![(3, 4, 960), (7, 8, 1920), (11, 12, 2880), (15, 16, 3840)]),
            (1000, OFF, vec![(4, 4, 1080), (9, 9, 2280), (14, 14, 3480)]),
            (OFF, 4, vec![(3, 4, 960), (7, 8, 1920), (11, 12, 2880), (15, 16, 3840)]),
            (500, 4, vec![(2, 2, 584), (5, 5, 1296), (8, 8, 2008), (10, 11, 2640), (13, 13, 3224)]),
            (1, OFF, (0..16).map(|seq| (seq, seq.into(), 240 * u64::from(seq) + 88)).collect()),
            (0, 4, vec![]),
            (1000, 0, vec![]),
            (0, 0, vec![]),
        ] {
            let mut stream = begun(period_bytes, period_packets);
            let mut got = Vec::new();
            for seq in 0..16 {
                for status in consume(&mut stream, seq, 240) {
                    assert_eq!(status.error_info, PERIOD_OVER | u64::from(seq + 1) << 16);
                    got.push((seq, status.count_packets, status.count_bytes));
                }
            }
            assert_eq!(got, want, "{period_bytes} bytes, {period_packets} packets");
            let ping = execute(&mut stream, 0, Some(command(CommandOp::Ping, 0, 0)));
            assert_eq!(counts(&ping[0]), (17, 3864, 16 << 16));
            assert_eq!(ping.len(), if matches!(period_bytes, 1 | 500) { 2 } else { 1 });
        }
    }

    #[test]
    fn a_command_that_ends_a_period_is_answered_twice() {
        let mut stream = begun(1 << 30, 2);
        assert!(consume(&mut stream, 0, 240).is_empty());
        let told = execute(&mut stream, 0, Some(command(CommandOp::Ping, 0, 0)));
        let told: Vec<_> = told.iter().map(counts).collect();
        assert_eq!(told, [(2, 264, 1 << 16), (2, 264, PERIOD_OVER | 1 << 16)]);
    }

    #[test]
    fn a_gap_is_told_once_with_the_part_of_its_packet_that_had_left() {
        let mut stream = begun(1 << 30, 1 << 30);
        let mut gap = |seq, bytes| {
            let status = consume(&mut stream, seq, bytes).pop()?;
            assert_eq!(status.status, StreamCondition::SequenceError);
            Some((status.count_packets, status.count_bytes, status.error_info))
        };
        let at = |expected: u64, actual: u64| 6 << 32 | expected << 16 | actual;
        let gaps = [0, 1, 5, 6, 5, 6, 65_535, 0].map(|seq| gap(seq, 24));
        assert_eq!(gaps[..4], [None, None, Some((3, 72, at(2, 5))), None]);
        assert_eq!(gaps[4..6], [Some((5, 120, at(7, 5))), None]);
        assert_eq!(gaps[6..], [Some((7, 168, at(7, 65_535))), None]);
        assert_eq!(gap(2, 416), Some((8, 192 + 80, at(1, 2))));
        init(&mut stream, 0, 0, 0);
        assert!(consume(&mut stream, 0, 24).is_empty(), "a new stream counts from 0");
    }

    /// As in the recorded exchange 30.
    #[test]
    fn commands_are_counted_and_numbered_and_all_but_unknown_ones_are_answered() {
        let mut stream = begun(0, 0);
        let ping = Some(command(CommandOp::Ping, 0, 0));
        let resync = Some(command(CommandOp::Resync, 5000, 60));
        let mut told = |seq, command| {
            let statuses = execute(&mut stream, seq, command);
            statuses.iter().map(counts).collect::<Vec<_>>()
        };
        assert_eq!(told(7, ping), [(1, 24, 7)], "the first may have any number");
        let gap = 2 << 32 | 8 << 16 | 10;
        assert_eq!(told(10, ping), [(2, 48, gap), (2, 48, 10)]);
        assert_eq!(told(11, None), []);
        assert_eq!(told(12, ping), [(4, 96, 12)]);
        assert_eq!(told(13, resync), [(60, 5000, 13)], "it does not count itself");
        assert_eq!(told(14, ping), [(61, 5024, 14)]);
    }
}
