//! The engine `local`: worker processes on this machine, one for each task. A worker that crashes
//! costs its task and one line.

use crate::{Batch, BatchError, Outlook, ResultFolder, Task, TaskOutcome};
use rustix::fs::MemfdFlags;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Exit status of a worker whose task another process runs (sysexits.h, EX_TEMPFAIL).
pub const BUSY_STATUS: u8 = 75;

/// Pause between two looks at the workers.
const PAUSE: Duration = Duration::from_millis(4);
/// Pause between two tries of a task that another process runs.
const BUSY_PAUSE: Duration = Duration::from_millis(500);
/// The part of a worker's messages that is read.
const MESSAGES_MAX: u64 = 64 << 10;

/// How far a batch is.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Progress {
    /// All tasks.
    pub all: usize,
    /// Tasks with a result.
    pub done: usize,
    /// Of these, the tasks that had one before.
    pub before: usize,
    /// Tasks that failed in this run.
    pub failed: usize,
    /// Tasks that were given up by `[early_stop]`.
    pub stopped: usize,
    /// Whether the user ended the run early.
    pub interrupted: bool,
}

/// News of a run.
#[derive(Debug)]
pub enum News<'a> {
    /// A task failed, for this reason.
    Failed(&'a Task, &'a str),
    /// A task is done, and its result has this to say about its work.
    Noted(&'a Task, String),
    /// No result has the number that `[early_stop]` compares.
    NoNumber(String),
    /// Some time has passed.
    Progress(&'a Progress),
}

/// A run of a batch by worker processes.
pub struct LocalEngine<'a, C> {
    /// The batch.
    pub batch: &'a Batch,
    /// The most workers at a time.
    pub workers: usize,
    /// Makes the command of the worker with this number, for a task.
    pub command: C,
}

/// A running worker.
struct Worker {
    task: usize,
    slot: usize,
    child: Child,
    messages: File,
}

/// The state of a run.
struct State {
    outcomes: Vec<TaskOutcome>,
    queue: VecDeque<usize>,
    workers: Vec<Worker>,
    busy: Vec<(usize, Instant)>,
    progress: Progress,
    /// Whether an outcome has changed since the queue was filled.
    has_news: bool,
}

