//! The sample types of the user.

use num_complex::Complex;

use super::Wire;

/// A sample type that wire samples convert to and from.
///
/// Every conversion is the value times `scale`. An integer result is rounded to nearest, ties to
/// even, and saturated; not-a-number gives 0.
pub trait HostSample: sealed::Sealed + bytemuck::Pod {
    /// The type of a scale and of the multiplication.
    type Real: Copy + PartialEq + Into<f64>;
    /// The usual name.
    const NAME: &'static str;
    /// The value that stands for 1.0 by convention.
    const FULL_SCALE: f64;
    /// The wire format of the same bits (on a little-endian machine), if any.
    const TWIN: Option<Wire>;
    /// The scale 1, which changes nothing.
    const ONE: Self::Real;

    /// Converts a scale to the precision of this type.
    fn real(scale: f64) -> Self::Real;

    /// Returns a wire value times `scale`.
    fn from_wire(value: [i16; 2], scale: Self::Real) -> Self;

    /// Returns this sample times `scale`, as a wire value of 16 bits; narrower formats saturate
    /// further.
    fn to_wire(self, scale: Self::Real) -> [i16; 2];

    /// Returns the scale that maps a wire format's full scale to this type's.
    fn scale_from(wire: Wire) -> Self::Real {
        Self::real(Self::FULL_SCALE / wire.full_scale())
    }

    /// Returns the scale that maps this type's full scale to a wire format's.
    fn scale_to(wire: Wire) -> Self::Real {
        Self::real(wire.full_scale() / Self::FULL_SCALE)
    }
}

mod sealed {
    use super::super::lanes;

    /// Only this crate defines the layout of a type in vector registers.
    pub trait Sealed: lanes::UserLanes {}
    impl<T: lanes::UserLanes> Sealed for T {}
}

/// Rounds values in the range of the integers here to nearest, ties to even. Values beyond stay
/// beyond, and not-a-number stays; the integer casts saturate them and give 0.
///
/// The standard library's rounding is a call where the build's processor has no instruction for it.
/// Adding and subtracting a number whose last bit counts 1 rounds as every addition does.
#[inline]
pub(super) fn round_f32(value: f32) -> f32 {
    const UNIT: f32 = (3 << 22) as f32;
    value.clamp(-65536.0, 65536.0) + UNIT - UNIT
}

/// Does the same for doubles.
#[inline]
pub(super) fn round_f64(value: f64) -> f64 {
    const UNIT: f64 = (3_i64 << 51) as f64;
    value.clamp(-65536.0, 65536.0) + UNIT - UNIT
}

macro_rules! float_sample {
    ($real:ident, $name:literal, $round:ident) => {
        impl HostSample for Complex<$real> {
            type Real = $real;
            const NAME: &'static str = $name;
            const FULL_SCALE: f64 = 1.0;
            const TWIN: Option<Wire> = None;
            const ONE: $real = 1.0;

            fn real(scale: f64) -> $real {
                scale as $real
            }

            #[inline]
            fn from_wire([i, q]: [i16; 2], scale: $real) -> Self {
                Self::new($real::from(i) * scale, $real::from(q) * scale)
            }

            #[inline]
            fn to_wire(self, scale: $real) -> [i16; 2] {
                [self.re, self.im].map(|part| $round(part * scale) as i16)
            }
        }
    };
}

macro_rules! integer_sample {
    ($int:ident, $name:literal, $twin:ident) => {
        impl HostSample for [$int; 2] {
            type Real = f32;
            const NAME: &'static str = $name;
            const FULL_SCALE: f64 = $int::MAX as f64;
            const TWIN: Option<Wire> = Some(Wire::$twin);
            const ONE: f32 = 1.0;

            fn real(scale: f64) -> f32 {
                scale as f32
            }

            #[inline]
            fn from_wire(value: [i16; 2], scale: f32) -> Self {
                value.map(|part| round_f32(f32::from(part) * scale) as $int)
            }

            #[inline]
            fn to_wire(self, scale: f32) -> [i16; 2] {
                self.map(|part| round_f32(f32::from(part) * scale) as i16)
            }
        }
    };
}

float_sample!(f32, "fc32", round_f32);
float_sample!(f64, "fc64", round_f64);
integer_sample!(i16, "sc16", Sc16);
integer_sample!(i8, "sc8", Sc8);
