//! The watched thread: a process of its own, because a stopped process cannot watch itself. It
//! sleeps to deadlines, works a little, and reports late answers.
//!
//! ```text
//!   ◀ {"ready": 4711}                               its thread
//!   ▶ {"arm": "/sys/kernel/tracing/…/tracing_on"}   stop that ring at the next outlier; report
//!   ◀ "armed"
//!   ▶ "disarm"
//!   ▶ "faults"                                      its pages are dropped before the next deadline
//!   ◀ {"late": {"deadline_ns": …, "done_ns": …}}    an outlier; it is disarmed now
//! ```

use super::trigger::OneShotTrigger;
use crate::helper::answer;
use millstream_cpu::alarm::{now_ns, sleep_to};
use millstream_cpu::sched::{self, Class};
use millstream_cpu::thread::{name_current_thread, pin_current_thread};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};
use serde::{Deserialize, Serialize};
use std::fs::OpenOptions;
use std::io::{self, BufRead, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The parameters of the watched thread.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct WatchSpec {
    /// Its CPU.
    pub cpu: usize,
    /// Its class: `fifo:90`.
    pub class: String,
    /// From deadline to deadline, nanoseconds.
    pub interval_ns: u64,
    /// An answer later than this is an outlier, nanoseconds.
    pub threshold_ns: u64,
}

/// A command to the observer.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ObserverCommand {
    /// Watch, and stop this ring at the first outlier.
    Arm(PathBuf),
    /// Stop watching.
    Disarm,
    /// Drop the pages of the memory that it works on.
    Faults,
}

/// A report of the observer.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ObserverReport {
    /// Its thread, which runs now.
    Ready(i32),
    /// It watches.
    Armed,
    /// It was late.
    Late(LateAnswer),
    /// It cannot continue.
    Failed(String),
}

/// A late answer, on CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct LateAnswer {
    /// When it was due, nanoseconds.
    pub deadline_ns: u64,
    /// When it came, nanoseconds.
    pub done_ns: u64,
    /// Whether its pages had been dropped.
    pub pages_gone: bool,
}

/// The name of the watched thread.
pub(super) const NAME: &str = "ms-watched";

/// Memory that it works on after its pages were dropped, bytes.
const MEMORY: usize = 16 << 20;
const PAGE: usize = 4096;

#[derive(Default)]
struct Orders {
    /// Stops the ring.
    trip: OneShotTrigger,
    /// Whether to report that it is armed.
    new: AtomicBool,
    faults: AtomicBool,
    over: AtomicBool,
}

/// Watches until `input` ends.
///
/// # Errors
/// When the reader of the reports has gone, or there is no memory.
pub fn watch(
    plan: &WatchSpec,
    input: impl BufRead + Send + 'static,
    output: &mut impl Write,
) -> io::Result<()> {
    let orders = Arc::new(Orders::default());
    let listener = Arc::clone(&orders);
    // Before this thread is pinned and has its class: the listener shall have neither.
    std::thread::Builder::new()
        .name("ms-orders".to_owned())
        .spawn(move || listen(input, &listener))?;
    if let Err(reason) = take_place(plan) {
        return answer(output, &ObserverReport::Failed(reason));
    }
    let mut memory = Memory::new()?;
    answer(output, &ObserverReport::Ready(rustix::thread::gettid().as_raw_nonzero().get()))?;
    let mut deadline_ns = now_ns() + plan.interval_ns;
    while !orders.over.load(Ordering::Relaxed) {
        if orders.faults.swap(false, Ordering::Relaxed) {
            memory.forget()?;
            deadline_ns = now_ns() + plan.interval_ns;
        }
        sleep_to(deadline_ns)?;
        let pages_gone = memory.work();
        let done_ns = now_ns();
        if done_ns - deadline_ns > plan.threshold_ns && orders.trip.pull()? {
            answer(output, &ObserverReport::Late(LateAnswer { deadline_ns, done_ns, pages_gone }))?;
        }
        if orders.new.swap(false, Ordering::Relaxed) {
            answer(output, &ObserverReport::Armed)?;
        }
        // It does not sleep to deadlines that have passed.
        let passed = now_ns().saturating_sub(deadline_ns) / plan.interval_ns + 1;
        deadline_ns += passed * plan.interval_ns;
    }
    Ok(())
}

fn take_place(plan: &WatchSpec) -> Result<(), String> {
    pin_current_thread(plan.cpu).map_err(|error| error.to_string())?;
    let _ = name_current_thread(NAME);
    let class: Class = plan.class.parse().map_err(|error| format!("{error}"))?;
    sched::set_current_thread(class).map_err(|error| error.to_string())
}

