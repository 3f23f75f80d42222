//! The reference forms. The SIMD forms use them for what fills no vector.

use std::ops::Range;

use super::sample::Sample;
use super::wire::Packing;

pub(super) fn to_user<P: Packing, U: Sample>(
    wire: &[u8],
    out: &mut [U],
    range: Range<usize>,
    scale: U::Real,
) {
    for index in range {
        out[index] = U::from_wire(P::load(wire, index), scale);
    }
}

pub(super) fn to_wire<P: Packing, U: Sample>(
    samples: &[U],
    out: &mut [u8],
    range: Range<usize>,
    scale: U::Real,
) {
    for index in range {
        P::store(out, index, samples[index].to_wire(scale));
    }
}
