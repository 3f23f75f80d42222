//! The server: one thread, which waits for its sockets with poll(2).

mod answers;
mod connection;

use crate::board::{Board, ControlReply, ControlRequest, unix_s};
use crate::documents::{ServerStatus, WatchedStatus};
use crate::feed::StreamFeed;
use crate::guard::{Guard, random_hex};
use crate::message::{ClientMessage, ServerMessage, Wish};
use crate::refusal::{Refusal, RefusalCounts};
use crate::session::Session;
use crate::{StreamKind, session};
use connection::{Connection, Step};
use millstream_cpu::listener::RestingListener;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, Read};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Connections at a time of clients that have shown the token, where one is needed.
const CONNECTIONS_MAX: usize = 64;
/// Connections at a time of those that have not, or not yet.
const STRANGERS_MAX: usize = 64;
/// Interval of statuses.
const STATUS_EVERY: Duration = Duration::from_millis(250);
/// The longest wait: without clients, tags are taken this often.
const IDLE: Duration = Duration::from_millis(250);
/// For how long the last messages are sent at the end.
const END_WITHIN: Duration = Duration::from_millis(300);

/// The state of the server's thread.
pub(crate) struct Service {
    listener: RestingListener<TcpListener>,
    awake: UnixStream,
    guard: Guard,
    board: Board,
    feeds: Vec<StreamFeed>,
    connections: Vec<Connection>,
    control: bool,
    run: String,
    started_unix_s: f64,
    refused: RefusalCounts,
    sent: u64,
    dropped: u64,
    next_session: u64,
    status_seq: u64,
    status_due: Instant,
}

impl Service {
    pub fn new(
        (listener, awake): (TcpListener, UnixStream),
        guard: Guard,
        (board, feeds): (Board, Vec<StreamFeed>),
        control: bool,
    ) -> io::Result<Self> {
        Ok(Self {
            listener: RestingListener::new(listener),
            awake,
            guard,
            board,
            feeds,
            connections: Vec::new(),
            control,
            run: random_hex()?,
            started_unix_s: unix_s(),
            refused: RefusalCounts::default(),
            sent: 0,
            dropped: 0,
            next_session: 0,
            status_seq: 0,
            status_due: Instant::now(),
        })
    }

    /// Serves until the board says stop.
    pub fn run(mut self) {
        while !self.board.read(|state| state.stop) {
            self.wait();
            let now = Instant::now();
            self.accept(now);
            self.serve(now);
            self.stream(now);
            self.publish(now);
            self.pump(now);
        }
        self.end();
    }

    /// Waits until a socket is ready or something is due.
    fn wait(&self) {
        let now = Instant::now();
        let until = |at: Instant| at.saturating_duration_since(now);
        let mut wait = if self.connections.is_empty() { IDLE } else { until(self.status_due) };
        for connection in &self.connections {
            if let Some(session) = connection.session() {
                let due = session.subscriptions.iter().map(|one| one.due).min();
                wait = wait.min(due.map_or(wait, until));
            }
        }
        // While a question is open, nothing else is due.
        let looks: Vec<_> = self.feeds.iter().filter_map(StreamFeed::look_at).collect();
        if let Some(look) = looks.iter().min() {
            wait = until(*look).min(IDLE);
        }
        let wait = Timespec::try_from(wait.max(Duration::from_micros(500))).ok();
        let mut wanted = PollFlags::empty();
        wanted.set(PollFlags::IN, self.listener.is_awake());
        let mut polled =
            vec![PollFd::new(&self.listener, wanted), PollFd::new(&self.awake, PollFlags::IN)];
        for connection in &self.connections {
            polled.push(PollFd::from_borrowed_fd(connection.fd(), connection.wanted()));
        }
        // An interrupted wait is a short one.
        let _ = poll(&mut polled, wait.as_ref());
        let mut news = [0; 64];
        while matches!((&self.awake).read(&mut news), Ok(count) if count == news.len()) {}
    }

