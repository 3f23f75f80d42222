//! `millstream host net threads`: the activity of the threads of Millstream processes.

use crate::live::during;
use crate::numbers::{seconds, whole, within};
use crate::output::{Report, count};
use crate::table::Table;
use anyhow::Context;
use millstream_cpu::threads::{Activity, activity, of_process};
use std::time::{Duration, Instant};

/// Lists the threads of Millstream processes: name, core, scheduling class, wake-ups per second,
/// CPU share, and how long they were ready and waited for a CPU.
#[derive(clap::Args)]
pub struct Args {
    /// Number of the process. The default is every other process of `millstream` and
    /// `millstream-lab` that this user can see.
    #[arg(value_name = "PID", value_parser = whole::<u32>(1..))]
    pid: Option<u32>,

    /// How long to watch the threads, 10ms to 1min.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = seconds)]
    duration: f64,
}

crate::results! {
    /// The processes of Millstream's programs.
    struct WatchedProcesses {
        /// Each of them.
        processes: Vec<WatchedProcess>,
    }

    /// A process.
    struct WatchedProcess {
        /// Its number.
        pid: u32,
        /// What its threads did.
        threads: Vec<Activity>,
    }
}

/// Succeeds when there is a process.
pub fn run(args: Args) -> anyhow::Result<Report> {
    let processes = match args.pid {
        Some(pid) => vec![pid],
        None => others(),
    };
    if processes.is_empty() {
        anyhow::bail!(
            "no other millstream process runs on this machine: start one, or give the PID of a \
             program that uses the library"
        );
    }
    within("--duration", (args.duration, " s"), 0.01..=60.0, "10ms to 1min")?;
    let start = Instant::now();
    let look = |pid: &u32| of_process(*pid).map(|threads| (*pid, threads));
    let earlier: Vec<_> = match args.pid {
        Some(pid) => vec![look(&pid).with_context(|| format!("there is no process {pid}"))?],
        None => processes.iter().filter_map(|pid| look(pid).ok()).collect(),
    };
    let span = Duration::from_secs_f64(args.duration);
    during("watching threads", Some(span), || std::thread::sleep(span));
    let mut text = String::new();
    let mut watched = Vec::new();
    for (pid, earlier) in earlier {
        // A process that has ended meanwhile is left out, unless it was requested.
        let later = match of_process(pid) {
            Ok(later) => later,
            Err(error) if args.pid.is_some() => {
                return Err(error).with_context(|| format!("process {pid} has ended"));
            }
            Err(_) => continue,
        };
        let threads = activity(&earlier, later, start.elapsed());
        text.push_str(&table(pid, &threads));
        watched.push(WatchedProcess { pid, threads });
    }
    Ok(Report::of(text, &WatchedProcesses { processes: watched }))
}

/// The programs whose processes are found.
const PROGRAMS: [&str; 2] = ["millstream", "millstream-lab"];

/// Processes of Millstream's programs, except this one.
fn others() -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_ours = |pid: &u32| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm"));
        *pid != std::process::id() && name.is_ok_and(|name| PROGRAMS.contains(&name.trim()))
    };
    let mut pids: Vec<_> = pids.filter(is_ours).collect();
    pids.sort_unstable();
    pids
}

fn table(pid: u32, threads: &[Activity]) -> String {
    let table = Table::of(threads)
        .left("  name", |one| format!("  {}", one.thread.name))
        .right("tid", |one| one.thread.tid)
        .right("core", |one| one.thread.cpu)
        .left("may use", |one| &one.thread.allowed)
        .left("class", |one| &one.thread.class)
        .right("wake-ups/s", |one| format!("{:.1}", one.wake_ups_hz))
        .right("CPU", |one| format!("{:.1}%", 100.0 * one.cpu_share))
        .right("waits for a CPU", |one| {
            one.run_delay_share.map_or("-".into(), |share| format!("{:.1}%", 100.0 * share))
        });
    format!("process {pid}, {}\n{}", count(threads.len() as u64, "thread"), table.text())
}
