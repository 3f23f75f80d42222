//! The sample types of clients.

use std::ops::Range;
use std::time::Duration;

use millstream_radio::convert::{Converter, HostSample, Wire};
use millstream_radio::{Complex32, Complex64, RxError, TxError, TxMetadata, TxSent};

use crate::rx::{RxMeta, RxSource};
use crate::tx::TxSink;

/// Samples that are converted in one piece, where the streams have no conversion of their own.
const PIECE: usize = 4096;

/// A type of samples that streams take and give.
///
/// | type | full scale | way |
/// | --- | --- | --- |
/// | `[i16; 2]` | 32767 | as on the wire: the native type |
/// | `Complex32` | 1.0 | converted once |
/// | `[i8; 2]`, `Complex64` | 127, 1.0 | converted twice |
/// | `[u8; 3]` | 2047 | 12 bits of I, then 12 bits of Q, low bits first; converted twice |
pub trait ClientSample: bytemuck::Pod + sealed::Sealed {
    /// Receives into the places `at` of `outs`.
    #[doc(hidden)]
    fn receive(
        source: &mut RxSource,
        outs: &mut [&mut [Self]],
        at: Range<usize>,
        timeout: Duration,
    ) -> Result<RxMeta, RxError>;

    /// Sends the samples of `ins` behind their first `from` ones.
    #[doc(hidden)]
    fn send(
        sink: &mut TxSink,
        ins: &[&[Self]],
        from: usize,
        meta: TxMetadata,
        timeout: Duration,
    ) -> Result<TxSent, TxError>;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Complex32 {}
    impl Sealed for super::Complex64 {}
    impl Sealed for [i16; 2] {}
    impl Sealed for [i8; 2] {}
    impl Sealed for [u8; 3] {}
}

/// Memory for the pieces of samples that are converted twice: made when first used.
#[derive(Debug, Default)]
pub struct Pieces(Vec<Vec<[i16; 2]>>);

impl Pieces {
    /// Returns a piece of `samples` samples for each channel.
    fn of(&mut self, channels: usize, samples: usize) -> Vec<&mut [[i16; 2]]> {
        self.0.resize_with(channels, || vec![[0; 2]; PIECE]);
        self.0.iter_mut().map(|piece| &mut piece[..samples]).collect()
    }
}

/// Runs `call` with parts of slices; for one or two channels without allocating.
fn parts_mut<T, R>(
    slices: &mut [&mut [T]],
    at: Range<usize>,
    call: impl FnOnce(&mut [&mut [T]]) -> R,
) -> R {
    match slices {
        [one] => call(&mut [&mut one[at]]),
        [one, two] => call(&mut [&mut one[at.clone()], &mut two[at]]),
        many => {
            let parts = many.iter_mut().map(|one| &mut one[at.clone()]);
            call(&mut parts.collect::<Vec<_>>())
        }
    }
}

/// Does the same for slices that are only read.
fn ends<T, R>(slices: &[&[T]], from: usize, call: impl FnOnce(&[&[T]]) -> R) -> R {
    match slices {
        _ if from == 0 => call(slices),
        [one] => call(&[&one[from..]]),
        [one, two] => call(&[&one[from..], &two[from..]]),
        many => {
            let ends: Vec<&[T]> = many.iter().map(|one| &one[from..]).collect();
            call(&ends)
        }
    }
}

impl ClientSample for Complex32 {
    fn receive(
        source: &mut RxSource,
        outs: &mut [&mut [Self]],
        at: Range<usize>,
        timeout: Duration,
    ) -> Result<RxMeta, RxError> {
        parts_mut(outs, at, |outs| source.recv(outs, timeout))
    }

    fn send(
        sink: &mut TxSink,
        ins: &[&[Self]],
        from: usize,
        meta: TxMetadata,
        timeout: Duration,
    ) -> Result<TxSent, TxError> {
        ends(ins, from, |ins| sink.send(ins, meta, timeout))
    }
}

impl ClientSample for [i16; 2] {
    fn receive(
        source: &mut RxSource,
        outs: &mut [&mut [Self]],
        at: Range<usize>,
        timeout: Duration,
    ) -> Result<RxMeta, RxError> {
        parts_mut(outs, at, |outs| source.recv_sc16(outs, timeout))
    }

    fn send(
        sink: &mut TxSink,
        ins: &[&[Self]],
        from: usize,
        meta: TxMetadata,
        timeout: Duration,
    ) -> Result<TxSent, TxError> {
        ends(ins, from, |ins| sink.send_sc16(ins, meta, timeout))
    }
}

/// Types that pass through that of the wire: `$from` and `$to` convert a piece.
macro_rules! through_wire {
    ($($sample:ty: $from:ident, $to:ident;)*) => {$(
        impl ClientSample for $sample {
            fn receive(
                source: &mut RxSource,
                outs: &mut [&mut [Self]],
                at: Range<usize>,
                timeout: Duration,
            ) -> Result<RxMeta, RxError> {
                receive_piece(source, outs, at, timeout, $from)
            }

            fn send(
                sink: &mut TxSink,
                ins: &[&[Self]],
                from: usize,
                meta: TxMetadata,
                timeout: Duration,
            ) -> Result<TxSent, TxError> {
                send_piece(sink, ins, from, meta, timeout, $to)
            }
        }
    )*};
}

