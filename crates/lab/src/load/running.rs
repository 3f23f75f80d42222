//! A running profile, seen from the measuring process.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use millstream_cpu::CpuSet;
use millstream_host::child::cpu_time_s;

use super::worker::{LoadJob, READY};
use crate::helper::HelperProcess;
use millstream_measure::load::{LoadProfile, MachineCounters};
use millstream_measure::record::LoadSeen;

/// Time limit of a worker's start and answers; the load may starve it.
const PATIENCE: Duration = Duration::from_secs(30);

/// The reason why a load does not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// A worker could not begin, or ended.
    #[error("load profile `{profile}`: worker {worker} failed: {reason}")]
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
        "load profile `{profile}`: {worker} did no work in the {seconds:.1} s of the measurement, \
         so the sample is refused: a program of higher priority uses the CPU"
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
    process: HelperProcess,
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
        let since = mark(&profile.name, &mut workers)?;
        Ok(Self { profile: profile.name.clone(), workers, since })
    }

    /// Restarts the counts.
    ///
    /// # Errors
    /// [`LoadError::Worker`] when one has ended.
    pub fn restart(&mut self) -> Result<(), LoadError> {
        self.since = mark(&self.profile, &mut self.workers)?;
        Ok(())
    }

    /// Returns the work since [`RunningLoad::restart`].
    ///
    /// # Errors
    /// [`LoadError`] when a worker has ended or did nothing.
    pub fn seen(&mut self) -> Result<LoadSeen, LoadError> {
        let now = mark(&self.profile, &mut self.workers)?;
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
}

/// Asks all workers for their work so far.
fn mark(profile: &str, workers: &mut [Process]) -> Result<Mark, LoadError> {
    let (at, mut cpu_s, mut work) = (Instant::now(), 0.0, Vec::new());
    for worker in workers {
        work.push(worker.ask().map_err(|reason| LoadError::Worker {
            profile: profile.to_owned(),
            worker: worker.title.clone(),
            reason,
        })?);
        cpu_s += cpu_time_s(worker.process.child.id()).unwrap_or(0.0);
    }
    Ok(Mark { at, machine: MachineCounters::read(Path::new("/")), cpu_s, work })
}

impl Process {
    fn spawn(
        title: &str,
        order: &LoadJob,
        start: &dyn Fn() -> std::io::Result<Command>,
    ) -> Result<Self, String> {
        let process = start().and_then(|command| HelperProcess::start(command, None));
        let process = process.map_err(|error| format!("it cannot be started: {error}"))?;
        let mut process = Self { title: title.to_owned(), process };
        let order = serde_json::to_string(order).map_err(|error| error.to_string())?;
        match process.exchange(&order)? {
            answer if answer == READY => Ok(process),
            reason => Err(reason),
        }
    }

    fn exchange(&mut self, line: &str) -> Result<String, String> {
        self.process.say(line).map_err(|error| format!("it has ended ({error})"))?;
        let answer = self.process.read_line(PATIENCE).ok().flatten();
        answer.ok_or_else(|| "it has ended, or does not answer".to_owned())
    }

    fn ask(&mut self) -> Result<u64, String> {
        let answer = self.exchange("?")?;
        answer.parse().map_err(|_| answer)
    }
}
