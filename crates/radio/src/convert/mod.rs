//! Sample conversion between the wire and the user.
//!
//! | wire \ user | `Complex<f32>` fc32 | `Complex<f64>` fc64 | `[i16; 2]` sc16 | `[i8; 2]` sc8 |
//! | --- | --- | --- | --- | --- |
//! | sc16, sc12, sc8 | both directions | both directions | both directions | both directions |
//!
//! All conversions follow one rule: the value times a scale from the caller, in `f64` for fc64 and
//! in `f32` otherwise. An integer result is rounded to nearest, ties to even, and saturated, and
//! not-a-number gives 0. [`HostSample::scale_from`] and [`HostSample::scale_to`] return the scale
//! that maps full scale to full scale.
//!
//! | file | what it does |
//! | --- | --- |
//! | `wire`, `sample` | the formats, sample by sample |
//! | `stream` | the types of samples that streams have, also 12 bits |
//! | `scalar` | the reference form, from these |
//! | `lanes` | the formats as blocks in vector registers, for any instruction set |
//! | `simd` | the loop over blocks; AVX2, AVX-512 and NEON |
//! | `self_test` | the test of the forms on the processor they run on |
//!
//! All forms give the same bits. The form is chosen at run time: the widest that the processor has
//! and that passes the test.

mod form;
#[cfg_attr(
    not(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little"))),
    allow(dead_code, reason = "no SIMD form here")
)]
mod lanes;
mod sample;
mod scalar;
mod self_test;
#[cfg(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")))]
mod simd;
mod stream;
mod wire;

pub use form::ConvertForm;
pub use sample::HostSample;
pub use stream::StreamSample;
pub use wire::Wire;

use lanes::WireLanes;
use wire::{Sc8, Sc12, Sc16, WirePacking};

pub use millstream_flow::SC16_SCALE;

/// A conversion to and from one wire format, in one form that this processor has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Converter {
    wire: Wire,
    /// Checked against the processor when the converter was made.
    form: ConvertForm,
}

impl Converter {
    /// Returns a converter of the [fastest form](ConvertForm::best) that this processor has.
    pub fn new(wire: Wire) -> Self {
        Self { wire, form: ConvertForm::best() }
    }

    /// Returns a converter of a given form, or `None` when the processor lacks it.
    pub fn with_form(wire: Wire, form: ConvertForm) -> Option<Self> {
        form.is_available().then_some(Self { wire, form })
    }

    /// Returns the wire format.
    pub fn wire(self) -> Wire {
        self.wire
    }

    /// Returns the form in use.
    pub fn form(self) -> ConvertForm {
        self.form
    }

    /// Converts packed samples to the user's, times `scale`. Converts as many as `wire` holds in
    /// whole groups and `out` has space for, and returns the number.
    #[inline]
    pub fn to_user<U: HostSample>(self, wire: &[u8], out: &mut [U], scale: U::Real) -> usize {
        match self.wire {
            Wire::Sc16 => self.to_user_from::<Sc16, U>(wire, out, scale),
            Wire::Sc12 => self.to_user_from::<Sc12, U>(wire, out, scale),
            Wire::Sc8 => self.to_user_from::<Sc8, U>(wire, out, scale),
        }
    }

    /// Converts the user's samples, times `scale`, to packed ones. Converts as many as there are
    /// and as `out` has space for in whole groups, and returns the number; an incomplete last group
    /// is filled up with zeros.
    #[inline]
    pub fn to_wire<U: HostSample>(self, samples: &[U], out: &mut [u8], scale: U::Real) -> usize {
        match self.wire {
            Wire::Sc16 => self.to_wire_as::<Sc16, U>(samples, out, scale),
            Wire::Sc12 => self.to_wire_as::<Sc12, U>(samples, out, scale),
            Wire::Sc8 => self.to_wire_as::<Sc8, U>(samples, out, scale),
        }
    }

    fn to_user_from<P: WirePacking + WireLanes, U: HostSample>(
        self,
        wire: &[u8],
        out: &mut [U],
        scale: U::Real,
    ) -> usize {
        let count = P::samples_in(wire.len()).min(out.len());
        let (wire, out) = (&wire[..P::bytes_of(count)], &mut out[..count]);
        if is_copy::<P, U>(scale) {
            bytemuck::cast_slice_mut(out).copy_from_slice(wire);
            return count;
        }
        match self.form {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a converter with this form exists only where the processor has it, and
            // `wire` has been cut to the samples of `out`.
            ConvertForm::Avx2 => unsafe { simd::to_user_avx2::<P, U>(wire, out, scale) },
            #[cfg(avx512)]
            // SAFETY: the same.
            ConvertForm::Avx512 => unsafe { simd::to_user_avx512::<P, U>(wire, out, scale) },
            #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
            // SAFETY: the same.
            ConvertForm::Neon => unsafe { simd::to_user_neon::<P, U>(wire, out, scale) },
            _ => scalar::to_user::<P, U>(wire, out, 0..count, scale),
        }
        count
    }

    fn to_wire_as<P: WirePacking + WireLanes, U: HostSample>(
        self,
        samples: &[U],
        out: &mut [u8],
        scale: U::Real,
    ) -> usize {
        let count = P::samples_in(out.len()).min(samples.len());
        let (samples, out) = (&samples[..count], &mut out[..P::bytes_of(count)]);
        if is_copy::<P, U>(scale) {
            out.copy_from_slice(bytemuck::cast_slice(samples));
            return count;
        }
        match self.form {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a converter with this form exists only where the processor has it, and `out`
            // has been cut to the samples.
            ConvertForm::Avx2 => unsafe { simd::to_wire_avx2::<P, U>(samples, out, scale) },
            #[cfg(avx512)]
            // SAFETY: the same.
            ConvertForm::Avx512 => unsafe { simd::to_wire_avx512::<P, U>(samples, out, scale) },
            #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
            // SAFETY: the same.
            ConvertForm::Neon => unsafe { simd::to_wire_neon::<P, U>(samples, out, scale) },
            _ => scalar::to_wire::<P, U>(samples, out, 0..count, scale),
        }
        for index in count..P::samples_in(out.len()) {
            P::store(out, index, [0; 2]);
        }
        count
    }
}

/// Returns whether the conversion leaves every bit as it is.
fn is_copy<P: WirePacking, U: HostSample>(scale: U::Real) -> bool {
    cfg!(target_endian = "little") && U::TWIN == Some(P::WIRE) && scale == U::ONE
}

#[cfg(test)]
mod tests;
