//! A watched thread and a ring of trace events: waits for outliers and explains them.

use super::observer::{LateAnswer, NAME, ObserverCommand, ObserverReport, WatchSpec};
use super::recorder::{LEAD, Late, Recorder};
use crate::helper::HelperProcess;
use millstream_host::trace::TraceError;
use millstream_measure::explained::Explanation;
use std::io;
use std::process::Command;
use std::time::{Duration, Instant};

/// Time limit of a process's start, and of its answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// The reason why nothing can be watched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LookoutError {
    /// Tracing is not possible.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The watched thread is not available.
    #[error("cannot start the thread that is measured: {0}")]
    Watched(String),
    /// A process cannot be started or has ended.
    #[error("a helper process of the command failed: {0}")]
    Process(#[from] io::Error),
}

/// Makes the command of a process that calls [`super::observer::watch`].
pub type StartObserver = fn(&WatchSpec) -> io::Result<Command>;

/// A watched thread.
#[derive(Debug)]
pub struct WatchedThread {
    watch: WatchSpec,
    observer: HelperProcess,
    thread: i32,
    recorder: Recorder,
    /// An outlier that came while it was being armed.
    early: Option<LateAnswer>,
    last: Option<LateAnswer>,
}

impl WatchedThread {
    /// Starts the thread; does not trace yet.
    ///
    /// # Errors
    /// [`LookoutError`].
    pub fn open(watch: &WatchSpec, start: StartObserver) -> Result<Self, LookoutError> {
        let recorder = Recorder::open(NAME)?;
        let observer = HelperProcess::start(start(watch)?, None)?;
        let line = observer.read_line(PATIENCE)?;
        let thread = match line.as_deref().map(serde_json::from_str) {
            Some(Ok(ObserverReport::Ready(thread))) => thread,
            Some(Ok(ObserverReport::Failed(reason))) => return Err(LookoutError::Watched(reason)),
            _ => return Err(LookoutError::Watched("it says nothing".to_owned())),
        };
        let watch = watch.clone();
        Ok(Self { watch, observer, thread, recorder, early: None, last: None })
    }

    /// Number of the watched process.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.observer.child.id().cast_signed()
    }

    /// Watches from now on: after the return, the next outlier stops the ring.
    ///
    /// # Errors
    /// [`LookoutError`].
    pub fn arm(&mut self) -> Result<(), LookoutError> {
        self.recorder.start()?;
        std::thread::sleep(LEAD);
        self.early = None;
        self.order(&ObserverCommand::Arm(self.recorder.switch()))?;
        loop {
            match self.read_answer(PATIENCE)? {
                Some(ObserverReport::Armed) => return Ok(()),
                // Late at once.
                Some(ObserverReport::Late(late)) => self.early = Some(late),
                other => return Err(LookoutError::Watched(format!("it says {other:?}"))),
            }
        }
    }

    fn read_answer(&self, patience: Duration) -> Result<Option<ObserverReport>, LookoutError> {
        let line = self.observer.read_line(patience)?;
        let tale = line.map(|line| serde_json::from_str(&line)).transpose();
        Ok(tale.map_err(io::Error::from)?)
    }

    /// Drops the pages of the watched thread's work before its next deadline.
    ///
    /// # Errors
    /// When it has ended.
    pub fn take_pages(&mut self) -> Result<(), LookoutError> {
        self.order(&ObserverCommand::Faults)
    }

    /// The outlier of the last wait.
    #[must_use]
    pub fn last(&self) -> Option<LateAnswer> {
        self.last
    }

    /// Waits for an outlier and explains it; `None` after this time. Tracing stops in both cases.
    ///
    /// # Errors
    /// [`LookoutError`].
    pub fn wait(&mut self, patience: Duration) -> Result<Option<Explanation>, LookoutError> {
        let mut late = self.early.take();
        if late.is_none() {
            late = self.late_in_steps(patience)?;
        }
        if late.is_none() {
            self.order(&ObserverCommand::Disarm)?;
            // An outlier may have come just then.
            late = self.late_within(Duration::from_millis(20))?;
        }
        self.recorder.stop()?;
        self.last = late;
        late.map(|late| self.explain(late)).transpose()
    }

    /// Maintains the recorder meanwhile.
    fn late_in_steps(&mut self, patience: Duration) -> Result<Option<LateAnswer>, LookoutError> {
        const STEP: Duration = Duration::from_millis(50);
        let end = Instant::now() + patience;
        while Instant::now() < end {
            let left = end.saturating_duration_since(Instant::now());
            if let Some(late) = self.late_within(STEP.min(left))? {
                return Ok(Some(late));
            }
            self.recorder.look();
        }
        Ok(None)
    }

    fn late_within(&self, patience: Duration) -> Result<Option<LateAnswer>, LookoutError> {
        match self.read_answer(patience)? {
            None => Ok(None),
            Some(ObserverReport::Late(late)) => Ok(Some(late)),
            other => Err(LookoutError::Watched(format!("it says {other:?}"))),
        }
    }

    fn explain(&self, told: LateAnswer) -> Result<Explanation, LookoutError> {
        let LateAnswer { deadline_ns, done_ns, pages_gone: works } = told;
        let late = Late { thread: self.thread, cpu: self.watch.cpu, deadline_ns, done_ns, works };
        Ok(self.recorder.explain(&late)?)
    }

    fn order(&mut self, order: &ObserverCommand) -> Result<(), LookoutError> {
        let line = serde_json::to_string(order).map_err(io::Error::other)?;
        Ok(self.observer.say(&line)?)
    }
}
