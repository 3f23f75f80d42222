//! Conversion between single items and arrays.

use crate::{Made, Sample};
use millstream_dsp::chunks::Chunks;
use millstream_flow::copied_ns;
use millstream_flow::registry::{BlockParameters, wrong};
use millstream_flow::{BlockFacts, Process, Through};
use millstream_flow::{Item, ItemRatio};
use std::marker::PhantomData;

/// Joins `N` items to one item, an array. An incomplete array at the end is dropped.
#[derive(Debug, Default)]
pub struct StreamToVector<T, const N: usize>(PhantomData<T>);

/// Splits every array into `N` items.
#[derive(Debug, Default)]
pub struct VectorToStream<T, const N: usize>(PhantomData<T>);

impl<T: Item, const N: usize> Process for StreamToVector<T, N>
where
    [T; N]: Item,
{
    type Input = T;
    type Output = [T; N];

    fn process(&mut self, input: &[T], output: &mut [[T; N]]) -> (usize, usize) {
        let arrays = input.in_chunks::<N>().0;
        let count = arrays.len().min(output.len());
        output[..count].copy_from_slice(&arrays[..count]);
        (count * N, count)
    }

    fn least(&self) -> (usize, usize) {
        (N, 1)
    }

    fn facts(&self, facts: &mut BlockFacts) {
        facts.rate(ItemRatio::decimate(N as u32)).holds(N as u64 - 1).ns_per_item(copied_ns::<T>());
    }
}

impl<T: Item, const N: usize> Process for VectorToStream<T, N>
where
    [T; N]: Item,
{
    type Input = [T; N];
    type Output = T;

    fn process(&mut self, input: &[[T; N]], output: &mut [T]) -> (usize, usize) {
        let arrays = output.in_chunks_mut::<N>().0;
        let count = arrays.len().min(input.len());
        arrays[..count].copy_from_slice(&input[..count]);
        (count, count * N)
    }

    fn least(&self) -> (usize, usize) {
        (1, N)
    }

    fn facts(&self, facts: &mut BlockFacts) {
        facts.rate(ItemRatio::interpolate(N as u32)).ns_per_item(copied_ns::<T>());
    }
}

/// Makes a block for arrays of `$length` items.
macro_rules! for_length {
    ($length:expr, $Block:ident, $T:ty) => {
        for_length!(@ $length, $Block, $T, 2 4 8 16 32 64 128 256 512 1024 2048 4096)
    };
    (@ $length:expr, $Block:ident, $T:ty, $($known:literal)+) => {
        match $length {
            $($known => {
                Ok(Box::new(Through::new($Block::<$T, $known>(PhantomData))))
            })+
            other => Err(wrong("length", other, "a power of two from 2 to 4096")),
        }
    };
}

/// Items that arrays may hold: the arrays are items, too.
trait ArrayItem: Item {
    fn join(length: u32) -> Made;
    fn split(length: u32) -> Made;
}

macro_rules! array_item {
    ($($T:ty),+) => {$(
        impl ArrayItem for $T {
            fn join(length: u32) -> Made {
                for_length!(length, StreamToVector, $T)
            }

            fn split(length: u32) -> Made {
                for_length!(length, VectorToStream, $T)
            }
        }
    )+};
}

array_item!(Sample, f32, u8);

#[derive(BlockParameters)]
struct ArrayLength {
    /// number of items in an array: a power of two
    #[parameter(least = 2, most = 4096)]
    length: u32,
}

/// Groups items into arrays.
#[derive(BlockParameters)]
#[block(stream_to_vector, pure, items(cf32, f32, u8), example = "length = 64")]
struct StreamToVectorParameters {
    #[parameter(flatten)]
    of: ArrayLength,
}

impl StreamToVectorParameters {
    fn make<T: ArrayItem>(self) -> Made {
        T::join(self.of.length)
    }
}

/// Splits arrays into items.
#[derive(BlockParameters)]
#[block(vector_to_stream, pure, items(cf32, f32, u8), example = "length = 64")]
struct VectorToStreamParameters {
    #[parameter(flatten)]
    of: ArrayLength,
}

impl VectorToStreamParameters {
    fn make<T: ArrayItem>(self) -> Made {
        T::split(self.of.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_flow::Mock;

    #[test]
    fn arrays_are_whole() {
        let mut join = Mock::new(Through::new(StreamToVector::<u8, 4>::default()));
        join.feed("in", &[1u8, 2, 3, 4, 5, 6]);
        join.end("in");
        join.run().unwrap();
        assert!(join.is_finished());
        let arrays = join.take::<[u8; 4]>("out");
        assert_eq!(arrays, [[1, 2, 3, 4]]);
        let mut split = Mock::new(Through::new(VectorToStream::<u8, 4>::default()));
        split.feed("in", &arrays);
        split.run().unwrap();
        assert_eq!(split.take::<u8>("out"), [1, 2, 3, 4]);
    }
}