through_wire! {
    [i8; 2]: from_wire, to_wire;
    Complex64: from_wire, to_wire;
    [u8; 3]: pack, unpack;
}

fn from_wire<T: HostSample>(wire: &[[i16; 2]], out: &mut [T]) {
    let scale = T::scale_from(Wire::Sc16);
    Converter::new(Wire::Sc16).to_user(bytemuck::cast_slice(wire), out, scale);
}

fn to_wire<T: HostSample>(samples: &[T], wire: &mut [[i16; 2]]) {
    let scale = T::scale_to(Wire::Sc16);
    Converter::new(Wire::Sc16).to_wire(samples, bytemuck::cast_slice_mut(wire), scale);
}

/// The full scale of 12 bits, as a part of that of the wire.
const TWELVE_BITS: f32 = 2047.0 / 32767.0;

/// Packs samples of 16 bits into 12.
fn pack(wire: &[[i16; 2]], out: &mut [[u8; 3]]) {
    for (sample, packed) in wire.iter().zip(out) {
        // -32768 becomes -2047, so no value needs more than 12 bits.
        let part = |part: i16| (f32::from(part) * TWELVE_BITS).round_ties_even() as i32 as u32;
        let [i, q] = sample.map(part);
        let word = (i & 0xFFF) | (q & 0xFFF) << 12;
        packed.copy_from_slice(&word.to_le_bytes()[..3]);
    }
}

/// Unpacks samples of 12 bits.
fn unpack(packed: &[[u8; 3]], wire: &mut [[i16; 2]]) {
    for ([low, middle, high], sample) in packed.iter().zip(wire) {
        let word = u32::from_le_bytes([*low, *middle, *high, 0]);
        // The sign of 12 bits is that of the topmost of 32; -2048 saturates.
        let part = |up: u32| (((word << up) as i32 >> 20) as f32 / TWELVE_BITS).round_ties_even();
        *sample = [part(20) as i16, part(8) as i16];
    }
}

/// Receives no more than a piece, and converts it.
fn receive_piece<T>(
    source: &mut RxSource,
    outs: &mut [&mut [T]],
    at: Range<usize>,
    timeout: Duration,
    convert: impl Fn(&[[i16; 2]], &mut [T]),
) -> Result<RxMeta, RxError> {
    let room = at.len().min(PIECE);
    let mut pieces = std::mem::take(source.pieces());
    let mut ins = pieces.of(outs.len(), room);
    let outcome = source.recv_sc16(&mut ins, timeout);
    if let Ok(meta) = &outcome {
        for (piece, out) in ins.iter().zip(outs) {
            convert(&piece[..meta.samples], &mut out[at.clone()]);
        }
    }
    *source.pieces() = pieces;
    outcome
}

/// Converts no more than a piece, and sends it.
fn send_piece<T>(
    sink: &mut TxSink,
    ins: &[&[T]],
    from: usize,
    mut meta: TxMetadata,
    timeout: Duration,
    convert: impl Fn(&[T], &mut [[i16; 2]]),
) -> Result<TxSent, TxError> {
    let left = ins.iter().map(|one| one.len() - from).min().unwrap_or(0);
    let samples = left.min(PIECE);
    meta.end_of_burst &= samples == left;
    let mut pieces = std::mem::take(sink.pieces());
    let mut wire = pieces.of(ins.len(), samples);
    for (piece, one) in wire.iter_mut().zip(ins) {
        convert(&one[from..], piece);
    }
    let wire: Vec<&[[i16; 2]]> = wire.iter().map(|piece| &**piece).collect();
    let outcome = sink.send_sc16(&wire, meta, timeout);
    drop(wire);
    *sink.pieces() = pieces;
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twelve_bits_are_packed_low_bits_first() {
        // I = 0x123, Q = -2 = 0xFFE.
        let samples = [[4658_i16, -32], [32767, -32767], [-32768, 0], [8, 9]];
        let mut packed = [[0; 3]; 4];
        pack(&samples, &mut packed);
        assert_eq!(packed[0], [0x23, 0xE1, 0xFF]);
        // 2047 = 0x7FF, -2047 = 0x801; 8 is less than half of a step, 9 is more.
        assert_eq!(packed[1..], [[0xFF, 0x17, 0x80], [0x01, 0x08, 0x00], [0x00, 0x10, 0x00]]);
        let mut back = [[0; 2]; 4];
        unpack(&packed, &mut back);
        for (back, sample) in back.iter().zip(&samples) {
            for (back, sample) in back.iter().zip(sample) {
                assert!((i32::from(*back) - i32::from(*sample)).abs() <= 8, "{back} {sample}");
            }
        }
        // Each value of 12 bits returns.
        for value in -2047_i32..=2047 {
            let word = (value as u32 & 0xFFF) | (-value as u32 & 0xFFF) << 12;
            let [low, middle, high, _] = word.to_le_bytes();
            let (mut wire, mut again) = ([[0; 2]], [[0; 3]]);
            unpack(&[[low, middle, high]], &mut wire);
            pack(&wire, &mut again);
            assert_eq!(again[0], [low, middle, high], "{value}");
        }
    }
}
