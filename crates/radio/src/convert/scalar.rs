//! The reference forms. The SIMD forms use them for what is left at the end.

use num_complex::Complex32;

pub(super) fn sc16_to_fc32(wire: &[u8], out: &mut [Complex32], scale: f32) {
    for (bytes, sample) in wire.chunks_exact(4).zip(out) {
        let i = i16::from_le_bytes([bytes[0], bytes[1]]);
        let q = i16::from_le_bytes([bytes[2], bytes[3]]);
        *sample = Complex32::new(f32::from(i) * scale, f32::from(q) * scale);
    }
}

pub(super) fn fc32_to_sc16(samples: &[Complex32], out: &mut [u8], scale: f32) {
    for (sample, bytes) in samples.iter().zip(out.chunks_exact_mut(4)) {
        bytes[..2].copy_from_slice(&quantize(sample.re * scale).to_le_bytes());
        bytes[2..].copy_from_slice(&quantize(sample.im * scale).to_le_bytes());
    }
}

/// Nearest 16-bit value, ties to even, saturating; a float-to-int cast turns not-a-number into 0.
fn quantize(value: f32) -> i16 {
    value.round_ties_even() as i16
}
