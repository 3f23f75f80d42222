//! The main cause of a late answer: the cause of most of the time between deadline and answer.

use super::timeline::{Holder, ThreadActivity, TimeSpan, stretches};
use millstream_host::trace::{TraceEvent, TraceEventKind};
use millstream_measure::explained::{Explanation, LateCause, Share};
use serde::Serialize;

/// A late answer of a thread.
#[derive(Clone, Debug, Serialize)]
pub struct Outlier {
    /// The thread.
    pub thread: i32,
    /// Its CPU.
    pub cpu: usize,
    /// Its deadline, microseconds of the trace's clock.
    pub deadline_us: f64,
    /// When it answered.
    pub done_us: f64,
    /// Whether the machine is a guest.
    pub guest: bool,
    /// Steal of the CPU meanwhile, as the hypervisor reports it, milliseconds.
    pub steal_ms: f64,
    /// Whether the thread had work of its own before it answered.
    pub works: bool,
}

/// Explains an outlier from the events of a trace.
#[must_use]
pub fn explain(events: &[TraceEvent], outlier: &Outlier) -> Explanation {
    let window = (outlier.deadline_us, outlier.done_us);
    let late_us = window.1 - window.0;
    let Some(found) = stretches(events, outlier.cpu, outlier.thread, window) else {
        let evidence = vec!["the trace does not reach back to the deadline".to_owned()];
        return Explanation::of(late_us, Vec::new(), evidence);
    };
    let within = |event: &&TraceEvent| (window.0..=window.1).contains(&event.at_us);
    let events: Vec<&TraceEvent> = events.iter().filter(within).collect();
    let facts = Facts::of(&events, &found, outlier);
    let parts = found.iter().flat_map(|stretch| facts.blame(stretch, outlier));
    let parts = parts.map(|(cause, who, us)| Share { cause, who, us }).collect();
    Explanation::of(late_us, parts, facts.evidence(&events, outlier))
}

/// Facts of the window that decide how time is assigned to causes.
struct Facts {
    /// First and last page fault of the thread, and how many.
    faults: Option<(f64, f64, u32)>,
    /// The CPU of its wake-up, if not its own.
    woken_elsewhere: Option<usize>,
    frequency: bool,
    /// A rival that kept the CPU after the timer's interrupt: it was in the kernel, and may have
    /// held interrupts off before.
    in_kernel: Option<i32>,
}

/// A rival in user space leaves the CPU this soon after the thread's wake-up, microseconds.
const PREEMPTION_US: f64 = 50.0;

/// A thread without work reads the clock this soon after its wake-up, microseconds.
const NOTHING_US: f64 = 100.0;

/// See [`Facts::in_kernel`].
fn in_kernel(found: &[TimeSpan]) -> Option<i32> {
    let woken = found.iter().position(|stretch| stretch.doing != ThreadActivity::Sleeping)?;
    let rival = |stretch: &TimeSpan| match stretch.holder {
        Holder::Thread { tid, .. } if tid != 0 => Some(tid),
        _ => None,
    };
    let before = found[..woken].iter().rev().find_map(rival)?;
    let ready = found[woken..].iter().take_while(|stretch| stretch.doing == ThreadActivity::Ready);
    let after_us: f64 =
        ready.filter(|stretch| rival(stretch) == Some(before)).map(TimeSpan::us).sum();
    (after_us > PREEMPTION_US).then_some(before)
}

impl Facts {
    fn of(events: &[&TraceEvent], found: &[TimeSpan], outlier: &Outlier) -> Self {
        let is_own = |event: &&&TraceEvent| event.thread == outlier.thread;
        let faults: Vec<f64> = events
            .iter()
            .filter(is_own)
            .filter(|event| event.what == TraceEventKind::PageFault)
            .map(|event| event.at_us)
            .collect();
        let count = u32::try_from(faults.len()).unwrap_or(u32::MAX);
        let faults = faults.first().zip(faults.last()).map(|(first, last)| (*first, *last, count));
        let is_waking = |event: &&&TraceEvent| match event.what {
            TraceEventKind::Waking { thread, .. } => thread == outlier.thread,
            _ => false,
        };
        // By a timer: a thread that wakes another one may run on any CPU.
        let is_timer = |event: &&&TraceEvent| {
            let before = |other: &&&TraceEvent| {
                other.cpu == event.cpu && (event.at_us - 20.0..=event.at_us).contains(&other.at_us)
            };
            let mut near = events.iter().filter(before);
            near.any(|other| matches!(&other.what, TraceEventKind::Timer(name) if is_wake_up(name)))
        };
        let woken = events.iter().filter(is_waking).find(is_timer).map(|event| event.cpu);
        Self {
            faults,
            woken_elsewhere: woken.filter(|cpu| *cpu != outlier.cpu),
            frequency: events.iter().any(|event| {
                matches!(event.what, TraceEventKind::Frequency(_)) && event.cpu == outlier.cpu
            }),
            in_kernel: in_kernel(found).filter(|_| outlier.steal_ms <= 0.0),
        }
    }

