//! The addresses of a channel's registers, by the version of the radio block.

use super::{
    CHANNEL_BASE, CHANNEL_STRIDE, LOOPBACK, RX_GAIN, RX_HAS_TIME, RX_STATUS, TX_ERR_ADDR, TX_GAIN,
    TX_IDLE_VALUE,
};

/// A part of a channel's registers, at other offsets than in compat 0.x.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct MovedPart {
    /// Its first register and the end of its last one, by the offsets of compat 0.x.
    from: u32,
    end: u32,
    /// The offset of the first one here.
    at: u32,
}

/// The addresses of a channel's registers in one version of the radio block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RadioMap {
    /// The major number in [`COMPAT`](super::COMPAT).
    pub major: u32,
    /// Distance of the registers of two channels.
    pub stride: u32,
    /// Whether there are [`FEATURES`](super::FEATURES) and, by them, complex gains.
    pub has_features: bool,
    parts: &'static [MovedPart],
}

impl RadioMap {
    /// Compat 0.x: UHD 4.0 to 4.9.
    pub const V0: RadioMap = RadioMap {
        major: 0,
        stride: CHANNEL_STRIDE,
        has_features: false,
        parts: &[MovedPart { from: 0, end: CHANNEL_STRIDE, at: 0 }],
    };

    /// Compat 1.x: UHD 4.10 on.
    pub const V1: RadioMap = RadioMap {
        major: 1,
        stride: 0x400,
        has_features: true,
        parts: &[
            MovedPart { from: LOOPBACK, end: RX_STATUS, at: LOOPBACK },
            MovedPart { from: RX_STATUS, end: TX_IDLE_VALUE, at: 0x100 },
            MovedPart { from: RX_HAS_TIME, end: RX_HAS_TIME + 4, at: 0x130 },
            MovedPart { from: TX_IDLE_VALUE, end: TX_ERR_ADDR + 4, at: 0x200 },
            MovedPart { from: TX_GAIN, end: TX_GAIN + 4, at: 0x300 },
            MovedPart { from: RX_GAIN, end: RX_GAIN + 4, at: 0x310 },
        ],
    };

    /// All of them, the oldest first.
    pub const ALL: [RadioMap; 2] = [RadioMap::V0, RadioMap::V1];

    /// Returns the map that belongs to the content of [`COMPAT`](super::COMPAT); `None` for an
    /// unknown major number.
    #[must_use]
    pub fn of_compat(compat: u32) -> Option<RadioMap> {
        RadioMap::ALL.into_iter().find(|map| map.major == compat >> 16)
    }

    /// Returns the address of a channel's register, which is named by its offset in compat 0.x.
    #[must_use]
    pub fn address(&self, channel: u8, register: u32) -> u32 {
        let part = self.parts.iter().find(|part| (part.from..part.end).contains(&register));
        let offset = part.map_or(register, |part| register - part.from + part.at);
        CHANNEL_BASE + self.stride * u32::from(channel) + offset
    }

    /// Returns the channel and the register (its offset in compat 0.x) at an address, of a radio
    /// with `channels` channels; `None` where there is none.
    #[must_use]
    pub fn register(&self, address: u32, channels: u8) -> Option<(u8, u32)> {
        let inside = address.checked_sub(CHANNEL_BASE).filter(|inside| inside % 4 == 0)?;
        let channel = u8::try_from(inside / self.stride).ok().filter(|one| *one < channels)?;
        let offset = inside % self.stride;
        let here = |part: &&MovedPart| (part.at..part.at + part.end - part.from).contains(&offset);
        let part = self.parts.iter().find(here)?;
        Some((channel, offset - part.at + part.from))
    }

    /// Returns the address of a channel's complex gain ([`gain_word`]), `transmit` or receive;
    /// `None` in a version without. [`FEATURES`](super::FEATURES) says whether an image has it.
    #[must_use]
    pub fn gain_address(&self, channel: u8, transmit: bool) -> Option<u32> {
        let register = if transmit { TX_GAIN } else { RX_GAIN };
        self.has_features.then(|| self.address(channel, register))
    }
}

/// Returns the word of a complex gain, each part from -2 to less than 2: the real one in the upper
/// half, 14 fraction bits. Larger values become the nearest possible one.
#[must_use]
pub fn gain_word(real: f32, imaginary: f32) -> u32 {
    let one = f32::from(1_u16 << 14);
    // The conversion saturates; half a step is added away from zero.
    let part = |value: f32| (value * one + if value < 0.0 { -0.5 } else { 0.5 }) as i16 as u16;
    u32::from(part(real)) << 16 | u32::from(part(imaginary))
}

/// Returns the real and the imaginary part of a [`gain_word`].
#[must_use]
pub fn gain_of(word: u32) -> (f32, f32) {
    let part = |half: u32| f32::from(half as u16 as i16) / f32::from(1_u16 << 14);
    (part(word >> 16), part(word))
}

#[cfg(test)]
mod tests {
    use super::super::{
        RX_CMD, RX_DATA, RX_ERR_ADDR, RX_NUM_WORDS_HI, RX_TIME_HI, RX_WORDS_PER_PKT,
    };
    use super::*;

    #[test]
    fn every_register_of_every_version_is_found_again_and_none_beside() {
        for (register, moved) in [
            (LOOPBACK, 0x000),
            (RX_STATUS, 0x100),
            (RX_CMD, 0x104),
            (RX_NUM_WORDS_HI, 0x10C),
            (RX_TIME_HI, 0x114),
            (RX_WORDS_PER_PKT, 0x118),
            (RX_ERR_ADDR, 0x128),
            (RX_DATA, 0x12C),
            (RX_HAS_TIME, 0x130),
            (TX_IDLE_VALUE, 0x200),
            (TX_ERR_ADDR, 0x214),
            (TX_GAIN, 0x300),
            (RX_GAIN, 0x310),
        ] {
            for (map, stride, offset) in
                [(RadioMap::V0, 0x80, register), (RadioMap::V1, 0x400, moved)]
            {
                let address = map.address(1, register);
                assert_eq!(address, 0x1000 + stride + offset, "{map:?}");
                assert_eq!(map.register(address, 2), Some((1, register)));
                assert_eq!(map.register(address, 1), None);
            }
        }
        for beside in [0, 0xFFC, 0x1010, 0x10FC, 0x1102, 0x1134, 0x1218, 0x1304, u32::MAX] {
            assert_eq!(RadioMap::V1.register(beside, 255), None, "{beside:#x}");
        }
        let known = [0, 1, 0x1_0000, 0x1_0007].map(|compat| RadioMap::of_compat(compat).is_some());
        assert_eq!((known, RadioMap::of_compat(0x2_0000)), ([true; 4], None));
    }

    #[test]
    fn complex_gains_have_fourteen_fraction_bits_and_keep_to_their_range() {
        assert_eq!(gain_word(1.0, 0.0), 0x4000_0000);
        assert_eq!(gain_word(-0.5, 0.25), 0xE000_1000);
        assert_eq!(gain_of(0xE000_1000), (-0.5, 0.25));
        assert_eq!(gain_word(9.0, -9.0), 0x7FFF_8000);
        assert_eq!(gain_word(f32::NAN, 0.0), 0);
        let address = |map: RadioMap, transmit| map.gain_address(1, transmit);
        assert_eq!(address(RadioMap::V1, true), Some(0x1700));
        assert_eq!(address(RadioMap::V1, false), Some(0x1710));
        assert_eq!(address(RadioMap::V0, true), None);
    }
}
