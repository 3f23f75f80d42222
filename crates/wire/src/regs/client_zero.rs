//! Client zero: the parts of the device (control port 0).
//!
//! Addresses are bytes, registers 32 bits. Index k counts client zero itself (0), then the stream
//! endpoints, then the blocks.

use crate::bits::register;

/// Read: `[15:0]` protocol version.
pub const PROTO_VER: u32 = 0x00;
/// Read: [`Counts`].
pub const PORT_CONFIG: u32 = 0x04;
/// Read: number of edges.
pub const EDGE_COUNT: u32 = 0x08;
/// Read: `[31:16]` device type, see [`device_type`].
pub const DEVICE_INFO: u32 = 0x0C;
/// Read: `[9:0]` number of control endpoints.
pub const CTRL_ENDPOINTS: u32 = 0x10;
/// Read: `[13:0]` number of [`Edge`]s, which follow, one word each.
pub const ADJACENCY: u32 = 0x10000;

/// Distance of the register groups of two indices.
pub const INDEX_STRIDE: u32 = 0x40;
/// Offset, read: [`BlockInfo`]. Write: flush time-out in clock cycles.
pub const BLOCK_INFO: u32 = 0x00;
/// Offset, read: NoC id. Write: `FLUSH`, `RESET_*` bits, which act on their rising edge.
pub const BLOCK_NOC_ID: u32 = 0x04;
/// Offset, read: [`FlushStatus`].
pub const BLOCK_FLUSH_STATUS: u32 = 0x08;

/// [`BLOCK_NOC_ID`] write: flush.
pub const FLUSH: u32 = 1 << 0;
/// [`BLOCK_NOC_ID`] write: reset the control side.
pub const RESET_CTRL: u32 = 1 << 1;
/// [`BLOCK_NOC_ID`] write: reset the data side.
pub const RESET_DATA: u32 = 1 << 2;

/// Returns the address of a register of index `k`.
#[must_use]
pub const fn index_register(k: u16, offset: u32) -> u32 {
    INDEX_STRIDE * k as u32 + offset
}

/// Values of `[31:16]` of [`DEVICE_INFO`].
pub mod device_type {
    /// E320.
    pub const E320: u16 = 0xE320;
    /// E310 and E312.
    pub const E310: u16 = 0xE310;
    /// N300 and N310.
    pub const N300: u16 = 0x1300;
    /// N320 and N321.
    pub const N320: u16 = 0x1320;
    /// X300 and X310.
    pub const X300: u16 = 0xA300;
    /// X410.
    pub const X400: u16 = 0xA400;
}

/// NoC ids of blocks.
pub mod noc_id {
    /// Radio.
    pub const RADIO: u32 = 0x12AD_1000;
    /// Digital down-converter.
    pub const DDC: u32 = 0xDDC0_0000;
    /// Digital up-converter.
    pub const DUC: u32 = 0xD0C0_0000;
    /// A queue in the device's memory, which passes samples on unchanged.
    pub const DMA_FIFO: u32 = 0xF1F0_0000;

    /// A source of counting items, and a sink.
    pub const NULL_SRC_SINK: u32 = 0x0000_0001;
    /// Memory that records and plays.
    pub const REPLAY: u32 = 0x4E91_A000;
    /// Generator of test signals.
    pub const SIG_GEN: u32 = 0x5166_3110;

    /// The other blocks of Ettus's images.
    const OTHERS: [(u32, &str); 14] = [
        (NULL_SRC_SINK, "NullSrcSink"),
        (0x0246_0000, "KeepOneInN"),
        (0x1112_0000, "VectorIIR"),
        (0x4C50_0000, "LogPwr"),
        (REPLAY, "Replay"),
        (SIG_GEN, "SigGen"),
        (0x5757_0000, "SplitStream"),
        (0x666F_0000, "Fosphor"),
        (0xAAD2_0000, "MovingAverage"),
        (0xADD0_0000, "AddSub"),
        (0xBE11_0000, "Switchboard"),
        (0xD053_0000, "Window"),
        (0xF112_0000, "FIR"),
        (0xFF70_0000, "FFT"),
    ];

    /// Returns the name of a kind of block, as UHD calls it; `None` for an unknown kind.
    #[must_use]
    pub fn name(id: u32) -> Option<&'static str> {
        match id {
            RADIO => Some("Radio"),
            DDC => Some("DDC"),
            DUC => Some("DUC"),
            DMA_FIFO => Some("DmaFIFO"),
            other => OTHERS.iter().find(|(id, _)| *id == other).map(|(_, name)| *name),
        }
    }
}

