//! Credit: how much this host may have in flight to the device.

use millstream_wire::stream::PACKETS_UNLIMITED;

/// Packets and bytes of a stream, each counted from its last handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Totals {
    pub packets: u64,
    pub bytes: u64,
}

impl Totals {
    /// Returns the totals with `packets` more of `flow_bytes` each.
    pub fn plus(self, packets: u64, flow_bytes: u64) -> Self {
        Self {
            packets: self.packets.wrapping_add(packets),
            bytes: self.bytes.wrapping_add(packets * flow_bytes),
        }
    }

    /// Returns the sum.
    pub fn and(self, more: Self) -> Self {
        Self {
            packets: self.packets.wrapping_add(more.packets),
            bytes: self.bytes.wrapping_add(more.bytes),
        }
    }

    /// Returns the difference to `earlier`.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            packets: self.packets.wrapping_sub(earlier.packets),
            bytes: self.bytes.wrapping_sub(earlier.bytes),
        }
    }
}

/// The stream commands that always have credit, reserved from the samples: four queries, one per
/// attempt to reopen a closed window.
pub(super) const COMMANDS_RESERVED: u64 = 4;

/// Report periods per window, as UHD does.
const REPORTS: u64 = 8;

/// Returns the period of a device's reports, in units of its window: never 0, with which a device
/// reports nothing. It reports when a count *becomes* as large as the period.
pub(crate) fn report_period(capacity: u64) -> u64 {
    capacity.div_ceil(REPORTS).max(1)
}

/// Returns how much the count of the logic grows with a PING of `flow_bytes` (see
/// [`super::command_counts`]).
pub(super) fn usual_ping(flow_bytes: u64) -> Totals {
    Totals::default().plus(1, flow_bytes)
}

/// The sender's side of one stream's flow control.
#[derive(Debug, Clone)]
pub(super) struct CreditWindow {
    capacity: Totals,
    /// Reserved for commands.
    reserve: Totals,
    command_bytes: u64,
    /// How much the device's count grows with a PING.
    pub(super) ping: Totals,
    sent: Totals,
    consumed: Totals,
    /// The difference between the packets that the device has passed and its count, modulo 2⁶⁴:
    /// lost packets, less duplicated ones.
    missing: Totals,
    /// Reserved for packets that may come late or twice.
    spare_bytes: u64,
    /// Bytes of packets that were skipped, and of those that came late or twice, since the last
    /// query.
    skipped_bytes: u64,
    surplus_bytes: u64,
    since_audit_bytes: u64,
}

impl CreditWindow {
    /// Returns the window that a device advertises. `command_bytes` is a stream command's length.
    pub fn new(capacity_bytes: u64, capacity_packets: u32, command_bytes: u64) -> Self {
        let unlimited = capacity_packets == PACKETS_UNLIMITED;
        let packets = if unlimited { u64::MAX } else { capacity_packets.into() };
        let capacity = Totals { packets, bytes: capacity_bytes };
        let reserve =
            Totals { packets: COMMANDS_RESERVED, bytes: COMMANDS_RESERVED * command_bytes };
        Self {
            capacity,
            reserve,
            command_bytes,
            ping: usual_ping(command_bytes),
            sent: Totals::default(),
            consumed: Totals::default(),
            missing: Totals::default(),
            spare_bytes: 0,
            skipped_bytes: 0,
            surplus_bytes: 0,
            since_audit_bytes: 0,
        }
    }

    /// Returns the window of a device that counts so much for a PING.
    pub fn counting(self, ping: Totals) -> Self {
        Self { ping, ..self }
    }

    /// Returns the bytes that may be in flight.
    pub fn capacity_bytes(&self) -> u64 {
        self.capacity.bytes
    }

    /// Returns the packets that may be in flight.
    pub fn capacity_packets(&self) -> u64 {
        self.capacity.packets
    }

    /// Returns the requested report period: an eighth of the window.
    pub fn period(&self) -> Totals {
        let packets = self.capacity.packets.min(PACKETS_UNLIMITED.into());
        Totals { packets: report_period(packets), bytes: report_period(self.capacity.bytes) }
    }

    /// Returns the largest packet that fits an empty window, bytes; at least two fit.
    pub fn packet_bytes_max(&self) -> u64 {
        self.capacity.bytes.saturating_sub(self.reserve.bytes) / 2
    }

