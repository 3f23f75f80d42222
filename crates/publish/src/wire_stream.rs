//! A TCP connection with buffers of fixed size, which never waits once it is open.

use crate::OutletError;
use std::io::{self, Read, Write};
use std::net::{Ipv6Addr, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

/// The longest time to connect, and to wait for the answer to the first packets.
pub(crate) const OPEN_LIMIT: Duration = Duration::from_secs(2);
/// The longest time without an answer to what was sent; then the connection counts as gone.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);
/// Bytes to be sent, beside a message that is longer.
const OUT_BYTES: usize = 256 << 10;
/// Received bytes that were not parsed yet.
const IN_BYTES: usize = 64 << 10;
/// Reads of one call: who sends without end does not keep the courier from its other work.
const READS_MAX: usize = 16;
/// Bytes of answers that may wait to be sent: more wait only if the other side asks and does not
/// read.
const ANSWERS_BYTES_MAX: usize = 64 << 10;

/// What was received, for a parser.
pub(crate) struct Received<'a> {
    /// The bytes.
    pub bytes: &'a [u8],
    /// How many of them the parser has used; they count as used even if it then fails.
    pub used: usize,
    /// Where it puts its answers.
    pub answers: &'a mut Vec<u8>,
}

pub(crate) struct WireStream {
    stream: TcpStream,
    out: Vec<u8>,
    /// Bytes of `out` that were sent.
    sent: usize,
    input: Vec<u8>,
    received: usize,
    /// Bytes of `out` that are answers.
    answers: usize,
    /// When the other side last answered or took bytes, or nothing was expected.
    heard: Instant,
    /// Why the connection is at its end, once it is.
    failure: Option<String>,
}

/// Checks that `address` is a host and a port, which need not exist.
pub(crate) fn check_address(address: &str) -> Result<(), OutletError> {
    let is_host = |host: &str| match host.strip_prefix('[').and_then(|host| host.strip_suffix(']'))
    {
        Some(host) => host.parse::<Ipv6Addr>().is_ok(),
        None => {
            let is_wrong = |c: char| c.is_whitespace() || "/:[]@".contains(c);
            !host.is_empty() && !host.contains(is_wrong)
        }
    };
    let is_port = |port: &str| {
        port.bytes().all(|byte| byte.is_ascii_digit())
            && port.parse::<u16>().is_ok_and(|port| port > 0)
    };
    match address.rsplit_once(':') {
        Some((host, port)) if is_host(host) && is_port(port) => Ok(()),
        _ => Err(OutletError(format!(
            "`{address}` is not the address of a broker: expected HOST:PORT without nats:// or \
             mqtt://, such as 192.168.20.3:4222 or [fd00::3]:4222"
        ))),
    }
}

/// Checks that a password has its user: without one it would not be sent.
pub(crate) fn check_login(user: &str, password: &str) -> Result<(), OutletError> {
    if user.is_empty() && !password.is_empty() {
        let text = "a password without a user is not sent: give the user, too, or leave it out";
        return Err(OutletError(text.to_owned()));
    }
    Ok(())
}

