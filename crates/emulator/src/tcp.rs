//! A bounded server of small requests over TCP: one thread, a bounded number of connections.

use crate::time::monotonic_ns;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};

/// UHD opens two connections; the rest is for other tools and for peers that never speak.
pub(crate) const CONNECTIONS_MAX: usize = 16;
/// Unsent answers beyond this many bytes: the peer does not read, and is dropped.
const UNSENT_BYTES_MAX: usize = 64 * 1024;
/// A connection without a valid request for this long makes room for a newcomer, nanoseconds.
const IDLE_NS: u64 = 10_000_000_000;
/// How often a waiting server looks at its stop flag and its service.
const TICK: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// What is served.
pub(crate) trait Service {
    /// Takes the request at the head of `unread` out and appends its answer to `unsent`; false when
    /// there is no complete one.
    ///
    /// # Errors
    /// [`Malformed`]: the connection is closed behind what is in `unsent`.
    fn answer(
        &mut self,
        unread: &mut Vec<u8>,
        unsent: &mut Vec<u8>,
        now_ns: u64,
    ) -> Result<bool, Malformed>;

    /// Does what is due; false while every connection is to be closed and none taken.
    fn step(&mut self, now_ns: u64) -> bool;

    /// Counts.
    fn note(&self, event: TcpEvent);
}

/// Bytes that are no request and never will be.
#[derive(Debug)]
pub(crate) struct Malformed;

/// What a server counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TcpEvent {
    /// A connection was accepted.
    Accepted,
    /// A connection was closed because its bytes are no request.
    Malformed,
    /// A connection was closed or refused because there are too many, or the peer does not read.
    Refused,
}

/// The server; [`Server::run`] is the body of its thread.
pub(crate) struct Server<S> {
    listener: TcpListener,
    connections: Vec<Connection>,
    service: S,
}

struct Connection {
    stream: TcpStream,
    unread: Vec<u8>,
    unsent: Vec<u8>,
    heard_ns: u64,
}

/// Why a connection ends.
enum CloseReason {
    /// The peer closed it, or the network did.
    Closed,
    Malformed,
    /// The peer does not read its answers.
    Stuck,
}

impl<S: Service> Server<S> {
    /// A server on `listener`, which it makes non-blocking.
    pub fn new(listener: TcpListener, service: S) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        Ok(Self { listener, connections: Vec::new(), service })
    }

    /// Serves until `stop` is set.
    pub fn run(mut self, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
            let ready = self.wait();
            if !self.service.step(monotonic_ns()) {
                self.connections.clear();
                // Whoever connects is let in by the system, and finds the door shut.
                drop(self.listener.accept());
                continue;
            }
            // Connections first: their indices are those of the poll.
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

    /// Waits for the listener and the connections, in this order; which of them are ready.
    fn wait(&self) -> Vec<bool> {
        let mut polled = vec![PollFd::new(&self.listener, PollFlags::IN)];
        polled.extend(self.connections.iter().map(|connection| {
            let out =
                if connection.unsent.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
            PollFd::new(&connection.stream, PollFlags::IN | out)
        }));
        // An interrupted poll is a poll in which nothing was ready.
        let _ = poll(&mut polled, Some(&TICK));
        polled.iter().map(|fd| !fd.revents().is_empty()).collect()
    }

    fn accept(&mut self) {
        let Ok((stream, _)) = self.listener.accept() else { return };
        let now_ns = monotonic_ns();
        self.service.note(TcpEvent::Accepted);
        if self.connections.len() == CONNECTIONS_MAX {
            self.service.note(TcpEvent::Refused);
            let idle = |c: &Connection| now_ns.saturating_sub(c.heard_ns) > IDLE_NS;
            match self.connections.iter().position(idle) {
                Some(index) => drop(self.connections.swap_remove(index)),
                None => return,
            }
        }
        if stream.set_nonblocking(true).is_ok() {
            let _ = stream.set_nodelay(true);
            let (unread, unsent) = (Vec::new(), Vec::new());
            self.connections.push(Connection { stream, unread, unsent, heard_ns: now_ns });
        }
    }

    fn serve(&mut self, index: usize) {
        let Err(end) = self.connections[index].serve(&mut self.service) else { return };
        match end {
            CloseReason::Closed => {}
            CloseReason::Malformed => self.service.note(TcpEvent::Malformed),
            CloseReason::Stuck => self.service.note(TcpEvent::Refused),
        }
        self.connections.swap_remove(index);
    }
}

impl Connection {
    /// Reads what is there, answers the complete requests in it, sends what the peer takes.
    fn serve(&mut self, service: &mut impl Service) -> Result<(), CloseReason> {
        let mut chunk = [0; 4096];
        let closed = match self.stream.read(&mut chunk) {
            Ok(count) => {
                self.unread.extend_from_slice(&chunk[..count]);
                count == 0
            }
            Err(error) => !is_transient(&error),
        };
        let answered = self.answer(service);
        // A reason to hang up is given first, as far as the peer takes it.
        self.send()?;
        answered?;
        if closed { Err(CloseReason::Closed) } else { Ok(()) }
    }

    fn answer(&mut self, service: &mut impl Service) -> Result<(), CloseReason> {
        loop {
            let now_ns = monotonic_ns();
            match service.answer(&mut self.unread, &mut self.unsent, now_ns) {
                Ok(false) => return Ok(()),
                Ok(true) => self.heard_ns = now_ns,
                Err(Malformed) => return Err(CloseReason::Malformed),
            }
            if self.unsent.len() > UNSENT_BYTES_MAX {
                // Many requests at once are no fault of a peer that reads.
                self.send()?;
            }
            if self.unsent.len() > UNSENT_BYTES_MAX {
                return Err(CloseReason::Stuck);
            }
        }
    }

    fn send(&mut self) -> Result<(), CloseReason> {
        while !self.unsent.is_empty() {
            match self.stream.write(&self.unsent) {
                Ok(count) => drop(self.unsent.drain(..count)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if is_transient(&error) => {}
                Err(_) => return Err(CloseReason::Closed),
            }
        }
        Ok(())
    }
}

fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
