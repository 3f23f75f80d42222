//! Device to host: the credit window of one stream.

use millstream_wire::chdr::Width;
use millstream_wire::regs::sep::{
    STATUS_FC_ENABLED, STATUS_SETUP_ERROR, STATUS_SETUP_PENDING, StreamCtrl,
};
use millstream_wire::stream::{CommandOp, CommandRepr, PACKETS_MASK, StatusRepr, StreamCondition};
use millstream_wire::{Epid, chdr::round_to_word};

/// The state of the handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Phase {
    #[default]
    Off,
    /// INIT was sent, the host's status has not come.
    Pending,
    /// Data may flow.
    On,
    /// The host refused, or the answer was another one's.
    Failed,
}

/// The sending half of a stream endpoint, with the credit of the host.
///
/// Counters are cumulative since the handshake. The unacknowledged data never exceed the capacity
/// that the host reported, less the requested headroom.
#[derive(Debug, Clone, Default)]
pub(crate) struct OutStream {
    width: Width,
    pub dst_epid: Epid,
    /// Report period requested by the host; 0 and 0 switch flow control off.
    pub period_bytes: u64,
    pub period_packets: u32,
    pub headroom_bytes: u16,
    pub headroom_packets: u8,
    phase: Phase,
    /// The control word, without its start bit.
    control: u32,
    /// The destination is another endpoint of this device, which needs no credit.
    local: bool,
    lossy: bool,
    /// A packet ended amid, because the block before was reset: no command leaves before the next
    /// reset of the stream.
    pub is_amid_packet: bool,
    capacity_bytes: u64,
    capacity_packets: u32,
    sent_bytes: u64,
    sent_packets: u64,
    consumed_bytes: u64,
    consumed_packets: u64,
    bytes_at_resync: u64,
    packets_at_resync: u64,
    data_seq: u16,
    command_seq: u16,
}

/// The host claims to have consumed far more than was sent.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct InvalidStatus;

/// The result of a status.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum StatusTaken {
    /// A plausible count.
    Plain,
    /// A count slightly beyond the sent packets, taken as all of them: the host has counted a
    /// packet twice that came behind the RESYNC which had counted it.
    Excess,
}

impl OutStream {
    /// Returns a stream in the state after power-on, of a device with this CHDR width.
    pub fn new(width: Width) -> Self {
        Self { width, ..Self::default() }
    }

    /// Restores the state after power-on.
    pub fn power_on(&mut self) {
        *self = Self::new(self.width);
    }

    /// Clears the stream and preserves the register values.
    pub fn reset(&mut self) {
        *self = Self {
            width: self.width,
            dst_epid: self.dst_epid,
            period_bytes: self.period_bytes,
            period_packets: self.period_packets,
            headroom_bytes: self.headroom_bytes,
            headroom_packets: self.headroom_packets,
            control: self.control,
            capacity_bytes: self.capacity_bytes,
            capacity_packets: self.capacity_packets,
            ..Self::default()
        };
    }

    /// Writes the control register. Returns the INIT for the host if the start bit is set.
    ///
    /// The numbers go on: it is the host's answer that begins them.
    pub fn configure(&mut self, control: StreamCtrl, src_epid: Epid) -> Option<CommandRepr> {
        let (data_seq, command_seq) = (self.data_seq, self.command_seq);
        let is_amid_packet = self.is_amid_packet;
        self.reset();
        (self.data_seq, self.command_seq) = (data_seq, command_seq);
        (self.lossy, self.is_amid_packet) = (control.lossy, is_amid_packet);
        self.control = StreamCtrl { start: false, ..control }.to_word();
        if !control.start {
            return None;
        }
        self.phase = Phase::Pending;
        if is_amid_packet {
            return None;
        }
        Some(self.command(CommandOp::Init, src_epid))
    }

    /// Completes the handshake with another endpoint of this device.
    pub fn connect(&mut self) {
        (self.phase, self.local) = (Phase::On, true);
    }

    /// Returns whether the destination is an endpoint of this device.
    pub fn is_local(&self) -> bool {
        self.local
    }

    /// Returns the status register.
    pub fn status_word(&self) -> u32 {
        let state = match self.phase {
            Phase::Off => 0,
            Phase::Pending => STATUS_SETUP_PENDING,
            Phase::On if self.has_flow_control() => STATUS_FC_ENABLED,
            Phase::On => 0,
            Phase::Failed => STATUS_SETUP_ERROR,
        };
        state | self.control
    }

    /// Returns the host's reported capacity: bytes and packets.
    pub fn capacity(&self) -> (u64, u32) {
        (self.capacity_bytes, self.capacity_packets)
    }

    /// Returns whether the handshake is complete.
    pub fn is_on(&self) -> bool {
        self.phase == Phase::On
    }

