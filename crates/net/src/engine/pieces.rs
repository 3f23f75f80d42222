//! The bytes of a frame that may lie in several parts.

use millstream_link::frame::{Frame, FrameMemory};

/// The most parts of a frame: 64 KiB in parts of 1 KiB. A link that needs more is refused.
pub(super) const PARTS_MAX: usize = 64;

/// Parts of a frame of 9000 bytes in 2 KiB each, plus a margin.
const FEW: usize = 8;

/// The pieces of one frame. Most frames lie in one piece, and only as many entries are written as
/// needed, because this is built for every frame.
#[expect(clippy::large_enum_variant, reason = "a box would be an allocation for every frame")]
pub(super) enum Pieces<'a> {
    None,
    One([&'a [u8]; 1]),
    Few([&'a [u8]; FEW], usize),
    Many([&'a [u8]; PARTS_MAX], usize),
}

impl<'a> Pieces<'a> {
    /// Returns the bytes of each part in `parts`, of which there are at most [`PARTS_MAX`].
    #[inline]
    pub fn of(memory: &'a FrameMemory, parts: &'a [Frame]) -> Self {
        debug_assert!(parts.len() <= PARTS_MAX, "{} parts", parts.len());
        match parts {
            [] => Self::None,
            [only] => Self::One([memory.bytes(only)]),
            few if few.len() <= FEW => Self::Few(filled(memory, few), few.len()),
            many => Self::Many(filled(memory, many), many.len().min(PARTS_MAX)),
        }
    }

    /// Returns the pieces in order.
    #[inline]
    pub fn as_slice(&self) -> &[&'a [u8]] {
        match self {
            Self::None => &[],
            Self::One(one) => one,
            Self::Few(few, count) => &few[..*count],
            Self::Many(many, count) => &many[..*count],
        }
    }
}

fn filled<'a, const N: usize>(memory: &'a FrameMemory, parts: &'a [Frame]) -> [&'a [u8]; N] {
    std::array::from_fn(|index| parts.get(index).map_or(&[][..], |part| memory.bytes(part)))
}
