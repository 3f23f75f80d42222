//! Live readings of this host's network path for `watch`: the packets that pass its interfaces,
//! the counters of each hop, the packets that the kernel drops, and the threads that wait.
//!
//! ```text
//! capture  ─▶ headers of the flows' packets ─▶ watch::CaptureAccount
//! counters ┐
//! sockets  ├▶ watch::HopReading
//! threads  ┘
//! drops    ─▶ watch::DroppedPacket, watch::ThreadWait
//!
//! all of it ─▶ record: a pcapng file
//! ```

mod record;

pub use record::{FIELD, HopNote, HopRecorder, MEMORY_BYTES, RecordedPart};
