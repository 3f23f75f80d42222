//! Bulk during a measurement: bursts of large packets.

use std::io;
use std::sync::atomic::Ordering;

use millstream_cpu::alarm::{now_ns, sleep_to};

use super::job::{BulkPlan, JobResult};
use super::side::PacketSide;

/// Bursts older than this are not made up, nanoseconds.
const MADE_UP_NS: u64 = 100_000_000;
/// The longest sleep without a check whether to stop, nanoseconds.
const SLICE_NS: u64 = 50_000_000;

/// Sends bursts until the stop request.
pub(super) fn run(side: &mut PacketSide<'_>, plan: &BulkPlan) -> io::Result<JobResult> {
    // Otherwise the kernel may add 50 us to every sleep.
    // SAFETY: a plain number for the calling thread.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1usize) };
    let (mut next_ns, mut total) = (now_ns(), 0);
    while !side.stop.load(Ordering::Relaxed) {
        let mut left = plan.burst as usize;
        while left > 0 {
            match side.end.send(left)? {
                0 => break,
                sent => left -= sent.min(left),
            }
        }
        total += u64::from(plan.burst) - left as u64;
        let now_ns = now_ns();
        next_ns = if plan.by_clock {
            next_ns.max(now_ns.saturating_sub(MADE_UP_NS)) + plan.period_ns
        } else {
            // The burst before must have left, however late this one was.
            now_ns + plan.period_ns
        };
        let mut now_ns = now_ns;
        while next_ns > now_ns && !side.stop.load(Ordering::Relaxed) {
            sleep_to(next_ns.min(now_ns + SLICE_NS))?;
            now_ns = millstream_cpu::alarm::now_ns();
        }
    }
    Ok(JobResult { total, events: side.end.events(), ..JobResult::default() })
}
