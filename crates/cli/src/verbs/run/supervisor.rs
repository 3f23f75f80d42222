//! The supervisor of a run: shows it, adapts it, and checks its progress, in the waiting thread.

use super::send::Outbox;
use crate::output::{Join, note};
use anyhow::anyhow;
use millstream_flow::{RunningGraph, Stall};
use millstream_planner::adapt::{AdaptEvent, Adapter};
use std::time::{Duration, Instant};

/// Least time of a block in one call, or of a graph without progress, to be reported.
const TOLD_AFTER: Duration = Duration::from_secs(5);
/// Interval of that check.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The display, adaptation and checks of a run.
pub struct Supervisor {
    adapter: Option<Adapter>,
    outbox: Outbox,
    stall_limit: Option<Duration>,
    looked: Option<Instant>,
    /// The reported stall that has not moved since.
    told: Option<String>,
    /// All events, with their times.
    pub events: Vec<String>,
    /// Moves made.
    pub moves: usize,
}

impl Supervisor {
    pub fn new(adapter: Option<Adapter>, outbox: Outbox, stall_limit: Option<Duration>) -> Self {
        let (looked, told) = (None, None);
        Self { adapter, outbox, stall_limit, looked, told, events: Vec::new(), moves: 0 }
    }

    /// Does the pending work; returns the new events. An error ends the run.
    pub fn attend(
        &mut self,
        now: Instant,
        elapsed: Duration,
        running: &mut RunningGraph,
    ) -> anyhow::Result<&[String]> {
        let known = self.events.len();
        let sent = self.outbox.step(elapsed, running);
        self.events.extend(sent.iter().map(|sent| at(elapsed, sent)));
        if let Some(event) = self.adapter.as_mut().and_then(|adapter| adapter.step(running, now)) {
            self.events.push(at(elapsed, &self.describe(&event, running)));
            self.moves += usize::from(matches!(event, AdaptEvent::Moved { .. }));
        }
        if self.looked.is_none_or(|looked| now.duration_since(looked) >= LOOK_EVERY) {
            self.looked = Some(now);
            self.watch(now, elapsed, running)?;
        }
        Ok(&self.events[known..])
    }

    /// Ends after `elapsed_s`; returns the new events.
    pub fn end(&mut self, elapsed_s: f64) -> &[String] {
        let known = self.events.len();
        let elapsed = Duration::try_from_secs_f64(elapsed_s).unwrap_or_default();
        self.events.extend(self.outbox.left().iter().map(|left| at(elapsed, left)));
        &self.events[known..]
    }

    fn describe(&self, event: &AdaptEvent, running: &RunningGraph) -> String {
        match event {
            AdaptEvent::Moved { moved, gain } => format!(
                "moved, to save {:.0} % of the time by prediction: {} (blocks moved {}, stood \
                 still {:.2} ms)",
                gain * 100.0,
                crate::graph_run::describe_plan(running.plan()),
                moved.blocks,
                moved.pause.as_secs_f64() * 1e3
            ),
            AdaptEvent::Refused(error) => error.to_string(),
        }
    }

    fn watch(
        &mut self,
        now: Instant,
        elapsed: Duration,
        running: &mut RunningGraph,
    ) -> anyhow::Result<()> {
        let limit = self.stall_limit.map_or(TOLD_AFTER, |limit| limit.min(TOLD_AFTER));
        let stalls = running.stalls(now, limit);
        let Some(stall) = stalls.first() else {
            if self.told.take().is_some() {
                self.events.push(at(elapsed, "it moves again"));
            }
            return Ok(());
        };
        let text = stalls.iter().join("; ");
        let about = match stall {
            Stall::Busy { block, .. } => block.clone(),
            _ => String::new(),
        };
        let longest = stalls.iter().map(lasted).max().unwrap_or_default();
        if let Some(limit) = self.stall_limit.filter(|limit| longest >= *limit) {
            return Err(anyhow!(
                "{text}; this is longer than --stall-limit, {:.1} s",
                limit.as_secs_f64()
            ));
        }
        if self.told.as_ref() != Some(&about) {
            self.told = Some(about);
            self.events.push(at(elapsed, &text));
        }
        Ok(())
    }
}

fn lasted(stall: &Stall) -> Duration {
    match stall {
        Stall::Busy { lasted, .. } | Stall::Still { lasted, .. } => *lasted,
        _ => Duration::ZERO,
    }
}

fn at(elapsed: Duration, text: &str) -> String {
    format!("{:.1} s: {text}", elapsed.as_secs_f64())
}

/// Prints events on standard error, each a line.
pub fn tell(events: &[String]) {
    events.iter().for_each(|event| note(format_args!("millstream: {event}")));
}
