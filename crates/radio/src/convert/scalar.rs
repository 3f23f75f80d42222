//! The reference forms. The SIMD forms use them for samples that do not fill a vector.

use std::ops::Range;

use super::sample::HostSample;
use super::wire::WirePacking;

pub(super) fn to_user<P: WirePacking, U: HostSample>(
    wire: &[u8],
    out: &mut [U],
    range: Range<usize>,
    scale: U::Real,
) {
    // One check for all samples: the compiler can then leave out those inside the loop.
    assert!(range.end <= P::samples_in(wire.len()) && range.end <= out.len());
    for index in range {
        out[index] = U::from_wire(P::load(wire, index), scale);
    }
}

pub(super) fn to_wire<P: WirePacking, U: HostSample>(
    samples: &[U],
    out: &mut [u8],
    range: Range<usize>,
    scale: U::Real,
) {
    // One check for all samples, as above.
    assert!(range.end <= P::samples_in(out.len()) && range.end <= samples.len());
    for index in range {
        P::store(out, index, samples[index].to_wire(scale));
    }
}
