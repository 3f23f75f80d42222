//! Streams as flowgraph blocks: `radio_rx` and `radio_tx` in graph files, and recordings.
//!
//! A source of N samples covers N samples of *time*: lost samples count too, and after an overrun
//! the device is started again without an end. So the device runs without an end, and the source
//! stops it when the number is reached.

mod gone;
mod metrics;
mod register;
mod rehearsal;
mod reopen;
mod segments;
mod settings;
mod source;
mod start;
mod transmit;

use std::time::Duration;

pub use gone::NotBack;
pub use register::register;
pub use reopen::OpenAgain;
pub use segments::{GapCause, LateStart, RecordingSegment, TunedOutput};
pub use source::{RadioSource, SourceReport};
pub use start::StartSettings;
pub use transmit::{RadioSink, TransmitStart};

/// The interval of polls for a device that is being opened again.
const REOPEN_POLL: Duration = Duration::from_millis(20);

/// The samples that are received at once when there is no space for them.
const SPILL_SAMPLES: usize = 4096;
