//! One WebSocket client: what it wants, and what waits for it.

use crate::feed::StreamFeed;
use crate::frame::encode;
use crate::message::{MESSAGE_BYTES_MAX, ServerMessage, Wish};
use crate::refusal::Refusal;
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tungstenite::{Bytes, Error, Message, WebSocket};

/// A client that takes or says nothing for so long is gone.
pub(crate) const ASLEEP_AFTER: Duration = Duration::from_secs(60);
/// Interval of pings.
const PING_EVERY: Duration = Duration::from_secs(15);
/// For how long a close is waited for.
const CLOSE_WITHIN: Duration = Duration::from_secs(1);
/// Texts that wait, at most: hello, events and answers.
const TEXTS_MAX: usize = 64;
/// Messages of no use before the connection ends.
const STRIKES_MAX: u32 = 20;
/// Messages that are read in one turn.
const TURN: usize = 16;

/// A subscription.
#[derive(Clone, Debug)]
pub(crate) struct Subscription {
    pub stream: u16,
    pub wish: Wish,
    pub due: Instant,
    seq: u32,
    last_end: Option<u64>,
}

/// A client's state.
pub(crate) struct Session {
    pub id: u64,
    socket: WebSocket<TcpStream>,
    /// Whether bytes wait for room in the socket.
    pending: bool,
    texts: VecDeque<String>,
    status: Option<String>,
    lines: VecDeque<(u16, Vec<u8>)>,
    pub subscriptions: Vec<Subscription>,
    pub next_event: u64,
    pub hello_version: Option<u64>,
    dropped: u32,
    strikes: u32,
    moved: Instant,
    heard: Instant,
    pinged: Instant,
    closing: Option<Instant>,
    pub is_over: bool,
}

/// What a turn has brought.
#[derive(Debug, Default)]
pub(crate) struct SessionCounts {
    pub sent: u64,
    pub dropped: u64,
}

impl Session {
    /// Begins after a handshake; `rest` came behind its head.
    pub fn new(id: u64, stream: TcpStream, rest: Vec<u8>, now: Instant) -> Self {
        let socket = WebSocket::from_partially_read(stream, rest, Role::Server, Some(config()));
        Self {
            id,
            socket,
            pending: false,
            texts: VecDeque::new(),
            status: None,
            lines: VecDeque::new(),
            subscriptions: Vec::new(),
            next_event: 0,
            hello_version: None,
            dropped: 0,
            strikes: 0,
            moved: now,
            heard: now,
            pinged: now,
            closing: None,
            is_over: false,
        }
    }

    pub fn socket(&self) -> &TcpStream {
        self.socket.get_ref()
    }

    /// Whether it waits for room in the socket.
    pub fn is_pending(&self) -> bool {
        self.pending
    }

    /// Reads what has come; returns texts, or why the connection ends.
    pub fn read(&mut self, now: Instant) -> Result<Vec<String>, Refusal> {
        let mut texts = Vec::new();
        if self.closing.is_some() {
            self.discard();
            return Ok(texts);
        }
        // The rest is read in the next turn: others want theirs, too.
        for _ in 0..TURN {
            match self.socket.read() {
                Ok(message) => {
                    self.heard = now;
                    match message {
                        Message::Text(text) => texts.push(text.as_str().to_owned()),
                        Message::Binary(_) => {
                            return Err(self.close(Refusal::Binary, CloseCode::Unsupported, now));
                        }
                        _ => (),
                    }
                }
                Err(Error::Io(error)) if error.kind() == ErrorKind::WouldBlock => break,
                Err(Error::ConnectionClosed | Error::AlreadyClosed | Error::Io(_)) => {
                    self.is_over = true;
                    break;
                }
                Err(Error::Capacity(_)) => {
                    return Err(self.close(Refusal::Long, CloseCode::Size, now));
                }
                Err(Error::Protocol(
                    tungstenite::error::ProtocolError::ResetWithoutClosingHandshake,
                )) => {
                    self.is_over = true;
                    break;
                }
                Err(_) => return Err(self.close(Refusal::Frame, CloseCode::Protocol, now)),
            }
        }
        // Answers of the library, such as a pong, wait in its buffer.
        self.pending = true;
        Ok(texts)
    }

