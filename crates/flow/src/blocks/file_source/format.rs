//! Formats of samples in files.

use crate::SC16_SCALE;
use num_complex::Complex;

/// The format of complex samples in a file, little-endian, I before Q.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum SampleFormat {
    /// Two 16-bit integers; 32767 is 1.0.
    Sc16,
    /// Two 32-bit floats.
    Cf32,
}

impl SampleFormat {
    /// Returns the format of this name: `sc16` or `cf32`, or another usual spelling.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().as_str() {
            "sc16" | "cs16" | "ci16" | "ci16_le" => Some(Self::Sc16),
            "cf32" | "fc32" | "cfile" | "cf32_le" => Some(Self::Cf32),
            _ => None,
        }
    }

    /// Bytes of one sample.
    #[must_use]
    pub fn sample_bytes(self) -> usize {
        match self {
            Self::Sc16 => 4,
            Self::Cf32 => 8,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Sc16 => "sc16",
            Self::Cf32 => "cf32",
        }
    }
}

/// Converts samples. Written so that the compiler vectorises it.
pub(super) fn convert_sc16(bytes: &[u8], samples: &mut [Complex<f32>]) {
    for (sample, bytes) in samples.iter_mut().zip(bytes.chunks_exact(4)) {
        let part = |low, high| f32::from(i16::from_le_bytes([low, high])) * SC16_SCALE;
        *sample = Complex::new(part(bytes[0], bytes[1]), part(bytes[2], bytes[3]));
    }
}

pub(super) fn convert_cf32(bytes: &[u8], samples: &mut [Complex<f32>]) {
    for (sample, bytes) in samples.iter_mut().zip(bytes.chunks_exact(8)) {
        let part = |at: usize| {
            f32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        *sample = Complex::new(part(0), part(4));
    }
}

/// Sets samples that are not finite to zero and returns their number. Written so that the compiler
/// vectorises it.
pub(super) fn silence_what_is_not_finite(samples: &mut [Complex<f32>]) -> u64 {
    let mut changed = 0;
    for sample in samples {
        let is_finite = sample.re.is_finite() & sample.im.is_finite();
        changed += u64::from(!is_finite);
        *sample = if is_finite { *sample } else { Complex::ZERO };
    }
    changed
}
