//! The dashboard: one thread that serves a page, its data over a WebSocket, JSON documents and
//! counters for Prometheus. The protocol is a page of the project's documentation
//! (`docs/reference/web-protocol.md`).
//!
//! The server can never hold up a stream. A stream hands out samples through a
//! [tap](millstream_flow::OutputTap) that only looks whether the server has sent an empty buffer;
//! the server transforms what comes back. All other documents come from the thread that waits for
//! the run's end, over the [`Board`]. A slow client loses lines, which are counted.
//!
//! | module | function |
//! | --- | --- |
//! | `start`, `server` | the thread: connections, requests, messages |
//! | `session` | one WebSocket client, with what waits for it |
//! | `guard`, `http`, `refusal` | who is served; requests; the counted reasons for refusals |
//! | `shot`, `behind` | both ends of a stream; its delays |
//! | `feed`, `frame` | lines from samples, and their frames |
//! | `board`, `documents`, `latency` | what a run publishes |
//! | `metrics` | the text for Prometheus |

mod address;
mod assets;
mod behind;
mod board;
mod documents;
#[cfg(any(test, fuzzing))]
pub mod exercise;
mod feed;
mod frame;
mod guard;
mod http;
mod latency;
mod message;
mod metrics;
mod refusal;
mod server;
mod session;
mod shot;
mod start;
mod streams;

pub use address::WebAddress;
pub use board::{Board, ControlRequest, ReportMaker};
pub use documents::{
    BlockStatus, ControlInfo, EdgeStatus, Event, Hello, LatencyStatus, LedgerStatus,
    PartitionStatus, Status, StreamInfo, StreamKind,
};
pub use latency::ShownLatency;
pub use start::{ServerOptions, WebError, WebServer};
pub use streams::{AppendValues, ShownItem, ShownSamples, StreamFacts, Streams};
