//! The sender: a packet at each moment of the clock.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use super::TickPlan;
use crate::packets::end::PathEnd;
use crate::packets::job::JobResult;
use crate::packets::pace::Pace;
use millstream_cpu::alarm::now_ns;

/// Packets that are due and late by more than this are left out, nanoseconds: a thread that had no
/// CPU must not make up for it with a burst.
const MADE_UP_NS: u64 = 1_000_000;

/// Sends until the time is up.
///
/// # Errors
/// The link's.
pub(in crate::packets) fn tick(
    end: &mut dyn PathEnd,
    plan: &TickPlan,
    stop: &AtomicBool,
) -> io::Result<JobResult> {
    let pace = Pace::new(plan.rate_pps);
    let (start_ns, mut number, mut total) = (now_ns(), 0, 0);
    while !stop.load(Ordering::Relaxed) {
        let (due_ns, mut now) = (pace.time_of(number), now_ns() - start_ns);
        if due_ns >= plan.span_ns {
            break;
        }
        while now < due_ns {
            std::hint::spin_loop();
            now = now_ns() - start_ns;
        }
        if now - due_ns > MADE_UP_NS {
            number = pace.due(now);
            continue;
        }
        total += u64::from(end.send_numbered(now_ns())?);
        number += 1;
    }
    Ok(JobResult { total, ..JobResult::default() })
}
