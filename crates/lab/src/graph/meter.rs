//! Resources that this process uses during a measurement.

use super::GraphRate;
use millstream_cpu::{threads, usage};
use std::time::{Duration, Instant};

/// The start of a measurement.
pub(super) struct Meter {
    start: Instant,
    cpu: Duration,
    switches: u64,
    migrations: Option<u64>,
}

impl Meter {
    pub(super) fn start() -> Self {
        let (switches, migrations) = counts();
        Self { start: Instant::now(), cpu: usage::process_cpu_time(), switches, migrations }
    }

    /// Returns the rate of `items` items since the start.
    pub(super) fn rate(&self, items: u64) -> GraphRate {
        let seconds = self.start.elapsed().as_secs_f64();
        let cpu = usage::process_cpu_time().saturating_sub(self.cpu);
        let (switches, migrations) = counts();
        let migrations = migrations.zip(self.migrations);
        GraphRate {
            items_per_s: items as f64 / seconds,
            cpu_s_per_gigaitem: cpu.as_secs_f64() / items.max(1) as f64 * 1e9,
            switches_per_million: switches.saturating_sub(self.switches) as f64
                / items.max(1) as f64
                * 1e6,
            migrations: migrations.map(|(after, before)| after.saturating_sub(before)),
        }
    }
}

/// Context switches and migrations of all threads.
fn counts() -> (u64, Option<u64>) {
    let threads = threads::of_process(std::process::id()).unwrap_or_default();
    let switches = threads.iter().map(|thread| thread.sleeps + thread.preemptions).sum();
    (switches, threads.iter().map(|thread| thread.migrations).sum())
}
