//! The types of [`blocks`](crate::blocks), for items of the usual kinds.

use super::{BlockType, Kind, Parameters, Registry};
use crate::block::{Block, BlockError};
use crate::blocks::{
    Copy, FileSink, FileSource, Head, MultiplyConst, NullSink, NullSource, SampleFormat, Throttle,
};
use num_complex::Complex;
use std::path::Path;

type Made = Result<Box<dyn Block>, BlockError>;

const ITEM: &str = "type of the items: u8, sc16, f32 or cf32";

/// Evaluates `$make` with `$T` standing for the item type that parameter `item` names.
macro_rules! for_item {
    ($parameters:ident, $T:ident => $make:expr) => {
        match $parameters.text("item") {
            "u8" => for_item!(@ u8, $T => $make),
            "sc16" => for_item!(@ [i16; 2], $T => $make),
            "f32" => for_item!(@ f32, $T => $make),
            "cf32" => for_item!(@ Complex<f32>, $T => $make),
            _ => Err($parameters.wrong("item", "u8, sc16, f32 or cf32")),
        }
    };
    (@ $Item:ty, $T:ident => $make:expr) => {{
        type $T = $Item;
        let block: Box<dyn Block> = Box::new($make);
        Ok(block)
    }};
}

pub(super) fn register(registry: &mut Registry) {
    registry.register(
        BlockType::new("file_source", "Reads complex samples from a raw I/Q file.")
            .required("path", Kind::Text, "the file")
            .optional("format", "auto", "sc16, cf32, or auto: by the file's extension")
            .factory(file_source),
    );
    registry.register(
        BlockType::new("file_sink", "Writes items to a file, which appears when it is whole.")
            .required("path", Kind::Text, "the file")
            .optional("item", "u8", ITEM)
            .factory(file_sink),
    );
    registry.register(
        BlockType::new("null_source", "Zeros without end.")
            .optional("item", "cf32", ITEM)
            .factory(|parameters| for_item!(parameters, T => NullSource::<T>::new())),
    );
    registry.register(
        BlockType::new("null_sink", "Takes everything and keeps nothing.")
            .optional("item", "cf32", ITEM)
            .factory(|parameters| for_item!(parameters, T => NullSink::<T>::new())),
    );
    registry.register(
        BlockType::new("copy", "Passes items on.")
            .optional("item", "cf32", ITEM)
            .factory(|parameters| for_item!(parameters, T => Copy::<T>::new())),
    );
    registry.register(
        BlockType::new("head", "Passes the first items on, then ends.")
            .required("count", Kind::Integer, "number of items")
            .optional("item", "cf32", ITEM)
            .factory(head),
    );
    registry.register(
        BlockType::new("throttle", "Lets items pass at a rate.")
            .required("rate_hz", Kind::Number, "items per second")
            .optional("item", "cf32", ITEM)
            .factory(throttle),
    );
    registry.register(
        BlockType::new("multiply_const", "Multiplies by a real constant.")
            .required("factor", Kind::Number, "the constant")
            .optional("item", "cf32", "type of the items: f32 or cf32")
            .factory(multiply_const),
    );
}

fn file_source(parameters: &Parameters) -> Made {
    let format = match parameters.text("format") {
        "auto" => None,
        name => Some(
            SampleFormat::from_name(name)
                .ok_or_else(|| parameters.wrong("format", "sc16, cf32 or auto"))?,
        ),
    };
    Ok(Box::new(FileSource::open(Path::new(parameters.text("path")), format)?))
}

fn file_sink(parameters: &Parameters) -> Made {
    let path = Path::new(parameters.text("path"));
    for_item!(parameters, T => FileSink::<T>::new(path))
}

fn head(parameters: &Parameters) -> Made {
    let count = u64::try_from(parameters.integer("count"))
        .map_err(|_| parameters.wrong("count", "zero or more"))?;
    for_item!(parameters, T => Head::<T>::new(count))
}

fn throttle(parameters: &Parameters) -> Made {
    let rate_hz = parameters.number("rate_hz");
    if rate_hz <= 0.0 {
        return Err(parameters.wrong("rate_hz", "more than zero"));
    }
    for_item!(parameters, T => Throttle::<T>::new(rate_hz)?)
}

fn multiply_const(parameters: &Parameters) -> Made {
    let factor = parameters.number("factor") as f32;
    if !factor.is_finite() {
        return Err(parameters.wrong("factor", "a number that a 32-bit float can hold"));
    }
    match parameters.text("item") {
        "f32" => Ok(Box::new(MultiplyConst::new(factor))),
        "cf32" => Ok(Box::new(MultiplyConst::new(Complex::new(factor, 0.0)))),
        _ => Err(parameters.wrong("item", "f32 or cf32")),
    }
}
