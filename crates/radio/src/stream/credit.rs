//! Credit: how much the device may still send.

use millstream_link::port::Capabilities;
use millstream_wire::Epid;
use millstream_wire::stream::{MAX_CAPACITY_BYTES, PACKETS_UNLIMITED, StatusRepr};

/// Reports per capacity. Over kernel UDP each is a system call, and the 32 reports that UHD sends
/// took a quarter of the thread that received 2 x 250 MS/s. With eight, a known mix of faults has a
/// wrong cause: the host knows less exactly what a sender still had credit for.
const REPORTS: u64 = 16;

/// The most packets that a sender counts while a command is on its way; totals that are further
/// back are not those of a delayed one.
const OLD_MAX: u64 = 1 << 16;

/// The length of the shortest packet, its header, bytes.
const PACKET_BYTES_MIN: u64 = 8;

/// Refused totals in a row, each going on from the one before, that show that the counts here were
/// wrong.
const BELIEVED: u8 = 4;

/// Returns the queue memory of a datagram, bytes. It is little more than twice the length of a long
/// datagram, and dozens of times that of a short one.
///
/// Measured on Linux 6.18, from 20 to 8016 bytes: the buffer (datagram, headers of any link and
/// `skb_shared_info`) rounded up to a power of two and its `sk_buff`, or the smallest buffer that
/// also has the datagram in it.
fn queue_cost_bytes(packet_bytes: usize) -> usize {
    let in_one = (packet_bytes + 450).next_power_of_two() + 256;
    in_one.max(832 + packet_bytes)
}

/// Returns the packets that fit a queue that counts bytes.
///
/// The queue's size is counted at twice its capacity (socket(7)). A quarter of it may be charged
/// for datagrams that were read: the kernel returns their memory only when that much has gathered.
fn packets_in_bytes(queue_bytes: usize, packet_bytes: usize) -> u64 {
    queue_bytes as u64 / 4 * 6 / queue_cost_bytes(packet_bytes) as u64
}

/// Returns the packets that may wait in a queue that counts them. The remaining eighth is for
/// datagrams that the sender does not count, and for buffers on their way back.
fn packets_of_queue(datagrams: usize) -> u64 {
    datagrams as u64 * 7 / 8
}

/// The receiver's side of one stream's flow control. Counts are cumulative since the last
/// handshake.
#[derive(Debug, Clone)]
pub(crate) struct Credit {
    capacity_bytes: u64,
    /// The counted bytes of a full packet.
    packet_bytes: u64,
    consumed_bytes: u64,
    consumed_packets: u64,
    reported_bytes: u64,
    /// The largest counts that were reported: the sender has sent no more than a window beyond
    /// them.
    granted_bytes: u64,
    granted_packets: u64,
    seq: u16,
    /// The last report could not be sent.
    owed: bool,
    /// The counts may include packets before the next data packet.
    may_be_ahead: bool,
    /// Missing packets that may not be in the counts.
    uncounted_packets: u64,
    /// The packets of the sender's totals that were taken over last.
    totals_packets: Option<u64>,
    /// The totals that were refused last, and how many in a row each went on from the one before.
    refused: Option<(u64, u8)>,
}

impl Credit {
    /// Returns the credit of a port's receive queue, for full packets of `packet_bytes`.
    pub fn new(queue: &Capabilities, packet_bytes: usize) -> Self {
        let packets = match queue.recv_queue_datagrams {
            Some(datagrams) => packets_of_queue(datagrams),
            None => packets_in_bytes(queue.recv_queue_bytes, packet_bytes),
        };
        Self::for_packets(packets, packet_bytes)
    }

    /// At least one packet is always granted.
    fn for_packets(packets: u64, packet_bytes: usize) -> Self {
        let length = (packet_bytes as u64).next_multiple_of(8);
        let capacity_bytes = packets.saturating_mul(length).clamp(length, MAX_CAPACITY_BYTES);
        Self::of_window(capacity_bytes, length)
    }

