//! Conversion between single items and arrays.

use crate::{Made, Sample};
use millstream_dsp::chunks::Chunks;
use millstream_flow::copied_ns;
use millstream_flow::registry::{BlockType, Parameters};
use millstream_flow::{BlockFacts, Process, Through};
use millstream_flow::{Item, ItemRatio, ParameterKind, Registry};
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

/// Types are fixed at compile time, so a graph file can choose only among these lengths.
macro_rules! for_length {
    ($parameters:ident, $Block:ident, $T:ty) => {
        for_length!(@ $parameters, $Block, $T, 2 4 8 16 32 64 128 256 512 1024 2048 4096)
    };
    (@ $parameters:ident, $Block:ident, $T:ty, $($length:literal)+) => {
        match $parameters.integer("length") {
            $($length => {
                Ok(Box::new(Through::new($Block::<$T, $length>(PhantomData))))
            })+
            _ => Err($parameters.wrong("length", "a power of two from 2 to 4096")),
        }
    };
}

fn join(parameters: &Parameters) -> Made {
    match parameters.text("item") {
        "f32" => for_length!(parameters, StreamToVector, f32),
        "u8" => for_length!(parameters, StreamToVector, u8),
        _ => for_length!(parameters, StreamToVector, Sample),
    }
}

fn split(parameters: &Parameters) -> Made {
    match parameters.text("item") {
        "f32" => for_length!(parameters, VectorToStream, f32),
        "u8" => for_length!(parameters, VectorToStream, u8),
        _ => for_length!(parameters, VectorToStream, Sample),
    }
}

pub(crate) fn register(registry: &mut Registry) {
    let declare = |name, summary| {
        BlockType::declare(name, summary)
            .required(
                "length",
                ParameterKind::Integer,
                "number of items in an array: a power of two, 2 to 4096",
            )
            .choice("item", &["cf32", "f32", "u8"], "type of the values")
            .example("length = 64")
    };
    registry.register(declare("stream_to_vector", "Groups items into arrays.").pure(join));
    registry.register(declare("vector_to_stream", "Splits arrays into items.").pure(split));
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
