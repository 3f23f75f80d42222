//! The board: where a run puts its documents for the server, outside its streams.

use crate::documents::{Event, Hello, Status};
use millstream_ring::Lock;
use serde_json::Value;
use std::collections::VecDeque;
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Instant, SystemTime};

/// Events that a client which connects later still gets.
pub(crate) const EVENTS_KEPT: usize = 256;
/// Requests of clients that wait for the run.
const CONTROLS_MAX: usize = 64;

/// Makes the results of the document that `--json` prints, as of its creation.
pub type ReportMaker = Arc<dyn Fn() -> Value + Send + Sync>;

/// A wish of a client to set something.
#[derive(Clone, Debug, PartialEq)]
pub struct ControlRequest {
    pub(crate) session: u64,
    pub(crate) id: u64,
    /// A block, or `run`.
    pub target: String,
    /// Name of the setting or message.
    pub name: String,
    /// The value.
    pub value: Value,
}

/// The answer to a [`ControlRequest`].
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ControlReply {
    pub session: u64,
    pub id: u64,
    pub ok: bool,
    pub text: String,
}

/// Documents on their way from a run to its server. Neither side is a stream's thread.
#[derive(Clone)]
pub struct Board(Arc<Shared>);

struct Shared {
    state: Lock<BoardState>,
    began: Instant,
    watched: AtomicBool,
    wake: UnixStream,
}

#[derive(Default)]
pub(crate) struct BoardState {
    pub hello: Hello,
    /// Grows with each change of the hello.
    pub hello_version: u64,
    pub status: Option<Arc<Status>>,
    pub report: Option<ReportMaker>,
    pub events: VecDeque<Event>,
    pub next_event: u64,
    pub controls: VecDeque<ControlRequest>,
    pub replies: Vec<ControlReply>,
    pub stop: bool,
}

impl Board {
    pub(crate) fn new(hello: Hello) -> io::Result<(Self, UnixStream)> {
        let (wake, awake) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        awake.set_nonblocking(true)?;
        let state = BoardState { hello, ..BoardState::default() };
        let (state, watched) = (Lock::new(state), AtomicBool::new(false));
        Ok((Self(Arc::new(Shared { state, began: Instant::now(), watched, wake })), awake))
    }

    /// Whether a client looks: without one, a status once a second is enough.
    #[must_use]
    pub fn is_watched(&self) -> bool {
        self.0.watched.load(Ordering::Relaxed)
    }

    /// Publishes the newest status, and how to make the report of this moment.
    pub fn publish(&self, status: Status, report: ReportMaker) {
        let mut state = self.0.state.lock();
        state.status = Some(Arc::new(status));
        state.report = Some(report);
    }

    /// As [`publish`](Self::publish), but leaves it for the next time if the server is just
    /// reading: for a thread that also moves samples.
    pub fn publish_if_free(&self, status: Status, report: ReportMaker) {
        if let Some(mut state) = self.0.state.try_lock() {
            state.status = Some(Arc::new(status));
            state.report = Some(report);
        }
    }

    /// Publishes an event; its number and times are set here.
    pub fn event(&self, mut event: Event) {
        (event.unix_s, event.elapsed_s) = (unix_s(), self.0.began.elapsed().as_secs_f64());
        let mut state = self.0.state.lock();
        event.seq = state.next_event;
        state.next_event += 1;
        if state.events.len() == EVENTS_KEPT {
            state.events.pop_front();
        }
        state.events.push_back(event);
    }

    /// Publishes an event that is only a text.
    pub fn note(&self, kind: &'static str, name: &str, text: impl Into<String>) {
        let (name, text) = (name.to_owned(), text.into());
        self.event(Event { kind, name, text, ..Event::default() });
    }

    /// Changes the hello, which all clients then get again.
    pub fn change(&self, change: impl FnOnce(&mut Hello)) {
        let mut state = self.0.state.lock();
        change(&mut state.hello);
        state.hello_version += 1;
    }

    /// Changes the hello if `change` returns true, and then all clients get it again.
    pub fn change_if(&self, change: impl FnOnce(&mut Hello) -> bool) {
        let mut state = self.0.state.lock();
        if change(&mut state.hello) {
            state.hello_version += 1;
        }
    }

    /// Takes the next wish of a client.
    #[must_use]
    pub fn take_control(&self) -> Option<ControlRequest> {
        self.0.state.lock().controls.pop_front()
    }

    /// Answers a wish.
    pub fn reply(&self, request: &ControlRequest, outcome: Result<String, String>) {
        let (ok, text) = match outcome {
            Ok(text) => (true, text),
            Err(text) => (false, text),
        };
        let ControlRequest { session, id, .. } = *request;
        self.0.state.lock().replies.push(ControlReply { session, id, ok, text });
        self.wake();
    }

    pub(crate) fn stop(&self) {
        self.0.state.lock().stop = true;
        self.wake();
    }

    /// Puts a wish down for the run; false if too many wait.
    pub(crate) fn ask(&self, request: ControlRequest) -> bool {
        let mut state = self.0.state.lock();
        let has_room = state.controls.len() < CONTROLS_MAX;
        if has_room {
            state.controls.push_back(request);
        }
        has_room
    }

    pub(crate) fn read<T>(&self, read: impl FnOnce(&mut BoardState) -> T) -> T {
        read(&mut self.0.state.lock())
    }

    pub(crate) fn set_watched(&self, watched: bool) {
        self.0.watched.store(watched, Ordering::Relaxed);
    }

    pub(crate) fn elapsed_s(&self) -> f64 {
        self.0.began.elapsed().as_secs_f64()
    }

    fn wake(&self) {
        // If it is full, the server wakes up anyway.
        let _ = (&self.0.wake).write(&[0]);
    }
}

/// Seconds of the wall clock.
pub(crate) fn unix_s() -> f64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}
