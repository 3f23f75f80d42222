//! Live readings of this host's network path for `watch`: the packets that pass its interfaces,
//! the counters of each hop, the packets that the kernel drops, and the threads that wait.
//!
//! ```text
//! capture  ─▶ headers of the flows' packets ─▶ watch::CaptureAccount
//! counters ┐
//! sockets  ├▶ watch::HopReading
//! threads  ┘
//! drops    ─▶ watch::DroppedPacket, watch::ThreadWait
//! ```

mod drops;
mod probe;
mod waits;

pub use drops::DropWatch;
pub use probe::ProbeError;
pub use waits::WaitWatch;