    fn accept(&mut self, now: Instant) {
        while let Some((stream, _)) = self.listener.accept(TcpListener::accept) {
            if session::prepare(&stream).is_err() {
                continue;
            }
            if self.connections.len() - self.known() == STRANGERS_MAX {
                // A client with a token has sent it within milliseconds: the oldest stranger goes.
                let oldest = self.connections.iter().position(|one| !one.is_known());
                drop(oldest.map(|place| self.connections.remove(place)));
                self.refused.add(Refusal::Full);
            }
            self.connections.push(Connection::new(stream, now));
        }
    }

    /// Reads from every connection and does what it asks.
    fn serve(&mut self, now: Instant) {
        for place in 0..self.connections.len() {
            // The others stay: answers count them.
            let mut taken = std::mem::replace(&mut self.connections[place], Connection::Over);
            self.serve_one(&mut taken, now);
            self.connections[place] = taken;
        }
        self.connections.retain(|connection| !connection.is_over());
        let sessions = self.connections.iter().filter(|one| one.session().is_some()).count();
        self.board.set_watched(sessions > 0);
    }

    fn serve_one(&mut self, connection: &mut Connection, now: Instant) {
        match connection.step(now) {
            Step::Wait => (),
            Step::Refuse(refusal) => {
                self.refused.add(refusal);
                connection.refuse(refusal, now);
            }
            Step::Count(refusal) => self.refused.add(refusal),
            Step::Request(head) => {
                match self.answer(&head).and_then(|answer| self.has_room(answer)) {
                    Ok(answers::Answer::Page(bytes)) => connection.answer(bytes, false, now),
                    Ok(answers::Answer::Bytes(bytes)) => connection.answer(bytes, true, now),
                    Ok(answers::Answer::Socket(bytes)) => {
                        self.next_session += 1;
                        connection.upgrade(self.next_session, &bytes, now);
                    }
                    Err(refusal) => {
                        self.refused.add(refusal);
                        connection.refuse(refusal, now);
                    }
                }
            }
            Step::Texts(texts) => {
                let Some(session) = connection.session_mut() else { return };
                for text in texts {
                    let Err(wrong) = self.obey(session, &text, now) else { continue };
                    if let Some(refusal) = session.complain(&wrong, now) {
                        self.refused.add(refusal);
                        break;
                    }
                }
            }
        }
    }

    /// Passes an answer on if there is a place for its client.
    fn has_room(&self, answer: answers::Answer) -> Result<answers::Answer, Refusal> {
        if self.known() < CONNECTIONS_MAX { Ok(answer) } else { Err(Refusal::Full) }
    }

    /// Returns the number of clients that have shown that they may see data.
    fn known(&self) -> usize {
        self.connections.iter().filter(|one| one.is_known()).count()
    }

    /// Does what a client's message says.
    fn obey(&mut self, session: &mut Session, text: &str, now: Instant) -> Result<(), String> {
        let kind = |stream: u16| {
            let feed = self.feeds.get(usize::from(stream));
            let known = self.feeds.len();
            feed.map(|feed| feed.info.kind)
                .ok_or(format!("there is no stream {stream}; `hello` lists the {known} that exist"))
        };
        match ClientMessage::parse(text)? {
            ClientMessage::Subscribe { stream, bins, points, lines_per_s, average, format } => {
                let wish = match kind(stream)? {
                    StreamKind::Spectrum => Wish::of_lines(bins, average, lines_per_s, format)?,
                    StreamKind::Symbols => Wish::of_points(points, lines_per_s)?,
                };
                session.subscribe(stream, wish, now);
            }
            ClientMessage::Unsubscribe { stream } => {
                kind(stream)?;
                session.unsubscribe(stream);
            }
            ClientMessage::Control { id, target, name, value } => {
                let request = ControlRequest { session: session.id, id, target, name, value };
                let refused = if !self.control {
                    Some("this dashboard is read-only: start the command with --web-control")
                } else if !self.board.ask(request) {
                    Some("too many wishes wait for the command: try again")
                } else {
                    None
                };
                if let Some(text) = refused {
                    let reply = ServerMessage::Reply { id, ok: false, text };
                    session.say(reply.document().to_string());
                }
            }
        }
        Ok(())
    }

