//! Credit: how much this host may have in flight to the device.

use millstream_wire::stream::PACKETS_UNLIMITED;

use super::progress::Totals;

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

/// The sender's side of one stream's flow control: what fits the device's buffer.
#[derive(Debug, Clone)]
pub(super) struct CreditWindow {
    capacity: Totals,
    command_bytes: u64,
    /// Reserved for packets that may come late or twice.
    spare_bytes: u64,
}

impl CreditWindow {
    /// Returns the window that a device advertises. `command_bytes` is a stream command's length.
    pub fn new(capacity_bytes: u64, capacity_packets: u32, command_bytes: u64) -> Self {
        let unlimited = capacity_packets == PACKETS_UNLIMITED;
        let packets = if unlimited { u64::MAX } else { capacity_packets.into() };
        let capacity = Totals { packets, bytes: capacity_bytes };
        Self { capacity, command_bytes, spare_bytes: 0 }
    }

    /// Returns the bytes that may be in flight.
    pub fn capacity_bytes(&self) -> u64 {
        self.capacity.bytes
    }

    /// Returns the packets that may be in flight.
    pub fn capacity_packets(&self) -> u64 {
        self.capacity.packets
    }

    /// Returns the length of a stream command.
    pub fn command_bytes(&self) -> u64 {
        self.command_bytes
    }

    /// Returns the requested report period: an eighth of the window.
    pub fn period(&self) -> Totals {
        let packets = self.capacity.packets.min(PACKETS_UNLIMITED.into());
        Totals { packets: report_period(packets), bytes: report_period(self.capacity.bytes) }
    }

    /// Returns the largest packet that fits an empty window, bytes; at least two fit.
    pub fn packet_bytes_max(&self) -> u64 {
        self.capacity.bytes.saturating_sub(COMMANDS_RESERVED * self.command_bytes) / 2
    }

    /// Returns the packets of samples that may be in flight.
    pub fn packets_max(&self) -> u64 {
        self.capacity.packets.saturating_sub(COMMANDS_RESERVED)
    }

    /// Returns how many packets of `flow_bytes` each may be sent, with these packets of samples in
    /// flight.
    pub fn room_packets(&self, in_flight: Totals, flow_bytes: u64) -> u64 {
        let kept = COMMANDS_RESERVED * self.command_bytes + self.spare_bytes;
        let bytes = self.capacity.bytes.saturating_sub(kept + in_flight.bytes);
        (bytes / flow_bytes).min(self.packets_max().saturating_sub(in_flight.packets))
    }

    /// Returns whether `commands` stream commands in flight fit behind these packets, and a packet
    /// of `flow_bytes` behind them; 0 for no packet.
    pub fn fits_commands(&self, in_flight: Totals, commands: u64, flow_bytes: u64) -> bool {
        let bytes = in_flight.bytes + commands * self.command_bytes + flow_bytes;
        let packets = in_flight.packets + commands + u64::from(flow_bytes > 0);
        bytes <= self.capacity.bytes && packets <= self.capacity.packets
    }

    /// Takes a report, before which packets of `loose_bytes` were skipped or came unexpectedly:
    /// such packets may come late or twice, and need space in the device's buffer. As much is
    /// reserved, up to what leaves room for one packet, and less with each report without any.
    pub fn report(&mut self, loose_bytes: u64) {
        self.spare_bytes = match loose_bytes {
            0 => self.spare_bytes - self.spare_bytes.div_ceil(REPORTS),
            _ => (self.spare_bytes + loose_bytes).min(self.packet_bytes_max()),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flight(packets: u64, bytes: u64) -> Totals {
        Totals { packets, bytes }
    }

    #[test]
    fn samples_leave_room_for_commands() {
        let window = CreditWindow::new(10_000, PACKETS_UNLIMITED, 24);
        assert_eq!(window.period().bytes, 1250);
        assert_eq!(window.room_packets(flight(0, 0), 1000), 9, "of 10 000 bytes 96 are kept");
        let full = flight(10, 9904);
        assert_eq!(window.room_packets(full, 8), 0);
        assert!(window.fits_commands(full, COMMANDS_RESERVED, 0));
        assert!(!window.fits_commands(full, COMMANDS_RESERVED + 1, 0));
        assert!(!window.fits_commands(full, COMMANDS_RESERVED, 8), "a packet was begun");
        assert!(window.fits_commands(full, COMMANDS_RESERVED - 1, 24));
    }

    #[test]
    fn packets_limit_too() {
        let window = CreditWindow::new(1 << 20, 20, 24);
        assert_eq!(window.room_packets(flight(0, 0), 16), 16);
        assert_eq!(window.room_packets(flight(5, 80), 16), 11);
    }

    #[test]
    fn what_was_skipped_or_came_twice_keeps_room_for_a_while() {
        let mut window = CreditWindow::new(10_000, PACKETS_UNLIMITED, 24);
        window.report(2000);
        assert_eq!(window.room_packets(flight(0, 0), 1000), 7);
        window.report(8000);
        assert_eq!(window.room_packets(flight(0, 0), 1000), 4, "half of it at most");
        (0..100).for_each(|_| window.report(0));
        assert_eq!(window.room_packets(flight(0, 0), 1000), 9);
    }
}
