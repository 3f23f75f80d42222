//! Messages to a NATS server.
//!
//! The server handles the operations of a connection in their order, so the answer to a `PING`
//! acknowledges every message before it. A message that the connection's user may not publish is
//! answered with an error, before that answer.

use crate::DropCause;
use crate::foreign::foreign;
use crate::outlet::{Outcomes, Outlet, OutletError};
use crate::publications::Publications;
use crate::sink::{PublishSink, PublishedItem, SinkParameters};
use crate::wire_stream::{Received, WireStream, check_address, check_login};
use millstream_flow::blocks::RehearsedBlock;
use millstream_flow::registry::BlockParameters;
use millstream_flow::{BlockError, Item};
use millstream_wire::nats::{self, PING, PONG, ServerOp};
use serde::Serialize;
use serde_json::Value;
use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::time::Instant;

/// Bytes of the line before a message, beside the subject.
const LINE_BYTES: usize = 64;
/// Batches that wait for their answer; more wait in the queue.
const BATCHES_MAX: usize = 1024;
/// Bytes after which a batch ends within an exchange: over a slow network, too, answers come often.
const BATCH_BYTES: usize = 16 << 10;
/// A server's limit when it does not say another: 1 MiB.
const PAYLOAD_BYTES_MAX: usize = 1 << 20;

/// The options of `CONNECT`, by the protocol of NATS clients.
#[derive(Serialize)]
struct ConnectOptions<'a> {
    verbose: bool,
    pedantic: bool,
    name: &'static str,
    lang: &'static str,
    version: &'static str,
    protocol: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<&'a String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pass: Option<&'a String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    auth_token: Option<&'a String>,
}

/// A subject at a NATS server.
pub struct NatsOutlet {
    server: String,
    subject: String,
    login: NatsLogin,
    line: Vec<u8>,
    connection: Option<NatsConnection>,
}

/// How a client names itself to the server.
#[derive(BlockParameters, Clone, Debug, Default)]
pub struct NatsLogin {
    /// user, if the server wants one
    #[parameter(default = "")]
    pub user: String,
    /// the user's password
    #[parameter(default = "")]
    pub password: String,
    /// token, if the server wants one
    #[parameter(default = "")]
    pub token: String,
}

struct NatsConnection {
    wire: WireStream,
    payload_max: usize,
    /// Messages since the last `PING`, and their bytes.
    fresh: u64,
    fresh_bytes: usize,
    /// Messages before each `PING` that was sent and not answered.
    batches: VecDeque<u64>,
    /// Messages of the first batch that were refused.
    refused: u64,
}

impl NatsOutlet {
    /// Creates the outlet; it connects when a sink uses it.
    ///
    /// # Errors
    /// A subject that cannot be published to, or no address of a server.
    pub fn new(server: &str, subject: &str, login: NatsLogin) -> Result<Self, OutletError> {
        if !nats::is_subject(subject) {
            return Err(OutletError(format!(
                "`{subject}` is not a subject to publish to: expected words between points, such \
                 as radio.ts, without spaces, * and >"
            )));
        }
        check_address(server)?;
        check_login(&login.user, &login.password)?;
        if !login.user.is_empty() && !login.token.is_empty() {
            let text = "a server wants a user or a token, not both: leave one of them out";
            return Err(OutletError(text.to_owned()));
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
        let NatsLogin { user, password, token } = &self.login;
        let named = |text| (!user.is_empty()).then_some(text);
        let connect = ConnectOptions {
            verbose: false,
            pedantic: false,
            name: "millstream",
            lang: "rust",
            version: env!("CARGO_PKG_VERSION"),
            protocol: 1,
            user: named(user),
            pass: named(password),
            auth_token: (!token.is_empty()).then_some(token),
        };
        let connect = serde_json::to_value(connect).unwrap_or_default();
        Ok(format!("CONNECT {connect}\r\nPING\r\n"))
    }
}

/// Returns the error for a line of the server that is not one.
fn not_nats(bytes: &[u8], error: millstream_wire::Error) -> OutletError {
    foreign(("the server", "NATS"), bytes, error)
}

fn said(reason: &[u8]) -> OutletError {
    OutletError(format!("the server says {}", String::from_utf8_lossy(reason)))
}

/// Returns the longest message by the server's `INFO`; `now` if that does not say.
fn payload_max(info: &Value, now: usize) -> usize {
    let said = info["max_payload"].as_u64();
    said.map_or(now, |bytes| usize::try_from(bytes).unwrap_or(usize::MAX))
}

fn read_info(text: &[u8]) -> Result<Value, OutletError> {
    serde_json::from_slice(text)
        .map_err(|error| OutletError(format!("the server does not speak NATS: {error}")))
}

/// Returns the next operation.
fn next_op<'a>(received: &mut Received<'a>) -> Result<Option<ServerOp<'a>>, OutletError> {
    let bytes = &received.bytes[received.used..];
    let found = ServerOp::parse(bytes).map_err(|error| not_nats(bytes, error))?;
    Ok(found.map(|(op, bytes)| {
        received.used += bytes;
        op
    }))
}