register! {
    /// The register [`PORT_CONFIG`].
    pub struct Counts {
        /// `[9:0]` stream endpoints.
        endpoints: u16 = 0, 10;
        /// `[19:10]` blocks.
        blocks: u16 = 10, 10;
        /// `[29:20]` transports.
        transports: u16 = 20, 10;
        /// Bit 31: there is a crossbar.
        has_crossbar: bool = 31, 1;
    }
}

register! {
    /// One word of the adjacency list: a static connection between two indices.
    pub struct Edge {
        /// `[31:22]` index of the data's source.
        src_index: u16 = 22, 10;
        /// `[21:16]` its output port.
        src_port: u8 = 16, 6;
        /// `[15:6]` index of the data's destination.
        dst_index: u16 = 6, 10;
        /// `[5:0]` its input port.
        dst_port: u8 = 0, 6;
    }
}

register! {
    /// The register [`BLOCK_INFO`].
    pub struct BlockInfo {
        /// `[5:0]` version.
        version: u8 = 0, 6;
        /// `[11:6]` inputs.
        inputs: u8 = 6, 6;
        /// `[17:12]` outputs.
        outputs: u8 = 12, 6;
        /// `[23:18]` log2 of the command FIFO's size in 32-bit words.
        fifo_log2: u8 = 18, 6;
        /// `[31:24]` most asynchronous messages in flight at a time.
        max_async_msgs: u8 = 24, 8;
    }
}

register! {
    /// The register [`BLOCK_FLUSH_STATUS`].
    pub struct FlushStatus {
        /// Bit 0: a flush is under way.
        active: bool = 0, 1;
        /// Bit 1: a flush has ended.
        done: bool = 1, 1;
        /// `[7:2]` log2 of the MTU in CHDR words.
        mtu_log2: u8 = 2, 6;
        /// `[13:8]` number of the control clock; 0 where clocks have no numbers.
        control_clock: u8 = 8, 6;
        /// `[19:14]` number of the clock of the time.
        time_clock: u8 = 14, 6;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    #[test]
    fn fields_lie_where_the_register_map_says() {
        let counts = Counts { endpoints: 2, blocks: 1, transports: 1, has_crossbar: true };
        assert_eq!(counts.to_word(), Ok(1 << 31 | 1 << 20 | 1 << 10 | 2));
        let edge = Edge { src_index: 3, src_port: 1, dst_index: 2, dst_port: 5 };
        assert_eq!(edge.to_word(), Ok(3 << 22 | 1 << 16 | 2 << 6 | 5));
        let info = BlockInfo { version: 1, inputs: 2, outputs: 3, fifo_log2: 9, max_async_msgs: 4 };
        assert_eq!(info.to_word(), Ok(4 << 24 | 9 << 18 | 3 << 12 | 2 << 6 | 1));
        let flush = FlushStatus {
            done: true,
            mtu_log2: 10,
            control_clock: 1,
            time_clock: 4,
            ..FlushStatus::default()
        };
        assert_eq!(flush.to_word(), Ok(4 << 14 | 1 << 8 | 10 << 2 | 2));
        assert_eq!(index_register(3, BLOCK_NOC_ID), 0xC4);
    }

    #[test]
    fn registers_are_read_back() {
        for word in [0, u32::MAX, 0x1234_5678, 0x8421_8421, 0xDEAD_BEEF] {
            assert_eq!(Edge::from_word(word).to_word(), Ok(word));
            assert_eq!(BlockInfo::from_word(word).to_word(), Ok(word));
            assert_eq!(Counts::from_word(word).to_word(), Ok(word & !(1 << 30)));
            assert_eq!(FlushStatus::from_word(word).to_word(), Ok(word & 0xF_FFFF));
        }
    }

    #[test]
    fn a_value_too_large_for_its_field_is_refused() {
        let edge = Edge { src_port: 64, ..Default::default() };
        assert_eq!(edge.to_word(), Err(Error::FieldOverflow));
        let counts = Counts { blocks: 1024, ..Default::default() };
        assert_eq!(counts.to_word(), Err(Error::FieldOverflow));
        let info = BlockInfo { fifo_log2: 64, ..Default::default() };
        assert_eq!(info.to_word(), Err(Error::FieldOverflow));
        let flush = FlushStatus { mtu_log2: 64, ..Default::default() };
        assert_eq!(flush.to_word(), Err(Error::FieldOverflow));
    }
}
