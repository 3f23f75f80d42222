//! The documents that a run publishes.

use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// What a stream consists of.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamKind {
    /// Complex samples: lines of spectra.
    Spectrum,
    /// Symbols of a receiver: points.
    Symbols,
}

/// A stream that clients can look at.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StreamInfo {
    /// Number of the stream.
    pub stream: u16,
    /// Name: the output that it is.
    pub name: String,
    /// What it consists of.
    pub kind: StreamKind,
    /// Type of an item: `sc16`, `fc32`, `f32`.
    pub item: &'static str,
    /// Items a second.
    pub rate_hz: Option<f64>,
    /// Frequency of the middle.
    pub centre_hz: Option<f64>,
    /// Ticks of the device's clock a second.
    pub ticks_hz: Option<f64>,
    /// The values that symbols should have.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<f32>,
}

/// Something that a client may set.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ControlInfo {
    /// A block, or `run`.
    pub target: String,
    /// Name of the setting or message.
    pub name: String,
    /// Kind of the value.
    pub kind: String,
    /// What it does.
    pub help: String,
    /// The least value, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    /// The greatest value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
}

/// What does not change, or seldom.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Hello {
    /// The verb that runs.
    pub verb: String,
    /// What it works on, in a few words.
    pub title: String,
    /// The command line.
    pub command: Vec<String>,
    /// The record of the machine.
    pub environment: Value,
    /// The streams, in the order of their numbers.
    pub streams: Vec<StreamInfo>,
    /// Blocks and connections; null without a graph.
    pub graph: Value,
    /// The plan; null without one.
    pub plan: Value,
    /// What clients may set.
    pub controls: Vec<ControlInfo>,
}

/// The samples of a stream: expected = delivered + held + the sum of the lost ones.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LedgerStatus {
    /// Name: the block, and the channel if there are several.
    pub name: String,
    /// Samples that the stream should have had.
    pub expected: u64,
    /// Samples that arrived.
    pub delivered: u64,
    /// Samples in flight.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<u64>,
    /// Lost samples by cause.
    pub lost: BTreeMap<String, u64>,
    /// Samples after the end.
    pub after_end: u64,
    /// Whether the sums are equal.
    pub balances: bool,
}

/// A block's counters.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct BlockStatus {
    /// Its name.
    pub name: String,
    /// Its partition.
    pub partition: String,
    /// Calls so far.
    pub calls: u64,
    /// Items consumed.
    pub items_in: u64,
    /// Items produced.
    pub items_out: u64,
    /// Time in calls, nanoseconds.
    pub busy_ns: u64,
    /// Share of a core since the last status.
    pub load: f64,
    /// The share that it should need at its present rate by the costs of the plan, if it has them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_load: Option<f64>,
    /// The numbers that it publishes.
    pub metrics: Value,
}

/// A connection's counters.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct EdgeStatus {
    /// Writing end.
    pub from: String,
    /// Reading end.
    pub to: String,
    /// Size of an item.
    pub item_bytes: u64,
    /// Items so far.
    pub items: u64,
    /// Items that fit.
    pub capacity_items: u64,
    /// Mean share that was filled since the last status.
    pub fill: f64,
    /// Polls that found too few items.
    pub starved: u64,
    /// Polls that found too little room.
    pub blocked: u64,
}

/// A partition's counters.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PartitionStatus {
    /// Its name.
    pub name: String,
    /// Its CPU, if it has one of its own.
    pub cpu: Option<usize>,
    /// Its thread.
    pub tid: u32,
    /// Sweeps over its blocks.
    pub sweeps: u64,
    /// Waits.
    pub waits: u64,
    /// CPU time of the thread by the kernel's clock.
    pub cpu_s: f64,
    /// The same since the last status, as a share of a core.
    pub load: f64,
}

/// The counters of a run at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Status {
    /// Wall clock.
    pub unix_s: f64,
    /// Time since the start.
    pub elapsed_s: f64,
    /// CPU time of the process.
    pub cpu_s: f64,
    /// Whether the run is over.
    pub ended: bool,
    /// The ledgers of its streams.
    pub ledgers: Vec<LedgerStatus>,
    /// Its blocks.
    pub blocks: Vec<BlockStatus>,
    /// Its connections.
    pub edges: Vec<EdgeStatus>,
    /// Its partitions.
    pub partitions: Vec<PartitionStatus>,
    /// Its receivers, as in the documents of `--json`.
    pub signals: Vec<Value>,
    /// The latencies that it measures by itself; those of its streams are added.
    pub latencies: Vec<LatencyStatus>,
}

/// Something that happened.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Event {
    /// Number of the event.
    pub seq: u64,
    /// Wall clock.
    pub unix_s: f64,
    /// Time since the start.
    pub elapsed_s: f64,
    /// `gap`, `signal`, `plan`, `message`, `annotation`, `control` or `note`.
    pub kind: &'static str,
    /// The block or stream.
    pub name: String,
    /// Number of the stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<u16>,
    /// Items of the stream before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item: Option<u64>,
    /// Time of the first sample after it, ticks.
    pub ticks: Option<u64>,
    /// Missing items.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<u64>,
    /// Missing items by cause.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub lost: BTreeMap<String, u64>,
    /// What happened, in words.
    pub text: String,
}

/// A histogram of latencies.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LatencyStatus {
    /// Its name.
    pub name: &'static str,
    /// Which of the histograms of this name it is: the stream, block or link that it is of.
    pub stream: String,
    /// What the latency is, in a few words.
    pub about: &'static str,
    /// The unit of all values.
    pub unit: &'static str,
    /// Number of values.
    pub count: u64,
    /// The greatest value.
    pub max: f64,
    /// The sum of all values.
    pub sum: f64,
    /// The largest value of each class.
    pub bounds: Vec<f64>,
    /// Values in each class; the last one has those above the last bound.
    pub counts: Vec<u64>,
}

/// The server's own counters.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct ServerStatus {
    pub clients: usize,
    pub cpu_s: f64,
    pub lines_sent: u64,
    pub lines_dropped: u64,
    pub refused: BTreeMap<&'static str, u64>,
    pub watched: Vec<WatchedStatus>,
}

/// How much of a stream is transformed.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct WatchedStatus {
    pub stream: u16,
    pub share: f32,
}
