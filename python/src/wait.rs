//! Waits that end early at a signal for Python, such as Ctrl-C.

use crate::errors;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// The longest part of a wait: how late a signal can be noticed.
pub const SLICE: Duration = Duration::from_millis(100);

/// A time limit as Python gives it: seconds, or `None` for no limit.
#[derive(Clone, Copy)]
pub struct TimeLimit {
    seconds: Option<f64>,
    until: Option<Instant>,
}

impl TimeLimit {
    /// Reads a time limit.
    pub fn new(seconds: Option<f64>) -> PyResult<Self> {
        let Some(given) = seconds else { return Ok(Self { seconds, until: None }) };
        let wait = Duration::try_from_secs_f64(given).map_err(|_| {
            PyValueError::new_err(format!(
                "timeout is {given}: give seconds, 0 to return at once, or None to wait without end"
            ))
        })?;
        // The clock is read only when there is something to wait for.
        Ok(Self {
            seconds,
            until: (!wait.is_zero()).then(|| Instant::now().checked_add(wait)).flatten(),
        })
    }

    /// Returns how long the next part of the wait lasts.
    pub fn slice(&self) -> Duration {
        match (self.seconds, self.until) {
            (None, _) => SLICE,
            (Some(_), None) => Duration::ZERO,
            (Some(_), Some(until)) => until.saturating_duration_since(Instant::now()).min(SLICE),
        }
    }

    /// Returns whether the limit has passed.
    pub fn is_over(&self) -> bool {
        match (self.seconds, self.until) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some(_), Some(until)) => Instant::now() >= until,
        }
    }

    /// Returns the error of a wait that ended without a result.
    pub fn error(&self, what: &str) -> PyErr {
        errors::timeout(what, self.seconds.unwrap_or_default())
    }
}

/// Locks; a thread that panicked with the lock does not keep others away.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
