//! The TCP side of the management port: one thread, a bounded number of connections.

use super::message::LIMITS;
use super::{Mpm, message};
use crate::counters::Counters;
use crate::time::monotonic_ns;
use millstream_wire::msgpack::{Scan, scan};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// UHD opens two connections; the rest is for other tools and for peers that never speak.
const CONNECTIONS_MAX: usize = 16;
/// Unsent answers beyond this many bytes: the peer does not read, and is dropped.
const UNSENT_BYTES_MAX: usize = 64 * 1024;
/// A connection without a valid call for this long makes room for a newcomer, nanoseconds.
const IDLE_NS: u64 = 10_000_000_000;
/// How often a waiting server looks at its stop flag and the claim.
const TICK: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// The server; [`Server::run`] is the body of its thread.
pub(crate) struct Server {
    listener: TcpListener,
    connections: Vec<Connection>,
    mpm: Mpm,
    counters: Arc<Counters>,
}

struct Connection {
    stream: TcpStream,
    unread: Vec<u8>,
    unsent: Vec<u8>,
    heard_ns: u64,
}

/// Why a connection ends.
enum End {
    /// The peer closed it, or the network did.
    Closed,
    /// The peer does not speak MessagePack-RPC.
    Malformed,
    /// The peer does not read its answers.
    Stuck,
}

impl Server {
    /// A server on `listener`, which it makes non-blocking.
    pub fn new(listener: TcpListener, mpm: Mpm, counters: Arc<Counters>) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        Ok(Self { listener, connections: Vec::new(), mpm, counters })
    }

    /// Serves until `stop` is set.
    pub fn run(mut self, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
            let ready = self.wait();
            if self.mpm.expire_claim(monotonic_ns()) {
                self.counters.rpc_claims_expired.inc();
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
        self.counters.rpc_connections.inc();
        if self.connections.len() == CONNECTIONS_MAX {
            self.counters.rpc_refused.inc();
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
        let connection = &mut self.connections[index];
        let Err(end) = connection.serve(&mut self.mpm, &self.counters) else { return };
        match end {
            End::Closed => {}
            End::Malformed => self.counters.rpc_malformed.inc(),
            End::Stuck => self.counters.rpc_refused.inc(),
        }
        self.connections.swap_remove(index);
    }
}

impl Connection {
    /// Reads what is there, answers the complete calls in it, sends what the peer takes.
    fn serve(&mut self, mpm: &mut Mpm, counters: &Counters) -> Result<(), End> {
        let mut chunk = [0; 4096];
        let closed = match self.stream.read(&mut chunk) {
            Ok(count) => {
                self.unread.extend_from_slice(&chunk[..count]);
                count == 0
            }
            Err(error) => !is_transient(&error),
        };
        while let Scan::Complete(length) =
            scan(&self.unread, &LIMITS).map_err(|_| End::Malformed)?
        {
            let request = message::decode(&self.unread[..length]).ok_or(End::Malformed)?;
            self.unread.drain(..length);
            self.heard_ns = monotonic_ns();
            let answer = mpm.call(&request.method, &request.args, self.heard_ns);
            counters.rpc_calls.inc();
            counters.rpc_call_errors.add(u64::from(answer.is_err()));
            message::encode_reply(&mut self.unsent, request.msgid, answer);
            if self.unsent.len() > UNSENT_BYTES_MAX {
                return Err(End::Stuck);
            }
        }
        while !self.unsent.is_empty() {
            match self.stream.write(&self.unsent) {
                Ok(count) => drop(self.unsent.drain(..count)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if is_transient(&error) => {}
                Err(_) => return Err(End::Closed),
            }
        }
        if closed { Err(End::Closed) } else { Ok(()) }
    }
}

fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;
