//! Host to device: counts the host's packets and grants credit.

use super::endpoint::CreditWindow;
use millstream_wire::Epid;
use millstream_wire::chdr::PacketType;
use millstream_wire::stream::{CommandOp, CommandRepr, SequenceGap, StatusRepr, StreamCondition};

/// The receiving half of a stream endpoint: sequence numbers as packets arrive, credit as they
/// leave.
///
/// A packet is consumed when it leaves the endpoint's buffer. So the host may have in flight the
/// capacity of the buffer, and of the socket's receive queue before it.
#[derive(Debug, Clone, Default)]
pub(crate) struct InStream {
    /// Whether a host has begun a stream; data without a stream are not taken.
    begun: bool,
    src_epid: Epid,
    capacity_bytes: u64,
    capacity_packets: u32,
    /// The limit in bytes for a host that has not indicated that it counts packets.
    cautious_bytes: u64,
    period_bytes: u64,
    period_packets: u64,
    consumed_bytes: u64,
    consumed_packets: u64,
    reported_bytes: u64,
    reported_packets: u64,
    next_seq: u16,
    /// The expected number of the next command; any number is accepted for the first one behind
    /// INIT.
    next_command_seq: Option<u16>,
    status_seq: u16,
}

/// Packet counts have 40 bits in packets.
const PACKETS_MASK: u64 = (1 << 40) - 1;

impl InStream {
    /// Returns a stream that has not been initialised, with this window.
    pub fn new(window: CreditWindow) -> Self {
        let CreditWindow { bytes, cautious_bytes, packets } = window;
        let (capacity_bytes, capacity_packets) = (bytes, packets);
        Self { capacity_bytes, capacity_packets, cautious_bytes, ..Self::default() }
    }

    fn window(&self) -> CreditWindow {
        let Self { capacity_bytes, capacity_packets, cautious_bytes, .. } = *self;
        CreditWindow { bytes: capacity_bytes, packets: capacity_packets, cautious_bytes }
    }

    /// Clears the stream.
    pub fn reset(&mut self) {
        *self = Self::new(self.window());
    }

    /// Returns whether a stream has begun.
    pub fn has_begun(&self) -> bool {
        self.begun
    }

    /// Begins a stream with INIT, which has come.
    pub fn begin(&mut self) {
        self.begun = true;
        (self.next_seq, self.next_command_seq) = (0, None);
    }

    /// Returns the gap if a data packet of this number does not follow the last one.
    pub fn gap(&self, kind: PacketType, seq: u16) -> Option<SequenceGap> {
        let expected = self.next_seq;
        (seq != expected).then_some(SequenceGap { kind, expected, actual: seq })
    }

    /// Returns the gap if a stream command of this number does not follow the last one.
    pub fn command_gap(&self, seq: u16) -> Option<SequenceGap> {
        let expected = self.next_command_seq.filter(|&expected| seq != expected)?;
        Some(SequenceGap { kind: PacketType::StreamCommand, expected, actual: seq })
    }

    /// Counts a data packet that entered the buffer.
    pub fn arrive(&mut self, seq: u16) {
        self.next_seq = seq.wrapping_add(1);
    }

    /// Counts a stream command other than INIT that entered the buffer.
    pub fn arrive_command(&mut self, seq: u16) {
        self.next_command_seq = Some(seq.wrapping_add(1));
    }

    /// Counts a data packet of `flow_bytes` that leaves the buffer.
    pub fn consume(&mut self, flow_bytes: u64) {
        self.consumed_bytes = self.consumed_bytes.wrapping_add(flow_bytes);
        self.consumed_packets = self.consumed_packets.wrapping_add(1) & PACKETS_MASK;
    }

    /// Executes a stream command that leaves the buffer; each one is answered.
    pub fn execute(&mut self, command: &CommandRepr, flow_bytes: u64) {
        match command.op {
            CommandOp::Init => {
                self.src_epid = command.src_epid;
                self.period_bytes = command.bytes;
                self.period_packets = command.packets;
                (self.consumed_bytes, self.consumed_packets) = (0, 0);
            }
            CommandOp::Ping => self.consume(flow_bytes),
            CommandOp::Resync => {
                self.consumed_bytes = command.bytes;
                self.consumed_packets = command.packets;
                self.consume(flow_bytes);
            }
        }
    }

    /// Returns the bytes and packets that may be consumed before a status is due; 0 when it is.
    pub fn until_report(&self) -> (u64, u64) {
        let left = |period: u64, consumed: u64, reported: u64| match period {
            0 => u64::MAX,
            period => period.saturating_sub(consumed.wrapping_sub(reported)),
        };
        (
            left(self.period_bytes, self.consumed_bytes, self.reported_bytes),
            left(self.period_packets, self.consumed_packets, self.reported_packets),
        )
    }

    /// Returns whether a status is due.
    pub fn report_due(&self) -> bool {
        let (bytes, packets) = self.until_report();
        bytes == 0 || packets == 0
    }

