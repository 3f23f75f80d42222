//! The registers of a radio's channels, by the version of its register map. The block knows them by
//! their offsets in map 0, and the gains that map 1 added by offsets that 0 lacks.

use millstream_wire::regs::radio::{FEATURES, RadioMap};

/// Offset: the complex gain behind the receiver; see [`GAIN_ONE`].
pub(super) const RX_GAIN: u32 = 0x60;
/// Offset: the complex gain in front of the transmitter.
pub(super) const TX_GAIN: u32 = 0x64;
/// A gain of one: `[31:16]` real and `[15:0]` imaginary part, 14 fraction bits each.
pub(super) const GAIN_ONE: u32 = 1 << 30;

/// Returns channel and offset of an address, of a block with `channels`.
pub(super) fn locate(map: RadioMap, address: u32, channels: u8) -> Option<(u8, u32)> {
    if address % 4 != 0 {
        return None;
    }
    let is_there = |(_, offset): &(u8, u32)| match *offset {
        FEATURES => map.has_features,
        offset => !matches!(offset, RX_GAIN | TX_GAIN),
    };
    let gain = |channel: u8| {
        let is_it = |transmit| map.gain_address(channel, transmit) == Some(address);
        let offset = is_it(true).then_some(TX_GAIN).or(is_it(false).then_some(RX_GAIN));
        offset.map(|offset| (channel, offset))
    };
    let found = map.register(address, channels).filter(is_there);
    found.or_else(|| (0..channels).find_map(gain))
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_wire::regs::radio as regs;

    #[test]
    fn the_registers_that_uhd_4_11_uses_are_found() {
        for (address, found) in [
            (0x1000, Some((0, regs::LOOPBACK))),
            (0x1408, Some((1, FEATURES))),
            (0x1100, Some((0, regs::RX_STATUS))),
            (0x1504, Some((1, regs::RX_CMD))),
            (0x1110, Some((0, regs::RX_TIME_LO))),
            (0x112C, Some((0, regs::RX_DATA))),
            (0x1130, Some((0, regs::RX_HAS_TIME))),
            (0x1600, Some((1, regs::TX_IDLE_VALUE))),
            (0x1214, Some((0, regs::TX_ERR_ADDR))),
            (0x1300, Some((0, TX_GAIN))),
            (0x1710, Some((1, RX_GAIN))),
            (0x1304, None),
            (0x1134, None),
            (0x1102, None),
            (0x1800, None),
            (0x0FFC, None),
            (0x7_FFFC, None),
        ] {
            assert_eq!(locate(RadioMap::V1, address, 2), found, "{address:#x}");
        }
    }

    #[test]
    fn map_0_has_neither_gains_nor_features() {
        for offset in [FEATURES, RX_GAIN, TX_GAIN, 0x300, 0x310] {
            assert_eq!(locate(RadioMap::V0, 0x1000 + offset, 2), None, "{offset:#x}");
        }
        assert_eq!(locate(RadioMap::V0, 0x1094, 2), Some((1, regs::RX_CMD)));
        assert_eq!(locate(RadioMap::V0, 0x1094, 1), None);
    }
}
