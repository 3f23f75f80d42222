//! A bounded server of small requests over TCP: one thread, a bounded number of connections.

use crate::time::monotonic_ns;
use millstream_cpu::listener::RestingListener;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};

/// UHD opens two connections; the rest is for other tools and for silent peers.
pub(crate) const CONNECTIONS_MAX: usize = 16;
/// The most bytes of unsent answers: with more, the peer does not read, and is dropped.
const UNSENT_BYTES_MAX: usize = 64 * 1024;
/// A connection without a valid request for this long may be closed for a new one, nanoseconds.
const IDLE_NS: u64 = 10_000_000_000;
/// The interval at which a waiting server checks its stop flag and its service.
const TICK: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// The handler of requests.
pub(crate) trait Service {
    /// What is remembered of a connection.
    type Session;

    /// Begins a connection; what is in `unsent` is sent before the peer says anything.
    fn begin(&mut self, unsent: &mut Vec<u8>) -> Self::Session;

    /// Removes the request at the head of `unread` and appends its answer to `unsent`; returns
    /// false when there is no complete one.
    ///
    /// # Errors
    /// [`Malformed`]: the connection is closed after the bytes in `unsent` are sent.
    fn answer(
        &mut self,
        session: &mut Self::Session,
        unread: &mut Vec<u8>,
        unsent: &mut Vec<u8>,
        now_ns: u64,
    ) -> Result<bool, Malformed>;

    /// Does the periodic work; returns false while every connection is to be closed and none
    /// accepted.
    fn step(&mut self, now_ns: u64) -> bool;

    /// Counts an event.
    fn note(&self, event: TcpEvent);
}

/// Bytes that are not a request, and cannot become one.
#[derive(Debug)]
pub(crate) struct Malformed;

/// The events that a server counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TcpEvent {
    /// A connection was accepted.
    Accepted,
    /// A connection was closed because its bytes are not a request.
    Malformed,
    /// A connection was closed or refused because there are too many, or because the peer does not
    /// read.
    Refused,
}

/// The server; [`Server::run`] is the body of its thread.
pub(crate) struct Server<S: Service> {
    listener: RestingListener<TcpListener>,
    connections: Vec<Connection<S::Session>>,
    service: S,
}

struct Connection<T> {
    stream: TcpStream,
    session: T,
    unread: Vec<u8>,
    unsent: Vec<u8>,
    heard_ns: u64,
}

/// Why a connection ends: an event, or `None` when the peer or the network closed it.
type CloseReason = Option<TcpEvent>;

impl<S: Service> Server<S> {
    /// Returns a server on `listener`, which it makes non-blocking.
    pub fn new(listener: TcpListener, service: S) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let listener = RestingListener::new(listener);
        Ok(Self { listener, connections: Vec::new(), service })
    }

    /// Serves until `stop` is set.
    pub fn run(mut self, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
            let ready = self.wait();
            if !self.service.step(monotonic_ns()) {
                self.connections.clear();
                // The system accepts new connections, so they are closed at once.
                drop(self.listener.accept(TcpListener::accept));
                continue;
            }
            // Connections come first: their indices are those of the poll.
            for index in (0..self.connections.len()).rev() {
                if ready[index + 1] {
                    self.serve(index);
                }
            }
            if ready[0] {
                self.accept();
            }
        }
    }

    /// Waits for the listener and the connections, in this order; returns which of them are ready.
    fn wait(&self) -> Vec<bool> {
        let mut wanted = PollFlags::empty();
        wanted.set(PollFlags::IN, self.listener.is_awake());
        let mut polled = vec![PollFd::new(&self.listener, wanted)];
        polled.extend(self.connections.iter().map(|connection| {
            let out =
                if connection.unsent.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
            PollFd::new(&connection.stream, PollFlags::IN | out)
        }));
        // An interrupted poll counts as one without a ready socket.
        let _ = poll(&mut polled, Some(&TICK));
        polled.iter().map(|fd| !fd.revents().is_empty()).collect()
    }

    fn accept(&mut self) {
        let Some((stream, _)) = self.listener.accept(TcpListener::accept) else { return };
        let now_ns = monotonic_ns();
        self.service.note(TcpEvent::Accepted);
        if self.connections.len() == CONNECTIONS_MAX {
            self.service.note(TcpEvent::Refused);
            let idle = |c: &Connection<_>| now_ns.saturating_sub(c.heard_ns) > IDLE_NS;
            match self.connections.iter().position(idle) {
                Some(index) => drop(self.connections.swap_remove(index)),
                None => return,
            }
        }
        if stream.set_nonblocking(true).is_ok() {
            let _ = stream.set_nodelay(true);
            let (unread, mut unsent) = (Vec::new(), Vec::new());
            let session = self.service.begin(&mut unsent);
            let heard_ns = now_ns;
            self.connections.push(Connection { stream, session, unread, unsent, heard_ns });
        }
    }

    fn serve(&mut self, index: usize) {
        let Err(reason) = self.connections[index].serve(&mut self.service) else { return };
        reason.into_iter().for_each(|event| self.service.note(event));
        self.connections.swap_remove(index);
    }
}

impl<T> Connection<T> {
    /// Reads available bytes, answers the complete requests in them, sends as much as the peer
    /// takes.
    fn serve(&mut self, service: &mut impl Service<Session = T>) -> Result<(), CloseReason> {
        let mut chunk = [0; 4096];
        let closed = match self.stream.read(&mut chunk) {
            Ok(count) => {
                self.unread.extend_from_slice(&chunk[..count]);
                count == 0
            }
            Err(error) => !is_transient(&error),
        };
        let answered = self.answer(service);
        // The reason for closing is sent first, as far as the peer takes it.
        self.send()?;
        self.check_unsent()?;
        answered?;
        if closed { Err(None) } else { Ok(()) }
    }

    fn answer(&mut self, service: &mut impl Service<Session = T>) -> Result<(), CloseReason> {
        loop {
            let now_ns = monotonic_ns();
            let Self { session, unread, unsent, .. } = self;
            match service.answer(session, unread, unsent, now_ns) {
                Ok(false) => return Ok(()),
                Ok(true) => self.heard_ns = now_ns,
                Err(Malformed) => return Err(Some(TcpEvent::Malformed)),
            }
            if self.unsent.len() > UNSENT_BYTES_MAX {
                // Many requests at once are allowed for a peer that reads.
                self.send()?;
            }
            self.check_unsent()?;
        }
    }

    /// Not only answers wait: gRPC has frames that are to be acknowledged.
    fn check_unsent(&self) -> Result<(), CloseReason> {
        let is_stuck = self.unsent.len() > UNSENT_BYTES_MAX;
        if is_stuck { Err(Some(TcpEvent::Refused)) } else { Ok(()) }
    }

    fn send(&mut self) -> Result<(), CloseReason> {
        while !self.unsent.is_empty() {
            match self.stream.write(&self.unsent) {
                Ok(count) => drop(self.unsent.drain(..count)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if is_transient(&error) => {}
                Err(_) => return Err(None),
            }
        }
        Ok(())
    }
}

fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
