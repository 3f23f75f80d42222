//! `--live`: the activity of every block, connection and partition, refreshed in place.
//!
//! It stays on the screen below the earlier text: it uses no other screen, no hidden cursor and no
//! mode of the terminal, so there is nothing to restore, however the program ends.

mod frame;

use crate::live;
use crate::signal::SignalReport;
use frame::ViewFrame;
use millstream_cpu::Topology;
use millstream_cpu::threads::{self, ThreadInfo};
use millstream_flow::{Profile, RunningGraph, Snapshot};
use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// Time between two pictures.
const PERIOD: Duration = Duration::from_millis(500);

/// A picture on standard error that is drawn over itself.
pub struct LiveView {
    graph: String,
    caches: Vec<u64>,
    before: Option<Moment>,
    /// Lines of the drawn picture.
    lines: usize,
}

/// The state at one time.
struct Moment {
    at: Instant,
    profile: Profile,
    snapshot: Snapshot,
    threads: Vec<ThreadInfo>,
}

impl LiveView {
    pub fn new(graph: &Path) -> Self {
        let topology = Topology::read(Path::new("/")).ok();
        let first = topology.as_ref().and_then(|topology| topology.cores.first());
        let caches = first.map(|core| core.caches.iter().map(|cache| cache.size_bytes).collect());
        Self {
            graph: graph.display().to_string(),
            caches: caches.unwrap_or_default(),
            before: None,
            lines: 0,
        }
    }

    /// Draws when it is time.
    pub fn show(
        &mut self,
        now: Instant,
        elapsed: Duration,
        running: &RunningGraph,
        signals: &[SignalReport],
        events: &[String],
    ) {
        if self.before.as_ref().is_some_and(|before| now - before.at < PERIOD) {
            return;
        }
        let moment = Moment {
            at: now,
            profile: running.profile(),
            snapshot: running.snapshot(),
            threads: threads::of_process(std::process::id()).unwrap_or_default(),
        };
        let Some(before) = self.before.replace(moment) else { return };
        let moment = self.before.as_ref().expect("just put there");
        let frame = ViewFrame {
            graph: &self.graph,
            elapsed,
            load: &moment.profile.since(&before.profile),
            snapshots: (&before.snapshot, &moment.snapshot),
            threads: (&before.threads, &moment.threads),
            caches: &self.caches,
            signals: &signals.iter().map(SignalReport::brief).collect::<Vec<_>>(),
            events,
        };
        let (columns, rows) = live::size();
        let lines = frame.lines(columns.saturating_sub(1), rows.saturating_sub(1));
        // A failed write is not a reason to stop.
        let _ = std::io::stderr().lock().write_all(redraw(self.lines.min(rows), &lines).as_bytes());
        self.lines = lines.len();
    }
}

/// Redraws the lines over the `above` lines above the cursor.
fn redraw(above: usize, lines: &[String]) -> String {
    let mut text = String::new();
    if above > 0 {
        // Up, to the first column.
        let _ = write!(text, "\x1b[{above}F");
    }
    for line in lines {
        // The rest of a longer line is erased.
        let _ = write!(text, "{line}\x1b[K\r\n");
    }
    // And the rest of a higher picture below.
    text.push_str("\x1b[J");
    text
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

#[cfg(test)]
mod tests {
    use super::redraw;

    #[test]
    fn a_picture_is_drawn_over_the_one_before() {
        let lines = ["a".to_owned(), "b".to_owned()];
        assert_eq!(redraw(0, &lines), "a\x1b[K\r\nb\x1b[K\r\n\x1b[J");
        assert_eq!(redraw(3, &lines[..1]), "\x1b[3Fa\x1b[K\r\n\x1b[J");
    }
}
