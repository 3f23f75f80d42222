//! A watched thread and a ring of trace events: waits for outliers and explains them.

use super::cause::{Explanation, Outlier, explain};
use super::helper::Helper;
use super::observer::{Late, Order, Tale, Watch};
use millstream_sys::trace::{Instance, TraceError};
use std::io;
use std::process::Command;
use std::time::Duration;

/// Kibibytes of the ring of each CPU: tenths of a second of a busy machine.
const RING_KIB: u32 = 4096;

/// Events that tell who had the CPU; those that a kernel lacks are left out.
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

/// From when the ring runs until an outlier may be: its deadline is in the ring then.
const LEAD: Duration = Duration::from_millis(20);

/// Patience for a process that starts, and for one that answers.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why nothing can be watched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LookoutError {
    /// Nothing can be traced.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The watched thread cannot be had.
    #[error("no thread can be watched: {0}")]
    Watched(String),
    /// A process cannot be started or has ended.
    #[error("a process that helps cannot be had: {0}")]
    Process(#[from] io::Error),
}

/// How a program starts a process that calls [`super::observer::watch`].
pub type StartObserver = fn(&Watch) -> io::Result<Command>;

/// A thread that is watched.
#[derive(Debug)]
pub struct Lookout {
    watch: Watch,
    observer: Helper,
    thread: i32,
    ring: Instance,
    guest: bool,
    steal_before: Option<u64>,
    /// An outlier that came while it was being armed.
    early: Option<Late>,
    last: Option<Late>,
}

impl Lookout {
    /// Starts the thread; nothing is traced yet.
    ///
    /// # Errors
    /// [`LookoutError`].
    pub fn open(watch: &Watch, start: StartObserver) -> Result<Self, LookoutError> {
        let ring = Instance::create(RING_KIB)?;
        for events in EVENTS {
            ring.enable(events)?;
        }
        let observer = Helper::start(start(watch)?)?;
        let line = observer.hear(PATIENCE)?;
        let thread = match line.as_deref().map(serde_json::from_str) {
            Some(Ok(Tale::Ready(thread))) => thread,
            Some(Ok(Tale::Failed(reason))) => return Err(LookoutError::Watched(reason)),
            _ => return Err(LookoutError::Watched("it says nothing".to_owned())),
        };
        // Page faults of all others would fill the ring.
        let _ = ring.filter("exceptions", &format!("common_pid == {thread}"));
        let guest = std::fs::read_to_string("/proc/cpuinfo").is_ok_and(|text| {
            let flags = text.lines().find(|line| line.starts_with("flags"));
            flags.is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor"))
        });
        let watch = watch.clone();
        Ok(Self {
            watch,
            observer,
            thread,
            ring,
            guest,
            steal_before: None,
            early: None,
            last: None,
        })
    }

    /// Number of the process that is watched.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.observer.pid()
    }

    /// Looks out from now on: when this returns, the next outlier stops the ring.
    ///
    /// # Errors
    /// [`LookoutError`].
    pub fn arm(&mut self) -> Result<(), LookoutError> {
        self.ring.start()?;
        std::thread::sleep(LEAD);
        self.steal_before = steal_ticks(self.watch.cpu);
        self.early = None;
        self.order(&Order::Arm(self.ring.switch()))?;
        loop {
            match self.hear(PATIENCE)? {
                Some(Tale::Armed) => return Ok(()),
                // At once.
                Some(Tale::Late(late)) => self.early = Some(late),
                other => return Err(LookoutError::Watched(format!("it says {other:?}"))),
            }
        }
    }

    fn hear(&self, patience: Duration) -> Result<Option<Tale>, LookoutError> {
        let line = self.observer.hear(patience)?;
        let tale = line.map(|line| serde_json::from_str(&line)).transpose();
        Ok(tale.map_err(io::Error::from)?)
    }

    /// Takes the pages of the watched thread's work away before its next deadline.
    ///
    /// # Errors
    /// When it has ended.
    pub fn take_pages(&mut self) -> Result<(), LookoutError> {
        self.order(&Order::Faults)
    }

    /// The outlier that was waited for last.
    #[must_use]
    pub fn last(&self) -> Option<Late> {
        self.last
    }

    /// Waits for an outlier and explains it; none in this time. Either way nothing is traced any
    /// more.
    ///
    /// # Errors
    /// [`LookoutError`].
    pub fn wait(&mut self, patience: Duration) -> Result<Option<Explanation>, LookoutError> {
        let mut late = self.early.take();
        if late.is_none() {
            late = self.late_within(patience)?;
        }
        if late.is_none() {
            self.order(&Order::Disarm)?;
            // It may have come just then.
            late = self.late_within(Duration::from_millis(20))?;
        }
        self.ring.stop()?;
        self.last = late;
        late.map(|late| self.explain(late)).transpose()
    }

    fn late_within(&self, patience: Duration) -> Result<Option<Late>, LookoutError> {
        match self.hear(patience)? {
            None => Ok(None),
            Some(Tale::Late(late)) => Ok(Some(late)),
            other => Err(LookoutError::Watched(format!("it says {other:?}"))),
        }
    }

    fn explain(&self, late: Late) -> Result<Explanation, LookoutError> {
        let steal = steal_ticks(self.watch.cpu).zip(self.steal_before);
        let ticks = steal.map_or(0, |(after, before)| after.saturating_sub(before));
        let per_second = rustix::param::clock_ticks_per_second().max(1);
        let outlier = Outlier {
            thread: self.thread,
            cpu: self.watch.cpu,
            deadline_us: late.deadline_ns as f64 / 1e3,
            done_us: late.done_ns as f64 / 1e3,
            guest: self.guest,
            steal_ms: ticks as f64 * 1e3 / per_second as f64,
        };
        Ok(explain(&self.ring.events()?, &outlier))
    }

    fn order(&mut self, order: &Order) -> Result<(), LookoutError> {
        let line = serde_json::to_string(order).map_err(io::Error::other)?;
        Ok(self.observer.say(&line)?)
    }
}

/// Time that the hypervisor has taken from a CPU, clock ticks (proc_stat(5)).
fn steal_ticks(cpu: usize) -> Option<u64> {
    let text = std::fs::read_to_string("/proc/stat").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("cpu{cpu} ")))?;
    line.split_whitespace().nth(7)?.parse().ok()
}
