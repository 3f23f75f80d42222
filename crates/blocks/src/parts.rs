//! One real number of each complex sample.

use crate::Sample;
use crate::common::each;
use millstream_dsp::angle::arg;
use millstream_flow::registry::BlockParameters;
use millstream_flow::{BlockFacts, Each, OneToOne};

/// The number to compute.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ComplexPart {
    /// Real part.
    Real,
    /// Imaginary part.
    Imaginary,
    /// `|x|`.
    Magnitude,
    /// `|x|²`.
    MagnitudeSquared,
    /// Angle in radians, -π to π, within 5e-7.
    Argument,
}

impl OneToOne for ComplexPart {
    type Input = Sample;
    type Output = f32;

    fn run(&mut self, input: &[Sample], output: &mut [f32]) {
        match self {
            Self::Real => each(input, output, |x| x.re),
            Self::Imaginary => each(input, output, |x| x.im),
            Self::Magnitude => each(input, output, |x| x.norm_sqr().sqrt()),
            Self::MagnitudeSquared => each(input, output, |x| x.norm_sqr()),
            Self::Argument => {
                arg(input, output);
            }
        }
    }

    fn facts(&self, facts: &mut BlockFacts) {
        facts.ns_per_item(0.3);
    }
}

/// Declares a type that takes one part.
macro_rules! part {
    ($Parameters:ident, $name:ident, $summary:literal, $part:ident) => {
        #[doc = $summary]
        #[derive(BlockParameters)]
        #[block($name, pure)]
        struct $Parameters {}

        impl $Parameters {
            fn make(self) -> Each<ComplexPart> {
                Each::new(ComplexPart::$part)
            }
        }
    };
}

part!(ToReal, complex_to_real, "Takes the real parts.", Real);
part!(ToImag, complex_to_imag, "Takes the imaginary parts.", Imaginary);
part!(ToMag, complex_to_mag, "Calculates the magnitudes.", Magnitude);
part!(ToMagSquared, complex_to_mag_squared, "Calculates squared magnitudes.", MagnitudeSquared);
part!(ToArg, complex_to_arg, "Calculates the phase, in radians from -π to π.", Argument);

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_flow::Mock;

    #[test]
    fn each_part_is_what_its_name_says() {
        let x = [Sample::new(3.0, 4.0), Sample::new(-1.0, 0.0), Sample::new(0.0, -2.0)];
        for (part, expected) in [
            (ComplexPart::Real, [3.0, -1.0, 0.0]),
            (ComplexPart::Imaginary, [4.0, 0.0, -2.0]),
            (ComplexPart::Magnitude, [5.0, 1.0, 2.0]),
            (ComplexPart::MagnitudeSquared, [25.0, 1.0, 4.0]),
            (
                ComplexPart::Argument,
                [0.927_295_2, std::f32::consts::PI, -std::f32::consts::FRAC_PI_2],
            ),
        ] {
            let mut mock = Mock::new(Each::new(part));
            mock.feed("in", &x);
            mock.run().unwrap();
            let out = mock.take::<f32>("out");
            let close = |(a, b): (&f32, &f32)| (a - b).abs() < 1e-6;
            assert!(out.iter().zip(&expected).all(close), "{part:?}: {out:?}");
        }
    }
}
