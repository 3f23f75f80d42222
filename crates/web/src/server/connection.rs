//! A connection: a head that comes, an answer that goes, or a session.

use crate::http::{HEAD_BYTES_MAX, RequestHead, refusal_answer};
use crate::refusal::Refusal;
use crate::session::Session;
use rustix::event::PollFlags;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

/// Time for a whole head.
const HEAD_WITHIN: Duration = Duration::from_secs(5);
/// Time for an answer to be taken.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// Time for a client to close after its answer.
const DRAIN_WITHIN: Duration = Duration::from_secs(1);

/// A connection by its state.
pub(super) enum Connection {
    /// A head comes.
    Head { stream: TcpStream, bytes: Vec<u8>, since: Instant },
    /// An answer goes. Its client is known if the answer has data.
    Answer { stream: TcpStream, bytes: Vec<u8>, since: Instant, is_known: bool },
    /// The answer is gone; what the client still sends is read and forgotten, because unread bytes
    /// would reset the connection before the client has the answer.
    Drain { stream: TcpStream, since: Instant, is_known: bool },
    /// Messages.
    Session(Box<Session>),
    /// Nothing any more.
    Over,
}

/// What a connection asks for.
pub(super) enum Step {
    /// Nothing.
    Wait,
    /// An answer to this request.
    Request(Box<RequestHead>),
    /// To be told why it is refused.
    Refuse(Refusal),
    /// It has been told; the reason counts.
    Count(Refusal),
    /// These messages to be obeyed.
    Texts(Vec<String>),
}

