//! A ring of trace events that show the threads on a CPU, and its explanation of a late answer.

use super::cause::{Outlier, explain};
use super::late_round_trip::{LateRoundTrip, explain_way};
use super::round_trip_monitor::LateTrip;
use millstream_host::trace::{Instance, TraceError};
use millstream_measure::explained::Explanation;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Kibibytes of the ring of each CPU: tenths of a second of a busy machine.
const RING_KIB: u32 = 4096;

/// Events that show the thread on a CPU; those that a kernel lacks are left out.
const EVENTS: [&str; 12] = [
    "sched/sched_switch",
    "sched/sched_waking",
    "sched/sched_migrate_task",
    "irq/irq_handler_entry",
    "irq/irq_handler_exit",
    "irq/softirq_entry",
    "irq/softirq_exit",
    "irq_vectors",
    "timer/hrtimer_expire_entry",
    "signal/signal_generate",
    "power/cpu_frequency",
    "exceptions",
];

/// From the start of the ring until an outlier may occur: its deadline is in the ring then.
pub(super) const LEAD: Duration = Duration::from_millis(20);

/// How often steal is read: up to twice as long before an outlier counts, too.
const LOOK: Duration = Duration::from_millis(100);

/// A late answer, on CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Late {
    /// The late thread.
    pub thread: i32,
    /// Its CPU.
    pub cpu: usize,
    /// When it was due, nanoseconds.
    pub deadline_ns: u64,
    /// When it came, nanoseconds.
    pub done_ns: u64,
    /// Whether there was work in between.
    pub works: bool,
}

/// A ring, and readings of the machine beside it.
#[derive(Debug)]
pub(super) struct Recorder {
    ring: Instance,
    guest: bool,
    /// The last two readings of `/proc/stat`.
    times: [String; 2],
    looked: Instant,
}

impl Recorder {
    /// Creates a stopped ring. Records page faults only of threads whose names match `threads`,
    /// with `*` for anything: those of all others would fill the ring.
    pub fn open(threads: &str) -> Result<Self, TraceError> {
        let ring = Instance::create(RING_KIB)?;
        for events in EVENTS {
            ring.enable(events)?;
        }
        let _ = ring.filter("exceptions", &format!("comm ~ \"{threads}\""));
        let guest = std::fs::read_to_string("/proc/cpuinfo").is_ok_and(|text| {
            let flags = text.lines().find(|line| line.starts_with("flags"));
            flags.is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor"))
        });
        Ok(Self { ring, guest, times: Default::default(), looked: Instant::now() })
    }

    /// Restarts with an empty ring. An outlier may occur after [`LEAD`].
    pub fn start(&mut self) -> Result<(), TraceError> {
        self.times = [times(), times()];
        self.looked = Instant::now();
        self.ring.start()
    }

    /// Reads `/proc/stat`; to be called regularly while no outlier is known.
    pub fn look(&mut self) {
        if self.looked.elapsed() >= LOOK {
            self.times.swap(0, 1);
            self.times[1] = times();
            self.looked = Instant::now();
        }
    }

    /// Stops recording; the events in the ring stay.
    pub fn stop(&self) -> Result<(), TraceError> {
        self.ring.stop()
    }

    /// The file that stops the ring when `0` is written.
    pub fn switch(&self) -> PathBuf {
        self.ring.switch()
    }

    /// Explains a late round trip.
    pub fn explain_trip(
        &self,
        late: &LateTrip,
        threads: [i32; 2],
    ) -> Result<Explanation, TraceError> {
        let us = |ns: u64| ns as f64 / 1e3;
        let (due_us, back_us) = (us(late.due_ns), us(late.back_ns));
        let way = LateRoundTrip { threads, due_us, back_us, guest: self.guest };
        Ok(explain_way(&self.ring.events()?, &way))
    }

    /// Explains a late answer.
    pub fn explain(&self, late: &Late) -> Result<Explanation, TraceError> {
        let ticks = |times: &str| steal_ticks(times, late.cpu);
        let taken = ticks(&times()).zip(ticks(&self.times[0]));
        let ticks = taken.map_or(0, |(after, before)| after.saturating_sub(before));
        let per_second = rustix::param::clock_ticks_per_second().max(1);
        let late_ms = late.done_ns.saturating_sub(late.deadline_ns) as f64 / 1e6;
        // The steal is at most the lateness.
        let steal_ms = (ticks as f64 * 1e3 / per_second as f64).min(late_ms);
        let outlier = Outlier {
            thread: late.thread,
            cpu: late.cpu,
            deadline_us: late.deadline_ns as f64 / 1e3,
            done_us: late.done_ns as f64 / 1e3,
            guest: self.guest,
            steal_ms,
            works: late.works,
        };
        Ok(explain(&self.ring.events()?, &outlier))
    }
}

fn times() -> String {
    std::fs::read_to_string("/proc/stat").unwrap_or_default()
}

/// Steal of a CPU, clock ticks (proc_stat(5)).
fn steal_ticks(times: &str, cpu: usize) -> Option<u64> {
    let line = times.lines().find_map(|line| line.strip_prefix(&format!("cpu{cpu} ")))?;
    line.split_whitespace().nth(7)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_hypervisor_took_is_read_of_the_right_cpu() {
        let times = "cpu 1 2 3 4 5 6 7 8 9 10\ncpu1 1 2 3 4 5 6 7 81 9 10\ncpu11 0 0 0 0 0 0 0 7\n";
        let of = |cpu| steal_ticks(times, cpu);
        assert_eq!((of(1), of(11), of(0)), (Some(81), Some(7), None));
    }
}