    /// The causes of a stretch, in parts.
    fn blame(&self, stretch: &TimeSpan, outlier: &Outlier) -> Vec<(LateCause, String, f64)> {
        let us = stretch.us();
        let one = |cause, who: &str| vec![(cause, who.to_owned(), us)];
        match (stretch.doing, &stretch.holder) {
            (ThreadActivity::Stopped, _) => one(LateCause::Stopped, "a signal"),
            (ThreadActivity::Blocked, _) => one(LateCause::Blocked, "the kernel"),
            (_, Holder::Interrupt(name)) => one(LateCause::Interrupt, name),
            (ThreadActivity::Sleeping, Holder::Thread { tid, name, .. })
                if self.in_kernel == Some(*tid) =>
            {
                one(LateCause::Rival, &format!("{name} ({tid}), interrupts off"))
            }
            (ThreadActivity::Sleeping, _) => match self.woken_elsewhere {
                Some(cpu) => one(LateCause::TimerMigration, &format!("CPU {cpu}")),
                // An interrupt would come through, whatever runs.
                None => one(silence(outlier), &format!("CPU {}", outlier.cpu)),
            },
            (_, Holder::Soft(name)) => one(LateCause::SoftInterrupt, name),
            (ThreadActivity::Running, Holder::Thread { tid, .. }) if *tid == outlier.thread => {
                self.own(stretch, outlier)
            }
            (_, Holder::Thread { tid: 0, .. }) => match self.woken_elsewhere {
                Some(cpu) => one(LateCause::TimerMigration, &format!("CPU {cpu}")),
                None => one(silence(outlier), &format!("CPU {}", outlier.cpu)),
            },
            (_, Holder::Thread { name, .. }) if name.starts_with("ksoftirqd/") => {
                one(LateCause::SoftInterrupt, name)
            }
            (_, Holder::Thread { name, .. }) if name.starts_with("irq/") => {
                one(LateCause::Interrupt, name)
            }
            (_, Holder::Thread { tid, name, priority }) => {
                let class = priority.and_then(class).unwrap_or_default();
                one(LateCause::Rival, &format!("{name} ({tid}){class}"))
            }
        }
    }

    /// The thread's own time: between its first and its last page fault, and the rest.
    fn own(&self, stretch: &TimeSpan, outlier: &Outlier) -> Vec<(LateCause, String, f64)> {
        let rest = if self.frequency { LateCause::Frequency } else { LateCause::OwnWork };
        let Some((first, last, count)) = self.faults else {
            // A thread without work that takes this long did not run.
            if !outlier.works && stretch.us() > NOTHING_US {
                return vec![(silence(outlier), format!("CPU {}", outlier.cpu), stretch.us())];
            }
            return vec![(rest, "its own work".to_owned(), stretch.us())];
        };
        // A fault takes about the time from one to the next.
        let each = (last - first) / f64::from(count.max(2) - 1);
        let (from, to) = (stretch.from_us.max(first), stretch.to_us.min(last + each));
        let faulty = (to - from).max(0.0);
        let faults = (LateCause::PageFault, "its own pages".to_owned(), faulty);
        let own = (rest, "its own work".to_owned(), stretch.us() - faulty);
        [faults, own].into_iter().filter(|(_, _, us)| *us > 0.0).collect()
    }

    fn evidence(&self, events: &[&TraceEvent], outlier: &Outlier) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some((_, _, count)) = self.faults {
            lines.push(format!("{count} page faults of its own"));
        }
        for event in events {
            match &event.what {
                TraceEventKind::Signal { number, to } if *to == outlier.thread => {
                    lines.push(format!("signal {number} from {} ({})", event.name, event.thread));
                }
                TraceEventKind::Migrate { thread, from, to } if *thread == outlier.thread => {
                    lines.push(format!("moved from CPU {from} to CPU {to}"));
                }
                _ => {}
            }
        }
        let interrupts = events.iter().filter(|event| {
            event.cpu == outlier.cpu
                && matches!(
                    event.what,
                    TraceEventKind::InterruptEntry(_) | TraceEventKind::SoftEntry(_)
                )
        });
        lines.push(format!("{} interrupts on CPU {} meanwhile", interrupts.count(), outlier.cpu));
        if outlier.steal_ms > 0.0 {
            lines.push(format!("the hypervisor says it took up to {:.0} ms", outlier.steal_ms));
        }
        lines
    }
}

/// Whether a timer's function wakes a sleeper: of clock_nanosleep, or of a timerfd.
fn is_wake_up(function: &str) -> bool {
    matches!(function, "hrtimer_wakeup" | "timerfd_tmrproc")
}

fn silence(outlier: &Outlier) -> LateCause {
    if outlier.guest { LateCause::HypervisorSteal } else { LateCause::Silence }
}

/// The class of a kernel priority, if it is real time.
fn class(priority: i32) -> Option<String> {
    (0..99).contains(&priority).then(|| format!(", real time {}", 99 - priority))
}

#[cfg(test)]
mod tests;
