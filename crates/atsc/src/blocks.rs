//! The receiver as blocks of a flowgraph.
//!
//! ```text
//! Complex<f32> ▶ atsc_demod ▶ Segment ▶ atsc_equalizer ▶ Segment ▶ atsc_viterbi ▶ CodeBlock
//!     ▶ atsc_deinterleaver ▶ CodeBlock ▶ atsc_rs ▶ CodeBlock ▶ atsc_derandomizer ▶ u8
//! ```
//!
//! `atsc_transmitter` makes test samples for them.
//!
//! Everything with feedback (pilot, timing, segment and field sync) is one block.

mod deinterleaver;
mod demod;
mod derandomizer;
mod equalizer;
mod monitors;
mod reed_solomon;
mod stage;
mod transmitter;
mod viterbi;

pub use deinterleaver::AtscDeinterleaver;
pub use demod::AtscDemod;
pub use derandomizer::{AtscDerandomizer, Derandomizer};
pub use equalizer::{AtscEqualizer, MonitoredEqualizer};
pub use monitors::{Monitors, register};
pub use reed_solomon::{AtscReedSolomon, CodewordCorrector};
pub use stage::{ReceiverStage, StageBlock};
pub use transmitter::{AtscTransmitter, Packets};
pub use viterbi::AtscViterbi;
