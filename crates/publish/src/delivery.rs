//! The way of messages from a block to one outlet: queue, ledger and courier.

use crate::courier::{Courier, Shared};
use crate::ledger::Account;
use crate::publications::{MetricsInbox, Publications, Status};
use crate::queue::{QueueEntry, queue};
use crate::{DropCause, Outlet, OutletError};
use millstream_flow::{BlockError, Metric};
use millstream_ring::Doorbell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// The interval of looks for the courier's end. The block does not wait for it in `finish`, where
/// the other blocks of its thread would wait, too.
pub(crate) const END_LOOK: Duration = Duration::from_millis(2);

/// A block's end of that way. The block never waits for the outlet.
pub(crate) struct Delivery {
    entry: Option<QueueEntry>,
    shared: Arc<Shared>,
    away_cause: DropCause,
    /// What runs from the start on.
    courier: Option<Courier>,
    thread: Option<JoinHandle<Result<(), OutletError>>>,
}

impl Delivery {
    /// Makes a delivery with a queue of `queue_bytes`, whose courier goes on for `linger` after the
    /// graph's end. `publications` lists it, and gives it metrics every `metrics_every` if that is
    /// not zero.
    pub fn new(
        outlet: Box<dyn Outlet>,
        (queue_bytes, linger): (usize, Duration),
        (publications, metrics_every): (&Publications, Duration),
    ) -> Result<(Self, Option<MetricsInbox>), BlockError> {
        let (entry, exit) = queue(queue_bytes)?;
        let shared = Arc::new(Shared {
            account: Account::default(),
            status: Status::new(outlet.name()),
            bell: Doorbell::new()?,
            away: AtomicBool::new(true),
            abandoned: AtomicBool::new(false),
        });
        let inbox = publications.add(&shared, metrics_every);
        let away_cause = outlet.away_cause();
        let courier = Some(Courier::new(Arc::clone(&shared), exit, outlet, linger));
        Ok((Self { entry: Some(entry), shared, away_cause, courier, thread: None }, inbox))
    }

    /// Starts the courier.
    pub fn start(&mut self) -> Result<(), BlockError> {
        let Some(mut courier) = self.courier.take() else { return Ok(()) };
        courier.check()?;
        let builder = std::thread::Builder::new().name("ms-publish".to_owned());
        self.thread = Some(builder.spawn(move || courier.run())?);
        Ok(())
    }

    /// Puts a message into the queue, or counts why not.
    pub fn offer(&mut self, message: &[u8]) {
        let Some(entry) = &mut self.entry else { return };
        self.shared.account.offered.add(1);
        if entry.push(message) {
            return;
        }
        let cause = if message.len() > entry.message_bytes_max() {
            DropCause::TooLarge
        } else if self.shared.away.load(Ordering::Relaxed) {
            self.away_cause
        } else {
            DropCause::QueueFull
        };
        self.shared.account.drop(cause, 1);
    }

    /// Wakes the courier, if it sleeps.
    pub fn wake(&self) {
        self.shared.bell.nudge();
    }

    /// Ends the queue, so that the courier ends when it has done its work, or at its time limit.
    pub fn end(&mut self) {
        self.entry = None;
        self.shared.bell.ring();
    }

    /// Ends the queue if that was not done, and returns whether the courier has ended.
    pub fn is_done(&mut self) -> bool {
        if self.entry.is_some() {
            self.end();
        }
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Whether the queue has ended: it takes no more messages.
    pub fn is_ended(&self) -> bool {
        self.entry.is_none()
    }

    /// Waits for the courier's end.
    pub fn join(&mut self) -> Result<(), BlockError> {
        let Some(thread) = self.thread.take() else { return Ok(()) };
        thread.join().map_err(|_| "the courier of this sink has panicked")??;
        Ok(())
    }

    pub fn metrics(&self) -> Vec<(&'static str, Metric)> {
        self.shared.account.metrics()
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        // The courier is left only after an error of the graph: it must not outlive it.
        self.shared.abandoned.store(true, Ordering::Relaxed);
        self.end();
        let _ = self.join();
    }
}
