//! The flowgraph runtime: blocks, ports, partitions, plans, graph files.
//!
//! This module is the crate `millstream-flow`, with derives (`Ports`, `BlockParameters`)
//! whose code names this module.
//!
//! ```
//! use millstream::flow::{Block, BlockError, Context, In, Mock, Out, Ports, Work};
//!
//! /// Adds neighbouring items.
//! #[derive(Ports)]
//! struct Pairs {
//!     input: In<f32>,
//!     output: Out<f32>,
//! }
//!
//! impl Block for Pairs {
//!     fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
//!         let (input, output) = (self.input.slice(), self.output.slice_mut());
//!         let made = output.len().min(input.len() / 2);
//!         for (sum, pair) in output.iter_mut().zip(input.chunks_exact(2)) {
//!             *sum = pair[0] + pair[1];
//!         }
//!         self.input.consume(2 * made);
//!         self.output.produce(made);
//!         Ok(Work::Continue)
//!     }
//! }
//!
//! let mut mock = Mock::new(Pairs { input: In::new(), output: Out::new() });
//! mock.feed("in", &[1.0f32, 2.0, 3.0, 4.0]);
//! mock.run().unwrap();
//! assert_eq!(mock.take::<f32>("out"), [3.0, 7.0]);
//! ```

pub use millstream_derive::{FacadeBlockParameters as BlockParameters, FacadePorts as Ports};
pub use millstream_flow::*;

/// Returns a registry with every block of this crate's features: those of the runtime, the block
/// library, the radios and the television receiver. Add types of your own with
/// [`Registry::register`].
///
/// ```
/// # #[cfg(feature = "blocks")] {
/// use millstream::prelude::*;
///
/// let text = r#"
///     block = [
///         { name = "tone", type = "signal_source", rate_hz = 48e3, frequency_hz = 1e3 },
///         { name = "first", type = "head", count = 48000 },
///         { name = "level", type = "probe" },
///     ]
///     graph.connections = ["tone -> first -> level"]
/// "#;
/// let graph = GraphFile::parse("tone", text)?.build(&millstream::registry(), &[])?;
/// let end = graph.run(&Plan::default())?;
/// assert!((end.block("level").unwrap().metric("rms").unwrap() - 1.0).abs() < 1e-6);
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn registry() -> Registry {
    #[allow(unused_mut, reason = "a build with few features adds nothing")]
    let mut registry = Registry::builtin();
    #[cfg(feature = "blocks")]
    millstream_blocks::register(&mut registry);
    #[cfg(feature = "radio")]
    millstream_radio::block::register(&mut registry);
    #[cfg(feature = "atsc")]
    millstream_atsc::blocks::register(&mut registry);
    registry
}
