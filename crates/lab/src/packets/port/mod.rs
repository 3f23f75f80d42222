//! Round trips over a port that is as slow as a real one, alone and shared with bulk, beside the
//! prediction by the frames' times.
//!
//! The port is a class of the kernel's `htb` on one end of a veth pair. Kernel UDP goes through it;
//! frame links bypass it. A frame is delivered when its sending begins, not when it ends: a probe's
//! own time on the wire is in no figure.

mod case;
mod measure;
mod table;
mod waits;
mod wire;

pub use case::{Bound, Bulk, PortCase, PortTopology, QueueLimit};
pub use measure::{PortFigures, Probing, through};
pub use table::{Against, CaseResults, came_ns};
pub use waits::Waits;
pub use wire::{CREDIT, LEAST, OVERHEAD, frame_ns};