    /// Returns the packets of samples that may be in flight.
    pub fn packets_max(&self) -> u64 {
        self.capacity.packets.saturating_sub(self.reserve.packets)
    }

    /// Returns everything sent so far.
    pub fn sent(&self) -> Totals {
        self.sent
    }

    /// Returns the packets sent and not known to be consumed.
    pub fn in_flight(&self) -> Totals {
        self.sent.since(self.consumed)
    }

    /// Returns how many packets of `flow_bytes` each may be sent now.
    pub fn room_packets(&self, flow_bytes: u64) -> u64 {
        let in_flight = self.in_flight();
        let kept = self.reserve.bytes + self.spare_bytes;
        let bytes = self.capacity.bytes.saturating_sub(kept + in_flight.bytes);
        (bytes / flow_bytes).min(self.packets_max().saturating_sub(in_flight.packets))
    }

    /// Counts sent packets of samples.
    pub fn send(&mut self, packets: u64, flow_bytes: u64) {
        self.sent = self.sent.plus(packets, flow_bytes);
        self.since_audit_bytes += packets * flow_bytes;
    }

    /// Returns whether `commands` more stream commands may be sent now, and a packet of
    /// `flow_bytes` behind them; 0 for no packet.
    pub fn has_room_for_commands(&self, commands: u64, flow_bytes: u64) -> bool {
        let packet = u64::from(flow_bytes > 0);
        let with = self.in_flight().plus(commands, self.command_bytes).plus(packet, flow_bytes);
        with.bytes <= self.capacity.bytes && with.packets <= self.capacity.packets
    }

    /// Counts a sent PING, as the device does.
    pub fn send_ping(&mut self) {
        self.sent = self.sent.and(self.ping);
    }

    /// Returns whether the device counts a PING as a packet.
    pub fn counts_pings(&self) -> bool {
        self.ping.packets > 0
    }

    /// Returns whether a window of bytes has been sent since the last count query.
    pub fn is_audit_due(&self) -> bool {
        self.since_audit_bytes >= self.capacity.bytes
    }

    /// Records a sent count query.
    pub fn note_audit(&mut self) {
        self.since_audit_bytes = 0;
    }

    /// Takes the device's count of consumed packets. Returns true when it grew. Decreasing counts
    /// change nothing; counts beyond the sent packets mean duplicated ones.
    pub fn consume(&mut self, counted: Totals) -> bool {
        let mut passed = counted.and(self.missing);
        let beyond = passed.since(self.sent);
        let is_beyond = |count: u64| count > 0 && count < 1 << 39;
        if is_beyond(beyond.bytes) {
            self.missing.bytes = self.missing.bytes.wrapping_sub(beyond.bytes);
            passed.bytes = self.sent.bytes;
        }
        if is_beyond(beyond.packets) {
            self.missing.packets = self.missing.packets.wrapping_sub(beyond.packets);
            passed.packets = self.sent.packets;
        }
        let news = passed.since(self.consumed);
        let open = self.in_flight();
        if news.bytes > open.bytes || news.packets > open.packets || news == Totals::default() {
            return false;
        }
        self.consumed = passed;
        true
    }

    /// Counts packets that the device has skipped: they take no space, unless they come late.
    /// Returns true when half a window was skipped since the last query: it may fill the buffer.
    pub fn note_skipped(&mut self, packets: u64, bytes: u64) -> bool {
        self.missing.packets = self.missing.packets.wrapping_add(packets);
        self.missing.bytes = self.missing.bytes.wrapping_add(bytes);
        self.skipped_bytes += bytes;
        self.keep_spare(self.spare_bytes);
        self.skipped_bytes > self.capacity.bytes / 2
    }

    /// Counts packets that came twice, or late after they had been given up: they take space, and
    /// are in the device's count.
    pub fn note_surplus(&mut self, packets: u64, bytes: u64) {
        self.missing.packets = self.missing.packets.wrapping_sub(packets);
        self.missing.bytes = self.missing.bytes.wrapping_sub(bytes);
        self.surplus_bytes += bytes;
    }

    /// Reserves space for packets that may still come: as much as was skipped or in surplus, up to
    /// half the window, but no less than `least`.
    fn keep_spare(&mut self, least: u64) {
        let wanted = self.skipped_bytes + self.surplus_bytes;
        self.spare_bytes = wanted.min(self.capacity.bytes / 2).max(least);
    }