impl<C: Fn(&Task, usize) -> io::Result<Command>> LocalEngine<'_, C> {
    /// Runs all tasks that have no result, and tells the news. `asked` says whether the user asked
    /// to end.
    ///
    /// # Errors
    /// Results cannot be read, or a worker cannot be started. A failed task is no error.
    pub fn run(
        &self,
        mut tell: impl FnMut(News<'_>),
        asked: impl Fn() -> bool,
    ) -> Result<Progress, BatchError> {
        let results = self.batch.results();
        let mut state = State::new(self.batch, &results)?;
        results.tidy()?;
        self.batch.forget_left_parts()?;
        let (mut told, mut told_number) = (false, false);
        loop {
            self.take_ended(&mut state, &results, &mut tell, &asked)?;
            if asked() {
                if !std::mem::replace(&mut told, true) {
                    state.progress.interrupted = true;
                    state.workers.iter().for_each(Worker::end);
                }
            } else {
                self.start(&mut state, &results)?;
            }
            let waits = !state.busy.is_empty() && !told;
            let ends = state.workers.is_empty() && !waits;
            // The first round was decided, or nothing was given up.
            let is_decided = ends || state.progress.stopped > 0;
            if is_decided && !std::mem::replace(&mut told_number, true) {
                self.batch.lacks_number(&state.outcomes).into_iter().for_each(|text| {
                    tell(News::NoNumber(text));
                });
            }
            tell(News::Progress(&state.progress));
            if ends {
                return Ok(state.progress);
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Starts workers while tasks and places are left.
    fn start(&self, state: &mut State, results: &ResultFolder) -> Result<(), BatchError> {
        let now = Instant::now();
        state.return_busy(self.batch, results, now)?;
        if state.queue.is_empty() {
            state.fill(self.batch);
        }
        while state.workers.len() < self.workers {
            let Some(task) = state.queue.pop_front() else { break };
            let taken = |slot: &usize| state.workers.iter().any(|worker| worker.slot == *slot);
            let slot = (0..self.workers).find(|slot| !taken(slot)).unwrap_or(0);
            let start = || -> io::Result<Worker> {
                let mut command = (self.command)(&self.batch.tasks[task], slot)?;
                let memory = rustix::fs::memfd_create("messages", MemfdFlags::CLOEXEC)?;
                let messages = File::from(memory);
                command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(messages.try_clone()?);
                Ok(Worker { task, slot, child: command.spawn()?, messages })
            };
            state.workers.push(start().map_err(BatchError::Start)?);
        }
        Ok(())
    }

    /// Takes the outcomes of workers that have ended. Ctrl-C reaches the workers, too: one that has
    /// no result when the user asked to end has not failed.
    fn take_ended(
        &self,
        state: &mut State,
        results: &ResultFolder,
        tell: &mut impl FnMut(News<'_>),
        asked: &impl Fn() -> bool,
    ) -> Result<(), BatchError> {
        let mut at = 0;
        while at < state.workers.len() {
            let ended = state.workers[at].child.try_wait();
            let Some(status) = ended.map_err(BatchError::read("/proc/self"))? else {
                at += 1;
                continue;
            };
            let mut worker = state.workers.swap_remove(at);
            let task = &self.batch.tasks[worker.task];
            if status.code() == Some(BUSY_STATUS.into()) {
                state.busy.push((worker.task, Instant::now()));
                continue;
            }
            if self.batch.is_done(results, worker.task) {
                state.outcomes[worker.task] = self.batch.outcome(results, task)?;
                state.progress.done += 1;
                state.has_news = true;
                if !self.batch.parts_of(worker.task).is_empty() {
                    let result = results.result(&task.name)?;
                    let notes = result.map(|result| result.notes).unwrap_or_default();
                    notes.into_iter().for_each(|note| tell(News::Noted(task, note)));
                }
            } else if !asked() {
                let reason = self.reason(results, task, status, &worker.messages())?;
                state.fail(worker.task);
                tell(News::Failed(task, &reason));
            }
        }
        Ok(())
    }

    /// The reason why a worker left no result; it is kept if the worker could not.
    fn reason(
        &self,
        results: &ResultFolder,
        task: &Task,
        status: ExitStatus,
        messages: &str,
    ) -> Result<String, BatchError> {
        let kept = results.failure(&task.name)?;
        let said = messages.lines().rev().find(|line| !line.trim().is_empty());
        let said = said.map(|line| line.trim_start_matches("millstream: ").to_owned());
        let said = said.or_else(|| Some(kept.as_ref()?.reason.clone()));
        let reason = match (status.signal(), said) {
            (Some(signal), _) => format!(
                "its worker was killed by signal {signal}: run the batch again; if the memory was \
                 full, use fewer --workers"
            ),
            (None, Some(said)) => said,
            (None, None) => format!("its worker ended with {status} and without a reason"),
        };
        if kept.is_some() {
            return Ok(reason);
        }
        // The line is on the terminal, too; a full disk keeps neither this nor the result.
        let _ = results.fail(&task.name, &reason);
        Ok(reason)
    }
}

impl State {
    fn new(batch: &Batch, results: &ResultFolder) -> Result<Self, BatchError> {
        let outcomes = batch.outcomes(results)?;
        let before = outcomes.iter().filter(|one| **one != TaskOutcome::Open).count();
        let all = outcomes.len();
        let progress = Progress { all, done: before, before, ..Progress::default() };
        Ok(Self {
            outcomes,
            queue: VecDeque::new(),
            workers: Vec::new(),
            busy: Vec::new(),
            progress,
            has_news: true,
        })
    }

    /// Queues the tasks that can run now.
    fn fill(&mut self, batch: &Batch) {
        if !std::mem::take(&mut self.has_news) {
            return;
        }
        let outlook = Outlook::of(batch, &self.outcomes);
        self.progress.stopped = outlook.stopped.len();
        let is_taken = |task: &usize| {
            self.workers.iter().any(|worker| worker.task == *task)
                || self.busy.iter().any(|(busy, _)| busy == task)
        };
        self.queue = outlook.open.into_iter().filter(|task| !is_taken(task)).collect();
    }

    fn fail(&mut self, task: usize) {
        self.outcomes[task] = TaskOutcome::Failed;
        self.has_news = true;
        self.progress.failed += 1;
    }

    /// Looks again at tasks that another process ran.
    fn return_busy(
        &mut self,
        batch: &Batch,
        results: &ResultFolder,
        now: Instant,
    ) -> Result<(), BatchError> {
        let due = |(_, since): &(usize, Instant)| now - *since >= BUSY_PAUSE;
        let (due, rest) = std::mem::take(&mut self.busy).into_iter().partition(due);
        self.busy = rest;
        for (at, _) in due {
            let task = &batch.tasks[at];
            if batch.is_done(results, at) {
                self.outcomes[at] = batch.outcome(results, task)?;
                self.progress.done += 1;
                self.has_news = true;
            } else {
                self.queue.push_front(at);
            }
        }
        Ok(())
    }
}

impl Worker {
    /// Asks it to end.
    fn end(&self) {
        // It may just have ended.
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
    }

    fn messages(&mut self) -> String {
        let mut bytes = Vec::new();
        let length = self.messages.metadata().map_or(0, |data| data.len());
        let from = length.saturating_sub(MESSAGES_MAX);
        let read = self
            .messages
            .seek(io::SeekFrom::Start(from))
            .and_then(|_| (&self.messages).take(MESSAGES_MAX).read_to_end(&mut bytes));
        // Without its messages the exit status is the reason.
        let _ = read;
        String::from_utf8_lossy(&bytes).into_owned()
    }
}
