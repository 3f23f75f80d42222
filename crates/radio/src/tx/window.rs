//! Credit: what the device lets this host have in flight (facts page, section 8.2).

use millstream_wire::stream::PACKETS_UNLIMITED;

/// Packets and bytes of a stream, each counted from its last handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Totals {
    pub packets: u64,
    pub bytes: u64,
}

impl Totals {
    /// With `packets` more of `flow_bytes` each.
    pub fn plus(self, packets: u64, flow_bytes: u64) -> Self {
        Self {
            packets: self.packets.wrapping_add(packets),
            bytes: self.bytes.wrapping_add(packets * flow_bytes),
        }
    }

    /// What lies between `earlier` and here.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            packets: self.packets.wrapping_sub(earlier.packets),
            bytes: self.bytes.wrapping_sub(earlier.bytes),
        }
    }
}

/// Stream commands that there is always room for, whatever the samples take: four audits of three
/// commands each, one per try to get a closed window open again.
pub(super) const COMMANDS_RESERVED: u64 = 12;

/// Report periods per window, as UHD does.
const REPORTS: u64 = 8;

/// The sender's side of one stream's flow control.
#[derive(Debug, Clone)]
pub(super) struct Window {
    capacity: Totals,
    /// Kept free of samples for commands.
    reserve: Totals,
    command_bytes: u64,
    sent: Totals,
    consumed: Totals,
    /// What the device counted beyond what was sent: packets that the network doubled.
    excess: Totals,
    since_resync_bytes: u64,
}

impl Window {
    /// The window that a device advertises. `command_bytes` is what a stream command counts.
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
            sent: Totals::default(),
            consumed: Totals::default(),
            excess: Totals::default(),
            since_resync_bytes: 0,
        }
    }

    /// Bytes that may be in flight.
    pub fn capacity_bytes(&self) -> u64 {
        self.capacity.bytes
    }

    /// Packets that may be in flight.
    pub fn capacity_packets(&self) -> u64 {
        self.capacity.packets
    }

    /// What the device is asked to report: each eighth of the window.
    pub fn period(&self) -> Totals {
        let packets = self.capacity.packets.min(PACKETS_UNLIMITED.into());
        Totals { packets: packets.div_ceil(REPORTS), bytes: self.capacity.bytes.div_ceil(REPORTS) }
    }

    /// The largest packet that the window can ever take, bytes; at least two fit.
    pub fn packet_bytes_max(&self) -> u64 {
        self.capacity.bytes.saturating_sub(self.reserve.bytes) / 2
    }

    /// Packets of samples that may be in flight.
    pub fn packets_max(&self) -> u64 {
        self.capacity.packets.saturating_sub(self.reserve.packets)
    }

    /// Everything sent so far.
    pub fn sent(&self) -> Totals {
        self.sent
    }

    /// What is known to be consumed.
    pub fn consumed(&self) -> Totals {
        self.consumed
    }

    /// What is sent and not known to be consumed.
    pub fn in_flight(&self) -> Totals {
        self.sent.since(self.consumed)
    }

    /// How many packets of `flow_bytes` each may be sent now.
    pub fn room_packets(&self, flow_bytes: u64) -> u64 {
        let in_flight = self.in_flight();
        let bytes = self.capacity.bytes.saturating_sub(self.reserve.bytes + in_flight.bytes);
        (bytes / flow_bytes).min(self.packets_max().saturating_sub(in_flight.packets))
    }

    /// Packets of samples leave.
    pub fn send(&mut self, packets: u64, flow_bytes: u64) {
        self.sent = self.sent.plus(packets, flow_bytes);
        self.since_resync_bytes += packets * flow_bytes;
    }

    /// Whether `commands` more stream commands may be sent now, and a packet of `flow_bytes`
    /// behind them; 0 for none.
    pub fn has_room_for_commands(&self, commands: u64, flow_bytes: u64) -> bool {
        let packet = u64::from(flow_bytes > 0);
        let with = self.in_flight().plus(commands, self.command_bytes).plus(packet, flow_bytes);
        with.bytes <= self.capacity.bytes && with.packets <= self.capacity.packets
    }

    /// A stream command leaves.
    pub fn send_command(&mut self) {
        self.sent = self.sent.plus(1, self.command_bytes);
    }

    /// What a stream command counts.
    pub fn command_bytes(&self) -> u64 {
        self.command_bytes
    }

    /// Whether a window's worth of bytes has been sent since the last resynchronisation.
    pub fn is_resync_due(&self) -> bool {
        self.since_resync_bytes >= self.capacity.bytes
    }

    /// A resynchronisation leaves, after [`Window::send_command`].
    pub fn note_resync(&mut self) {
        self.since_resync_bytes = 0;
    }

    /// The device has consumed this much: true when that is more than was known. Counts that run
    /// backwards change nothing; counts beyond what was sent are packets that came twice.
    pub fn consume(&mut self, counted: Totals) -> bool {
        let beyond = counted.since(self.sent);
        let is_beyond = |count: u64| count > 0 && count < 1 << 39;
        if is_beyond(beyond.bytes) && beyond.bytes > self.excess.bytes {
            self.excess.bytes = beyond.bytes;
        }
        if is_beyond(beyond.packets) && beyond.packets > self.excess.packets {
            self.excess.packets = beyond.packets;
        }
        let counted = counted.since(self.excess);
        let news = counted.since(self.consumed);
        let open = self.in_flight();
        if news.bytes > open.bytes || news.packets > open.packets || news == Totals::default() {
            return false;
        }
        self.consumed = counted;
        true
    }

    /// The device has taken over our totals as they were at `totals`.
    pub fn resynchronised(&mut self, totals: Totals) -> bool {
        self.excess = Totals::default();
        self.consume(totals)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window() -> Window {
        Window::new(10_000, PACKETS_UNLIMITED, 24)
    }

    #[test]
    fn samples_leave_room_for_commands() {
        let mut window = window();
        assert_eq!(window.period().bytes, 1250);
        let room = window.room_packets(1000);
        assert_eq!(room, 9, "of 10 000 bytes 288 are kept");
        window.send(9, 1000);
        window.send(1, 712);
        assert_eq!(window.room_packets(8), 0);
        assert!(window.has_room_for_commands(COMMANDS_RESERVED, 0));
        assert!(!window.has_room_for_commands(COMMANDS_RESERVED + 1, 0));
        assert!(!window.has_room_for_commands(COMMANDS_RESERVED, 8), "a packet was begun");
        assert!(window.has_room_for_commands(COMMANDS_RESERVED - 1, 24));
    }

    #[test]
    fn packets_limit_too() {
        let mut window = Window::new(1 << 20, 20, 24);
        assert_eq!(window.room_packets(16), 8);
        window.send(5, 16);
        assert_eq!(window.room_packets(16), 3);
        assert!(window.consume(Totals { packets: 4, bytes: 64 }));
        assert_eq!(window.room_packets(16), 7);
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
        window.send_command();
        window.resynchronised(Totals { packets: 9, bytes: 8024 });
        assert_eq!(window.in_flight(), Totals::default());
    }
}