    fn of_window(capacity_bytes: u64, packet_bytes: u64) -> Self {
        Self {
            capacity_bytes,
            packet_bytes,
            consumed_bytes: 0,
            consumed_packets: 0,
            reported_bytes: 0,
            granted_bytes: 0,
            granted_packets: 0,
            seq: 0,
            owed: false,
            may_be_ahead: true,
            uncounted_packets: 0,
            totals_packets: None,
            refused: None,
        }
    }

    /// Returns the bytes that may be in flight.
    pub fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }

    /// Returns the full packets that may be in flight.
    pub fn window_packets(&self) -> u64 {
        self.capacity_bytes / self.packet_bytes
    }

    /// Returns the full packets that were consumed or lost, and of which the device may not know:
    /// they were not reported, or their report was lost.
    pub fn unreported_packets(&self) -> u64 {
        let unreported = self.consumed_bytes.abs_diff(self.reported_bytes);
        let packets = unreported.saturating_add(self.period_bytes()).div_ceil(self.packet_bytes);
        packets.saturating_add(self.uncounted_packets)
    }

    /// Returns the bytes between two reports.
    pub fn period_bytes(&self) -> u64 {
        self.capacity_bytes.div_ceil(REPORTS)
    }

    /// Resets the counts to zero, as the handshake does.
    pub fn reset(&mut self) {
        let (seq, packet_bytes) = (self.seq, self.packet_bytes);
        *self = Self { seq, ..Self::of_window(self.capacity_bytes, packet_bytes) };
    }

    /// Counts a packet whose buffer is free again.
    pub fn release(&mut self, flow_bytes: usize) {
        self.release_many(1, flow_bytes as u64);
    }

    /// Counts packets whose buffers are free again.
    pub fn release_many(&mut self, packets: u64, flow_bytes: u64) {
        // Totals come from the sender and may be arbitrary.
        self.consumed_bytes = self.consumed_bytes.wrapping_add(flow_bytes);
        self.consumed_packets = self.consumed_packets.wrapping_add(packets);
    }

    /// Takes back the credit of a counted packet that was rejected: the gap at its number counts
    /// it, or another packet with that number does. The sender's totals include it once.
    pub fn take_back(&mut self, flow_bytes: usize) {
        if !self.may_be_ahead {
            self.consumed_bytes = self.consumed_bytes.wrapping_sub(flow_bytes as u64);
            self.consumed_packets = self.consumed_packets.wrapping_sub(1);
        }
    }

    /// Returns the packets that were consumed or lost.
    #[cfg(test)]
    pub fn consumed_packets(&self) -> u64 {
        self.consumed_packets
    }

    /// Counts `packets` missing before a data packet of `flow_bytes`: they left the network too.
    ///
    /// Without this a burst of losses would leave the window nearly closed until the sender sends
    /// its totals, which happens once per capacity. Packets that come late have been counted here,
    /// or in those totals. A packet that waited for earlier ones (not `fresh`) may have come before
    /// the totals that are in use.
    pub fn pass_gap(&mut self, packets: u64, flow_bytes: usize, fresh: bool) {
        let counted = self.may_be_ahead;
        self.may_be_ahead &= !fresh;
        if !counted {
            let bytes = packets.saturating_mul(flow_bytes as u64);
            self.release_many(packets, bytes);
        } else {
            self.uncounted_packets = self.uncounted_packets.saturating_add(packets);
        }
    }

    /// Takes over the sender's totals, which include lost packets. The command itself is released
    /// afterwards like any packet. Returns false for totals that are no newer than the last ones:
    /// their command was delayed, or came twice; and for totals beyond the window, which are of
    /// another opening or damaged. Where several in a row go on from each other, the counts here
    /// were wrong.
    pub fn resync(&mut self, packets: u64, bytes: u64) -> bool {
        let is_old = |last: u64| last.wrapping_sub(packets) < OLD_MAX;
        if self.totals_packets.is_some_and(is_old) || self.is_beyond_window(packets, bytes) {
            let goes_on = |last: u64| (1..OLD_MAX).contains(&packets.wrapping_sub(last));
            let before = self.refused.filter(|(last, _)| goes_on(*last)).map_or(0, |(_, row)| row);
            if before + 1 < BELIEVED {
                self.refused = Some((packets, before + 1));
                return false;
            }
        }
        self.refused = None;
        self.totals_packets = Some(packets);
        (self.may_be_ahead, self.uncounted_packets) = (true, 0);
        (self.consumed_packets, self.consumed_bytes) = (packets, bytes);
        true
    }

    /// Returns whether a sender that keeps within its credit cannot have sent so much. Devices may
    /// notice the end of their credit a few packets late.
    fn is_beyond_window(&self, packets: u64, bytes: u64) -> bool {
        let bytes_max = self.capacity_bytes + self.period_bytes();
        bytes > self.granted_bytes.saturating_add(bytes_max)
            || packets > self.granted_packets.saturating_add(bytes_max / PACKET_BYTES_MIN)
    }

    /// Returns whether a period has passed since the last report. A resynchronisation after
    /// duplicates may decrease the counts; that is reported too.
    pub fn is_due(&self) -> bool {
        self.consumed_bytes.abs_diff(self.reported_bytes) >= self.period_bytes()
    }

    /// Returns the report, which then counts as sent.
    pub fn report(&mut self, device: Epid, host: Epid) -> StatusRepr {
        let seq = self.seq;
        self.seq = self.seq.wrapping_add(1);
        self.reported_bytes = self.consumed_bytes;
        self.granted_bytes = self.granted_bytes.max(self.consumed_bytes);
        self.granted_packets = self.granted_packets.max(self.consumed_packets);
        self.owed = false;
        StatusRepr {
            dst_epid: device,
            src_epid: host,
            seq,
            capacity_bytes: self.capacity_bytes,
            capacity_packets: PACKETS_UNLIMITED,
            count_packets: self.consumed_packets,
            count_bytes: self.consumed_bytes,
            ..StatusRepr::default()
        }
    }

    /// Records that the last report could not be sent.
    ///
    /// It is not due again with each packet: reports are totals, so one attempt per poll of the
    /// port is sufficient, or the next report that is due.
    pub fn owe(&mut self) {
        self.seq = self.seq.wrapping_sub(1);
        self.owed = true;
    }

    /// Returns whether a report could not be sent, and none has been sent since.
    pub fn is_owed(&self) -> bool {
        self.owed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_packets_get_a_smaller_window() {
        let queue = queue_of_bytes(8 << 20);
        let window = |packet_bytes| Credit::new(&queue, packet_bytes).capacity_bytes();
        // 12 of 16 MiB may be used.
        assert_eq!(window(8016), (12 << 20) / 16_640 * 8016);
        assert_eq!(window(1472), (12 << 20) / 2304 * 1472);
        assert_eq!(window(54), (12 << 20) / 886 * 56);
        assert_eq!(Credit::new(&queue_of_bytes(0), 20).capacity_bytes(), 24);
    }

    #[test]
    fn old_totals_count_once_they_go_on_from_each_other() {
        let mut credit = Credit::new(&queue_of_bytes(8 << 20), 1472);
        assert!(credit.resync(1000, 1_000_000) && !credit.resync(1000, 1_000_000));
        // Wrong ones, and then the true ones again.
        assert!(credit.resync(6000, 6_000_000));
        let taken = [1100, 1200, 1150, 1300, 1400, 1500, 1600]
            .map(|packets| credit.resync(packets, 1000 * packets));
        assert_eq!(taken, [false, false, false, false, false, true, true]);
        assert_eq!(credit.consumed_packets(), 1600);
    }

    #[test]
    fn a_queue_that_counts_packets_grants_packets_of_any_length() {
        let mut queue = queue_of_bytes(8 << 20);
        queue.recv_queue_datagrams = Some(1024);
        let window = |packet_bytes| Credit::new(&queue, packet_bytes).capacity_bytes();
        assert_eq!(window(8016), 896 * 8016);
        assert_eq!(window(54), 896 * 56);
        queue.recv_queue_datagrams = Some(1);
        assert_eq!(Credit::new(&queue, 20).capacity_bytes(), 24, "one packet in any case");
    }

    fn queue_of_bytes(recv_queue_bytes: usize) -> Capabilities {
        let mut queue = Capabilities::new(9000, 64);
        queue.recv_queue_bytes = recv_queue_bytes;
        queue
    }

    #[test]
    fn a_report_is_due_once_per_period() {
        let mut credit = Credit { capacity_bytes: 7 * 320, ..Credit::for_packets(0, 8) };
        assert_eq!((credit.capacity_bytes, credit.period_bytes()), (7 * 320, 140));
        let mut reports = 0;
        for _ in 0..70 {
            credit.release(8);
            if credit.is_due() {
                credit.report(Epid(2), Epid(3));
                reports += 1;
            }
        }
        // 144 of 560 bytes at a time.
        assert_eq!(reports, 3);
        let report = credit.report(Epid(2), Epid(3));
        assert_eq!((report.count_packets, report.count_bytes, report.seq), (70, 560, 3));
        assert_eq!((report.dst_epid, report.src_epid), (Epid(2), Epid(3)));
    }

    #[test]
    fn the_senders_totals_replace_ours() {
        let mut credit = Credit { capacity_bytes: 7 * 320, ..Credit::for_packets(0, 8) };
        credit.release(24);
        credit.resync(10, 240);
        credit.release(48);
        assert!(credit.is_due());
        let report = credit.report(Epid(2), Epid(3));
        assert_eq!((report.count_packets, report.count_bytes), (11, 288));
        // More than a window ahead: only several of them count.
        let beyond = (0..4).map(|step| credit.resync(u64::MAX / 2 - 3 + step, u64::MAX));
        assert_eq!(beyond.collect::<Vec<_>>(), [false, false, false, true]);
        credit.release(24);
        let report = credit.report(Epid(2), Epid(3));
        assert_eq!((report.count_packets, report.count_bytes), (1 << 63, 23), "nonsense wraps");
        assert!(!credit.resync(200, 4800) && credit.resync(90, 2160), "a window of 2240 bytes");
        credit.report(Epid(2), Epid(3));
        assert!(!credit.resync(2, 48) && !credit.resync(90, 2160), "its command was delayed");
        assert!(!credit.is_due());
        credit.reset();
        assert!(credit.resync(2, 48));
        credit.reset();
        let report = credit.report(Epid(2), Epid(3));
        assert_eq!((report.count_packets, report.count_bytes, report.seq), (0, 0, 3));
    }

    #[test]
    fn packets_that_are_missing_are_counted_once() {
        let mut credit = Credit { capacity_bytes: 7 * 320, ..Credit::for_packets(0, 8) };
        let count = |credit: &mut Credit, gap| {
            credit.pass_gap(gap, 100, true);
            credit.release(100);
            credit.report(Epid(2), Epid(3)).count_bytes
        };
        credit.reset();
        let before = credit.unreported_packets();
        assert_eq!(count(&mut credit, 4), 100, "a gap from before the handshake");
        assert_eq!(credit.unreported_packets(), before + 4);
        assert_eq!(count(&mut credit, 4), 600);
        credit.resync(10, 1000);
        assert_eq!(count(&mut credit, 4), 1100, "the sender has counted them");
        assert_eq!(count(&mut credit, 0), 1200);
        assert_eq!(count(&mut credit, 2), 1500);
        credit.resync(20, 2000);
        credit.pass_gap(3, 100, false);
        assert_eq!(count(&mut credit, 3), 2100, "they are in the totals, too");
    }
}