fn unasked() -> OutletError {
    OutletError("the server does not speak NATS: it answers a PING that was not sent".to_owned())
}

impl NatsConnection {
    /// Ends the batch: its answer acknowledges it.
    fn ping(&mut self) {
        if self.fresh > 0 {
            self.wire.put(PING);
            self.batches.push_back(std::mem::take(&mut self.fresh));
            self.fresh_bytes = 0;
        }
    }
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
        let (mut longest, mut is_greeted, mut is_answered) = (PAYLOAD_BYTES_MAX, false, false);
        wire.handshake(|received| {
            while let Some(op) = next_op(received)? {
                match op {
                    ServerOp::Info(text) => {
                        let info = read_info(text)?;
                        longest = payload_max(&info, longest);
                        if !std::mem::replace(&mut is_greeted, true) {
                            let line = self.connect_line(&info)?;
                            received.answers.extend_from_slice(line.as_bytes());
                        }
                    }
                    ServerOp::Err(reason) => return Err(said(reason)),
                    ServerOp::Ping => received.answers.extend_from_slice(PONG),
                    ServerOp::Pong if is_greeted && !is_answered => is_answered = true,
                    ServerOp::Pong => return Err(unasked()),
                    ServerOp::Ok => {}
                }
            }
            Ok(is_answered)
        })?;
        self.connection = Some(NatsConnection {
            wire,
            payload_max: longest,
            fresh: 0,
            fresh_bytes: 0,
            batches: VecDeque::with_capacity(BATCHES_MAX),
            refused: 0,
        });
        Ok(())
    }

    fn may_choke(&self) -> bool {
        true
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
        connection.fresh_bytes += message.len();
        if connection.fresh_bytes >= BATCH_BYTES {
            connection.ping();
        }
        true
    }

    fn exchange(&mut self, now: Instant) -> Result<Outcomes, OutletError> {
        let mut progress = Outcomes::default();
        let Some(connection) = &mut self.connection else { return Ok(progress) };
        connection.ping();
        let NatsConnection { wire, batches, refused, payload_max: longest, .. } = connection;
        wire.flush()?;
        let result = wire.receive(now, !batches.is_empty(), |received| {
            while let Some(op) = next_op(received)? {
                match op {
                    ServerOp::Ping => received.answers.extend_from_slice(PONG),
                    ServerOp::Err(reason) if is_violation(reason) => *refused += 1,
                    ServerOp::Err(reason) => return Err(said(reason)),
                    ServerOp::Pong => {
                        let batch = batches.pop_front().ok_or_else(unasked)?;
                        let lost = std::mem::take(refused).min(batch);
                        progress.acknowledged += batch - lost;
                        progress.refused += lost;
                    }
                    ServerOp::Info(text) => *longest = payload_max(&read_info(text)?, *longest),
                    ServerOp::Ok => {}
                }
            }
            Ok(false)
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

/// Publishes packets, tags and events at a NATS server.
#[derive(BlockParameters)]
#[block(
    nats_sink,
    writes,
    items(u8, i8, i16, sc16, f32, cf32),
    with = Publications,
    example = "subject = \"radio.ts\""
)]
struct NatsParameters {
    /// the subject, such as radio.ts
    #[parameter(incidental)]
    subject: String,
    /// host and port of the server
    #[parameter(default = "127.0.0.1:4222", incidental)]
    server: String,
    #[parameter(flatten)]
    login: NatsLogin,
    #[parameter(flatten)]
    sink: SinkParameters,
}

impl NatsParameters {
    fn make<T: PublishedItem>(self, of: &Publications) -> Result<PublishSink<T>, BlockError> {
        self.sink.make(NatsOutlet::new(&self.server, &self.subject, self.login)?, of)
    }

    fn rehearse<T: Item>(self, _: &Publications) -> RehearsedBlock<T> {
        SinkParameters::stand_in()
    }
}