    /// Returns the status to be sent now.
    ///
    /// A host that counts packets indicates that by a report period in packets. Before that, and
    /// without it, it gets the limit for hosts that count only bytes: UHD takes its window from the
    /// answer to its first INIT, which requests no reports, and never updates it.
    pub fn report(&mut self, own: Epid, status: StreamCondition) -> StatusRepr {
        self.reported_bytes = self.consumed_bytes;
        self.reported_packets = self.consumed_packets;
        let seq = self.status_seq;
        self.status_seq = seq.wrapping_add(1);
        let counts_packets = self.period_packets > 0;
        StatusRepr {
            dst_epid: self.src_epid,
            seq,
            src_epid: own,
            status,
            capacity_bytes: if counts_packets { self.capacity_bytes } else { self.cautious_bytes },
            capacity_packets: self.capacity_packets,
            count_packets: self.consumed_packets,
            count_bytes: self.consumed_bytes,
            buffer_info: 0,
            error_info: 0,
        }
    }

    /// Returns the status for a gap.
    pub fn report_gap(&mut self, own: Epid, gap: SequenceGap) -> StatusRepr {
        StatusRepr { error_info: gap.to_info(), ..self.report(own, StreamCondition::SequenceError) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: Epid = Epid(2);

    fn command(op: CommandOp, bytes: u64, packets: u64) -> CommandRepr {
        let (dst_epid, src_epid) = (OWN, Epid(9));
        CommandRepr { dst_epid, seq: 0, src_epid, op, op_data: 0, packets, bytes }
    }

    fn begun(period_bytes: u64, period_packets: u64) -> InStream {
        let mut stream =
            InStream::new(CreditWindow { bytes: 50_000, cautious_bytes: 40_000, packets: 700 });
        stream.begin();
        stream.execute(&command(CommandOp::Init, period_bytes, period_packets), 24);
        stream.report(OWN, StreamCondition::Ok);
        stream
    }

    #[test]
    fn init_states_the_capacity_and_zeroes_the_counts() {
        let mut stream = begun(0, 0);
        stream.consume(1000);
        stream.execute(&command(CommandOp::Init, 6250, 88), 24);
        let status = stream.report(OWN, StreamCondition::Ok);
        assert_eq!((status.dst_epid, status.src_epid, status.seq), (Epid(9), OWN, 1));
        assert_eq!((status.capacity_bytes, status.capacity_packets), (50_000, 700));
        assert_eq!((status.count_bytes, status.count_packets), (0, 0));
        assert_eq!(stream.until_report(), (6250, 88));
    }

    #[test]
    fn a_host_that_counts_bytes_alone_is_granted_fewer() {
        let mut stream = begun(0, 0);
        assert_eq!(stream.report(OWN, StreamCondition::Ok).capacity_bytes, 40_000);
        stream.execute(&command(CommandOp::Init, 5000, 0), 24);
        stream.consume(5000);
        assert_eq!(stream.report(OWN, StreamCondition::Ok).capacity_bytes, 40_000);
        stream.execute(&command(CommandOp::Init, 5000, 88), 24);
        let status = stream.report(OWN, StreamCondition::Ok);
        assert_eq!((status.capacity_bytes, status.capacity_packets), (50_000, 700));
    }

    #[test]
    fn a_status_is_due_once_per_period_of_bytes_or_packets() {
        for (mut stream, every) in [(begun(1000, 100), 10), (begun(1 << 30, 7), 7)] {
            for packet in 1..100 {
                stream.consume(104);
                assert_eq!(stream.report_due(), packet % every == 0);
                if stream.report_due() {
                    let status = stream.report(OWN, StreamCondition::Ok);
                    assert_eq!(status.count_packets, packet);
                    assert_eq!(status.count_bytes, 104 * packet);
                }
            }
        }
    }

    #[test]
    fn without_a_period_nothing_is_due() {
        let mut stream = begun(0, 0);
        stream.consume(1 << 40);
        assert!(!stream.report_due());
    }

    #[test]
    fn a_gap_is_seen_once_when_packets_come() {
        let mut stream = begun(1 << 30, 0);
        let mut gap = |seq| {
            let gap = stream.gap(PacketType::Data, seq).map(|gap| (gap.expected, gap.actual));
            stream.arrive(seq);
            gap
        };
        let gaps = [0, 1, 5, 6, 5, 6, 65_535, 0].map(&mut gap);
        let at = |expected, actual| Some((expected, actual));
        assert_eq!(gaps[..4], [None, None, at(2, 5), None]);
        assert_eq!(gaps[4..], [at(7, 5), None, at(7, 65_535), None]);
        stream.begin();
        assert_eq!(stream.gap(PacketType::Data, 0), None, "a new stream counts from 0");
    }

    #[test]
    fn commands_are_numbered_apart_and_the_first_may_have_any_number() {
        let mut stream = begun(1 << 30, 0);
        let mut gap = |seq| {
            let gap = stream.command_gap(seq).map(|gap| (gap.kind, gap.expected, gap.actual));
            stream.arrive_command(seq);
            gap
        };
        let kind = PacketType::StreamCommand;
        assert_eq!([7, 8, 10].map(&mut gap), [None, None, Some((kind, 9, 10))]);
    }

    #[test]
    fn a_resync_overwrites_the_counts_and_counts_itself() {
        let mut stream = begun(1 << 30, 0);
        stream.execute(&command(CommandOp::Resync, 5000, 60), 24);
        let status = stream.report(OWN, StreamCondition::Ok);
        assert_eq!((status.count_bytes, status.count_packets), (5024, 61));
    }
}
