//! `--live`: the activity of every block, connection and partition, refreshed in place.
//!
//! It stays on the screen below the earlier text: it uses no other screen, no hidden cursor and no
//! mode of the terminal, so there is nothing to restore, however the program ends.

mod caches;
mod counted;
mod frame;
mod words;

use crate::graph_report::GraphReport;
use crate::live::{self, Picture};
use crate::signal::SignalReport;
use caches::{Caches, EdgeCache};
use counted::{CacheCounters, ThreadCounts};
use frame::ViewFrame;
use millstream_cpu::Topology;
use millstream_cpu::occupancy::{self, Occupancy};
use millstream_cpu::threads::{self, ThreadInfo};
use millstream_flow::{Profile, RunningGraph, Snapshot};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

crate::results! {
    /// The place of buffers in the caches.
    pub struct SeenCaches<'a> {
        /// The buffer of each connection.
        edges: Vec<EdgeCache>,
        /// What was counted in each partition.
        partitions: &'a BTreeMap<String, ThreadCounts>,
        /// Why something could not be counted.
        not_counted: Vec<String>,
        /// The share of the last cache, where the kernel tells it.
        occupancy: SeenOccupancy,
    }
}

/// The share of this process in the last cache, or why it is not known.
#[derive(Serialize)]
#[serde(untagged)]
pub enum SeenOccupancy {
    Seen(Occupancy),
    Missing { missing: String },
}

/// Time between two pictures.
const PERIOD: Duration = Duration::from_millis(500);

/// A picture on standard error that is drawn over itself, and what it has seen of the caches.
pub struct LiveView {
    graph: String,
    /// Whether there is a terminal to draw on.
    is_terminal: bool,
    topology: Option<Topology>,
    counters: CacheCounters,
    before: Option<Moment>,
    picture: Picture,
}

/// The state at one time.
struct Moment {
    at: Instant,
    profile: Profile,
    snapshot: Snapshot,
    threads: Vec<ThreadInfo>,
}

impl LiveView {
    pub fn new(graph: &Path, is_terminal: bool) -> Self {
        Self {
            graph: graph.display().to_string(),
            is_terminal,
            topology: Topology::read(Path::new("/")).ok(),
            counters: CacheCounters::default(),
            before: None,
            picture: Picture::default(),
        }
    }

    /// Whether it draws.
    pub fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Looks, and draws, when it is time. Returns whether there is a terminal with the picture.
    pub fn show(
        &mut self,
        now: Instant,
        elapsed: Duration,
        running: &RunningGraph,
        signals: &[SignalReport],
        events: &[String],
    ) -> bool {
        if self.before.as_ref().is_some_and(|before| now - before.at < PERIOD) {
            return self.is_terminal;
        }
        let moment = Moment {
            at: now,
            profile: running.profile(),
            snapshot: running.snapshot(),
            threads: threads::of_process(std::process::id()).unwrap_or_default(),
        };
        let before = self.before.replace(moment);
        let moment = self.before.as_ref().expect("just put there");
        let load = before
            .as_ref()
            .map_or_else(Profile::default, |before| moment.profile.since(&before.profile));
        let counted = self.counters.step(&load, &moment.snapshot, true);
        let Some(before) = before.filter(|_| self.is_terminal) else { return self.is_terminal };
        let (snapshot, threads) = (&moment.snapshot, &moment.threads);
        let frame = ViewFrame {
            graph: &self.graph,
            elapsed,
            load: &load,
            snapshots: (&before.snapshot, snapshot),
            threads: (&before.threads, threads),
            caches: &Caches { topology: self.topology.as_ref(), snapshot, threads },
            counted: &counted,
            missing: &self.counters.sentences(),
            signals: &signals.iter().map(SignalReport::brief).collect::<Vec<_>>(),
            events,
        };
        let (columns, rows) = live::size();
        let lines = frame.lines(columns.saturating_sub(1), rows.saturating_sub(1));
        self.picture.draw(&lines);
        true
    }

    /// Returns what it knows of the caches after the run, as text and for the document.
    pub fn end(&mut self, run: &GraphReport) -> (String, SeenCaches<'_>) {
        let snapshot = &run.snapshot;
        let (load, threads) = match &self.before {
            Some(before) => (run.profile.since(&before.profile), &before.threads[..]),
            None => (Profile::default(), &[][..]),
        };
        self.counters.step(&load, snapshot, false);
        let caches = Caches { topology: self.topology.as_ref(), snapshot, threads };
        let occupancy = match occupancy::of_this_process(Path::new("/")) {
            Ok(occupancy) => SeenOccupancy::Seen(occupancy),
            Err(missing) => SeenOccupancy::Missing { missing },
        };
        let mut text = String::new();
        for (partition, counted) in &self.counters.totals {
            let counts = counted.words();
            if !counts.is_empty() {
                let _ = writeln!(text, "partition {partition}: {}", counts.join(", "));
            }
        }
        let missing = self.counters.sentences();
        for sentence in &missing {
            let _ = writeln!(text, "{sentence}");
        }
        let edges = caches.edges(&run.profile);
        let partitions = &self.counters.totals;
        let document = SeenCaches { edges, partitions, not_counted: missing, occupancy };
        (text, document)
    }
}

/// The partitions for a plain line: the busy share of each so far.
pub fn brief(profile: &Profile, snapshot: &Snapshot) -> String {
    let mut text = String::new();
    for partition in &snapshot.partitions {
        let busy = frame::busy(profile, snapshot, &partition.name);
        let _ = write!(text, "  {} {:.0} %", partition.name, busy * 100.0);
    }
    text
}
