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
pub trait ClientSample: HostSample + sealed::Sealed {
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

impl ClientSample for [i8; 2] {
    fn receive(
        source: &mut RxSource,
        outs: &mut [&mut [Self]],
        at: Range<usize>,
        timeout: Duration,
    ) -> Result<RxMeta, RxError> {
        receive_piece(source, outs, at, timeout)
    }

    fn send(
        sink: &mut TxSink,
        ins: &[&[Self]],
        from: usize,
        meta: TxMetadata,
        timeout: Duration,
    ) -> Result<TxSent, TxError> {
        send_piece(sink, ins, from, meta, timeout)
    }
}

impl ClientSample for Complex64 {
    fn receive(
        source: &mut RxSource,
        outs: &mut [&mut [Self]],
        at: Range<usize>,
        timeout: Duration,
    ) -> Result<RxMeta, RxError> {
        receive_piece(source, outs, at, timeout)
    }

    fn send(
        sink: &mut TxSink,
        ins: &[&[Self]],
        from: usize,
        meta: TxMetadata,
        timeout: Duration,
    ) -> Result<TxSent, TxError> {
        send_piece(sink, ins, from, meta, timeout)
    }
}

/// Receives no more than a piece, and converts it.
fn receive_piece<T: HostSample>(
    source: &mut RxSource,
    outs: &mut [&mut [T]],
    at: Range<usize>,
    timeout: Duration,
) -> Result<RxMeta, RxError> {
    let room = at.len().min(PIECE);
    let mut pieces = std::mem::take(source.pieces());
    let mut ins = pieces.of(outs.len(), room);
    let outcome = source.recv_sc16(&mut ins, timeout);
    if let Ok(meta) = &outcome {
        let (converter, scale) = (Converter::new(Wire::Sc16), T::scale_from(Wire::Sc16));
        for (piece, out) in ins.iter().zip(outs) {
            let wire = bytemuck::cast_slice(&piece[..meta.samples]);
            converter.to_user(wire, &mut out[at.clone()], scale);
        }
    }
    *source.pieces() = pieces;
    outcome
}

/// Converts no more than a piece, and sends it.
fn send_piece<T: HostSample>(
    sink: &mut TxSink,
    ins: &[&[T]],
    from: usize,
    mut meta: TxMetadata,
    timeout: Duration,
) -> Result<TxSent, TxError> {
    let left = ins.iter().map(|one| one.len() - from).min().unwrap_or(0);
    let samples = left.min(PIECE);
    meta.end_of_burst &= samples == left;
    let mut pieces = std::mem::take(sink.pieces());
    let mut wire = pieces.of(ins.len(), samples);
    let (converter, scale) = (Converter::new(Wire::Sc16), T::scale_to(Wire::Sc16));
    for (piece, one) in wire.iter_mut().zip(ins) {
        converter.to_wire(&one[from..], bytemuck::cast_slice_mut(piece), scale);
    }
    let wire: Vec<&[[i16; 2]]> = wire.iter().map(|piece| &**piece).collect();
    let outcome = sink.send_sc16(&wire, meta, timeout);
    drop(wire);
    *sink.pieces() = pieces;
    outcome
}
