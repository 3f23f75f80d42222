//! The way out of a sink: a file, or a connection to a broker.

use crate::DropCause;
use std::io;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

/// Why an outlet does not take messages, in words that name the next step.
#[derive(Debug)]
pub struct OutletError(pub String);

impl std::fmt::Display for OutletError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for OutletError {}

impl From<io::Error> for OutletError {
    fn from(error: io::Error) -> Self {
        Self(error.to_string())
    }
}

/// The outcome of messages, the oldest first.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Outcomes {
    /// Messages that arrived.
    pub acknowledged: u64,
    /// Messages that will not arrive: the other side does not allow them.
    pub refused: u64,
}

/// The way out of a sink. The courier's thread calls it; only [`open`](Self::open) and
/// [`close`](Self::close) may wait, a few seconds at most, and where a library does not tell
/// whether it has room, [`push`](Self::push), ten seconds at most.
pub trait Outlet: Send {
    /// Returns its kind and address, for people.
    fn name(&self) -> String;

    /// Returns the cause of drops while it is away.
    fn away_cause(&self) -> DropCause;

    /// Checks what can be checked before the graph runs.
    ///
    /// # Errors
    /// Ends the graph at its start.
    fn check(&mut self) -> Result<(), OutletError> {
        Ok(())
    }

    /// Connects.
    ///
    /// # Errors
    /// The courier tries again later.
    fn open(&mut self) -> Result<(), OutletError>;

    /// Whether the other side may end the connection because of a message. Only then is a message
    /// given up on which connections end again and again.
    fn may_choke(&self) -> bool {
        false
    }

    /// Returns the longest message that the other side takes; known once it is open.
    fn message_bytes_max(&self) -> usize {
        usize::MAX
    }

    /// Takes a message, without waiting; returns false if it has no room for one now.
    fn push(&mut self, message: &[u8]) -> bool;

    /// Sends and receives what is possible now, without waiting.
    ///
    /// # Errors
    /// The connection is gone: what it did not acknowledge is sent again after the next
    /// [`open`](Self::open).
    fn exchange(&mut self, now: Instant) -> Result<Outcomes, OutletError>;

    /// Returns the pause between two exchanges while there is work: what comes meanwhile goes
    /// together.
    fn pause(&self) -> Duration {
        Duration::from_millis(2)
    }

    /// Returns the descriptor that is readable when the other side has sent something.
    fn descriptor(&self) -> Option<BorrowedFd<'_>>;

    /// Ends the connection, or completes the file.
    ///
    /// # Errors
    /// Fails the graph's end.
    fn close(&mut self) -> Result<(), OutletError>;
}
