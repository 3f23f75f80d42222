//! State that partitions share besides rings: their waiters, the requests to stop or to come to the
//! safe point, and the first error.

use super::error::RunError;
use super::handover::Handover;
use super::sync::Waiter;
use millstream_ring::{Lock, Padded};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};

/// Shared by the partitions of one run.
pub(super) struct RunControl {
    /// One for each slot, that is, for each thread that there can ever be. They stay for the whole
    /// run, so waking all needs no lock and is safe in a signal handler.
    waiters: Vec<Arc<Padded<Waiter>>>,
    /// The slot whose thread runs each node.
    slot_of_node: Box<[AtomicUsize]>,
    handover: Handover,
    /// A request for every thread to stop at the safe point.
    barrier: AtomicBool,
    stopping: AtomicBool,
    aborted: AtomicBool,
    /// Locked only after a failure.
    error: Lock<Option<RunError>>,
}

impl RunControl {
    pub(super) fn new(slots: usize, slot_of_node: &[usize]) -> Self {
        Self {
            slot_of_node: slot_of_node.iter().map(|slot| AtomicUsize::new(*slot)).collect(),
            waiters: (0..slots).map(|_| Arc::default()).collect(),
            handover: Handover::new(slots),
            barrier: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            aborted: AtomicBool::new(false),
            error: Lock::new(None),
        }
    }

    pub(super) fn waiter(&self, slot: usize) -> Arc<Padded<Waiter>> {
        Arc::clone(&self.waiters[slot])
    }

    /// Stores the slot of each node, before its thread has the node.
    pub(super) fn assign(&self, slot_of_node: &[usize]) {
        for (own, slot) in self.slot_of_node.iter().zip(slot_of_node) {
            own.store(*slot, Ordering::Relaxed);
        }
        // Pairs with the fence in `wake`: the new thread polls the node after this, so either it
        // finds the message, or the sender finds the new thread.
        fence(Ordering::SeqCst);
    }

    /// Wakes the thread that runs a node, after a message to it.
    pub(super) fn wake(&self, node: usize) {
        fence(Ordering::SeqCst);
        self.waiters[self.slot_of_node[node].load(Ordering::Relaxed)].notify();
    }

    /// Returns the number of slots.
    pub(super) fn slots(&self) -> usize {
        self.waiters.len()
    }

    pub(super) fn handover(&self) -> &Handover {
        &self.handover
    }

    /// Whether threads are to stop at the safe point before they continue.
    pub(super) fn is_barrier_up(&self) -> bool {
        self.barrier.load(Ordering::Relaxed)
    }

    /// Requests every thread to stop at the safe point.
    pub(super) fn raise_barrier(&self) {
        self.barrier.store(true, Ordering::Relaxed);
        self.notify_all();
    }

    /// Withdraws the request.
    pub(super) fn lower_barrier(&self) {
        self.barrier.store(false, Ordering::Relaxed);
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    pub(super) fn is_aborted(&self) -> bool {
        self.aborted.load(Ordering::Relaxed)
    }

    /// Ends every partition at once; the first error is reported.
    pub(super) fn abort(&self, error: RunError) {
        let mut slot = self.error.lock();
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
        self.error.lock().take()
    }

    pub(super) fn notify_all(&self) {
        self.waiters.iter().for_each(|waiter| waiter.notify());
    }
}

/// Stops a running graph: sources finish, the items under way are drained, then the graph ends.
#[derive(Clone)]
pub struct Stopper {
    control: Arc<RunControl>,
}

impl fmt::Debug for Stopper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stopper").finish_non_exhaustive()
    }
}

impl Stopper {
    pub(super) fn new(control: &Arc<RunControl>) -> Self {
        Self { control: Arc::clone(control) }
    }

    /// Requests the stop and returns at once. Callable from any thread and from a signal handler:
    /// it stores a flag and wakes threads, without lock or allocation.
    pub fn stop(&self) {
        self.control.stopping.store(true, Ordering::Relaxed);
        self.control.notify_all();
    }
}
