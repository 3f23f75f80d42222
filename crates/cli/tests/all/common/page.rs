//! A dashboard, as a browser and Prometheus see it.

use super::Running;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;
use tungstenite::protocol::Role;
use tungstenite::{Message, WebSocket};

/// A dashboard at its address.
pub struct Page(SocketAddr);

impl Page {
    /// The dashboard that a command announces.
    pub fn of(running: &Running) -> Self {
        let line = running.line("dashboard http://");
        Self(line.trim_start_matches("dashboard http://").trim_end_matches('/').parse().unwrap())
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.0).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
        stream
    }

    /// The body of a page.
    pub fn get(&self, path: &str) -> String {
        let mut stream = self.connect();
        let host = self.0;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        answer.split_once("\r\n\r\n").unwrap().1.to_owned()
    }

    /// A document of the server.
    pub fn document(&self, path: &str) -> Value {
        serde_json::from_str(&self.get(path)).unwrap()
    }

    /// Sets a control, and returns the reply.
    pub fn set(&self, target: &str, name: &str, value: Value) -> Value {
        let mut socket = self.socket();
        say(&mut socket, &control(target, name, value));
        text(&mut socket, "reply")
    }

    /// Opens its WebSocket.
    pub fn socket(&self) -> WebSocket<TcpStream> {
        let mut stream = self.connect();
        let host = self.0;
        let head = format!(
            "GET /ws HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        let (mut answer, mut byte) = (Vec::new(), [0]);
        while !answer.ends_with(b"\r\n\r\n") {
            stream.read_exact(&mut byte).unwrap();
            answer.push(byte[0]);
        }
        assert!(answer.starts_with(b"HTTP/1.1 101 "));
        WebSocket::from_raw_socket(stream, Role::Client, None)
    }
}

/// The next text message of a type.
pub fn text(socket: &mut WebSocket<TcpStream>, kind: &str) -> Value {
    loop {
        if let Message::Text(text) = socket.read().unwrap() {
            let value: Value = serde_json::from_str(text.as_str()).unwrap();
            if value["type"] == kind {
                return value;
            }
        }
    }
}

/// Sends a message.
pub fn say(socket: &mut WebSocket<TcpStream>, message: &Value) {
    socket.send(Message::text(message.to_string())).unwrap();
}

/// A wish of a client.
pub fn control(target: &str, name: &str, value: Value) -> Value {
    json!({"type": "control", "id": 1, "target": target, "name": name, "value": value})
}

/// Whether Debian's promtool finds nothing to say, where it is installed.
pub fn promtool_is_content(metrics: &str) {
    let tool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut tool) = tool else {
        println!("skipped: the names of metrics: no promtool (Debian package prometheus)");
        return;
    };
    tool.stdin.take().unwrap().write_all(metrics.as_bytes()).unwrap();
    let output = tool.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}");
}
