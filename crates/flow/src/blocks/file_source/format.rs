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
    /// Two unsigned 8-bit integers, of which 127.5 is 0 and 255 is 1.0: what `rtl_sdr` writes. Only
    /// [`FileSource`](super::FileSource) reads it.
    Cu8,
    /// Two signed 8-bit integers; 127 is 1.0: what `hackrf_transfer` writes. Only
    /// [`FileSource`](super::FileSource) reads it.
    Ci8,
}

impl SampleFormat {
    /// Returns the format of recordings of this name: `sc16` or `cf32`, or another usual spelling.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().as_str() {
            "sc16" | "cs16" | "ci16" | "ci16_le" => Some(Self::Sc16),
            "cf32" | "fc32" | "cfile" | "cf32_le" => Some(Self::Cf32),
            _ => None,
        }
    }

    /// Returns the format of this name among all that a [`FileSource`](super::FileSource) reads:
    /// also `cu8` and `ci8`.
    #[must_use]
    pub fn of_source(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().as_str() {
            "cu8" => Some(Self::Cu8),
            "ci8" | "cs8" | "sc8" => Some(Self::Ci8),
            name => Self::from_name(name),
        }
    }

    /// Bytes of one sample.
    #[must_use]
    pub fn sample_bytes(self) -> usize {
        match self {
            Self::Sc16 => 4,
            Self::Cf32 => 8,
            Self::Cu8 | Self::Ci8 => 2,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Sc16 => "sc16",
            Self::Cf32 => "cf32",
            Self::Cu8 => "cu8",
            Self::Ci8 => "ci8",
        }
    }

    /// Converts samples. Those that are not finite become zero; returns their number.
    pub(super) fn convert(self, bytes: &[u8], samples: &mut [Complex<f32>]) -> u64 {
        match self {
            Self::Sc16 => convert_sc16(bytes, samples),
            Self::Cf32 => {
                convert_cf32(bytes, samples);
                return silence_what_is_not_finite(samples);
            }
            Self::Cu8 => {
                convert_pairs(bytes, samples, |part| (f32::from(part) - 127.5) * (1.0 / 127.5));
            }
            Self::Ci8 => {
                convert_pairs(bytes, samples, |part| f32::from(part as i8) * (1.0 / 127.0));
            }
        }
        0
    }
}

/// Converts samples. Written so that the compiler vectorises it.
fn convert_sc16(bytes: &[u8], samples: &mut [Complex<f32>]) {
    for (sample, bytes) in samples.iter_mut().zip(bytes.chunks_exact(4)) {
        let part = |low, high| f32::from(i16::from_le_bytes([low, high])) * SC16_SCALE;
        *sample = Complex::new(part(bytes[0], bytes[1]), part(bytes[2], bytes[3]));
    }
}

fn convert_pairs(bytes: &[u8], samples: &mut [Complex<f32>], part: impl Fn(u8) -> f32) {
    for (sample, bytes) in samples.iter_mut().zip(bytes.chunks_exact(2)) {
        *sample = Complex::new(part(bytes[0]), part(bytes[1]));
    }
}

fn convert_cf32(bytes: &[u8], samples: &mut [Complex<f32>]) {
    for (sample, bytes) in samples.iter_mut().zip(bytes.chunks_exact(8)) {
        let part = |at: usize| {
            f32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        *sample = Complex::new(part(0), part(4));
    }
}

/// Sets samples that are not finite to zero and returns their number. Written so that the compiler
/// vectorises it.
fn silence_what_is_not_finite(samples: &mut [Complex<f32>]) -> u64 {
    let mut changed = 0;
    for sample in samples {
        let is_finite = sample.re.is_finite() & sample.im.is_finite();
        changed += u64::from(!is_finite);
        *sample = if is_finite { *sample } else { Complex::ZERO };
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_samples_of_full_scale_one() {
        let read = |format: SampleFormat, bytes: &[u8]| {
            let mut samples = vec![Complex::ZERO; bytes.len() / format.sample_bytes()];
            assert_eq!(format.convert(bytes, &mut samples), 0);
            samples
        };
        let unsigned = SampleFormat::of_source("CU8").unwrap();
        let low_and_high = [Complex::new(-1.0, 1.0), Complex::new(-0.5 / 127.5, 0.5 / 127.5)];
        assert_eq!(read(unsigned, &[0, 255, 127, 128]), low_and_high);
        let signed = SampleFormat::of_source("ci8").unwrap();
        assert_eq!(
            read(signed, &[127, 0x81, 0, 64]),
            [Complex::new(1.0, -1.0), Complex::new(0.0, 64.0 / 127.0)]
        );
        assert_eq!(SampleFormat::of_source("sc16"), Some(SampleFormat::Sc16));
    }
}