impl WireStream {
    /// Connects to `address`, HOST:PORT.
    pub fn connect(address: &str) -> Result<Self, OutletError> {
        let cannot = |error: &dyn std::fmt::Display| {
            OutletError(format!("cannot connect to {address}: {error}"))
        };
        let found = address.to_socket_addrs().map_err(|error| cannot(&error))?;
        let mut last = cannot(&"it has no address");
        for one in found {
            match TcpStream::connect_timeout(&one, OPEN_LIMIT) {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    stream.set_nonblocking(true)?;
                    return Ok(Self {
                        stream,
                        out: Vec::with_capacity(OUT_BYTES),
                        sent: 0,
                        input: vec![0; IN_BYTES],
                        received: 0,
                        answers: 0,
                        heard: Instant::now(),
                        failure: None,
                    });
                }
                Err(error) => last = cannot(&error),
            }
        }
        Err(last)
    }

    /// Whether `bytes` can be added. A longer message than the buffer goes alone.
    pub fn has_room(&self, bytes: usize) -> bool {
        self.out.is_empty() || self.out.len() + bytes <= OUT_BYTES
    }

    /// Adds bytes to be sent.
    pub fn put(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// Sends what the kernel takes now.
    pub fn flush(&mut self) -> Result<(), OutletError> {
        while self.sent < self.out.len() {
            match self.stream.write(&self.out[self.sent..]) {
                Ok(0) => return Err(OutletError("the connection is closed".to_owned())),
                Ok(bytes) => {
                    self.sent += bytes;
                    self.heard = Instant::now();
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        if self.sent == self.out.len() {
            self.out.clear();
            (self.sent, self.answers) = (0, 0);
        }
        Ok(())
    }

    /// The bytes that the kernel has not taken.
    pub fn unsent(&self) -> usize {
        self.out.len() - self.sent
    }

    /// Receives what is there, at most a fixed number of bytes, and gives it to `parse`, which
    /// returns whether this call is to end. `awaits`: whether an answer is due. After an error each
    /// further call returns the same.
    pub fn receive(
        &mut self,
        now: Instant,
        awaits: bool,
        mut parse: impl FnMut(&mut Received<'_>) -> Result<bool, OutletError>,
    ) -> Result<(), OutletError> {
        if self.failure.is_none() {
            let result = self.receive_some(now, awaits, &mut parse);
            self.failure = result.err().map(|error| error.0);
        }
        self.failure.clone().map_or(Ok(()), |text| Err(OutletError(text)))
    }

    fn receive_some(
        &mut self,
        now: Instant,
        awaits: bool,
        parse: &mut dyn FnMut(&mut Received<'_>) -> Result<bool, OutletError>,
    ) -> Result<(), OutletError> {
        if !awaits {
            self.heard = now;
        }
        // What an earlier call left.
        if self.received > 0 && self.parse(parse)? {
            return Ok(());
        }
        for _ in 0..READS_MAX {
            match self.stream.read(&mut self.input[self.received..]) {
                Ok(0) => {
                    return Err(OutletError("the other side closed the connection".to_owned()));
                }
                Ok(bytes) => self.received += bytes,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            }
            self.heard = now;
            if self.parse(parse)? {
                break;
            }
        }
        if now.saturating_duration_since(self.heard) > ANSWER_LIMIT {
            let limit = ANSWER_LIMIT.as_secs();
            return Err(OutletError(format!("the other side has not answered for {limit} s")));
        }
        Ok(())
    }

    /// Gives the received bytes to `parse`, and removes those that it used.
    fn parse(
        &mut self,
        parse: &mut dyn FnMut(&mut Received<'_>) -> Result<bool, OutletError>,
    ) -> Result<bool, OutletError> {
        let before = self.out.len();
        let bytes = &self.input[..self.received];
        let mut received = Received { bytes, used: 0, answers: &mut self.out };
        let result = parse(&mut received);
        let used = received.used;
        self.input.copy_within(used..self.received, 0);
        self.received -= used;
        let is_end = result?;
        self.answers += self.out.len() - before;
        if self.answers > ANSWERS_BYTES_MAX {
            let text = "the other side asks again and again, and does not read the answers";
            return Err(OutletError(text.to_owned()));
        }
        if self.received == self.input.len() {
            return Err(OutletError("the other side sent a line without an end".to_owned()));
        }
        Ok(is_end)
    }

    /// Exchanges bytes until `parse` says that it is done, or [`OPEN_LIMIT`] has passed.
    pub fn handshake(
        &mut self,
        mut parse: impl FnMut(&mut Received<'_>) -> Result<bool, OutletError>,
    ) -> Result<(), OutletError> {
        let end = Instant::now() + OPEN_LIMIT;
        let mut done = false;
        while !done {
            self.flush()?;
            self.receive(Instant::now(), true, |received| {
                done = parse(received)?;
                Ok(done)
            })?;
            if !done && Instant::now() > end {
                let limit = OPEN_LIMIT.as_secs();
                return Err(OutletError(format!(
                    "the broker accepted the connection and did not answer within {limit} s"
                )));
            }
            if !done {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        self.flush()
    }

    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_can_never_work_is_refused() {
        for address in ["h:1", "broker.example:4222", "10.0.0.2:65535", "[::1]:4222", "a_b-c:1"] {
            check_address(address).unwrap();
        }
        for address in [
            "",
            ":",
            "h",
            "h:",
            ":1",
            "h:0",
            "h:65536",
            "h:+1",
            "h:-1",
            "h: 1",
            " h:1",
            "h:1 ",
            "a b:1",
            "::1",
            "fd00::3:4222",
            "[::1]",
            "[::1]:",
            "[h]:1",
            "[::1:4",
            "::1]:4",
            "nats://10.0.0.2:4222",
            "mqtt://h:1883",
            "h:1/",
            "h/a:1",
            "u@h:1",
            "h:1,g:1",
        ] {
            let told = check_address(address).unwrap_err().to_string();
            let start = format!("`{address}` is not the address of a broker: expected HOST:PORT ");
            assert!(told.starts_with(&start), "{told}");
            assert!(told.contains("without nats:// or mqtt://"), "{told}");
        }
    }
}
