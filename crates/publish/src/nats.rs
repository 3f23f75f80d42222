//! Messages to a NATS server.
//!
//! The server handles the operations of a connection in their order, so the answer to a `PING`
//! acknowledges every message before it. A message that the connection's user may not publish is
//! answered with an error, before that answer.

use crate::DropCause;
use crate::outlet::{Outcomes, Outlet, OutletError};
use crate::wire_stream::WireStream;
use millstream_wire::nats::{self, PING, PONG, ServerOp};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::time::Instant;

/// Bytes of the line before a message, beside the subject.
const LINE_BYTES: usize = 64;
/// Batches that wait for their answer; more wait in the queue.
const BATCHES_MAX: usize = 1024;
/// A server's limit when it does not say another: 1 MiB.
const PAYLOAD_BYTES_MAX: u64 = 1 << 20;

/// A subject at a NATS server.
pub struct NatsOutlet {
    server: String,
    subject: String,
    login: NatsLogin,
    line: Vec<u8>,
    connection: Option<NatsConnection>,
}

/// How a client names itself to the server.
#[derive(Clone, Debug, Default)]
pub struct NatsLogin {
    /// User and password; not used when the user is empty.
    pub user: String,
    /// The password.
    pub password: String,
    /// A token; not used when it is empty.
    pub token: String,
}

struct NatsConnection {
    wire: WireStream,
    payload_max: usize,
    /// Messages since the last `PING`.
    fresh: u64,
    /// Messages before each `PING` that was sent and not answered.
    batches: VecDeque<u64>,
    /// Messages of the first batch that were refused.
    refused: u64,
}

impl NatsOutlet {
    /// Creates the outlet; it connects when a sink uses it.
    ///
    /// # Errors
    /// A subject that cannot be published to.
    pub fn new(server: &str, subject: &str, login: NatsLogin) -> Result<Self, OutletError> {
        if !nats::is_subject(subject) {
            return Err(OutletError(format!(
                "`{subject}` is not a subject to publish to: expected words between points, such \
                 as radio.ts, without spaces, * and >"
            )));
        }
        let line = vec![0; LINE_BYTES + subject.len()];
        let (server, subject) = (server.to_owned(), subject.to_owned());
        Ok(Self { server, subject, login, line, connection: None })
    }

    /// Returns the line `CONNECT` for a server that said `info`.
    fn connect_line(&self, info: &Value) -> Result<String, OutletError> {
        if info["tls_required"] == true {
            return Err(OutletError(format!(
                "{} wants TLS, which this sink does not speak: let it publish to a server (leaf \
                 node) on this machine that connects to it",
                self.server
            )));
        }
        let mut connect = json!({
            "verbose": false,
            "pedantic": false,
            "name": "millstream",
            "lang": "rust",
            "version": env!("CARGO_PKG_VERSION"),
            "protocol": 1,
        });
        let NatsLogin { user, password, token } = &self.login;
        if !user.is_empty() {
            connect["user"] = json!(user);
            connect["pass"] = json!(password);
        }
        if !token.is_empty() {
            connect["auth_token"] = json!(token);
        }
        Ok(format!("CONNECT {connect}\r\nPING\r\n"))
    }
}

/// Returns the error for a line of the server that is not one.
fn not_nats(error: millstream_wire::Error) -> OutletError {
    OutletError(format!("the server does not speak NATS: {error}"))
}

fn said(reason: &[u8]) -> OutletError {
    OutletError(format!("the server says {}", String::from_utf8_lossy(reason)))
}

/// Whether an error is about one message only; the others end the connection.
fn is_violation(reason: &[u8]) -> bool {
    let reason = reason.to_ascii_lowercase();
    reason.windows(21).any(|part| part == b"permissions violation")
}

impl Outlet for NatsOutlet {
    fn name(&self) -> String {
        format!("nats {} at {}", self.subject, self.server)
    }

    fn away_cause(&self) -> DropCause {
        DropCause::BrokerAway
    }

    fn open(&mut self) -> Result<(), OutletError> {
        self.connection = None;
        let mut wire = WireStream::connect(&self.server)?;
        let mut payload_max = PAYLOAD_BYTES_MAX;
        wire.handshake(|bytes, out| {
            let mut used = 0;
            while let Some((op, len)) = ServerOp::parse(&bytes[used..]).map_err(not_nats)? {
                used += len;
                match op {
                    ServerOp::Info(text) => {
                        let info: Value = serde_json::from_slice(text).map_err(|error| {
                            OutletError(format!("the server does not speak NATS: {error}"))
                        })?;
                        payload_max = info["max_payload"].as_u64().unwrap_or(payload_max);
                        out.extend_from_slice(self.connect_line(&info)?.as_bytes());
                    }
                    ServerOp::Err(reason) => return Err(said(reason)),
                    ServerOp::Ping => out.extend_from_slice(PONG),
                    ServerOp::Pong => return Ok((used, true)),
                    ServerOp::Ok => {}
                }
            }
            Ok((used, false))
        })?;
        self.connection = Some(NatsConnection {
            wire,
            payload_max: usize::try_from(payload_max).unwrap_or(usize::MAX),
            fresh: 0,
            batches: VecDeque::with_capacity(BATCHES_MAX),
            refused: 0,
        });
        Ok(())
    }

    fn message_bytes_max(&self) -> usize {
        self.connection.as_ref().map_or(usize::MAX, |connection| connection.payload_max)
    }

    fn push(&mut self, message: &[u8]) -> bool {
        let Self { connection: Some(connection), line, subject, .. } = self else { return false };
        let is_full = connection.batches.len() >= BATCHES_MAX;
        if is_full || !connection.wire.has_room(line.len() + message.len() + 2) {
            return false;
        }
        let Ok(head) = nats::emit_publish(subject, message.len(), line) else { return false };
        connection.wire.put(&line[..head]);
        connection.wire.put(message);
        connection.wire.put(b"\r\n");
        connection.fresh += 1;
        true
    }

    fn exchange(&mut self, now: Instant) -> Result<Outcomes, OutletError> {
        let mut progress = Outcomes::default();
        let Some(NatsConnection { wire, fresh, batches, refused, .. }) = &mut self.connection
        else {
            return Ok(progress);
        };
        if *fresh > 0 {
            wire.put(PING);
            batches.push_back(std::mem::take(fresh));
        }
        wire.flush()?;
        let result = wire.receive(now, !batches.is_empty(), |bytes, out| {
            let mut used = 0;
            while let Some((op, len)) = ServerOp::parse(&bytes[used..]).map_err(not_nats)? {
                used += len;
                match op {
                    ServerOp::Ping => out.extend_from_slice(PONG),
                    ServerOp::Err(reason) if is_violation(reason) => *refused += 1,
                    ServerOp::Err(reason) => return Err(said(reason)),
                    ServerOp::Pong => {
                        let batch = batches.pop_front().unwrap_or(0);
                        let lost = std::mem::take(refused).min(batch);
                        progress.acknowledged += batch - lost;
                        progress.refused += lost;
                    }
                    ServerOp::Info(_) | ServerOp::Ok => {}
                }
            }
            Ok(used)
        });
        // What has arrived counts, although the connection is gone; the next call tells.
        if progress == Outcomes::default() {
            result?;
        }
        Ok(progress)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.connection.as_ref().map(|connection| connection.wire.descriptor())
    }

    fn close(&mut self) -> Result<(), OutletError> {
        self.connection = None;
        Ok(())
    }
}