impl Connection {
    pub fn new(stream: TcpStream, now: Instant) -> Self {
        Self::Head { stream, bytes: Vec::new(), since: now }
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Head { stream, .. }
            | Self::Answer { stream, .. }
            | Self::Drain { stream, .. } => stream.as_fd(),
            Self::Session(session) => session.socket().as_fd(),
            Self::Over => unreachable!("removed as soon as it is over"),
        }
    }

    /// Whether its client has shown that it may see data.
    pub fn is_known(&self) -> bool {
        match self {
            Self::Answer { is_known, .. } | Self::Drain { is_known, .. } => *is_known,
            Self::Session(_) => true,
            Self::Head { .. } | Self::Over => false,
        }
    }

    /// What to wait for: only what is done in this state, or the wait would end at once.
    pub fn wanted(&self) -> PollFlags {
        match self {
            Self::Head { .. } | Self::Drain { .. } => PollFlags::IN,
            Self::Answer { .. } => PollFlags::OUT,
            Self::Session(session) if session.is_pending() => PollFlags::IN | PollFlags::OUT,
            Self::Session(_) => PollFlags::IN,
            Self::Over => PollFlags::empty(),
        }
    }

    pub fn is_over(&self) -> bool {
        match self {
            Self::Over => true,
            Self::Session(session) => session.is_over,
            _ => false,
        }
    }

    pub fn session(&self) -> Option<&Session> {
        match self {
            Self::Session(session) if !session.is_over => Some(session),
            _ => None,
        }
    }

    pub fn session_mut(&mut self) -> Option<&mut Session> {
        match self {
            Self::Session(session) if !session.is_over => Some(session),
            _ => None,
        }
    }

    /// Reads what has come.
    pub fn step(&mut self, now: Instant) -> Step {
        match self {
            Self::Head { stream, bytes, since } => {
                let is_open = read(stream, bytes);
                match RequestHead::parse(bytes) {
                    Ok(Some((head, length))) => {
                        bytes.drain(..length);
                        return Step::Request(Box::new(head));
                    }
                    Err(refusal) => return Step::Refuse(refusal),
                    Ok(None) if !is_open => *self = Self::Over,
                    Ok(None) if now.duration_since(*since) > HEAD_WITHIN => {
                        return Step::Refuse(Refusal::Slow);
                    }
                    Ok(None) => (),
                }
                Step::Wait
            }
            Self::Drain { stream, since, .. } => {
                let mut ignored = Vec::new();
                if !read(stream, &mut ignored) || now.duration_since(*since) > DRAIN_WITHIN {
                    *self = Self::Over;
                }
                Step::Wait
            }
            Self::Session(session) => match session.read(now) {
                Ok(texts) if texts.is_empty() => Step::Wait,
                Ok(texts) => Step::Texts(texts),
                Err(refusal) => Step::Count(refusal),
            },
            Self::Answer { .. } | Self::Over => Step::Wait,
        }
    }

    pub fn answer(&mut self, bytes: Vec<u8>, is_known: bool, now: Instant) {
        if let Self::Head { stream, .. } = std::mem::replace(self, Self::Over) {
            *self = Self::Answer { stream, bytes, since: now, is_known };
        }
    }

    pub fn refuse(&mut self, refusal: Refusal, now: Instant) {
        self.answer(refusal_answer(refusal), false, now);
    }

    /// Answers a handshake; the session begins behind it.
    pub fn upgrade(&mut self, id: u64, answer: &[u8], now: Instant) {
        if let Self::Head { mut stream, bytes, .. } = std::mem::replace(self, Self::Over) {
            // The first bytes on a connection always have room.
            if matches!(stream.write(answer), Ok(count) if count == answer.len()) {
                *self = Self::Session(Box::new(Session::new(id, stream, bytes, now)));
            }
        }
    }

    /// Writes what waits.
    pub fn pump(&mut self, now: Instant) -> Result<(), Refusal> {
        match self {
            Self::Answer { stream, bytes, since, is_known } => {
                match stream.write(bytes) {
                    Ok(count) => {
                        bytes.drain(..count);
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => (),
                    Err(_) => *since = now - ANSWER_WITHIN * 2,
                }
                if now.duration_since(*since) > ANSWER_WITHIN {
                    *self = Self::Over;
                    return Ok(());
                }
                if bytes.is_empty() {
                    let is_known = *is_known;
                    // A client that has closed needs no end.
                    let _ = stream.shutdown(Shutdown::Write);
                    if let Self::Answer { stream, .. } = std::mem::replace(self, Self::Over) {
                        *self = Self::Drain { stream, since: now, is_known };
                    }
                }
                Ok(())
            }
            Self::Session(session) => session.pump(now),
            _ => Ok(()),
        }
    }
}

/// Appends what has come, a little more than a head at most; false at the end.
fn read(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> bool {
    let mut part = [0; 2048];
    while bytes.len() <= HEAD_BYTES_MAX {
        match stream.read(&mut part) {
            Ok(0) => return false,
            Ok(count) => bytes.extend_from_slice(&part[..count]),
            Err(error) => return error.kind() == ErrorKind::WouldBlock,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, Timespec, poll};
    use std::net::TcpListener;

    #[test]
    fn a_client_that_sends_but_takes_nothing_wakes_nobody() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut stream = listener.accept().unwrap().0;
        stream.set_nonblocking(true).unwrap();
        // Until the window is closed: the client's kernel takes in its own time.
        let half = Some(&Timespec { tv_sec: 0, tv_nsec: 200_000_000 });
        let is_ready = |stream: &TcpStream, wanted| {
            poll(&mut [PollFd::new(stream, wanted)], half).unwrap() > 0
        };
        while is_ready(&stream, PollFlags::OUT) {
            let _ = stream.write(&[0; 1 << 16]);
        }
        client.write_all(b"more").unwrap();
        assert!(is_ready(&stream, PollFlags::IN), "there is something to read");
        let (now, bytes) = (Instant::now(), vec![0]);
        let answer = Connection::Answer { stream, bytes, since: now, is_known: true };
        let mut polled = [PollFd::from_borrowed_fd(answer.fd(), answer.wanted())];
        assert_eq!(poll(&mut polled, half).unwrap(), 0);
    }
}
