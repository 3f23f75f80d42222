//! What the program around a graph sees of its sinks, and gives to them.

use crate::courier::Shared;
use crate::{OutletError, PublishLedger};
use millstream_ring::{Lock, spsc};
use std::sync::Arc;
use std::time::Duration;

/// Documents of metrics that may wait for a sink.
const METRICS_WAITING: usize = 4;
/// Notes that may wait for the program, of a sink.
const NOTES_WAITING: usize = 16;

/// The state of an outlet, for people.
#[derive(Debug, Default)]
pub(crate) struct Status {
    pub name: String,
    last_error: Lock<Option<String>>,
    notes: Lock<Vec<String>>,
}

impl Status {
    pub fn new(name: String) -> Self {
        Self { name, last_error: Lock::new(None), notes: Lock::new(Vec::new()) }
    }

    pub fn fail(&self, error: &OutletError) {
        *self.last_error.lock() = Some(error.to_string());
    }

    /// Leaves a note for people.
    pub fn tell(&self, text: &str) {
        let mut notes = self.notes.lock();
        // A program that takes none does not make them pile up.
        if notes.len() < NOTES_WAITING {
            notes.push(format!("{}: {text}", self.name));
        }
    }
}

/// The place where a sink finds documents of metrics, and puts them back.
pub(crate) struct MetricsInbox {
    pub documents: spsc::Receiver<String>,
    pub done: spsc::Sender<String>,
}

/// The other side of an inbox.
struct MetricsFeed {
    interval: Duration,
    last: Duration,
    documents: spsc::Sender<String>,
    done: spsc::Receiver<String>,
}

#[derive(Default)]
struct Lists {
    sinks: Vec<Arc<Shared>>,
    feeds: Vec<MetricsFeed>,
}

/// The sinks of the graphs that were built with a registry.
#[derive(Clone, Default)]
pub struct Publications(Arc<Lock<Lists>>);

impl Publications {
    /// Makes a list without sinks.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a sink, which wants metrics every `interval` if that is not zero.
    pub(crate) fn add(&self, shared: &Arc<Shared>, interval: Duration) -> Option<MetricsInbox> {
        let mut lists = self.0.lock();
        lists.sinks.push(Arc::clone(shared));
        if interval.is_zero() {
            return None;
        }
        let (to_sink, documents) = spsc::channel(METRICS_WAITING);
        let (done, from_sink) = spsc::channel(2 * METRICS_WAITING);
        lists.feeds.push(MetricsFeed {
            interval,
            last: Duration::ZERO,
            documents: to_sink,
            done: from_sink,
        });
        Some(MetricsInbox { documents, done })
    }

    /// Returns the ledger of each sink.
    #[must_use]
    pub fn ledgers(&self) -> Vec<PublishLedger> {
        let ledger = |shared: &Arc<Shared>| PublishLedger {
            to: shared.status.name.clone(),
            last_error: shared.status.last_error.lock().clone(),
            ..shared.account.ledger()
        };
        self.0.lock().sinks.iter().map(ledger).collect()
    }

    /// Returns what people should know since the last call: that an outlet is away, and that it is
    /// there again.
    #[must_use]
    pub fn take_notes(&self) -> Vec<String> {
        let lists = self.0.lock();
        let take = |shared: &Arc<Shared>| std::mem::take(&mut *shared.status.notes.lock());
        lists.sinks.iter().flat_map(take).collect()
    }

    /// Gives the metrics of a running graph, `elapsed` after its start, to the sinks that are due.
    /// `metrics` makes the JSON object; it is called only if one is.
    pub fn feed(&self, elapsed: Duration, metrics: impl Fn() -> String) {
        for feed in &mut self.0.lock().feeds {
            while feed.done.pop().is_some() {}
            if elapsed.saturating_sub(feed.last) >= feed.interval {
                feed.last = elapsed;
                // A sink that is behind goes without this one; the next is newer.
                let _ = feed.documents.push(metrics());
            }
        }
    }
}
