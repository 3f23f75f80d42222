//! The latency of a thread on a CPU, without and with the shield.

use anyhow::Context;
use millstream_cpu::alarm::Beat;
use millstream_cpu::thread::pin_current_thread;
use millstream_host::shield::Shield;
use millstream_stats::Histogram;
use serde::Serialize;
use std::time::{Duration, Instant};

/// From deadline to deadline, nanoseconds.
const INTERVAL_NS: u64 = 500_000;

/// The latency of an ordinary thread: a real-time one is hardly disturbed by others.
#[derive(Clone, Debug, Serialize)]
pub struct ShieldEffect {
    /// The CPU.
    pub cpu: usize,
    /// The latency without a shield, nanoseconds.
    pub before: Histogram,
    /// The same with it.
    pub behind: Histogram,
}

/// Sleeps to deadlines for a while, behind the shield if there is one. Returns an empty
/// distribution for a span of 0.
pub fn measure(cpu: usize, span: Duration, shield: Option<&Shield>) -> anyhow::Result<Histogram> {
    let mut histogram = Histogram::default();
    if span.is_zero() {
        return Ok(histogram);
    }
    let observe = || -> anyhow::Result<()> {
        pin_current_thread(cpu)?;
        let (start, mut beat) = (Instant::now(), Beat::every_ns(INTERVAL_NS));
        while start.elapsed() < span {
            histogram.record(beat.wait()?);
        }
        Ok(())
    };
    // On a thread of its own, so that no pinning remains.
    match shield {
        Some(shield) => {
            shield.run_inside(observe).context("cannot measure wake-ups on the shielded CPUs")??
        }
        None => std::thread::scope(|scope| scope.spawn(observe).join())
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?,
    }
    Ok(histogram)
}
