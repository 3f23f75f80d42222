//! The sample types of streams.

use bytemuck::Pod;
use num_complex::{Complex32, Complex64};

use super::{Converter, HostSample};

/// A type of samples that streams receive and send.
///
/// | type | full scale | conversion |
/// | --- | --- | --- |
/// | `[i16; 2]` | 32767 | none: the same bits as in packets |
/// | `Complex32` | 1.0, or by the scale of the stream | SIMD |
/// | `Complex64`, `[i8; 2]` | 1.0, 127 | SIMD |
/// | `[u8; 3]` | 2047 | 12 bits of I, then 12 bits of Q, low bits first; sample by sample |
pub trait StreamSample: Pod + Send + Sync + sealed::Sealed {
    /// Converts the samples of a packet. Returns how many it converted: as many as there are and as
    /// `out` has space for. `scale` is the stream's, from a wire sample to `Complex32`.
    #[doc(hidden)]
    fn from_packet(converter: Converter, packet: &[u8], out: &mut [Self], scale: f32) -> usize;

    /// Converts samples into a packet. Returns how many it converted: as many as there are and as
    /// the packet has space for. `scale` is the stream's, from `Complex32` to a wire sample.
    #[doc(hidden)]
    fn to_packet(converter: Converter, samples: &[Self], packet: &mut [u8], scale: f32) -> usize;
}

mod sealed {
    pub trait Sealed {}
}

/// Implements the types of the converter. Only the scale of `Complex32` is the stream's.
macro_rules! converted {
    ($($sample:ty: |$converter:ident, $scale:ident| $from:expr, $to:expr;)*) => {$(
        impl sealed::Sealed for $sample {}
        impl StreamSample for $sample {
            #[inline]
            fn from_packet(
                $converter: Converter,
                packet: &[u8],
                out: &mut [Self],
                $scale: f32,
            ) -> usize {
                $converter.to_user(packet, out, $from)
            }

            #[inline]
            fn to_packet(
                $converter: Converter,
                samples: &[Self],
                packet: &mut [u8],
                $scale: f32,
            ) -> usize {
                $converter.to_wire(samples, packet, $to)
            }
        }
    )*};
}

converted! {
    Complex32: |converter, scale| scale, scale;
    [i16; 2]: |converter, _scale| Self::ONE, Self::ONE;
    Complex64: |converter, _scale|
        Self::scale_from(converter.wire()), Self::scale_to(converter.wire());
    [i8; 2]: |converter, _scale|
        Self::scale_from(converter.wire()), Self::scale_to(converter.wire());
}

impl sealed::Sealed for [u8; 3] {}
impl StreamSample for [u8; 3] {
    fn from_packet(_: Converter, packet: &[u8], out: &mut [Self], _: f32) -> usize {
        let places = packet.chunks_exact(4).zip(out);
        places.map(|(four, out)| *out = pack([[four[0], four[1]], [four[2], four[3]]])).count()
    }

    fn to_packet(_: Converter, samples: &[Self], packet: &mut [u8], _: f32) -> usize {
        let places = samples.iter().zip(packet.chunks_exact_mut(4));
        places.map(|(sample, out)| out.copy_from_slice(&unpack(*sample))).count()
    }
}

/// The full scale of 12 bits, as a part of that of the wire.
const TWELVE_BITS: f32 = 2047.0 / 32767.0;

/// Packs a sample of two times 16 bits into two times 12.
fn pack(sample: [[u8; 2]; 2]) -> [u8; 3] {
    // -32768 becomes -2047, so no value needs more than 12 bits.
    let part = |bytes| (f32::from(i16::from_le_bytes(bytes)) * TWELVE_BITS).round_ties_even();
    let [i, q] = sample.map(|bytes| part(bytes) as i32 as u32);
    let [low, middle, high, _] = ((i & 0xFFF) | (q & 0xFFF) << 12).to_le_bytes();
    [low, middle, high]
}

