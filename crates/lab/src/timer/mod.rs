//! The latency of a thread after its timer, as cyclictest measures it. Each CPU has a thread that
//! sleeps to absolute deadlines and compares the clock with the deadline as soon as it runs.
//!
//! A deadline that passes while the thread still waits for an earlier one is missed: it is counted
//! and not slept for, so that one stall is one latency and a count.

mod beside;
mod quiet;

pub use beside::{TimerlatFound, TimerlatMonitor, TimerlatSamples};
pub use quiet::LowLatencyGuard;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use millstream_cpu::sched::{self, Class, ClassError};
use millstream_cpu::thread::{PinError, name_current_thread, pin_current_thread};
use millstream_host::trace::TraceError;
use millstream_stats::SharedHistogram;

use crate::explain::{Late, LateReporter, TraceMonitor};
use millstream_cpu::alarm::{DeadlineTimer, Mechanism, now_ns};
use millstream_measure::Observed;
use millstream_measure::explained::Explained;

/// From the start of a thread to its first deadline, nanoseconds.
const LEAD_NS: u64 = 5_000_000;
/// Interval at which a wait checks whether to end.
const TICK: Duration = Duration::from_millis(20);

/// The prefix of the measuring threads' names: `ms-timer-3` on CPU 3.
pub const THREADS: &str = "ms-timer-";

/// The parameters of a measurement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimerSpec {
    /// CPUs with one thread each.
    pub cpus: Vec<usize>,
    /// The mechanism of their sleep.
    pub mechanism: Mechanism,
    /// Their scheduling class.
    pub class: Class,
    /// From deadline to deadline, nanoseconds.
    pub interval_ns: u64,
    /// Wake-ups of each thread.
    pub count: u64,
    /// Added to every wake-up, to prove that a comparison finds it.
    pub handicap_ns: u64,
}

/// The results of one thread.
#[derive(Debug, Clone)]
pub struct TimerSamples {
    /// Its CPU.
    pub cpu: usize,
    /// Its latencies.
    pub observed: Observed,
    /// Deadlines that passed while it waited for an earlier one.
    pub missed: u64,
    /// Duration, seconds.
    pub seconds: f64,
    /// Answers above the threshold of a trace monitor.
    pub late: u64,
    /// The explained ones.
    pub outliers: Vec<Explained>,
}

