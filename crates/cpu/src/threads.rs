//! The threads of a process in the kernel's accounting (proc_pid_stat(5), proc_pid_status(5)).

use crate::proc::{Stat, value};
use crate::sched::Class;
use serde::Serialize;
use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

/// The state of a thread at one moment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ThreadInfo {
    /// Its number.
    pub tid: u32,
    /// Its name, up to 15 bytes.
    pub name: String,
    /// The CPU that it ran on last.
    pub cpu: u32,
    /// The CPUs where it may run, `0-3`.
    pub allowed: String,
    /// Its scheduling class with the priority: `other`, `fifo:50`.
    pub class: String,
    /// Nice value, −20 to 19.
    pub nice: i32,
    /// CPU time so far, nanoseconds.
    pub cpu_ns: u64,
    /// Time in which it was ready and waited for a CPU (run-queue delay), nanoseconds, on kernels
    /// that keep it.
    pub run_delay_ns: Option<u64>,
    /// Number of sleeps, and so of wake-ups.
    pub sleeps: u64,
    /// Number of involuntary context switches.
    pub preemptions: u64,
    /// Number of migrations to another CPU, on kernels that report it.
    pub migrations: Option<u64>,
}

/// The activity of a thread between two reads.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Activity {
    /// The thread at the later read.
    pub thread: ThreadInfo,
    /// Share of one CPU, 0 to 1.
    pub cpu_share: f64,
    /// Share of the time in which it was ready and waited for a CPU, 0 to 1.
    pub run_delay_share: Option<f64>,
    /// Wake-ups per second.
    pub wake_ups_hz: f64,
}

/// Returns the threads of process `pid`, in the order of their numbers.
///
/// # Errors
/// `NotFound` when the process does not exist.
pub fn of_process(pid: u32) -> io::Result<Vec<ThreadInfo>> {
    of_process_below(Path::new("/"), pid)
}

fn of_process_below(root: &Path, pid: u32) -> io::Result<Vec<ThreadInfo>> {
    let folder = root.join(format!("proc/{pid}/task"));
    let mut threads: Vec<_> = fs::read_dir(folder)?
        .flatten()
        // A thread that ends meanwhile is left out.
        .filter_map(|entry| read(&entry.path()))
        .collect();
    threads.sort_by_key(|thread| thread.tid);
    Ok(threads)
}

/// Returns the activity of the threads of `later` since `earlier`, in the time between.
#[must_use]
pub fn activity(
    earlier: &[ThreadInfo],
    later: Vec<ThreadInfo>,
    between: Duration,
) -> Vec<Activity> {
    let seconds = between.as_secs_f64().max(1e-9);
    let rate = |later: u64, earlier: u64| later.saturating_sub(earlier) as f64 / seconds;
    let activity = |thread: ThreadInfo| {
        let before = earlier.iter().find(|other| other.tid == thread.tid);
        let (cpu_ns, sleeps) = before.map_or((0, 0), |before| (before.cpu_ns, before.sleeps));
        let delay_ns = before.and_then(|before| before.run_delay_ns).unwrap_or(0);
        Activity {
            cpu_share: rate(thread.cpu_ns, cpu_ns) / 1e9,
            run_delay_share: thread.run_delay_ns.map(|delay| rate(delay, delay_ns) / 1e9),
            wake_ups_hz: rate(thread.sleeps, sleeps),
            thread,
        }
    };
    later.into_iter().map(activity).collect()
}

/// Reads the thread with this folder in `/proc/PID/task` (proc_pid_stat(5)); `None` if it has
/// ended, or the files have another form.
#[must_use]
pub fn read(folder: &Path) -> Option<ThreadInfo> {
    let stat = Stat::read(folder)?;
    let status = fs::read_to_string(folder.join("status")).ok()?;
    let policy = stat.field(41)?;
    let class = Class::from_policy(policy, stat.field(40)?);
    let status = |key| value(&status, key);
    let schedstat = fs::read_to_string(folder.join("schedstat")).unwrap_or_default();
    let (cpu_ns, run_delay_ns) = times(&stat, &schedstat);
    Some(ThreadInfo {
        tid: folder.file_name()?.to_str()?.parse().ok()?,
        cpu: stat.field(39)?,
        allowed: status("Cpus_allowed_list").unwrap_or_default().to_owned(),
        class: class.map_or_else(|| format!("policy {policy}"), |class| class.to_string()),
        nice: stat.field(19)?,
        run_delay_ns,
        cpu_ns,
        sleeps: status("voluntary_ctxt_switches")?.parse().ok()?,
        preemptions: status("nonvoluntary_ctxt_switches")?.parse().ok()?,
        migrations: migrations(folder),
        name: stat.name,
    })
}

/// Reads the migrations of the thread with this folder, which kernels with `CONFIG_SCHED_DEBUG`
/// report.
#[must_use]
pub fn migrations(folder: &Path) -> Option<u64> {
    let sched = fs::read_to_string(folder.join("sched")).ok()?;
    let line = sched.lines().find(|line| line.starts_with("se.nr_migrations"))?;
    line.split_once(':')?.1.trim().parse().ok()
}

