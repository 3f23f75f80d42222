//! Ports of the user-space host: the two halves that users hold, and the rings behind them.

mod lane;
mod rx;
mod state;
mod tx;

use std::any::Any;
use std::net::SocketAddrV4;
use std::sync::Arc;
use std::time::Duration;

use millstream_link::port::{Capabilities, Port};
use millstream_ring::Waiter;

pub(crate) use lane::{Arrival, Departure, Ends, Lane, Shares};
pub(crate) use state::{PortState, bump};

/// Whether a sender can wait for its datagrams' needs: free frames, or a neighbour's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    None,
    Full,
}

/// The driver of the link, as a port's user sees it.
pub(crate) trait Poller: Send + Sync {
    /// Signals that there is something to send. Where no other thread does the rest, this waits for
    /// free frames and answers as far as `patience` allows.
    fn kick(&self, patience: Patience);

    /// Moves the link's received frames to the rings, where no other thread does that.
    fn look(&self);

    /// Waits, in the receiving half, until `waiter` may have been notified, at most for `timeout`.
    /// May return early.
    fn wait(&self, waiter: &Waiter, timeout: Duration);

    /// Reports that the receiving half has found something after it waited.
    fn found(&self) {}

    /// Waits, in the sending half, until `waiter` may have been notified, at most for `timeout`.
    /// May return early.
    fn rest(&self, waiter: &Waiter, timeout: Duration);
}

/// The parts of a port besides its rings.
pub(crate) struct PortParts {
    pub local: SocketAddrV4,
    pub ends: Ends,
    pub capabilities: Capabilities,
    pub drive: Arc<dyn Poller>,
    /// Dropped with the last of the two halves, which ends the registration.
    pub registration: Arc<dyn Any + Send + Sync>,
    pub shape: FrameLayout,
}

/// The layout of datagrams in frames.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FrameLayout {
    /// Bytes of the headers in front of a payload.
    pub headroom: usize,
    /// The longest piece of a frame, bytes.
    pub part_bytes_max: usize,
    /// Largest payload, bytes.
    pub payload_bytes_max: usize,
}

impl FrameLayout {
    /// Returns the frames that a payload of `payload_bytes` bytes takes.
    pub fn parts(&self, payload_bytes: usize) -> usize {
        (self.headroom + payload_bytes).div_ceil(self.part_bytes_max)
    }

    /// Returns the frames that the largest payload takes.
    pub fn parts_max(&self) -> usize {
        self.parts(self.payload_bytes_max)
    }
}

/// Assembles both halves of a port.
pub(crate) fn assemble(parts: PortParts) -> Port {
    let PortParts { local, ends, capabilities, drive, registration, shape } = parts;
    let held = (Arc::clone(&drive), Arc::clone(&registration));
    let rx = rx::EngineRx::new(ends.rx, capabilities, shape, held.0, held.1);
    let tx = tx::EngineTx::new(ends.tx, capabilities, shape, drive, registration);
    Port { local, rx: Box::new(rx), tx: Box::new(tx) }
}