    /// Accepts a status packet from the host.
    pub fn accept_status(&mut self, status: &StatusRepr) -> Result<StatusTaken, InvalidStatus> {
        match self.phase {
            Phase::Pending => {
                let taken =
                    status.status == StreamCondition::Ok && status.src_epid == self.dst_epid;
                if taken {
                    (self.data_seq, self.command_seq) = (0, 0);
                }
                self.phase = if taken { Phase::On } else { Phase::Failed };
                self.capacity_bytes = status.capacity_bytes;
                self.capacity_packets = status.capacity_packets;
                Ok(StatusTaken::Plain)
            }
            Phase::On => {
                let excess_bytes = status.count_bytes.saturating_sub(self.sent_bytes);
                let excess_packets = self.excess_packets(status.count_packets);
                if excess_bytes > self.capacity_bytes
                    || excess_packets > u64::from(self.capacity_packets)
                {
                    return Err(InvalidStatus);
                }
                // An old status that was overtaken in the network must not decrease the counts.
                let bytes = status.count_bytes.min(self.sent_bytes);
                self.consumed_bytes = self.consumed_bytes.max(bytes);
                let open = self.sent_packets.wrapping_sub(status.count_packets) & PACKETS_MASK;
                let open = if excess_packets > 0 { 0 } else { open };
                self.consumed_packets = self.consumed_packets.max(self.sent_packets - open);
                self.capacity_bytes = status.capacity_bytes;
                self.capacity_packets = status.capacity_packets;
                let plain = excess_bytes == 0 && excess_packets == 0;
                Ok(if plain { StatusTaken::Plain } else { StatusTaken::Excess })
            }
            Phase::Off | Phase::Failed => {
                self.capacity_bytes = status.capacity_bytes;
                self.capacity_packets = status.capacity_packets;
                Ok(StatusTaken::Plain)
            }
        }
    }

    /// Returns how many more packets of `packet_bytes` each (before rounding) the window allows,
    /// none of them beyond the point where a RESYNC is due.
    pub fn packets_allowed(&self, packet_bytes: usize) -> u64 {
        if self.phase != Phase::On {
            return 0;
        }
        if !self.has_flow_control() {
            return u64::MAX;
        }
        let each = self.flow_bytes(packet_bytes);
        let (bytes, packets) = self.room();
        let by_window = (bytes / each).min(packets);
        if !self.lossy {
            return by_window;
        }
        let (bytes, packets) = self.since_resync();
        let to_resync = (self.capacity_bytes + 1).saturating_sub(bytes).div_ceil(each);
        let packets_to_it = (u64::from(self.capacity_packets) + 1).saturating_sub(packets);
        by_window.min(to_resync).min(packets_to_it)
    }

    /// Returns whether a RESYNC must be sent before the next packet of data.
    pub fn resync_due(&self) -> bool {
        let (bytes, packets) = self.since_resync();
        self.is_on()
            && self.lossy
            && self.has_flow_control()
            && (bytes > self.capacity_bytes || packets > u64::from(self.capacity_packets))
    }

    /// Returns the RESYNC to be sent now, if it fits the window; counts it.
    pub fn resync(&mut self, src_epid: Epid) -> Option<CommandRepr> {
        let (bytes, packets) = self.room();
        let command_bytes = self.flow_bytes(CommandRepr::packet_len(self.width));
        if bytes < command_bytes || packets < 1 {
            return None;
        }
        let command = self.command(CommandOp::Resync, src_epid);
        self.count(command_bytes, 1);
        (self.bytes_at_resync, self.packets_at_resync) = (self.sent_bytes, self.sent_packets);
        Some(command)
    }

    /// Counts one data packet of `packet_bytes` (before rounding); returns its sequence number.
    pub fn send_data(&mut self, packet_bytes: usize) -> u16 {
        self.count(self.flow_bytes(packet_bytes), 1);
        let seq = self.data_seq;
        self.data_seq = seq.wrapping_add(1);
        seq
    }

    /// Bytes sent and not reported as consumed.
    #[cfg(test)]
    pub fn bytes_in_flight(&self) -> u64 {
        self.sent_bytes - self.consumed_bytes
    }

    /// Returns the packets by which a count, modulo 2^40, exceeds the sent ones.
    fn excess_packets(&self, count: u64) -> u64 {
        let open = self.sent_packets.wrapping_sub(count) & PACKETS_MASK;
        if open <= self.sent_packets { 0 } else { open.wrapping_neg() & PACKETS_MASK }
    }

    /// Returns the length of a packet in flow control.
    fn flow_bytes(&self, packet_bytes: usize) -> u64 {
        round_to_word(packet_bytes, self.width) as u64
    }

    fn has_flow_control(&self) -> bool {
        self.period_bytes != 0 || self.period_packets != 0
    }

    /// Returns the bytes and packets sent since the last RESYNC.
    fn since_resync(&self) -> (u64, u64) {
        (self.sent_bytes - self.bytes_at_resync, self.sent_packets - self.packets_at_resync)
    }

    /// Returns the bytes and packets that may be sent now.
    fn room(&self) -> (u64, u64) {
        let bytes_open = self.sent_bytes - self.consumed_bytes + u64::from(self.headroom_bytes);
        let packets_open =
            self.sent_packets - self.consumed_packets + u64::from(self.headroom_packets);
        (
            self.capacity_bytes.saturating_sub(bytes_open),
            u64::from(self.capacity_packets).saturating_sub(packets_open),
        )
    }

    fn count(&mut self, bytes: u64, packets: u64) {
        self.sent_bytes += bytes;
        self.sent_packets += packets;
    }

    fn command(&mut self, op: CommandOp, src_epid: Epid) -> CommandRepr {
        let (packets, bytes) = match op {
            CommandOp::Init => (u64::from(self.period_packets), self.period_bytes),
            _ => (self.sent_packets & PACKETS_MASK, self.sent_bytes),
        };
        let seq = self.command_seq;
        self.command_seq = seq.wrapping_add(1);
        CommandRepr { dst_epid: self.dst_epid, seq, src_epid, op, op_data: 0, packets, bytes }
    }
}

#[cfg(test)]
#[path = "out_stream_tests.rs"]
mod tests;
