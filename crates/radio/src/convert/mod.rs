//! Sample conversion between the wire's `sc16` and `Complex32`.
//!
//! A conversion has a scalar reference form and SIMD forms that give the same bits. The form is
//! chosen at run time, once, by what the processor has.

mod scalar;
#[cfg(target_arch = "x86_64")]
mod x86;

use num_complex::Complex32;

/// The factor that maps `sc16` full scale 32767 to 1.0 (facts page on CHDR, section 5).
pub const SC16_SCALE: f32 = 1.0 / 32767.0;

/// How a conversion is carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Form {
    /// Plain Rust, the reference.
    Scalar,
    /// 256-bit vectors.
    Avx2,
    /// 512-bit vectors.
    Avx512,
}

impl Form {
    /// Every form, the fastest last.
    pub const ALL: [Self; 3] = [Self::Scalar, Self::Avx2, Self::Avx512];

    /// Whether this processor has what the form needs.
    pub fn is_available(self) -> bool {
        #[cfg(target_arch = "x86_64")]
        return match self {
            Self::Scalar => true,
            Self::Avx2 => std::arch::is_x86_feature_detected!("avx2"),
            Self::Avx512 => std::arch::is_x86_feature_detected!("avx512f"),
        };
        #[cfg(not(target_arch = "x86_64"))]
        return self == Self::Scalar;
    }
}

/// Sample conversion in one form that this processor has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Converter {
    /// Checked against the processor when the converter was made.
    form: Form,
}

impl Converter {
    /// The fastest form that this processor has.
    pub fn best() -> Self {
        let available = Form::ALL.into_iter().rev().find(|form| form.is_available());
        Self { form: available.unwrap_or(Form::Scalar) }
    }

    /// A given form, if the processor has it.
    pub fn with_form(form: Form) -> Option<Self> {
        form.is_available().then_some(Self { form })
    }

    /// The form in use.
    pub fn form(self) -> Form {
        self.form
    }

    /// Converts wire samples (I then Q, 16 bit, little-endian, signed) to complex floats times
    /// `scale`. Converts as many samples as both slices hold and returns how many.
    #[inline]
    pub fn sc16_to_fc32(self, wire: &[u8], out: &mut [Complex32], scale: f32) -> usize {
        let count = (wire.len() / 4).min(out.len());
        let (wire, out) = (&wire[..count * 4], &mut out[..count]);
        match self.form {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a converter with this form exists only where the processor has AVX2, and
            // `wire` has four bytes for each element of `out`.
            Form::Avx2 => unsafe { x86::sc16_to_fc32_avx2(wire, out, scale) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the same for AVX-512F.
            Form::Avx512 => unsafe { x86::sc16_to_fc32_avx512(wire, out, scale) },
            _ => scalar::sc16_to_fc32(wire, out, scale),
        }
        count
    }

    /// Converts complex floats times `scale` to wire samples: rounded to nearest, ties to even,
    /// saturated to 16 bit; not-a-number gives 0. Returns how many samples both slices held.
    #[inline]
    pub fn fc32_to_sc16(self, samples: &[Complex32], out: &mut [u8], scale: f32) -> usize {
        let count = (out.len() / 4).min(samples.len());
        let (samples, out) = (&samples[..count], &mut out[..count * 4]);
        match self.form {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a converter with this form exists only where the processor has AVX2, and
            // `out` has four bytes for each element of `samples`.
            Form::Avx2 => unsafe { x86::fc32_to_sc16_avx2(samples, out, scale) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the same for AVX-512F.
            Form::Avx512 => unsafe { x86::fc32_to_sc16_avx512(samples, out, scale) },
            _ => scalar::fc32_to_sc16(samples, out, scale),
        }
        count
    }
}

impl Default for Converter {
    fn default() -> Self {
        Self::best()
    }
}

#[cfg(test)]
mod tests;
