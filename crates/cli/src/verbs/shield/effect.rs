//! How late a thread is on a CPU, before and behind the shield.

use anyhow::Context;
use millstream_lab::Histogram;
use millstream_sys::thread::pin_current_thread;
use rustix::io::Errno;
use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, Timespec, clock_gettime};
use serde::Serialize;
use std::path::Path;
use std::time::Duration;

/// From deadline to deadline, nanoseconds.
const INTERVAL_NS: u64 = 500_000;

/// What was measured, of an ordinary thread: one of real time hardly notices others.
#[derive(Clone, Debug, Serialize)]
pub struct Effect {
    /// Where.
    pub cpu: usize,
    /// How late it was without a shield, nanoseconds.
    pub before: Histogram,
    /// The same with it.
    pub behind: Histogram,
}

/// Sleeps to deadlines for a while, behind the shield if its door is given. An empty distribution
/// where there is no time.
pub fn measure(cpu: usize, span: Duration, door: Option<&Path>) -> anyhow::Result<Histogram> {
    let mut histogram = Histogram::default();
    if span.is_zero() {
        return Ok(histogram);
    }
    let observe = || -> anyhow::Result<()> {
        if let Some(door) = door {
            let thread = rustix::thread::gettid().as_raw_nonzero();
            std::fs::write(door, thread.to_string())
                .with_context(|| format!("cannot go behind the shield by {}", door.display()))?;
        }
        pin_current_thread(cpu)?;
        let start_ns = now_ns();
        let mut deadline_ns = start_ns + INTERVAL_NS;
        while deadline_ns < start_ns + span.as_nanos() as u64 {
            let until = Timespec {
                tv_sec: (deadline_ns / 1_000_000_000) as _,
                tv_nsec: (deadline_ns % 1_000_000_000) as _,
            };
            while clock_nanosleep_absolute(ClockId::Monotonic, &until) == Err(Errno::INTR) {}
            let late_ns = now_ns().saturating_sub(deadline_ns);
            histogram.record(late_ns);
            deadline_ns += (late_ns / INTERVAL_NS + 1) * INTERVAL_NS;
        }
        Ok(())
    };
    // On a thread of its own, which ends and leaves nothing pinned.
    std::thread::scope(|scope| scope.spawn(observe).join())
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
    Ok(histogram)
}

fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}
