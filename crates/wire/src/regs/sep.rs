//! Stream endpoint registers, in the management address space.

/// Own endpoint id; read and write.
pub const EPID_SELF: u16 = 0x00;
/// Write: resets and flushes the parts in the `RESET_*` bits.
pub const RESET_AND_FLUSH: u16 = 0x04;
/// Write: [`StreamCtrl`] of the output (device to host) stream. Read: `STATUS_*` bits.
pub const OSTRM_CTRL_STATUS: u16 = 0x08;
/// Destination endpoint of the output stream.
pub const OSTRM_DST_EPID: u16 = 0x0C;
/// Credit report period in bytes, bits 31 to 0.
pub const OSTRM_FC_FREQ_BYTES_LO: u16 = 0x10;
/// Credit report period in bytes, bits 39 to 32.
pub const OSTRM_FC_FREQ_BYTES_HI: u16 = 0x14;
/// Credit report period in packets, 24 bits.
pub const OSTRM_FC_FREQ_PKTS: u16 = 0x18;
/// Space to leave unused: `[15:0]` bytes, `[23:16]` packets.
pub const OSTRM_FC_HEADROOM: u16 = 0x1C;
/// Read: byte capacity learned from the peer, bits 31 to 0.
pub const OSTRM_BUFF_CAP_BYTES_LO: u16 = 0x20;
/// Read: byte capacity learned from the peer, bits 39 to 32.
pub const OSTRM_BUFF_CAP_BYTES_HI: u16 = 0x24;
/// Read: packet capacity learned from the peer.
pub const OSTRM_BUFF_CAP_PKTS: u16 = 0x28;
/// Read: sequence errors counted.
pub const OSTRM_SEQ_ERR_COUNT: u16 = 0x2C;
/// Read: data errors counted.
pub const OSTRM_DATA_ERR_COUNT: u16 = 0x30;
/// Read: routing errors counted.
pub const OSTRM_ROUTE_ERR_COUNT: u16 = 0x34;
/// Write: [`StreamCtrl`] of the input (host to device) stream.
pub const ISTRM_CTRL_STATUS: u16 = 0x38;

/// [`RESET_AND_FLUSH`]: the output stream.
pub const RESET_OSTRM: u32 = 1 << 0;
/// [`RESET_AND_FLUSH`]: the input stream.
pub const RESET_ISTRM: u32 = 1 << 1;
/// [`RESET_AND_FLUSH`]: control.
pub const RESET_CTRL: u32 = 1 << 2;
/// [`RESET_AND_FLUSH`]: all three, which a host writes before first use.
pub const RESET_ALL: u32 = RESET_OSTRM | RESET_ISTRM | RESET_CTRL;

/// [`OSTRM_CTRL_STATUS`] read: flow control is on.
pub const STATUS_FC_ENABLED: u32 = 1 << 31;
/// [`OSTRM_CTRL_STATUS`] read: the set-up failed.
pub const STATUS_SETUP_ERROR: u32 = 1 << 30;
/// [`OSTRM_CTRL_STATUS`] read: the set-up is under way.
pub const STATUS_SETUP_PENDING: u32 = 1 << 29;

/// Size of a stream's items, which determines how a device may swap bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ItemSize {
    /// 64 bits.
    #[default]
    Bits64,
    /// 32 bits.
    Bits32,
    /// 16 bits: `sc16`, whose I and Q are swapped one by one.
    Bits16,
    /// 8 bits.
    Bits8,
}

impl ItemSize {
    const fn from_code(code: u32) -> ItemSize {
        match code & 3 {
            0 => ItemSize::Bits64,
            1 => ItemSize::Bits32,
            2 => ItemSize::Bits16,
            _ => ItemSize::Bits8,
        }
    }
}

/// The control word of [`OSTRM_CTRL_STATUS`] and [`ISTRM_CTRL_STATUS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct StreamCtrl {
    /// Bit 0: begin the flow control handshake (output streams only).
    pub start: bool,
    /// Bit 1: packets may get lost in the network, so the totals must be sent periodically.
    pub lossy: bool,
    /// `[3:2]` item size of the payload.
    pub payload: ItemSize,
    /// `[5:4]` item size of the metadata.
    pub metadata: ItemSize,
    /// Bit 6: swap the bytes of each item.
    pub byte_swap: bool,
}

impl StreamCtrl {
    /// Decodes a control word; reserved bits are dropped.
    #[must_use]
    pub const fn from_word(word: u32) -> StreamCtrl {
        StreamCtrl {
            start: word & 1 != 0,
            lossy: word & 2 != 0,
            payload: ItemSize::from_code(word >> 2),
            metadata: ItemSize::from_code(word >> 4),
            byte_swap: word & 0x40 != 0,
        }
    }

    /// Encodes the control word.
    #[must_use]
    pub const fn to_word(self) -> u32 {
        self.start as u32
            | (self.lossy as u32) << 1
            | (self.payload as u32) << 2
            | (self.metadata as u32) << 4
            | (self.byte_swap as u32) << 6
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_control_word_is_read_back() {
        for word in 0..0x80 {
            assert_eq!(StreamCtrl::from_word(word).to_word(), word);
        }
    }

    #[test]
    fn the_word_uhd_writes_for_sc16_is_made_from_its_parts() {
        let input = StreamCtrl { payload: ItemSize::Bits16, ..Default::default() };
        assert_eq!(input.to_word(), 0x08);
        assert_eq!(StreamCtrl { start: true, lossy: true, ..input }.to_word(), 0x0B);
    }
}
