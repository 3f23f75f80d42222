//! The types of [`blocks`](crate::blocks), for items of the usual kinds.

use super::{BlockType, ParameterKind, Parameters, Registry, discard};
use crate::block::{Block, BlockError};
use crate::blocks::{
    Copy, FileSink, FileSource, Head, NullSink, NullSource, SampleFormat, Throttle,
};
use crate::for_item;
use std::path::Path;

type Made = Result<Box<dyn Block>, BlockError>;

const ITEM: &str = "type of the items";

/// Types of items, the usual one first.
const ITEMS: &[&str] = &["cf32", "f32", "sc16", "u8"];
const ITEMS_BYTES: &[&str] = &["u8", "cf32", "f32", "sc16"];

pub(super) fn register(registry: &mut Registry) {
    registry.register(
        BlockType::declare("file_source", "Reads complex samples from a raw I/Q file.")
            .required("path", ParameterKind::Text, "the file; -: standard input")
            .optional("format", "auto", "sc16, cf32, cu8, ci8, or auto: by the file's extension")
            .optional("first", 0i64, "first sample to read, counted from 0")
            .optional("count", 0i64, "most samples to read; 0: all to the end of the file")
            .example("path = \"in.sc16\"")
            .incidental("path")
            .incidental("format")
            .incidental("first")
            .incidental("count")
            .reads(&["out: Complex<f32>"], file_source),
    );
    registry.register(
        BlockType::declare(
            "file_sink",
            "Writes items to a file, named .part until it is complete.",
        )
        .writes_file("path", "the file; -: standard output")
        .choice("item", ITEMS_BYTES, ITEM)
        .example("path = \"out.u8\"")
        .writes(discard, file_sink),
    );
    registry.register(
        BlockType::declare("null_source", "Sends only zeros.").choice("item", ITEMS, ITEM).pure(
            |parameters| for_item!(parameters, T: u8 | sc16 | f32 | cf32 => NullSource::<T>::new()),
        ),
    );
    registry.register(
        BlockType::declare("null_sink", "Discards all items.").choice("item", ITEMS, ITEM).pure(
            |parameters| for_item!(parameters, T: u8 | sc16 | f32 | cf32 => NullSink::<T>::new()),
        ),
    );
    registry.register(
        BlockType::declare("copy", "Passes items on unchanged.").choice("item", ITEMS, ITEM).pure(
            |parameters| for_item!(parameters, T: u8 | sc16 | f32 | cf32 => Copy::<T>::new()),
        ),
    );
    registry.register(
        BlockType::declare("head", "Passes on the first items, and then ends the graph.")
            .required("count", ParameterKind::Integer, "number of items")
            .choice("item", ITEMS, ITEM)
            .example("count = 1000")
            .incidental("count")
            .pure(head),
    );
    registry.register(
        BlockType::declare("throttle", "Limits the rate at which items pass.")
            .required("rate_hz", ParameterKind::Number, "items per second")
            .optional("step_ms", 1.0, "milliseconds from one group of items to the next")
            .choice("item", ITEMS, ITEM)
            .example("rate_hz = 1e6")
            .paced(throttle),
    );
}

fn file_source(parameters: &Parameters) -> Made {
    let format = match parameters.text("format") {
        "auto" => None,
        name => Some(
            SampleFormat::of_source(name)
                .ok_or_else(|| parameters.wrong("format", "sc16, cf32, cu8, ci8 or auto"))?,
        ),
    };
    let (first, count) = part_of(parameters)?;
    let source = FileSource::open(Path::new(parameters.text("path")), format)?;
    Ok(Box::new(source.part(first, count)?))
}

fn file_sink(parameters: &Parameters) -> Made {
    let (path, existing) = (Path::new(parameters.text("path")), parameters.existing());
    for_item!(parameters, T: u8 | sc16 | f32 | cf32 => FileSink::<T>::new(path).existing(existing))
}

/// Returns the part of a recording that the parameters `first` and `count` of its source name.
///
/// # Errors
/// One of them is negative.
pub fn part_of(parameters: &Parameters) -> Result<(u64, u64), BlockError> {
    let (first, count) = (parameters.count("first", 0)?, parameters.count("count", 0)?);
    Ok((first, if count == 0 { u64::MAX } else { count }))
}

fn head(parameters: &Parameters) -> Made {
    let count = u64::try_from(parameters.integer("count"))
        .map_err(|_| parameters.wrong("count", "zero or more"))?;
    for_item!(parameters, T: u8 | sc16 | f32 | cf32 => Head::<T>::new(count))
}

fn throttle(parameters: &Parameters) -> Made {
    let rate_hz = parameters.number("rate_hz");
    if rate_hz <= 0.0 {
        return Err(parameters.wrong("rate_hz", "more than zero"));
    }
    let step_ms = parameters.number("step_ms");
    if !(0.01..=10_000.0).contains(&step_ms) {
        return Err(parameters.wrong("step_ms", "0.01 to 10000 milliseconds"));
    }
    let step = std::time::Duration::from_secs_f64(step_ms / 1e3);
    for_item!(parameters, T: u8 | sc16 | f32 | cf32 => Throttle::<T>::new(rate_hz)?.with_step(step))
}
