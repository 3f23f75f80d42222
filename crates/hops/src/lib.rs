//! Live readings of this host's network path for `watch`: the packets that pass its interfaces,
//! the counters of each hop, the packets that the kernel drops, and the threads that wait.
//!
//! ```text
//! capture  ─▶ headers of the flows' packets ─▶ watch::CaptureAccount
//! counters ┐
//! sockets  ├▶ HopReader ─▶ watch::HopReading
//! threads  ┘
//! drops    ─▶ watch::DroppedPacket, watch::ThreadWait
//!
//! all of it ─▶ record: a pcapng file
//! ```

mod card;
mod counters;
mod drops;
mod namespace;
mod owners;
mod pace;
mod probe;
mod reader;
mod record;
mod sockets;
mod threads;
mod waiting;
mod waits;

pub use drops::DropWatch;
pub use namespace::{NetworkNamespace, namespaces, within};
pub use probe::ProbeError;
pub use reader::{HopError, HopReader};
pub use record::{FIELD, HopNote, HopRecorder, MEMORY_BYTES, RecordedPart};
pub use sockets::radio_sockets;
pub use waits::WaitWatch;
