//! A watched thread and a ring of trace events: waits for outliers and explains them.

use super::helper::Helper;
use super::observer::{NAME, Order, Tale, Told, Watch};
use super::recorder::{LEAD, Late, Recorder};
use millstream_host::trace::TraceError;
use millstream_measure::explained::Explanation;
use std::io;
use std::process::Command;
use std::time::{Duration, Instant};

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
    recorder: Recorder,
    /// An outlier that came while it was being armed.
    early: Option<Told>,
    last: Option<Told>,
}

impl Lookout {
    /// Starts the thread; nothing is traced yet.
    ///
    /// # Errors
    /// [`LookoutError`].
    pub fn open(watch: &Watch, start: StartObserver) -> Result<Self, LookoutError> {
        let recorder = Recorder::open(NAME)?;
        let observer = Helper::start(start(watch)?)?;
        let line = observer.hear(PATIENCE)?;
        let thread = match line.as_deref().map(serde_json::from_str) {
            Some(Ok(Tale::Ready(thread))) => thread,
            Some(Ok(Tale::Failed(reason))) => return Err(LookoutError::Watched(reason)),
            _ => return Err(LookoutError::Watched("it says nothing".to_owned())),
        };
        let watch = watch.clone();
        Ok(Self { watch, observer, thread, recorder, early: None, last: None })
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
        self.recorder.start()?;
        std::thread::sleep(LEAD);
        self.early = None;
        self.order(&Order::Arm(self.recorder.switch()))?;
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
    pub fn last(&self) -> Option<Told> {
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
            late = self.late_in_steps(patience)?;
        }
        if late.is_none() {
            self.order(&Order::Disarm)?;
            // It may have come just then.
            late = self.late_within(Duration::from_millis(20))?;
        }
        self.recorder.stop()?;
        self.last = late;
        late.map(|late| self.explain(late)).transpose()
    }

    /// Looks after the recorder meanwhile.
    fn late_in_steps(&mut self, patience: Duration) -> Result<Option<Told>, LookoutError> {
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

    fn late_within(&self, patience: Duration) -> Result<Option<Told>, LookoutError> {
        match self.hear(patience)? {
            None => Ok(None),
            Some(Tale::Late(late)) => Ok(Some(late)),
            other => Err(LookoutError::Watched(format!("it says {other:?}"))),
        }
    }

    fn explain(&self, told: Told) -> Result<Explanation, LookoutError> {
        let Told { deadline_ns, done_ns, pages_gone: works } = told;
        let late = Late { thread: self.thread, cpu: self.watch.cpu, deadline_ns, done_ns, works };
        Ok(self.recorder.explain(&late)?)
    }

    fn order(&mut self, order: &Order) -> Result<(), LookoutError> {
        let line = serde_json::to_string(order).map_err(io::Error::other)?;
        Ok(self.observer.say(&line)?)
    }
}
