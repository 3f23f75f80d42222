//! Host to device: counting what the host sends and granting credit (facts section 8.2).

use millstream_wire::Epid;
use millstream_wire::stream::{CommandOp, CommandRepr, Status, StatusRepr};

/// The receiving half of a stream endpoint.
///
/// Packets are consumed as they come out of the socket, so what the host may have in flight is
/// what the socket's receive queue holds.
#[derive(Debug, Clone, Default)]
pub(crate) struct InStream {
    src_epid: Epid,
    capacity_bytes: u64,
    capacity_packets: u32,
    period_bytes: u64,
    period_packets: u64,
    consumed_bytes: u64,
    consumed_packets: u64,
    reported_bytes: u64,
    reported_packets: u64,
    next_seq: u16,
    status_seq: u16,
}

/// Packet counts travel in 40 bits.
const PACKETS_MASK: u64 = (1 << 40) - 1;

impl InStream {
    /// A stream that has not been initialised, with this much room.
    pub fn new(capacity_bytes: u64, capacity_packets: u32) -> Self {
        Self { capacity_bytes, capacity_packets, ..Self::default() }
    }

    /// Forgets the stream.
    pub fn reset(&mut self) {
        *self = Self::new(self.capacity_bytes, self.capacity_packets);
    }

    /// Takes a stream command; every one is answered.
    pub fn take_command(&mut self, command: &CommandRepr, flow_bytes: u64) -> StatusRepr {
        match command.op {
            CommandOp::Init => {
                let status_seq = self.status_seq;
                self.reset();
                self.status_seq = status_seq;
                self.src_epid = command.src_epid;
                self.period_bytes = command.bytes;
                self.period_packets = command.packets;
            }
            CommandOp::Ping => self.count(flow_bytes),
            CommandOp::Resync => {
                self.consumed_bytes = command.bytes;
                self.consumed_packets = command.packets;
                self.count(flow_bytes);
            }
        }
        self.report(command.dst_epid, Status::Ok)
    }

    /// Takes a data packet: the status to send, if one is due, and whether packets are missing.
    pub fn take_data(
        &mut self,
        own: Epid,
        seq: u16,
        flow_bytes: u64,
    ) -> (Option<StatusRepr>, bool) {
        let gap = seq != self.next_seq;
        self.next_seq = seq.wrapping_add(1);
        self.count(flow_bytes);
        if gap {
            return (Some(self.report(own, Status::SequenceError)), true);
        }
        let bytes = self.consumed_bytes.wrapping_sub(self.reported_bytes);
        let packets = self.consumed_packets.wrapping_sub(self.reported_packets);
        let due = (self.period_bytes > 0 && bytes >= self.period_bytes)
            || (self.period_packets > 0 && packets >= self.period_packets);
        (due.then(|| self.report(own, Status::Ok)), false)
    }

    fn count(&mut self, flow_bytes: u64) {
        self.consumed_bytes = self.consumed_bytes.wrapping_add(flow_bytes);
        self.consumed_packets = self.consumed_packets.wrapping_add(1) & PACKETS_MASK;
    }

    fn report(&mut self, own: Epid, status: Status) -> StatusRepr {
        self.reported_bytes = self.consumed_bytes;
        self.reported_packets = self.consumed_packets;
        let seq = self.status_seq;
        self.status_seq = seq.wrapping_add(1);
        StatusRepr {
            dst_epid: self.src_epid,
            seq,
            src_epid: own,
            status,
            capacity_bytes: self.capacity_bytes,
            capacity_packets: self.capacity_packets,
            count_packets: self.consumed_packets,
            count_bytes: self.consumed_bytes,
            buffer_info: 0,
            error_info: 0,
        }
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

    #[test]
    fn init_states_the_capacity_and_zeroes_the_counts() {
        let mut stream = InStream::new(50_000, 700);
        let status = stream.take_command(&command(CommandOp::Init, 0, 0), 24);
        assert_eq!((status.dst_epid, status.src_epid, status.seq), (Epid(9), OWN, 0));
        assert_eq!((status.capacity_bytes, status.capacity_packets), (50_000, 700));
        let status = stream.take_command(&command(CommandOp::Init, 6250, 88), 24);
        assert_eq!((status.count_bytes, status.count_packets, status.seq), (0, 0, 1));
    }

    #[test]
    fn a_status_goes_out_once_per_period() {
        let mut stream = InStream::new(50_000, 700);
        stream.take_command(&command(CommandOp::Init, 1000, 100), 24);
        let reports: Vec<_> = (0..30).filter_map(|seq| stream.take_data(OWN, seq, 104).0).collect();
        assert_eq!(reports.len(), 3);
        assert_eq!((reports[0].count_bytes, reports[0].count_packets), (1040, 10));
    }

    #[test]
    fn a_gap_is_reported_at_once_and_once() {
        let mut stream = InStream::new(50_000, 700);
        stream.take_command(&command(CommandOp::Init, 1 << 30, 0), 24);
        assert_eq!(stream.take_data(OWN, 0, 8), (None, false));
        let (status, gap) = stream.take_data(OWN, 5, 8);
        assert!(gap);
        assert_eq!(status.unwrap().status, Status::SequenceError);
        assert_eq!(stream.take_data(OWN, 6, 8), (None, false));
    }

    #[test]
    fn a_resync_overwrites_the_counts_and_counts_itself() {
        let mut stream = InStream::new(50_000, 700);
        stream.take_command(&command(CommandOp::Init, 1 << 30, 0), 24);
        let status = stream.take_command(&command(CommandOp::Resync, 5000, 60), 24);
        assert_eq!((status.count_bytes, status.count_packets), (5024, 61));
    }
}
