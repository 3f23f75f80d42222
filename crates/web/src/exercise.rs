//! What handles bytes from clients, for the fuzzer and a test.

use crate::guard::Guard;
use crate::http::RequestHead;
use crate::message::{ClientMessage, ValueFormat, Wish};
use crate::session::config;
use std::io::{Cursor, Read, Write};
use tungstenite::protocol::Role;
use tungstenite::{Message, WebSocket};

/// Bytes that come in, and nothing that keeps what goes out.
struct Incoming<'a>(Cursor<&'a [u8]>);

impl Read for Incoming<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        self.0.read(bytes)
    }
}

impl Write for Incoming<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Takes bytes as a request, as a message and as frames.
///
/// # Panics
/// If a rule of the server is broken.
pub fn bytes(bytes: &[u8]) {
    if let Ok(Some((head, length))) = RequestHead::parse(bytes) {
        assert!(length <= bytes.len());
        let guard = Guard::new(false).expect("a guard");
        if guard.check_source(&head).is_ok() {
            assert!(!head.host.is_empty());
        }
    }
    message(&String::from_utf8_lossy(bytes));
    let stream = Incoming(Cursor::new(bytes));
    let mut socket = WebSocket::from_raw_socket(stream, Role::Server, Some(config()));
    // As a session does: never after an error.
    while let Ok(received) = socket.read() {
        if let Message::Text(text) = received {
            message(text.as_str());
        }
    }
}

fn message(text: &str) {
    let Ok(message) = ClientMessage::parse(text) else { return };
    if let ClientMessage::Subscribe { bins, points, lines_per_s, average, .. } = message {
        if let Ok(wish) = Wish::of_lines(bins, average, lines_per_s, ValueFormat::U8) {
            assert!((64..=16 * 16384).contains(&wish.items()));
        }
        if let Ok(wish) = Wish::of_points(points, lines_per_s) {
            assert!((16..=4096).contains(&wish.items()));
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn bytes_of_all_kinds_are_taken() {
        let frame = b"\x81\x82\x00\x00\x00\x00{}";
        let request = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
        let wish = b"{\"type\":\"subscribe\",\"stream\":0,\"bins\":64}";
        let mut all = vec![Vec::new(), frame.to_vec(), request.to_vec(), wish.to_vec()];
        for length in 0..200 {
            all.push((0..length).map(|n| (n * 37 + length * 11) as u8).collect());
        }
        all.iter().for_each(|bytes| super::bytes(bytes));
    }
}
