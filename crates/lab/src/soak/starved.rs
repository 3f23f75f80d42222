//! How long threads waited for a CPU: a machine that is too busy makes radios silent and samples
//! late, and that is no fault of a program.

use serde::Serialize;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Interval of the looks. The kernel adds a wait when it is over, so the growth between two looks
/// is one wait, or several short ones.
const PAUSE: Duration = Duration::from_millis(50);
/// A wait from which on time-outs are the machine's.
const LONG: Duration = Duration::from_millis(200);
/// The same as a share of all time.
const SHARE: f64 = 0.5;

/// How long the threads of a stream waited for a CPU, the one that waited most.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct CpuWait {
    /// The longest wait, seconds.
    pub longest_s: f64,
    /// The share of the time.
    pub share: f64,
}

impl CpuWait {
    /// Whether the machine was too busy to judge what depends on time.
    #[must_use]
    pub fn is_starved(&self) -> bool {
        self.longest_s >= LONG.as_secs_f64() || self.share >= SHARE
    }

    /// The longer one of each.
    pub(super) fn max(self, other: Self) -> Self {
        Self { longest_s: self.longest_s.max(other.longest_s), share: self.share.max(other.share) }
    }
}

/// A thread that looks.
pub(super) struct CpuWatch {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<CpuWait>>,
}

impl CpuWatch {
    /// Watches all threads of these processes, by their folders (`/proc/PID/task`).
    pub fn start(processes: Vec<PathBuf>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&stop);
        let watch = move || {
            let (mut all, begun) = (HashMap::new(), Instant::now());
            loop {
                let is_over = asked.load(Ordering::Relaxed);
                processes.iter().for_each(|folder| look(folder, &mut all));
                if is_over {
                    let waits = all.values().map(|one: &Watched| one.wait(begun.elapsed()));
                    return waits.fold(CpuWait::default(), CpuWait::max);
                }
                std::thread::sleep(PAUSE);
            }
        };
        // Without a thread nothing counts as starved.
        let thread = std::thread::Builder::new().name("cpu-watch".to_owned()).spawn(watch).ok();
        Self { stop, thread }
    }

    /// Ends it.
    pub fn end(mut self) -> CpuWait {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

/// Looks at all threads of a process; those that are new are added.
fn look(folder: &Path, all: &mut HashMap<PathBuf, Watched>) {
    for thread in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = thread.path();
        let Some(now_ns) = waited_ns(&path) else { continue };
        all.entry(path).or_insert_with(|| Watched::new(now_ns)).look(now_ns);
    }
}

/// A thread.
#[derive(Debug, Clone, Copy)]
struct Watched {
    first_ns: u64,
    last_ns: u64,
    longest_ns: u64,
}

impl Watched {
    fn new(first_ns: u64) -> Self {
        Self { first_ns, last_ns: first_ns, longest_ns: 0 }
    }

    fn look(&mut self, now_ns: u64) {
        self.longest_ns = self.longest_ns.max(now_ns.saturating_sub(self.last_ns));
        self.last_ns = now_ns;
    }

    fn wait(&self, passed: Duration) -> CpuWait {
        let all_ns = self.last_ns.saturating_sub(self.first_ns) as f64;
        CpuWait {
            longest_s: self.longest_ns as f64 / 1e9,
            share: all_ns / (passed.as_nanos() as f64).max(1.0),
        }
    }
}

/// The time that a thread was ready and had no CPU; `None` where the kernel does not count it.
fn waited_ns(folder: &Path) -> Option<u64> {
    let text = std::fs::read_to_string(folder.join("schedstat")).ok()?;
    text.split(' ').nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_the_growth_between_two_looks() {
        let folder = tempfile::tempdir().unwrap();
        let thread = folder.path().join("17");
        std::fs::create_dir(&thread).unwrap();
        let mut all = HashMap::new();
        for waited_ns in [1_000_000_000, 1_010_000_000, 1_260_000_000, 1_270_000_000] {
            std::fs::write(thread.join("schedstat"), format!("5 {waited_ns} 7\n")).unwrap();
            look(folder.path(), &mut all);
        }
        let watched = all[&thread];
        let wait = watched.wait(Duration::from_secs(1));
        assert!((wait.longest_s - 0.25).abs() < 1e-9 && wait.is_starved(), "{wait:?}");
        assert!((wait.share - 0.27).abs() < 1e-9, "{wait:?}");
        let little = CpuWait { longest_s: 0.1, share: 0.3 };
        assert!(!little.is_starved() && CpuWait { share: 0.6, ..little }.is_starved());
        assert_eq!(little.max(wait), CpuWait { longest_s: 0.25, share: 0.3 });
    }

    #[test]
    fn a_kernel_that_does_not_count_starves_nobody() {
        let watch = CpuWatch::start(vec![PathBuf::from("/no/such/process")]);
        assert_eq!(watch.end(), CpuWait::default());
    }
}
