//! A trigger that stops a ring at the first late answer only. It allocates nothing.

use std::fs::File;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// A switch that the first of several threads throws.
#[derive(Debug, Default)]
pub(crate) struct OneShotTrigger {
    /// The lock orders its accesses.
    armed: AtomicBool,
    /// Locked briefly to arm, disarm and throw it.
    switch: Mutex<Option<File>>,
}

impl OneShotTrigger {
    /// Arms it: the next call of `pull` throws this file ([`super::recorder::Recorder::switch`]).
    pub fn arm(&self, switch: Option<File>) {
        *self.switch.lock().unwrap_or_else(PoisonError::into_inner) = switch;
        self.armed.store(true, Ordering::Relaxed);
    }

    /// Disarms it.
    pub fn disarm(&self) {
        self.armed.store(false, Ordering::Relaxed);
        *self.switch.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Throws it once if it is armed; returns whether this call did.
    pub fn pull(&self) -> io::Result<bool> {
        if !self.armed.load(Ordering::Relaxed) || !self.armed.swap(false, Ordering::Relaxed) {
            return Ok(false);
        }
        let switch = self.switch.lock().unwrap_or_else(PoisonError::into_inner).take();
        switch.map_or(Ok(()), |mut file| file.write_all(b"0"))?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_pull_alone_throws_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tracing_on");
        let trip = OneShotTrigger::default();
        assert!(!trip.pull().unwrap(), "not armed yet");
        trip.arm(Some(File::create(&path).unwrap()));
        assert!(trip.pull().unwrap() && !trip.pull().unwrap());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "0");
        trip.arm(None);
        trip.disarm();
        assert!(!trip.pull().unwrap());
    }
}
