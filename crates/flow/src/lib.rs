//! The flowgraph runtime: blocks, ports, partitions, plans.
//!
//! - A [`Block`] is a struct with typed ports and one `work`. [`Mock`] runs one alone.
//! - A [`Graph`] holds blocks by name and their connections, each of which becomes a double-mapped
//!   ring. [`Graph::start`] runs it on threads, one per partition.
//! - A [`Plan`] sets which blocks share a partition, its CPU and its wait mode.
//! - A [`GraphFile`] is a graph, its parameters and its plan as TOML; a [`Registry`] holds the
//!   block types that it may name.
//! - [`RunningGraph::snapshot`] shows the counters of every block while it runs.
//!
//! # Adding a block
//!
//! One file with one struct. The ports are its public fields; `#[derive(Ports)]` shows them to the
//! runtime. `work` takes slices, processes what fits, and reports how much it consumed and
//! produced:
//!
//! ```
//! use millstream_flow::{Block, BlockError, Context, In, Mock, Out, Ports, Work};
//!
//! /// Multiplies by a constant.
//! #[derive(Ports)]
//! pub struct Scale {
//!     /// Samples.
//!     pub input: In<f32>,
//!     /// Samples times `gain`.
//!     pub output: Out<f32>,
//!     /// Factor.
//!     pub gain: f32,
//! }
//!
//! impl Block for Scale {
//!     fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
//!         let (input, output) = (self.input.slice(), self.output.slice_mut());
//!         let items = input.len().min(output.len());
//!         for (to, from) in output.iter_mut().zip(input) {
//!             *to = from * self.gain;
//!         }
//!         self.input.consume(items);
//!         self.output.produce(items);
//!         Ok(Work::Continue)
//!     }
//! }
//!
//! let mut mock = Mock::new(Scale { input: In::new(), output: Out::new(), gain: 2.0 });
//! mock.feed("in", &[1.0f32, 2.0, 3.0]);
//! mock.run().unwrap();
//! assert_eq!(mock.take::<f32>("out"), [2.0, 4.0, 6.0]);
//! ```
//!
//! To name it in graph files, [register](Registry::register) a [`BlockType`]. To publish numbers,
//! keep a [`Counter`] or [`Gauge`] and name it in [`Block::facts`]. The files in [`blocks`] are
//! examples to copy.

// Derived code names this crate, here as elsewhere.
extern crate self as millstream_flow;

pub mod block;
pub mod blocks;
mod carrier;
mod facts;
pub mod file;
pub mod graph;
mod item;
pub mod lane;
pub mod memory;
pub mod message;
pub mod metric;
mod mock;
pub mod observe;
mod one_to_one;
pub mod plan;
pub mod port;
mod port_state;
mod preset;
pub mod process;
mod rate;
pub mod registry;
pub mod runtime;
pub mod tag;
mod value;

/// The item type `cf32`.
pub use num_complex::Complex;

pub use block::{Block, BlockError, Context, Work};
pub use facts::{BlockFacts, copied_ns};
pub use file::{GraphFile, GraphFileError};
pub use graph::{Graph, GraphError, PlacedBlock, PullError, PullRead, PullReader};
pub use item::{Item, ItemType, SC16_SCALE};
pub use lane::Lane;
pub use memory::{BlockMemory, MemorySpan, Numbering};
pub use message::{Emitter, MessageError, MessageSpec};
pub use metric::{Counter, Gauge, Metric};
pub use millstream_derive::Ports;
pub use mock::Mock;
pub use observe::{BlockCost, BlockShape, EdgeCost, EdgeShape, LatencyStats, PathMemory, Profile};
pub use observe::{Shape, Stall};
pub use one_to_one::{Each, OneToOne, map};
pub use plan::{Buffers, Latency, LatencyError, Partition, Pins, Plan, PlanError, WaitMode};
pub use port::{
    In, InputPort, OneInput, OneOutput, Out, OutputPort, OutputTap, PortVisitor, Ports,
};
pub use preset::{ParsePresetError, Preset};
pub use process::{Process, Through};
pub use rate::ItemRatio;
pub use registry::{BlockParameters, BlockType, Registry};
pub use runtime::Stopper;
pub use runtime::{
    BlockStats, MessageStats, MoveError, Moved, PartitionStats, RunError, RunningGraph, Snapshot,
};
pub use tag::{Key, ShortText, Tag, TagDocument, TagRule, TagShift, TagTime, TagValue, keys};
pub use value::{ParameterKind, ParameterValue};
