//! The state of the cable between the ends.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use millstream_ring::Beacon;

/// The states that tests give an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum CableState {
    /// Frames pass.
    Up,
    /// The interface is down: both ends get `NetworkDown`.
    Down,
    /// The interface was deleted: both ends get `NotFound`.
    Gone,
}

/// The cable between the ends of a [`pair`](super::pair), which tests can unplug.
#[derive(Debug, Clone)]
pub struct Cable {
    state: Arc<AtomicU8>,
    bells: Vec<Arc<Beacon>>,
}

impl Cable {
    pub(super) fn new(bells: Vec<Arc<Beacon>>) -> Self {
        Self { state: Arc::new(AtomicU8::new(CableState::Up as u8)), bells }
    }

    /// Changes its state; both ends notice it in their next call, and sleepers wake.
    pub fn set(&self, state: CableState) {
        self.state.store(state as u8, Ordering::Relaxed);
        for bell in &self.bells {
            bell.news();
        }
    }

    /// Returns the error of the present state, if any.
    pub(super) fn check(&self) -> io::Result<()> {
        match self.state.load(Ordering::Relaxed) {
            0 => Ok(()),
            1 => Err(io::ErrorKind::NetworkDown.into()),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }
}
