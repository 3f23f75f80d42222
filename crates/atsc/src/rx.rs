//! The receiver: complex baseband samples in, transport stream packets out.
//!
//! Each stage is a struct of its own that can be run and tested alone; [`Receiver`] chains them on
//! one thread, [`crate::blocks`] makes them blocks of a flowgraph.

pub mod balance;
pub mod carrier;
pub mod demodulator;
pub mod equalizer;
pub mod field_tracker;
pub mod front_end;
pub mod level;
pub mod level_tolerance;
pub mod memory;
pub mod outer;
pub mod pilot;
pub mod quantiser;
pub mod receiver;
pub mod segment_splitter;
pub mod segment_sync;
pub mod symbol_block;
pub mod sync_search;
pub mod timing;
pub mod trellis_decoder;

pub use front_end::{FrontEnd, ReceiverError, RxConfig};
pub use receiver::Receiver;
