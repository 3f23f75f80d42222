//! The dashboard of a command without a graph.

use super::{DashboardTopic, PERIODS, WebArgs};
use crate::output::{document, note, now};
use millstream_cpu::Environment;
use millstream_web::{
    BlockStatus, Board, ControlInfo, Hello, LatencyStatus, LedgerStatus, ServerOptions, Status,
    Streams, WebServer,
};
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

/// A dashboard that shows ledgers, counters and latencies.
pub struct BareDashboard {
    server: WebServer,
    began: Instant,
    published: Option<Instant>,
}

/// What it shows at one moment.
#[derive(Default)]
pub struct BareMoment {
    /// The ledgers.
    pub ledgers: Vec<LedgerStatus>,
    /// Counters by name.
    pub counters: Vec<(String, Value)>,
    /// Latencies that the command measures.
    pub latencies: Vec<LatencyStatus>,
    /// The command's results, as of now.
    pub results: Value,
    /// Whether the run is over.
    pub ended: bool,
}

impl BareDashboard {
    /// Starts the server, if one is wanted.
    pub fn start(
        args: &WebArgs,
        topic: DashboardTopic<'_>,
        (controls, streams): (Vec<ControlInfo>, Streams),
    ) -> anyhow::Result<Option<Self>> {
        let Some(address) = args.web else { return Ok(None) };
        let hello = Hello {
            verb: topic.verb.to_owned(),
            title: topic.title,
            command: std::env::args().collect(),
            environment: document(&Environment::read(Path::new("/"), &now())),
            controls,
            ..Hello::default()
        };
        let control = args.web_control;
        let server = WebServer::start(ServerOptions { address, control, hello, streams })?;
        note(format_args!("dashboard {}", server.url()));
        Ok(Some(Self { server, began: Instant::now(), published: None }))
    }

    /// Returns the board, for events and wishes.
    pub fn board(&self) -> &Board {
        self.server.board()
    }

    /// Whether it is time to publish.
    pub fn is_due(&self, now: Instant) -> bool {
        let period = if self.board().is_watched() { PERIODS.0 } else { PERIODS.1 };
        self.published.is_none_or(|published| now.duration_since(published) >= period)
    }

    /// Publishes the state; never waits.
    pub fn publish(&mut self, moment: BareMoment) {
        let BareMoment { ledgers, counters, latencies, results, ended } = moment;
        let now = Instant::now();
        self.published = Some(now);
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let status = Status {
            unix_s: since.as_secs_f64(),
            elapsed_s: now.duration_since(self.began).as_secs_f64(),
            cpu_s: millstream_cpu::usage::process_cpu_time().as_secs_f64(),
            ended,
            ledgers,
            blocks: counters.into_iter().map(block).collect(),
            latencies,
            ..Status::default()
        };
        let report = Arc::new(move || results.clone());
        self.server.board().publish_if_free(status, report);
    }
}

/// Counters, as the metrics of a block.
fn block((name, metrics): (String, Value)) -> BlockStatus {
    BlockStatus { name, metrics, ..BlockStatus::default() }
}