    /// Reads past the library, which must not read after an error, until the client has closed.
    fn discard(&mut self) {
        let mut ignored = [0; MESSAGE_BYTES_MAX];
        match self.socket.get_mut().read(&mut ignored) {
            Ok(0) => self.is_over = true,
            Err(error) if error.kind() != ErrorKind::WouldBlock => self.is_over = true,
            _ => (),
        }
    }

    /// Tells that a message was of no use.
    pub fn complain(&mut self, text: &str, now: Instant) -> Option<Refusal> {
        self.strikes += 1;
        self.say(ServerMessage::Error { text }.document().to_string());
        let over = self.strikes >= STRIKES_MAX;
        over.then(|| self.close(Refusal::Message, CloseCode::Policy, now))
    }

    fn close(&mut self, refusal: Refusal, code: CloseCode, now: Instant) -> Refusal {
        if self.closing.is_none() {
            self.closing = Some(now);
            let reason = refusal.text().into();
            // What cannot be said is not said.
            let _ = self.socket.close(Some(CloseFrame { code, reason }));
            self.pending = true;
        }
        refusal
    }

    /// Ends the connection with a friendly word.
    pub fn end(&mut self, now: Instant) {
        if self.closing.is_none() {
            self.closing = Some(now);
            let reason = "the command has ended".into();
            let _ = self.socket.close(Some(CloseFrame { code: CloseCode::Away, reason }));
            self.pending = true;
        }
    }

    /// Queues a text; a client that does not take them is gone.
    pub fn say(&mut self, text: String) {
        if self.texts.len() == TEXTS_MAX {
            self.is_over = true;
        } else {
            self.texts.push_back(text);
        }
    }

    /// Puts the newest status in the place of an older one.
    pub fn tell_status(&mut self, text: String) {
        self.status = Some(text);
    }

    /// Adds or replaces a subscription; at once due.
    pub fn subscribe(&mut self, stream: u16, wish: Wish, now: Instant) {
        self.unsubscribe(stream);
        let subscription = Subscription { stream, wish, due: now, seq: 0, last_end: None };
        self.subscriptions.push(subscription);
    }

    pub fn unsubscribe(&mut self, stream: u16) {
        self.subscriptions.retain(|one| one.stream != stream);
        self.lines.retain(|line| line.0 != stream);
    }

    /// Takes lines of the stream's present samples, where they are due.
    pub fn take_lines(&mut self, feed: &mut StreamFeed, now: Instant) -> SessionCounts {
        let mut counts = SessionCounts::default();
        if self.closing.is_some() {
            return counts;
        }
        for one in &mut self.subscriptions {
            let interval = Duration::from_secs_f64(1.0 / one.wish.lines_per_s);
            if one.stream != feed.info.stream || now + interval / 8 < one.due {
                continue;
            }
            let Some((mut header, values)) = feed.line(&one.wish, one.last_end) else { continue };
            // The mean rate is as wished; what is far behind does not catch up.
            one.due = (one.due + interval).max(now + interval / 2);
            one.last_end = Some(header.item + one.wish.items() as u64);
            header.seq = one.seq;
            one.seq = one.seq.wrapping_add(1);
            if let Some(older) = self.lines.iter().position(|line| line.0 == one.stream) {
                self.lines.remove(older);
                self.dropped = self.dropped.wrapping_add(1);
                counts.dropped += 1;
            }
            header.dropped = self.dropped;
            self.lines.push_back((one.stream, encode(&header, one.wish.format, &values)));
            counts.sent += 1;
        }
        counts.sent -= counts.dropped.min(counts.sent);
        counts
    }