/// The reason why the measurement failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TimerError {
    /// A thread is not on its CPU.
    #[error(transparent)]
    Pin(#[from] PinError),
    /// A thread does not have its scheduling class.
    #[error(transparent)]
    Class(#[from] ClassError),
    /// Tracing is not possible.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The kernel gives no timer, or no thread.
    #[error("the timer on CPU {cpu} failed: {source}")]
    Timer {
        /// The CPU.
        cpu: usize,
        /// The kernel's error.
        source: io::Error,
    },
}

/// Measures on all CPUs at once; `ended` returns whether the user wants it to end early. A trace
/// monitor explains late answers meanwhile, and `live` counts all for whoever looks. Returns the
/// results of the threads, in the order of the plan's CPUs.
///
/// # Errors
/// [`TimerError`] of the first thread that could not begin; the others are ended.
pub fn measure(
    plan: &TimerSpec,
    mut guard: Option<&mut TraceMonitor>,
    live: &SharedHistogram<0>,
    ended: fn() -> bool,
) -> Result<Vec<TimerSamples>, TimerError> {
    let stop = AtomicBool::new(false);
    let snare = guard.as_ref().map(|guard| guard.snare());
    let start_ns = now_ns() + LEAD_NS;
    let taken: Result<Vec<TimerSamples>, TimerError> = thread::scope(|scope| {
        let (stop, snare) = (&stop, snare.as_deref());
        let mut threads = Vec::with_capacity(plan.cpus.len());
        for (index, cpu) in plan.cpus.iter().copied().enumerate() {
            // Evenly over the interval, so that threads do not wake at the same moment.
            let phase_ns = plan.interval_ns * index as u64 / plan.cpus.len() as u64;
            let body = move || {
                let taken = observe(plan, cpu, start_ns + phase_ns, (snare, live), stop);
                // A thread that cannot measure ends all.
                if taken.is_err() {
                    stop.store(true, Ordering::Relaxed);
                }
                taken
            };
            let builder = thread::Builder::new().name(format!("{THREADS}{cpu}"));
            let spawned = builder.spawn_scoped(scope, body);
            threads.push(spawned.map_err(|source| {
                stop.store(true, Ordering::Relaxed);
                TimerError::Timer { cpu, source }
            })?);
        }
        let mut guarded = Ok(());
        while threads.iter().any(|thread| !thread.is_finished()) {
            thread::sleep(TICK);
            guarded = guarded
                .and_then(|()| guard.as_mut().map_or(Ok(()), |guard| guard.switch_buffers()));
            if ended() || guarded.is_err() {
                stop.store(true, Ordering::Relaxed);
            }
        }
        let taken = threads.into_iter().map(|thread| match thread.join() {
            Ok(taken) => taken,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        let taken = taken.collect::<Result<_, _>>()?;
        guarded?;
        Ok(taken)
    });
    let found = guard.map_or(Ok(Vec::new()), TraceMonitor::end);
    let (mut taken, found) = (taken?, found?);
    for (late, why) in found {
        let outlier = Explained { at_ns: late.done_ns.saturating_sub(start_ns), why };
        let own = taken.iter_mut().find(|taken| taken.cpu == late.cpu);
        own.into_iter().for_each(|taken| taken.outliers.push(outlier.clone()));
    }
    Ok(taken)
}

/// The first of the deadlines from `first_ns` on that is at least an interval ahead.
fn first_after(now_ns: u64, first_ns: u64, interval_ns: u64) -> u64 {
    let passed = (now_ns + interval_ns).saturating_sub(first_ns).div_ceil(interval_ns);
    first_ns + passed * interval_ns
}

/// The measuring thread: allocates before its first deadline only.
fn observe(
    plan: &TimerSpec,
    cpu: usize,
    first_ns: u64,
    (snare, live): (Option<&LateReporter>, &SharedHistogram<0>),
    stop: &AtomicBool,
) -> Result<TimerSamples, TimerError> {
    let fail = |source| TimerError::Timer { cpu, source };
    pin_current_thread(cpu)?;
    // The kernel's name of the thread, which is shorter than the thread's own.
    let _ = name_current_thread(&format!("{THREADS}{cpu}"));
    let thread = rustix::thread::gettid().as_raw_nonzero().get();
    let mut observed = Observed::default();
    let (mut missed, mut late) = (0, 0);
    sched::set_current_thread(plan.class)?;
    // Deadlines that passed before the thread was on its CPU do not count.
    let first_ns = first_after(now_ns(), first_ns, plan.interval_ns);
    let mut alarm =
        DeadlineTimer::new(plan.mechanism, first_ns, plan.interval_ns, plan.handicap_ns)
            .map_err(fail)?;
    let mut last_ns = first_ns;
    for _ in 0..plan.count {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let woken = alarm.wait().map_err(fail)?;
        last_ns = woken.at_ns;
        observed.record(woken.late_ns, woken.at_ns.saturating_sub(first_ns));
        live.record_beside_others(woken.late_ns);
        missed += woken.missed;
        if let Some(snare) = snare.filter(|snare| snare.is_late(woken.late_ns)) {
            late += 1;
            let deadline_ns = woken.at_ns - woken.late_ns;
            let done_ns = woken.at_ns;
            snare.report(Late { thread, cpu, deadline_ns, done_ns, works: false });
        }
    }
    let seconds = last_ns.saturating_sub(first_ns) as f64 / 1e9;
    Ok(TimerSamples { cpu, observed, missed, seconds, late, outliers: Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(mechanism: Mechanism) -> TimerSpec {
        let cpus = millstream_cpu::thread::allowed_cpus().unwrap().iter().take(2).collect();
        let class = Class::Other;
        TimerSpec { cpus, mechanism, class, interval_ns: 500_000, count: 50, handicap_ns: 0 }
    }

    #[test]
    fn every_cpu_has_all_its_wake_ups_and_none_before_its_deadline() {
        for mechanism in [Mechanism::Nanosleep, Mechanism::Timerfd] {
            let plan = plan(mechanism);
            let taken = measure(&plan, None, &SharedHistogram::default(), || false).unwrap();
            let seen: Vec<_> = taken.iter().map(|taken| taken.cpu).collect();
            assert_eq!(seen, plan.cpus);
            for taken in taken {
                assert_eq!(taken.observed.histogram.count(), 50, "{mechanism:?}");
                let deadlines = 49 + taken.missed;
                let at_least = deadlines as f64 * 0.5e-3 - 0.5e-3;
                assert!(taken.seconds >= at_least, "{mechanism:?} {taken:?}");
            }
        }
    }

    #[test]
    fn a_thread_that_begins_late_is_not_late_for_what_was_before() {
        assert_eq!(first_after(1_000, 5_000, 500), 5_000, "long ahead");
        assert_eq!(first_after(4_800, 5_000, 500), 5_500);
        assert_eq!(first_after(42_100, 5_000, 500), 43_000);
    }

    #[test]
    fn a_handicap_shows_in_every_wake_up() {
        for mechanism in [Mechanism::Nanosleep, Mechanism::Timerfd] {
            let plan = TimerSpec { handicap_ns: 200_000, ..plan(mechanism) };
            let taken = measure(&plan, None, &SharedHistogram::default(), || false).unwrap();
            let min_ns = taken[0].observed.histogram.min_ns();
            assert!(min_ns >= 200_000, "{mechanism:?}: {min_ns}");
        }
    }

    #[test]
    fn it_ends_when_asked_to_and_a_cpu_that_is_not_there_is_named() {
        let endless = TimerSpec { count: u64::MAX, ..plan(Mechanism::Nanosleep) };
        let taken = measure(&endless, None, &SharedHistogram::default(), || true).unwrap();
        assert!(taken.iter().all(|taken| taken.observed.histogram.count() < 1_000_000));
        let nowhere = TimerSpec { cpus: vec![endless.cpus[0], 1023], ..endless };
        let error =
            measure(&nowhere, None, &SharedHistogram::default(), || false).unwrap_err().to_string();
        assert!(error.starts_with("cannot run on CPU 1023"), "{error}");
    }
}
