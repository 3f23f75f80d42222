//! Conversion between sample formats.

use crate::common::each;
use crate::{Made, Sample};
use millstream_flow::copied_ns;
use millstream_flow::registry::{BlockType, Parameters};
use millstream_flow::{BlockFacts, Each, OneToOne};
use millstream_flow::{Item, Registry};
use std::marker::PhantomData;

/// A value that converts to another type.
pub trait To<B>: Item {
    /// Returns the value as `B`.
    fn to(self) -> B;
}

/// Full scale of an integer type is ±1.0; larger values are clipped.
macro_rules! integer {
    ($Int:ty, $scale:expr, $offset:expr) => {
        impl To<f32> for $Int {
            fn to(self) -> f32 {
                (f32::from(self) - $offset) * (1.0 / $scale)
            }
        }
        impl To<$Int> for f32 {
            fn to(self) -> $Int {
                // A cast saturates, and converts NaN to zero.
                (self * $scale + $offset).round_ties_even() as $Int
            }
        }
        impl To<Sample> for [$Int; 2] {
            fn to(self) -> Sample {
                Sample::new(self[0].to(), self[1].to())
            }
        }
        impl To<[$Int; 2]> for Sample {
            fn to(self) -> [$Int; 2] {
                [self.re.to(), self.im.to()]
            }
        }
    };
}

integer!(i16, 32767.0, 0.0);
integer!(i8, 127.0, 0.0);
// Offset binary, the format of cheap receivers.
integer!(u8, 127.5, 127.5);

/// Converts item by item.
///
/// Ports: `in`, `out`.
#[derive(Debug, Default)]
pub struct Convert<A, B>(PhantomData<fn(A) -> B>);

impl<A: To<B>, B: Item> Convert<A, B> {
    /// Creates a converter.
    #[must_use]
    pub fn new() -> Self {
        Self(PhantomData)
    }
}

impl<A: To<B>, B: Item> OneToOne for Convert<A, B> {
    type Input = A;
    type Output = B;

    fn run(&mut self, input: &[A], output: &mut [B]) {
        each(input, output, To::to);
    }

    fn facts(&self, facts: &mut BlockFacts) {
        facts.ns_per_item(copied_ns::<A>().max(copied_ns::<B>()));
    }
}

fn boxed<A: To<B>, B: Item>() -> Made {
    Ok(Box::new(Each::new(Convert::<A, B>::new())))
}

/// The values of `from` and `to`.
const FORMATS: &[&str] = &["sc16", "sc8", "cu8", "cf32", "i16", "i8", "u8", "f32"];

fn make(parameters: &Parameters) -> Made {
    match (parameters.text("from"), parameters.text("to")) {
        ("sc16", "cf32") => boxed::<[i16; 2], Sample>(),
        ("sc8", "cf32") => boxed::<[i8; 2], Sample>(),
        ("cu8", "cf32") => boxed::<[u8; 2], Sample>(),
        ("cf32", "sc16") => boxed::<Sample, [i16; 2]>(),
        ("cf32", "sc8") => boxed::<Sample, [i8; 2]>(),
        ("cf32", "cu8") => boxed::<Sample, [u8; 2]>(),
        ("i16", "f32") => boxed::<i16, f32>(),
        ("i8", "f32") => boxed::<i8, f32>(),
        ("u8", "f32") => boxed::<u8, f32>(),
        ("f32", "i16") => boxed::<f32, i16>(),
        ("f32", "i8") => boxed::<f32, i8>(),
        ("f32", "u8") => boxed::<f32, u8>(),
        ("sc16" | "sc8" | "cu8", _) => Err(parameters.wrong("to", "cf32")),
        ("i16" | "i8" | "u8", _) => Err(parameters.wrong("to", "f32")),
        ("cf32", _) => Err(parameters.wrong("to", "sc16, sc8 or cu8")),
        _ => Err(parameters.wrong("to", "i16, i8 or u8")),
    }
}

pub(crate) fn register(registry: &mut Registry) {
    registry.register(
        BlockType::declare(
            "convert",
            "Converts integers to floats (full scale is 1.0) and back; clips larger values.",
        )
        .choice("from", FORMATS, "input items; sc16, sc8, cu8 are pairs of integers")
        .choice("to", &["cf32", "sc16", "sc8", "cu8", "f32", "i16", "i8", "u8"], "items out")
        .pure(make),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_flow::Mock;

    fn converted<A: To<B> + Copy, B: Item>(input: &[A]) -> Vec<B> {
        let mut mock = Mock::new(Each::new(Convert::<A, B>::new()));
        mock.feed("in", input);
        mock.run().unwrap();
        mock.take("out")
    }

    #[test]
    fn every_integer_comes_back() {
        let all: Vec<i16> = (i16::MIN + 1..=i16::MAX).collect();
        assert_eq!(converted::<f32, i16>(&converted::<i16, f32>(&all)), all);
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(converted::<f32, u8>(&converted::<u8, f32>(&all)), all);
        let all: Vec<[i8; 2]> = (-127..=127).map(|n| [n, -n]).collect();
        assert_eq!(converted::<Sample, [i8; 2]>(&converted::<[i8; 2], Sample>(&all)), all);
    }

    #[test]
    fn full_scale_is_one_and_the_rest_is_cut() {
        assert_eq!(converted::<i16, f32>(&[32767, -32767]), [1.0, -1.0]);
        assert_eq!(converted::<u8, f32>(&[0, 255]), [-1.0, 1.0]);
        let wild = [2.0, -2.0, f32::NAN, f32::INFINITY, 0.5];
        assert_eq!(converted::<f32, i16>(&wild), [32767, -32768, 0, 32767, 16384]);
        assert_eq!(converted::<f32, i8>(&wild), [127, -128, 0, 127, 64]);
    }
}
