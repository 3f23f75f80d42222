//! Conversion between sample formats.

use crate::common::each;
use crate::{Made, Sample};
use millstream_flow::Item;
use millstream_flow::copied_ns;
use millstream_flow::registry::{BlockParameters, ParameterChoice, wrong};
use millstream_flow::{BlockFacts, Each, OneToOne};
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

/// Converts integers to floats (full scale is 1.0) and back; clips larger values.
#[derive(BlockParameters)]
#[block(convert, pure)]
struct ConvertParameters {
    /// input items; sc16, sc8, cu8 are pairs of integers
    from: ConvertedItem,
    /// items out
    #[parameter(default = "cf32")]
    to: ConvertedItem,
}

#[derive(BlockParameters, Clone, Copy)]
enum ConvertedItem {
    Sc16,
    Sc8,
    Cu8,
    Cf32,
    I16,
    I8,
    U8,
    F32,
}

impl ConvertParameters {
    fn make(self) -> Made {
        use ConvertedItem::{Cf32, Cu8, F32, I8, I16, Sc8, Sc16, U8};
        let expected = match (self.from, self.to) {
            (Sc16, Cf32) => return boxed::<[i16; 2], Sample>(),
            (Sc8, Cf32) => return boxed::<[i8; 2], Sample>(),
            (Cu8, Cf32) => return boxed::<[u8; 2], Sample>(),
            (Cf32, Sc16) => return boxed::<Sample, [i16; 2]>(),
            (Cf32, Sc8) => return boxed::<Sample, [i8; 2]>(),
            (Cf32, Cu8) => return boxed::<Sample, [u8; 2]>(),
            (I16, F32) => return boxed::<i16, f32>(),
            (I8, F32) => return boxed::<i8, f32>(),
            (U8, F32) => return boxed::<u8, f32>(),
            (F32, I16) => return boxed::<f32, i16>(),
            (F32, I8) => return boxed::<f32, i8>(),
            (F32, U8) => return boxed::<f32, u8>(),
            (Sc16 | Sc8 | Cu8, _) => "cf32",
            (I16 | I8 | U8, _) => "f32",
            (Cf32, _) => "sc16, sc8 or cu8",
            (F32, _) => "i16, i8 or u8",
        };
        Err(wrong("to", ConvertedItem::NAMES[self.to as usize], expected))
    }
}

fn boxed<A: To<B>, B: Item>() -> Made {
    Ok(Box::new(Each::new(Convert::<A, B>::new())))
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
