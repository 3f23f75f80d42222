//! The library of blocks.
//!
//! One file per block, with its parameters and the declaration of its type: a thin layer over a
//! kernel of `millstream-dsp` that is tested against a formula of its own. [`register`] makes all
//! of them available to graph files; `millstream graph blocks` lists them. Blocks with one input
//! and one output are a [`Process`](millstream_flow::Process) inside a
//! [`Through`](millstream_flow::Through); the others implement [`Block`](millstream_flow::Block)
//! themselves.
//!
//! ```
//! use millstream_flow::{GraphFile, Plan, Registry};
//!
//! let mut registry = Registry::builtin();
//! millstream_blocks::register(&mut registry);
//! let text = r#"
//!     [[block]]
//!     name = "tone"
//!     type = "signal_source"
//!     rate_hz = 48e3
//!     frequency_hz = 1e3
//!     [[block]]
//!     name = "first"
//!     type = "head"
//!     count = 48000
//!     [[block]]
//!     name = "level"
//!     type = "probe"
//!     [graph]
//!     connections = ["tone -> first -> level"]
//! "#;
//! let graph = GraphFile::parse("tone", text)?.build(&registry, &[])?;
//! let end = graph.run(&Plan::default())?;
//! assert!((end.block("level").unwrap().metric("rms").unwrap() - 1.0).abs() < 1e-6);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod agc;
pub mod arbitrary_resampler;
pub mod channelizer;
pub mod combine;
mod common;
pub mod complex;
pub mod convert;
pub mod correlator;
pub mod deemphasis;
pub mod deinterleave;
pub mod delay;
pub mod fft;
mod fft_filter;
pub mod fir;
pub mod iio_source;
pub mod impairments;
pub mod keep_one_in_n;
pub mod latency_probe;
pub mod multiply_const;
pub mod noise_source;
pub mod parts;
pub mod power_spectrum;
pub mod probe;
pub mod quadrature_demod;
pub mod rational_resampler;
pub mod rotator;
pub mod sigmf;
pub mod signal_source;
pub mod single_pole;
pub mod squelch;
pub mod tag_probe;
mod taps;
pub mod udp;
pub mod vector;
pub mod wav_sink;

use millstream_flow::Registry;

/// A complex sample.
pub type Sample = millstream_flow::Complex<f32>;

/// A block of one of several types, or the error of its parameters.
type Made = Result<Box<dyn millstream_flow::Block>, millstream_flow::BlockError>;

/// Adds every block of this library to a registry.
///
/// # Panics
/// If the registry has one of them already.
pub fn register(registry: &mut Registry) {
    registry.register_crate(module_path!());
}

/// The types of this library.
#[cfg(test)]
fn registry() -> Registry {
    let mut registry = Registry::new();
    register(&mut registry);
    registry
}