    /// Applies the answer to a query. `missing` is the difference between the packets sent before
    /// it and the count, if that is exact: then it holds, whatever the reports said. The reserve
    /// decreases with each answer. Returns true when more than half a window was missing.
    pub fn audited(&mut self, missing: Option<Totals>) -> bool {
        if let Some(missing) = missing {
            let grown = missing.bytes.wrapping_sub(self.missing.bytes);
            self.skipped_bytes += if grown > self.capacity.bytes { 0 } else { grown };
            self.missing = missing;
        }
        let much = self.skipped_bytes > self.capacity.bytes / 2;
        self.keep_spare(self.spare_bytes / 2);
        (self.skipped_bytes, self.surplus_bytes) = (0, 0);
        much
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window() -> CreditWindow {
        CreditWindow::new(10_000, PACKETS_UNLIMITED, 24)
    }

    #[test]
    fn samples_leave_room_for_commands() {
        let mut window = window();
        assert_eq!(window.period().bytes, 1250);
        let room = window.room_packets(1000);
        assert_eq!(room, 9, "of 10 000 bytes 96 are kept");
        window.send(9, 1000);
        window.send(1, 904);
        assert_eq!(window.room_packets(8), 0);
        assert!(window.has_room_for_commands(COMMANDS_RESERVED, 0));
        assert!(!window.has_room_for_commands(COMMANDS_RESERVED + 1, 0));
        assert!(!window.has_room_for_commands(COMMANDS_RESERVED, 8), "a packet was begun");
        assert!(window.has_room_for_commands(COMMANDS_RESERVED - 1, 24));
    }

    #[test]
    fn packets_limit_too() {
        let mut window = CreditWindow::new(1 << 20, 20, 24);
        assert_eq!(window.room_packets(16), 16);
        window.send(5, 16);
        assert_eq!(window.room_packets(16), 11);
        assert!(window.consume(Totals { packets: 4, bytes: 64 }));
        assert_eq!(window.room_packets(16), 15);
    }

    #[test]
    fn stale_and_repeated_counts_open_nothing() {
        let mut window = window();
        window.send(8, 1000);
        assert!(window.consume(Totals { packets: 3, bytes: 3000 }));
        assert!(!window.consume(Totals { packets: 3, bytes: 3000 }));
        assert!(!window.consume(Totals { packets: 1, bytes: 1000 }));
        assert_eq!(window.in_flight(), Totals { packets: 5, bytes: 5000 });
    }

    #[test]
    fn packets_that_came_twice_are_not_credit() {
        let mut window = window();
        window.send(4, 1000);
        // One of four came twice.
        window.consume(Totals { packets: 5, bytes: 5000 });
        assert_eq!(window.in_flight(), Totals::default());
        window.send(4, 1000);
        window.consume(Totals { packets: 6, bytes: 6000 });
        assert_eq!(window.in_flight(), Totals { packets: 3, bytes: 3000 });
        window.note_surplus(1, 1000);
        window.consume(Totals { packets: 8, bytes: 8000 });
        assert_eq!(window.in_flight(), Totals { packets: 2, bytes: 2000 });
        assert!(!window.note_skipped(1, 1000), "it seems so");
        assert_eq!(window.in_flight(), Totals { packets: 2, bytes: 2000 });
        window.consume(Totals { packets: 8, bytes: 8000 });
        assert_eq!(window.in_flight(), Totals { packets: 1, bytes: 1000 });
    }

    #[test]
    fn what_was_lost_is_given_back_but_for_room_in_case_it_comes_late() {
        let mut window = window();
        window.send(9, 1000);
        window.consume(Totals { packets: 6, bytes: 6000 });
        assert_eq!(window.room_packets(1000), 6);
        assert!(!window.audited(Some(Totals { packets: 3, bytes: 3000 })));
        window.consume(Totals { packets: 6, bytes: 6000 });
        assert_eq!((window.in_flight().bytes, window.room_packets(1000)), (0, 6));
        for room in [8, 9, 9, 9] {
            window.audited(Some(Totals { packets: 3, bytes: 3000 }));
            assert_eq!(window.room_packets(1000), room);
        }
        window.send(9, 1000);
        assert!(
            window.audited(Some(Totals { packets: 12, bytes: 12_000 })),
            "more than half of it"
        );
        window.consume(Totals { packets: 6, bytes: 6000 });
        assert_eq!((window.in_flight().bytes, window.room_packets(1000)), (0, 4));
    }
}
