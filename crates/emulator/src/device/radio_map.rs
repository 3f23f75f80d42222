//! The addresses of a radio's registers, by the major version of its register map. The block knows
//! its registers by their offsets in map 0, and those that map 1 added by offsets that 0 lacks.

use millstream_wire::regs::radio as regs;

/// Offset, read: bit 0 transmits, bit 1 receives with a complex gain.
pub(super) const FEATURES: u32 = 0x08;
/// Offset: the complex gain behind the receiver; see [`GAIN_ONE`].
pub(super) const RX_GAIN: u32 = 0x60;
/// Offset: the complex gain in front of the transmitter.
pub(super) const TX_GAIN: u32 = 0x64;
/// A gain of one: `[31:16]` real and `[15:0]` imaginary part, 14 fraction bits each.
pub(super) const GAIN_ONE: u32 = 1 << 30;

/// Distance of the registers of two channels in map 1.
const STRIDE_1: u32 = 0x400;
/// Where map 1 has the offsets of map 0: first, last, and what to add.
const MOVED: [(u32, u32, u32); 6] = [
    (0x000, FEATURES, 0),
    (0x100, 0x12C, regs::RX_STATUS),
    (0x130, 0x130, regs::RX_HAS_TIME),
    (0x200, 0x214, regs::TX_IDLE_VALUE),
    (0x300, 0x300, TX_GAIN),
    (0x310, 0x310, RX_GAIN),
];

/// Returns channel and offset of an address in the map with this major version, of a block with
/// `channels`.
pub(super) fn locate(major: u32, address: u32, channels: u8) -> Option<(u8, u32)> {
    if !address.is_multiple_of(4) {
        return None;
    }
    if major == 0 {
        return regs::channel_of(address, channels).filter(|(_, offset)| is_in_map_0(*offset));
    }
    let at = address.checked_sub(regs::CHANNEL_BASE)?;
    let (channel, at) = (at / STRIDE_1, at % STRIDE_1);
    let moved = MOVED.iter().find(|(first, last, _)| (*first..=*last).contains(&at));
    let offset = moved.map(|(first, _, offset)| at - first + offset)?;
    (channel < channels.into()).then_some((channel as u8, offset))
}

fn is_in_map_0(offset: u32) -> bool {
    !matches!(offset, FEATURES | RX_GAIN | TX_GAIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn map_1_has_the_registers_of_map_0_and_new_ones() {
        for offset in (0..0x80).step_by(4) {
            let old = locate(0, regs::channel_register(1, offset), 2);
            let moved = (0..STRIDE_1)
                .step_by(4)
                .filter_map(|at| locate(1, regs::CHANNEL_BASE + STRIDE_1 + at, 2))
                .filter(|found| *found == (1, offset));
            let known = matches!(offset, 0..=0x08 | 0x10..=0x54 | 0x60 | 0x64 | 0x70);
            assert_eq!(moved.count(), usize::from(known), "{offset:#x}");
            assert_eq!(old.is_none(), !is_in_map_0(offset), "{offset:#x}");
        }
    }

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
            assert_eq!(locate(1, address, 2), found, "{address:#x}");
        }
    }
}
