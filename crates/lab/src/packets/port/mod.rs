//! Round trips over a port that is as slow as a real one, alone and shared with bulk, beside what
//! the times of frames let expect.
//!
//! The port is a class of the kernel's `htb` on one end of a veth pair. Kernel UDP goes through it;
//! frame links go past it. A frame is delivered when its turn begins, not when it has been sent: a
//! probe's own time on the wire is in no figure.

mod case;
mod measure;
mod table;
mod waits;
mod wire;

pub use case::{Bound, Bulk, Case, Limit, Topology};
pub use measure::{Probing, Through, through};
pub use table::{Against, Line, Table, came_ns};
pub use waits::Waits;
pub use wire::{CREDIT, LEAST, OVERHEAD, frame_ns};