/// Returns the CPU time and the run-queue delay of a thread, nanoseconds, by its file `schedstat`
/// on kernels that keep it (Documentation/scheduler/sched-stats.rst), else the CPU time in ticks.
#[must_use]
pub fn times(stat: &Stat, schedstat: &str) -> (u64, Option<u64>) {
    let mut numbers = schedstat.split_whitespace().map(|number| number.parse().ok());
    let [run_ns, run_delay_ns] = [(); 2].map(|()| numbers.next().flatten());
    let ticks = || {
        let ticks: u64 = [14, 15].into_iter().filter_map(|field| stat.field::<u64>(field)).sum();
        ticks * (1_000_000_000 / rustix::param::clock_ticks_per_second().max(1))
    };
    (run_ns.unwrap_or_else(ticks), run_delay_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn a_thread_is_found_by_its_name_with_what_it_did() {
        let (go, wait) = mpsc::channel::<()>();
        let (tell, told) = mpsc::channel();
        let body = move || {
            let cpu = crate::thread::allowed_cpus().unwrap().iter().next().unwrap();
            crate::thread::pin_current_thread(cpu).unwrap();
            tell.send(cpu).unwrap();
            while wait.recv().is_ok() {
                tell.send(0).unwrap();
            }
        };
        let thread = std::thread::Builder::new().name("ms-test (odd) ".into()).spawn(body).unwrap();
        let cpu = told.recv().unwrap();
        let look = || {
            let all = of_process(std::process::id()).unwrap();
            all.into_iter().filter(|thread| thread.name == "ms-test (odd) ").collect::<Vec<_>>()
        };
        let earlier = look();
        let mut later = look();
        // On a busy machine a message may arrive before the thread can sleep.
        let same = |later: &ThreadInfo, earlier: &ThreadInfo| {
            later.sleeps == earlier.sleeps || later.cpu_ns == earlier.cpu_ns
        };
        while later.iter().zip(&earlier).all(|(later, earlier)| same(later, earlier)) {
            go.send(()).unwrap();
            told.recv().unwrap();
            std::thread::sleep(Duration::from_millis(1));
            later = look();
        }
        let found = activity(&earlier, later, Duration::from_secs(2));
        drop(go);
        thread.join().unwrap();
        let [one] = &found[..] else { panic!("{found:?}") };
        assert_eq!((one.thread.cpu as usize, &one.thread.allowed), (cpu, &cpu.to_string()));
        assert_eq!(one.thread.class, "other");
        assert!(one.wake_ups_hz > 0.0 && one.cpu_share > 0.0, "{one:?}");
    }

    /// Runs threads of these classes side by side on one CPU until they have had 200 ms; returns
    /// the run-queue delay of each, or `None` if a class is refused.
    fn delays(cpu: usize, classes: [Class; 2]) -> Option<[u64; 2]> {
        let both = std::sync::Barrier::new(2);
        let run = |class| {
            crate::thread::pin_current_thread(cpu).unwrap();
            let allowed = crate::sched::set_current_thread(class).is_ok();
            let folder = Path::new("/proc/thread-self");
            // Before the other one can keep this one from reading it.
            let before = read_self(folder);
            both.wait();
            let start = std::time::Instant::now();
            while start.elapsed() < Duration::from_millis(200) {
                std::hint::spin_loop();
            }
            let after = read_self(folder);
            (allowed, after.run_delay_ns.unwrap() - before.run_delay_ns.unwrap())
        };
        let found = std::thread::scope(|scope| {
            classes.map(|class| scope.spawn(move || run(class))).map(|one| one.join().unwrap())
        });
        found.iter().all(|(allowed, _)| *allowed).then(|| found.map(|(_, delay)| delay))
    }

    fn read_self(folder: &Path) -> ThreadInfo {
        let tid = fs::read_link(folder).unwrap();
        read(&Path::new("/proc").join(tid)).unwrap()
    }

    #[test]
    fn a_thread_that_waits_for_a_cpu_shows_it_unless_its_class_comes_first() {
        if read_self(Path::new("/proc/thread-self")).run_delay_ns.is_none() {
            println!("skipped: this kernel does not keep the run-queue delay");
            return;
        }
        let cpu = crate::thread::allowed_cpus().unwrap().iter().next().unwrap();
        // Two that share a CPU for as long: each waits while the other runs.
        let [a, b] = delays(cpu, [Class::Other; 2]).unwrap();
        assert!(a.min(b) > 20_000_000 && a + b > 100_000_000, "{a} and {b} ns");
        let Some([first, rival]) = delays(cpu, [Class::Fifo(5), Class::Other]) else {
            println!("skipped: this user may not use the class fifo");
            return;
        };
        assert!(first * 2 < rival, "fifo waited {first} ns, its ordinary rival {rival} ns");
    }

    #[test]
    fn a_forced_migration_is_counted() {
        let cpus: Vec<usize> = crate::thread::allowed_cpus().unwrap().iter().take(2).collect();
        let [a, b] = cpus[..] else {
            println!("skipped: this needs two CPUs");
            return;
        };
        let counts = std::thread::spawn(move || {
            [a, b, a].map(|cpu| {
                crate::thread::pin_current_thread(cpu).unwrap();
                read_self(Path::new("/proc/thread-self")).migrations
            })
        });
        match counts.join().unwrap() {
            [Some(a), Some(b), Some(c)] => assert!(a < b && b < c, "{a}, {b}, {c}"),
            _ => println!("skipped: this kernel does not report migrations"),
        }
    }

    #[test]
    fn no_process_is_an_error() {
        assert_eq!(of_process(u32::MAX).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
