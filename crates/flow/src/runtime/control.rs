//! What partitions share besides rings: their waiters, the wish to stop, and the first error.

use super::error::RunError;
use millstream_ring::{Padded, Waiter};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Shared by the partitions of one run.
#[derive(Debug)]
pub(super) struct Control {
    waiters: Vec<Arc<Padded<Waiter>>>,
    stopping: AtomicBool,
    aborted: AtomicBool,
    /// Locked only when something has gone wrong.
    error: Mutex<Option<RunError>>,
}

impl Control {
    pub(super) fn new(partitions: usize) -> Self {
        Self {
            waiters: (0..partitions).map(|_| Arc::default()).collect(),
            stopping: AtomicBool::new(false),
            aborted: AtomicBool::new(false),
            error: Mutex::new(None),
        }
    }

    pub(super) fn waiter(&self, partition: usize) -> Arc<Padded<Waiter>> {
        Arc::clone(&self.waiters[partition])
    }

    pub(super) fn waiters(
        &self,
        partitions: impl IntoIterator<Item = usize>,
    ) -> Vec<Arc<Padded<Waiter>>> {
        partitions.into_iter().map(|partition| self.waiter(partition)).collect()
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    pub(super) fn is_aborted(&self) -> bool {
        self.aborted.load(Ordering::Relaxed)
    }

    /// Ends every partition at once; the first error is the one that is told.
    pub(super) fn abort(&self, error: RunError) {
        let mut slot = self.error.lock().unwrap_or_else(PoisonError::into_inner);
        slot.get_or_insert(error);
        drop(slot);
        self.cancel();
    }

    /// Ends every partition at once.
    pub(super) fn cancel(&self) {
        self.aborted.store(true, Ordering::Relaxed);
        self.notify_all();
    }

    pub(super) fn take_error(&self) -> Option<RunError> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn notify_all(&self) {
        self.waiters.iter().for_each(|waiter| waiter.notify());
    }
}

/// Stops a running graph: sources finish, what is under way is drained, then the graph ends.
#[derive(Clone, Debug)]
pub struct Stopper {
    control: Arc<Control>,
}

impl Stopper {
    pub(super) fn new(control: &Arc<Control>) -> Self {
        Self { control: Arc::clone(control) }
    }

    /// Asks for the stop and returns at once. From any thread, also from a signal handler:
    /// it stores a flag and wakes threads, without lock or allocation.
    pub fn stop(&self) {
        self.control.stopping.store(true, Ordering::Relaxed);
        self.control.notify_all();
    }
}
