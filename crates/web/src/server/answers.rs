//! The answers to requests, and the documents in them.

use super::Service;
use crate::assets::Asset;
use crate::board::{Board, unix_s};
use crate::documents::{Hello, LatencyStatus, Status};
use crate::feed::StreamFeed;
use crate::http::{RequestHead, answer};
use crate::message::ServerMessage;
use crate::metrics;
use crate::refusal::Refusal;
use serde_json::Value;
use tungstenite::handshake::derive_accept_key;

const JSON: &str = "application/json";
const FRESH: &str = "Cache-Control: no-store\r\n";

/// What a request gets.
pub(super) enum Answer {
    /// These bytes of the page, which are no secret.
    Page(Vec<u8>),
    /// These bytes, with data.
    Bytes(Vec<u8>),
    /// These bytes, and then messages.
    Socket(Vec<u8>),
}

impl Service {
    /// Answers a request.
    pub(super) fn answer(&mut self, head: &RequestHead) -> Result<Answer, Refusal> {
        self.guard.check_source(head)?;
        if let Some(asset) = Asset::find(&head.path) {
            return Ok(Answer::Page(page(asset, head)));
        }
        let known = ["/ws", "/metrics", "/api/report", "/api/hello", "/api/status", "/api/events"];
        if !known.contains(&head.path.as_str()) {
            return Err(Refusal::Path);
        }
        self.guard.check_token(head)?;
        let document = match head.path.as_str() {
            "/ws" => {
                let key = head.socket_key.as_ref().ok_or(Refusal::Handshake)?;
                let accept = derive_accept_key(key.as_bytes());
                let text = format!(
                    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: \
                     Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
                );
                return Ok(Answer::Socket(text.into_bytes()));
            }
            "/metrics" => {
                let text = self.metrics();
                let media = "text/plain; version=0.0.4; charset=utf-8";
                let bytes = answer("200 OK", media, FRESH, text.as_bytes(), head.head_only);
                return Ok(Answer::Bytes(bytes));
            }
            "/api/report" => self.report(),
            "/api/hello" => self.hello(),
            "/api/status" => self.status(),
            _ => events(&self.board, 0),
        };
        let text = format!("{document:#}\n");
        Ok(Answer::Bytes(answer("200 OK", JSON, FRESH, text.as_bytes(), head.head_only)))
    }

    fn metrics(&self) -> String {
        let (status, graph) =
            self.board.read(|state| (state.status.clone(), state.hello.title.clone()));
        let status = status.unwrap_or_default();
        metrics::text(&graph, &status, &self.latencies(&status), &self.figures())
    }

    /// The latencies of the streams, and those that the run has measured by itself.
    fn latencies(&self, status: &Status) -> Vec<LatencyStatus> {
        let of_streams = self.feeds.iter().filter_map(StreamFeed::latency);
        of_streams.chain(status.latencies.iter().cloned()).collect()
    }

    pub(super) fn hello(&self) -> Value {
        let hello = self.board.read(|state| state.hello.clone());
        let controls = if self.control { hello.controls } else { Vec::new() };
        let message = ServerMessage::Hello {
            protocol: "millstream.v1",
            version: env!("CARGO_PKG_VERSION"),
            run: &self.run,
            control: self.control,
            started_unix_s: self.started_unix_s,
            hello: Hello { controls, ..hello },
        };
        message.document()
    }

    pub(super) fn status(&self) -> Value {
        let status = self.board.read(|state| state.status.clone());
        let status = status.map_or_else(|| self.empty_status(), |status| (*status).clone());
        let status = Status { latencies: self.latencies(&status), ..status };
        let (seq, server) = (self.status_seq, self.figures());
        ServerMessage::Status { seq, server, status }.document()
    }

    fn empty_status(&self) -> Status {
        let (unix_s, elapsed_s) = (unix_s(), self.board.elapsed_s());
        let cpu_s = millstream_cpu::usage::process_cpu_time().as_secs_f64();
        Status { unix_s, elapsed_s, cpu_s, ..Status::default() }
    }

    /// The document that `--json` prints, as of now.
    fn report(&self) -> Value {
        let (maker, command, environment) = self.board.read(|state| {
            (state.report.clone(), state.hello.command.clone(), state.hello.environment.clone())
        });
        let results = maker.map_or(Value::Null, |maker| maker());
        let members =
            [("command", command.into()), ("environment", environment), ("results", results)];
        Value::from_iter(members)
    }
}

/// The events from number `first` on that are still there.
pub(super) fn events(board: &Board, first: u64) -> Value {
    let events: Vec<_> = board
        .read(|state| state.events.iter().filter(|event| event.seq >= first).cloned().collect());
    ServerMessage::Events { events }.document()
}

fn page(asset: Asset, head: &RequestHead) -> Vec<u8> {
    let etag = asset.etag();
    let fields = format!("ETag: {etag}\r\nCache-Control: no-cache\r\n");
    if head.if_none_match.as_deref() == Some(etag.as_str()) {
        return answer("304 Not Modified", asset.media_type, &fields, &[], true);
    }
    answer("200 OK", asset.media_type, &fields, asset.content, head.head_only)
}