/// Unpacks a sample of 12 bits.
fn unpack([low, middle, high]: [u8; 3]) -> [u8; 4] {
    let word = u32::from_le_bytes([low, middle, high, 0]);
    // The sign of 12 bits is that of the topmost of 32; -2048 saturates.
    let part =
        |up: u32| (((word << up) as i32 >> 20) as f32 / TWELVE_BITS).round_ties_even() as i16;
    let ([a, b], [c, d]) = (part(20).to_le_bytes(), part(8).to_le_bytes());
    [a, b, c, d]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::convert::Wire;

    fn packed(packet: &[u8]) -> Vec<[u8; 3]> {
        let mut out = vec![[0; 3]; packet.len()];
        let count = StreamSample::from_packet(Converter::new(Wire::Sc16), packet, &mut out, 7.0);
        assert_eq!(count, packet.len() / 4);
        out.truncate(count);
        out
    }

    fn unpacked(samples: &[[u8; 3]]) -> Vec<[i16; 2]> {
        let mut wire = vec![[0_i16; 2]; samples.len()];
        let packet = bytemuck::cast_slice_mut(&mut wire);
        let count = StreamSample::to_packet(Converter::new(Wire::Sc16), samples, packet, 7.0);
        assert_eq!(count, samples.len());
        wire
    }

    #[test]
    fn twelve_bits_are_packed_low_bits_first() {
        // I = 0x123, Q = -2 = 0xFFE.
        let samples = [[4658_i16, -32], [32767, -32767], [-32768, 0], [8, 9]];
        let out = packed(bytemuck::cast_slice(&samples));
        // 2047 = 0x7FF, -2047 = 0x801; 8 is less than half of a step, 9 is more.
        let want = [[0x23, 0xE1, 0xFF], [0xFF, 0x17, 0x80], [0x01, 0x08, 0x00], [0x00, 0x10, 0x00]];
        assert_eq!(out, want);
        for (back, sample) in unpacked(&out).iter().zip(&samples) {
            for (back, sample) in back.iter().zip(sample) {
                assert!((i32::from(*back) - i32::from(*sample)).abs() <= 8, "{back} {sample}");
            }
        }
        // Each value of 12 bits returns.
        for value in -2047_i32..=2047 {
            let word = (value as u32 & 0xFFF) | (-value as u32 & 0xFFF) << 12;
            let [low, middle, high, _] = word.to_le_bytes();
            let wire = unpacked(&[[low, middle, high]]);
            assert_eq!(packed(bytemuck::cast_slice(&wire)), [[low, middle, high]], "{value}");
        }
    }

    #[test]
    fn no_more_is_converted_than_both_sides_have() {
        let converter = Converter::new(Wire::Sc16);
        let (mut three, mut packet) = ([[0_u8; 3]; 3], [0_u8; 4 * 3 + 3]);
        assert_eq!(StreamSample::from_packet(converter, &[1; 11], &mut three, 1.0), 2);
        assert_eq!(StreamSample::from_packet(converter, &[1; 99], &mut three, 1.0), 3);
        assert_eq!(StreamSample::to_packet(converter, &[[1_u8; 3]; 5], &mut packet, 1.0), 3);
        assert_eq!(StreamSample::to_packet(converter, &[[1_u8; 3]; 2], &mut packet, 1.0), 2);
    }

    /// Only the scale of a stream of floats has an effect.
    #[test]
    fn integers_and_doubles_keep_their_full_scale() {
        fn first<T: StreamSample>() -> T {
            let mut out = [T::zeroed()];
            T::from_packet(Converter::new(Wire::Sc16), &[0xFF, 0x7F, 1, 0x80], &mut out, 0.5);
            out[0]
        }
        assert_eq!(first::<Complex32>(), Complex32::new(16383.5, -16383.5));
        assert_eq!(first::<Complex64>(), Complex64::new(1.0, -1.0));
        assert_eq!(first::<[i16; 2]>(), [32767, -32767]);
        assert_eq!(first::<[i8; 2]>(), [127, -127]);
    }
}