    /// Writes what waits, as far as the socket takes it; an error says why the connection ends.
    pub fn pump(&mut self, now: Instant) -> Result<(), Refusal> {
        loop {
            if self.pending {
                match self.socket.flush() {
                    Ok(()) => {
                        (self.pending, self.moved) = (false, now);
                        if self.closing.is_some() {
                            // A client that has closed needs no end.
                            let _ = self.socket.get_ref().shutdown(Shutdown::Write);
                        }
                    }
                    Err(Error::Io(error)) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(_) => {
                        self.is_over = true;
                        return Ok(());
                    }
                }
            }
            if self.closing.is_some() {
                break;
            }
            let Some(message) = self.next(now) else { break };
            self.pending = true;
            match self.socket.write(message) {
                Ok(()) => (),
                Err(Error::Io(error)) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => {
                    self.is_over = true;
                    return Ok(());
                }
            }
        }
        if let Some(since) = self.closing {
            self.is_over |= now.duration_since(since) > CLOSE_WITHIN;
            return Ok(());
        }
        let quiet = |since: Instant| now.duration_since(since) > ASLEEP_AFTER;
        if (self.pending && quiet(self.moved)) || quiet(self.heard) {
            self.is_over = true;
            return Err(Refusal::Asleep);
        }
        Ok(())
    }

    /// What goes next: answers, then the status, then lines.
    fn next(&mut self, now: Instant) -> Option<Message> {
        if now.duration_since(self.pinged) > PING_EVERY {
            self.pinged = now;
            return Some(Message::Ping(Bytes::new()));
        }
        let text = self.texts.pop_front().or_else(|| self.status.take());
        if let Some(text) = text {
            return Some(Message::text(text));
        }
        self.lines.pop_front().map(|line| Message::binary(line.1))
    }
}

/// The limits of messages.
pub(crate) fn config() -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(MESSAGE_BYTES_MAX)
        .write_buffer_size(0)
        .max_message_size(Some(MESSAGE_BYTES_MAX))
        .max_frame_size(Some(MESSAGE_BYTES_MAX))
}

/// Makes a connection ready for a session.
pub(crate) fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nonblocking(true)?;
    // A line that is late is worth less than the next one.
    stream.set_nodelay(true)?;
    socket2::SockRef::from(stream).set_send_buffer_size(128 << 10)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::time::Instant;

    /// A session, and its client, which has asked for nothing.
    fn session(now: Instant) -> (Session, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (stream, _) = listener.accept().unwrap();
        prepare(&stream).unwrap();
        (Session::new(1, stream, Vec::new(), now), client)
    }

    #[test]
    fn a_client_that_takes_nothing_is_asleep_after_a_minute_and_not_before() {
        let began = Instant::now();
        let at = |seconds| began + Duration::from_secs(seconds);
        let (mut session, client) = session(began);
        // More than both sockets hold.
        while !session.is_pending() || session.status.is_none() {
            session.tell_status("x".repeat(1 << 20));
            session.pump(began).unwrap();
        }
        // It is heard all the time, but takes nothing.
        for seconds in [20, 40, 59] {
            session.heard = at(seconds);
            session.pump(at(seconds)).unwrap();
            assert!(!session.is_over, "{seconds} s");
        }
        session.heard = at(61);
        assert!(matches!(session.pump(at(61)), Err(Refusal::Asleep)));
        assert!(session.is_over);
        drop(client);
    }

    #[test]
    fn a_client_that_says_nothing_is_asleep_and_one_that_answers_pings_is_not() {
        let began = Instant::now();
        let at = |seconds| began + Duration::from_secs(seconds);
        let (mut silent, _client) = session(began);
        let (mut answering, client) = session(began);
        let mut client = WebSocket::from_raw_socket(client, Role::Client, None);
        for seconds in (0..=60).step_by(10) {
            silent.pump(at(seconds)).unwrap();
            answering.pump(at(seconds)).unwrap();
            // Its library answers the ping of each 15 s while it reads.
            if matches!(seconds, 20 | 40 | 60) {
                assert!(matches!(client.read().unwrap(), Message::Ping(_)));
                client.flush().unwrap();
                let before = answering.heard;
                while answering.heard == before {
                    answering.read(at(seconds)).unwrap();
                }
            }
        }
        assert!(matches!(silent.pump(at(61)), Err(Refusal::Asleep)));
        answering.pump(at(61)).unwrap();
        answering.pump(at(119)).unwrap();
        assert!(!answering.is_over);
        assert!(matches!(answering.pump(at(121)), Err(Refusal::Asleep)));
    }
}