fn listen(input: impl BufRead, orders: &Orders) {
    for line in input.lines().map_while(Result::ok) {
        match serde_json::from_str(&line) {
            Ok(ObserverCommand::Arm(path)) => {
                orders.trip.arm(OpenOptions::new().write(true).open(path).ok());
                orders.new.store(true, Ordering::Relaxed);
            }
            Ok(ObserverCommand::Disarm) => orders.trip.disarm(),
            Ok(ObserverCommand::Faults) => orders.faults.store(true, Ordering::Relaxed),
            Err(_) => {}
        }
    }
    orders.over.store(true, Ordering::Relaxed);
}

/// Memory whose pages may be missing.
struct Memory {
    start: *mut u8,
    /// Whether pages are missing.
    is_gone: bool,
}

impl Memory {
    fn new() -> io::Result<Self> {
        let flags = MapFlags::PRIVATE;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at a place that the kernel chooses.
        let start = unsafe { mmap_anonymous(std::ptr::null_mut(), MEMORY, access, flags)? };
        // SAFETY: the mapping made above. Each page shall fault, not all at once.
        let _ = unsafe { madvise(start, MEMORY, Advice::LinuxNoHugepage) };
        Ok(Self { start: start.cast(), is_gone: false })
    }

    fn forget(&mut self) -> io::Result<()> {
        // SAFETY: the mapping of this value; its content is not used.
        unsafe { madvise(self.start.cast(), MEMORY, Advice::LinuxDontNeed)? };
        self.is_gone = true;
        Ok(())
    }

    /// Writes a byte into each page, if they are missing; returns whether they were.
    fn work(&mut self) -> bool {
        if !std::mem::take(&mut self.is_gone) {
            return false;
        }
        for offset in (0..MEMORY).step_by(PAGE) {
            // SAFETY: inside the mapping, which only this value knows.
            unsafe { self.start.add(offset).write_volatile(1) };
        }
        true
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the mapping of this value, which has no user any more.
        let _ = unsafe { rustix::mm::munmap(self.start.cast(), MEMORY) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufReader, PipeWriter, pipe};

    fn order(input: &mut PipeWriter, order: &ObserverCommand) {
        writeln!(input, "{}", serde_json::to_string(order).unwrap()).unwrap();
    }

    /// Every answer is late by this threshold.
    #[test]
    fn an_outlier_stops_the_ring_and_is_told_once() {
        let cpu = millstream_cpu::thread::allowed_cpus().unwrap().iter().next().unwrap();
        let plan =
            WatchSpec { cpu, class: "other".into(), interval_ns: 1_000_000, threshold_ns: 0 };
        let (orders, mut input) = pipe().unwrap();
        let (output, mut tales) = pipe().unwrap();
        let watched = std::thread::spawn(move || {
            watch(&plan, BufReader::new(orders), &mut tales).unwrap();
        });
        let mut lines = BufReader::new(output).lines();
        let mut next =
            || serde_json::from_str::<ObserverReport>(&lines.next().unwrap().unwrap()).unwrap();
        assert!(matches!(next(), ObserverReport::Ready(_)));
        let folder = tempfile::tempdir().unwrap();
        let ring = folder.path().join("tracing_on");
        std::fs::write(&ring, "1").unwrap();
        order(&mut input, &ObserverCommand::Faults);
        order(&mut input, &ObserverCommand::Arm(ring.clone()));
        let mut tales = [next(), next()];
        // Every answer is late here: one of the same step may be reported first.
        tales.sort_by_key(|tale| *tale == ObserverReport::Armed);
        let [ObserverReport::Late(late), ObserverReport::Armed] = tales else {
            panic!("{tales:?}")
        };
        assert!(late.done_ns > late.deadline_ns);
        assert_eq!(std::fs::read_to_string(&ring).unwrap(), "0");
        drop(input);
        watched.join().unwrap();
        assert!(lines.next().is_none(), "it is told once");
    }

    #[test]
    fn a_place_that_cannot_be_had_is_told() {
        let plan = WatchSpec { cpu: 1023, class: "other".into(), interval_ns: 1, threshold_ns: 1 };
        let mut output = Vec::new();
        watch(&plan, io::empty(), &mut output).unwrap();
        let ObserverReport::Failed(reason) = serde_json::from_slice(&output).unwrap() else {
            panic!()
        };
        assert!(reason.starts_with("cannot run on CPU 1023"), "{reason}");
    }
}
