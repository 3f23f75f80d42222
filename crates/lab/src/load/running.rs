//! A running profile, seen from the measuring process.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use millstream_cpu::CpuSet;
use millstream_host::child::cpu_time_s;

use super::worker::{LoadJob, READY};
use millstream_measure::load::{LoadProfile, MachineCounters};
use millstream_measure::record::LoadSeen;

/// Time limit of a worker's start and answers; the load may starve it.
const PATIENCE: Duration = Duration::from_secs(30);

/// The reason why a load does not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// A worker could not begin, or ended.
    #[error("load profile `{profile}`, worker {worker}: {reason}")]
    Worker {
        /// The profile.
        profile: String,
        /// The worker.
        worker: String,
        /// The cause, in words.
        reason: String,
    },
    /// A worker was there and did nothing.
    #[error(
        "load profile `{profile}`: {worker} did nothing in the {seconds:.1} s of the measurement, \
         so this load was missing: a program of higher priority keeps the CPU"
    )]
    Idle {
        /// The profile.
        profile: String,
        /// The worker.
        worker: String,
        /// The duration.
        seconds: f64,
    },
}

/// A profile's workers. They end with this value, and with the thread that started them.
pub struct RunningLoad {
    profile: String,
    workers: Vec<Process>,
    since: Mark,
}

struct Process {
    title: String,
    child: Child,
    orders: ChildStdin,
    answers: Receiver<String>,
}

/// Counters at one moment.
struct Mark {
    at: Instant,
    machine: MachineCounters,
    cpu_s: f64,
    work: Vec<u64>,
}

impl RunningLoad {
    /// Starts all workers and waits until they work. `start` makes the command of a worker's
    /// process, which calls [`super::serve`].
    ///
    /// # Errors
    /// [`LoadError::Worker`].
    pub fn begin(
        profile: &LoadProfile,
        allowed: &CpuSet,
        measured: &CpuSet,
        start: &dyn Fn() -> std::io::Result<Command>,
    ) -> Result<Self, LoadError> {
        let mut workers = Vec::new();
        for worker in &profile.workers {
            let title = worker.title();
            let cpus = worker.on.cpus(allowed, measured);
            let order = LoadJob { worker: worker.clone(), cpus };
            let process = Process::spawn(&title, &order, start);
            let process = process.map_err(|reason| LoadError::Worker {
                profile: profile.name.clone(),
                worker: title,
                reason,
            })?;
            workers.push(process);
        }
        let mut running = Self { profile: profile.name.clone(), workers, since: Mark::zero() };
        running.since = running.mark()?;
        Ok(running)
    }

    /// Restarts the counts.
    ///
    /// # Errors
    /// [`LoadError::Worker`] when one has ended.
    pub fn restart(&mut self) -> Result<(), LoadError> {
        self.since = self.mark()?;
        Ok(())
    }

    /// Returns the work since [`RunningLoad::restart`].
    ///
    /// # Errors
    /// [`LoadError`] when a worker has ended or did nothing.
    pub fn seen(&mut self) -> Result<LoadSeen, LoadError> {
        let now = self.mark()?;
        let before = &self.since;
        let seconds = (now.at - before.at).as_secs_f64().max(1e-9);
        let mut seen = LoadSeen {
            cpu_share: (now.cpu_s - before.cpu_s).max(0.0) / seconds,
            interrupts_per_s: (now.machine.interrupts - before.machine.interrupts) as f64 / seconds,
            switches_per_s: (now.machine.switches - before.machine.switches) as f64 / seconds,
            load_average: now.machine.load_average,
            steal_share: (now.machine.steal_ticks - before.machine.steal_ticks) as f64
                / (now.machine.all_ticks - before.machine.all_ticks).max(1) as f64,
            ..LoadSeen::default()
        };
        for ((worker, now), before) in self.workers.iter().zip(&now.work).zip(&before.work) {
            if now == before {
                let (profile, worker) = (self.profile.clone(), worker.title.clone());
                return Err(LoadError::Idle { profile, worker, seconds });
            }
            seen.work_per_s.insert(worker.title.clone(), (now - before) as f64 / seconds);
        }
        Ok(seen)
    }

    fn mark(&mut self) -> Result<Mark, LoadError> {
        let mut mark = Mark { at: Instant::now(), ..Mark::zero() };
        for worker in &mut self.workers {
            let work = worker.ask().map_err(|reason| LoadError::Worker {
                profile: self.profile.clone(),
                worker: worker.title.clone(),
                reason,
            })?;
            mark.work.push(work);
            mark.cpu_s += cpu_time_s(worker.child.id()).unwrap_or(0.0);
        }
        mark.machine = MachineCounters::read(Path::new("/"));
        Ok(mark)
    }
}

impl Mark {
    fn zero() -> Self {
        Self {
            at: Instant::now(),
            machine: MachineCounters::default(),
            cpu_s: 0.0,
            work: Vec::new(),
        }
    }
}

impl Process {
    fn spawn(
        title: &str,
        order: &LoadJob,
        start: &dyn Fn() -> std::io::Result<Command>,
    ) -> Result<Self, String> {
        let words = |error: std::io::Error| format!("cannot be started: {error}");
        let mut command = start().map_err(words)?;
        // Ctrl-C goes to the measuring process, which then ends the load.
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped());
        millstream_host::child::tie(&mut command, None);
        let mut child = command.spawn().map_err(words)?;
        let (orders, output) = (child.stdin.take(), child.stdout.take());
        let (Some(orders), Some(output)) = (orders, output) else {
            return Err("has no pipes".to_owned());
        };
        let (tell, answers) = channel();
        std::thread::spawn(move || {
            let lines = BufReader::new(output).lines().map_while(Result::ok);
            lines.map(|line| tell.send(line)).take_while(Result::is_ok).for_each(drop);
        });
        let mut process = Self { title: title.to_owned(), child, orders, answers };
        let order = serde_json::to_string(order).map_err(|error| error.to_string())?;
        match process.exchange(&order)? {
            answer if answer == READY => Ok(process),
            reason => Err(reason),
        }
    }

    fn exchange(&mut self, line: &str) -> Result<String, String> {
        let sent = writeln!(self.orders, "{line}").and_then(|()| self.orders.flush());
        sent.map_err(|error| format!("has ended ({error})"))?;
        let answer = self.answers.recv_timeout(PATIENCE);
        answer.map_err(|_| "has ended, or does not answer".to_owned())
    }

    fn ask(&mut self) -> Result<u64, String> {
        let answer = self.exchange("?")?;
        answer.parse().map_err(|_| answer)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