    /// Asks the streams, and hands out their lines.
    fn stream(&mut self, now: Instant) {
        for feed in &mut self.feeds {
            feed.take_tags(&self.board);
            let here = |connection: &&mut Connection| connection.session().is_some();
            if feed.look(now) {
                for connection in self.connections.iter_mut().filter(here) {
                    let Some(session) = connection.session_mut() else { continue };
                    let counts = session.take_lines(feed, now);
                    self.sent += counts.sent;
                    self.dropped += counts.dropped;
                }
            }
            let sessions = self.connections.iter().filter_map(Connection::session);
            let all = sessions.flat_map(|session| &session.subscriptions);
            let of_stream = all.filter(|one| one.stream == feed.info.stream);
            let (mut items, mut is_due) = (0, false);
            for one in of_stream {
                items = items.max(one.wish.items());
                is_due |= one.due <= now;
            }
            if is_due {
                feed.ask(items, now);
            }
        }
    }

    /// Sends hellos, events, answers and statuses.
    fn publish(&mut self, now: Instant) {
        let version = self.board.read(|state| state.hello_version);
        let last_event = self.board.read(|state| state.next_event);
        let is_news = self.sessions().any(|session| session.hello_version != Some(version));
        let hello = is_news.then(|| self.hello());
        for reply in self.board.read(|state| std::mem::take(&mut state.replies)) {
            let ControlReply { id, ok, text, .. } = &reply;
            let text = ServerMessage::Reply { id: *id, ok: *ok, text }.document();
            if let Some(session) = self.sessions().find(|session| session.id == reply.session) {
                session.say(text.to_string());
            }
        }
        if let Some(hello) = hello {
            for feed in &mut self.feeds {
                let info = self
                    .board
                    .read(|state| state.hello.streams.get(usize::from(feed.info.stream)).cloned());
                feed.info = info.unwrap_or_else(|| feed.info.clone());
            }
            let text = hello.to_string();
            for session in self.sessions().filter(|one| one.hello_version != Some(version)) {
                session.hello_version = Some(version);
                session.say(text.clone());
            }
        }
        let board = self.board.clone();
        for session in self.sessions().filter(|session| session.next_event < last_event) {
            let text = answers::events(&board, session.next_event).to_string();
            session.next_event = last_event;
            session.say(text);
        }
        if now < self.status_due || self.sessions().next().is_none() {
            return;
        }
        self.status_due = (self.status_due + STATUS_EVERY).max(now + STATUS_EVERY / 2);
        self.status_seq += 1;
        let text = self.status().to_string();
        self.sessions().for_each(|session| session.tell_status(text.clone()));
    }

    fn pump(&mut self, now: Instant) {
        for connection in &mut self.connections {
            if let Err(refusal) = connection.pump(now) {
                self.refused.add(refusal);
            }
        }
        self.connections.retain(|connection| !connection.is_over());
    }

    fn sessions(&mut self) -> impl Iterator<Item = &mut Session> {
        self.connections.iter_mut().filter_map(Connection::session_mut)
    }

    fn figures(&self) -> ServerStatus {
        let watched = self.feeds.iter().filter(|feed| {
            let mut sessions = self.connections.iter().filter_map(Connection::session);
            sessions.any(|one| one.subscriptions.iter().any(|s| s.stream == feed.info.stream))
        });
        let watched = watched
            .map(|feed| WatchedStatus { stream: feed.info.stream, share: feed.share })
            .collect();
        ServerStatus {
            clients: self.connections.iter().filter(|one| one.session().is_some()).count(),
            cpu_s: millstream_cpu::usage::thread_cpu_time().as_secs_f64(),
            lines_sent: self.sent,
            lines_dropped: self.dropped,
            refused: self.refused.by_name(),
            watched,
        }
    }

    /// Sends the last status and says goodbye.
    fn end(&mut self) {
        let began = Instant::now();
        self.feeds.iter_mut().for_each(|feed| feed.take_tags(&self.board));
        self.status_due = began;
        self.publish(began);
        self.pump(began);
        while began.elapsed() < END_WITHIN && self.sessions().any(|one| one.is_pending()) {
            std::thread::sleep(Duration::from_millis(5));
            self.pump(Instant::now());
        }
        self.sessions().for_each(|session| session.end(began));
        self.pump(Instant::now());
    }
}
