//! `--web`: the dashboard of a command that runs a graph.

mod bare;
mod control;
mod moment;

pub use bare::{BareDashboard, BareMoment};
pub use control::{end_of_run, unknown_control, value_of};

use crate::block_types;
use crate::graph_report::GraphReport;
use crate::interrupt;
use crate::output::{document, note, now};
use crate::signal::SignalReport;
use anyhow::Context;
use millstream_atsc::params::SEGMENT_SYMBOLS;
use millstream_atsc::segment::Segment;
use millstream_cpu::Environment;
use millstream_flow::{Complex, Graph, MessageSpec, MessageStats, Plan, RunningGraph, Shape};
pub use millstream_web::LedgerStatus;
use millstream_web::{
    Board, ControlInfo, ControlRequest, Hello, ServerOptions, ShownLatency, StreamFacts, Streams,
    WebAddress, WebServer,
};
use moment::Moment;
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Intervals of statuses, with a client and without.
const PERIODS: (Duration, Duration) = (Duration::from_millis(240), Duration::from_secs(1));
/// The port of `view`, if the user gives none.
const USUAL_PORT: u16 = 8080;
/// The levels of 8-VSB.
const LEVELS: [f32; 8] = [-7.0, -5.0, -3.0, -1.0, 1.0, 3.0, 5.0, 7.0];

/// The options of the dashboard.
#[derive(clap::Args, Clone, Default)]
pub struct WebArgs {
    /// Show the run live in a browser. PORT alone is for this machine only.
    #[arg(long, value_name = "[ADDR:]PORT")]
    web: Option<WebAddress>,

    /// Let the dashboard change the run, for example stop it.
    #[arg(long, requires = "web")]
    web_control: bool,
}

/// What the dashboard shows about a command beside its graph.
#[derive(Default)]
pub struct DashboardTopic<'a> {
    /// The verb.
    pub verb: &'a str,
    /// What it works on.
    pub title: String,
    /// Members of the report's results that do not change.
    pub results: Map<String, Value>,
    /// Limits of messages.
    pub limits: Vec<ControlLimits<'a>>,
}

/// A block and its message, with the least and the greatest value.
pub type ControlLimits<'a> = ((&'a str, &'a str), (f64, f64));

/// A dashboard before its graph runs.
pub struct DashboardPlan {
    args: WebArgs,
    streams: Streams,
}

/// A dashboard of a running graph.
pub struct Dashboard {
    server: WebServer,
    controls: Vec<(String, MessageSpec)>,
    results: Map<String, Value>,
    plan: Option<Plan>,
    before: Option<Moment>,
    /// Number of the state changes of each receiver that were told.
    told: Vec<u64>,
    sent: Vec<SentMessage>,
    /// The delays of blocks that transmit, with the samples that they had transmitted at the last
    /// look.
    delays: Vec<(String, u64, ShownLatency)>,
}

/// A message that a block has not taken yet.
struct SentMessage {
    block: String,
    /// What to say when the block has taken it.
    text: String,
    /// The number of messages that the block has taken when it has taken this one.
    goal: u64,
    /// Those that it had refused before.
    refused: u64,
}

impl WebArgs {
    /// Whether a dashboard is wanted.
    pub fn is_wanted(&self) -> bool {
        self.web.is_some()
    }

    /// Whether clients may change the run.
    pub fn may_control(&self) -> bool {
        self.web_control
    }

    /// The same, with an address if the user gave none.
    pub fn or_usual(self) -> Self {
        let usual = || WebAddress((std::net::Ipv4Addr::LOCALHOST, USUAL_PORT).into());
        Self { web: Some(self.web.unwrap_or_else(usual)), ..self }
    }

    /// Begins a dashboard, if one is wanted.
    pub fn plan(&self) -> Option<DashboardPlan> {
        self.web?;
        Some(DashboardPlan { args: self.clone(), streams: Streams::new() })
    }
}

impl DashboardPlan {
    /// Shows an output with complex samples.
    pub fn show(
        &mut self,
        graph: &mut Graph,
        output: &str,
        facts: StreamFacts,
    ) -> anyhow::Result<()> {
        self.streams.spectrum(graph, output, facts)?;
        Ok(())
    }

    /// Shows all outputs of blocks without inputs, and the symbols of equalisers. `facts` tells
    /// what is known about the samples of a block.
    pub fn show_all(
        &mut self,
        graph: &mut Graph,
        facts: impl Fn(&str) -> StreamFacts,
    ) -> anyhow::Result<()> {
        let shape = Shape::of(graph);
        let mut seen: Vec<&str> = Vec::new();
        for edge in &shape.edges {
            if seen.contains(&edge.output.as_str()) {
                continue;
            }
            seen.push(&edge.output);
            if shape.edges.iter().all(|other| other.to != edge.from) {
                let facts = facts(&shape.blocks[edge.from].name);
                self.streams.spectrum(graph, &edge.output, facts)?;
            }
        }
        // A demodulator puts out segments, too, but before its equaliser.
        let has_input = |node: usize| {
            let mut inputs = shape.edges.iter().filter(move |other| other.to == node);
            inputs.any(|input| is_segments(graph, &input.output))
        };
        let after = shape.edges.iter().find(|edge| has_input(edge.from));
        if let Some(edge) = after.filter(|edge| is_segments(graph, &edge.output)) {
            let append = |segment: &Segment, values: &mut Vec<Complex<f32>>| {
                values.extend(segment.symbols.iter().map(|symbol| Complex::new(*symbol, 0.0)));
            };
            let shown = (SEGMENT_SYMBOLS, append as fn(&_, &mut _));
            self.streams.symbols::<Segment>(graph, &edge.output, &LEVELS, shown)?;
        }
        Ok(())
    }

    /// Starts the server.
    pub fn start(self, graph: &Graph, topic: DashboardTopic<'_>) -> anyhow::Result<Dashboard> {
        let address = self.args.web.context("--web has no address")?;
        let shape = Shape::of(graph);
        let mut controls = Vec::new();
        for block in &shape.blocks {
            let messages = graph.messages(&block.name)?;
            controls.extend(messages.iter().map(|message| (block.name.clone(), *message)));
        }
        let hello = Hello {
            verb: topic.verb.to_owned(),
            controls: control_infos(&controls, &topic.limits),
            title: topic.title,
            command: std::env::args().collect(),
            environment: document(&Environment::read(Path::new("/"), &now())),
            graph: graph_document(&shape),
            ..Hello::default()
        };
        let options =
            ServerOptions { address, control: self.args.web_control, hello, streams: self.streams };
        let server = WebServer::start(options)?;
        note(format_args!("dashboard {}", server.url()));
        let (plan, before, told, sent) = (None, None, Vec::new(), Vec::new());
        let (results, delays) = (topic.results, Vec::new());
        Ok(Dashboard { server, controls, results, plan, before, told, sent, delays })
    }
}

fn is_segments(graph: &Graph, output: &str) -> bool {
    let item = graph.output_item(output);
    item.is_ok_and(|item| item == millstream_flow::ItemType::of::<Segment>())
}

/// The graph that a page draws.
#[derive(Serialize)]
struct DrawnShape<'a> {
    blocks: Vec<DrawnBlock<'a>>,
    edges: Vec<DrawnEdge<'a>>,
}

#[derive(Serialize)]
struct DrawnBlock<'a> {
    name: &'a str,
}

#[derive(Serialize)]
struct DrawnEdge<'a> {
    from: &'a str,
    to: &'a str,
    item_bytes: u64,
}

fn graph_document(shape: &Shape) -> Value {
    let edges = shape.edges.iter().map(|edge| DrawnEdge {
        from: &edge.output,
        to: &edge.input,
        item_bytes: edge.item_bytes,
    });
    let blocks = shape.blocks.iter().map(|block| DrawnBlock { name: &block.name });
    document(&DrawnShape { blocks: blocks.collect(), edges: edges.collect() })
}

fn control_infos(
    controls: &[(String, MessageSpec)],
    limits: &[ControlLimits<'_>],
) -> Vec<ControlInfo> {
    let message = |(block, spec): &(String, MessageSpec)| {
        let own = |limit: &&ControlLimits<'_>| limit.0 == (block.as_str(), spec.name);
        let limits = limits.iter().find(own).map(|limit| limit.1);
        ControlInfo {
            target: block.clone(),
            name: spec.name.to_owned(),
            kind: spec.kind.to_string(),
            help: spec.help.to_owned(),
            min: limits.map(|limits| limits.0),
            max: limits.map(|limits| limits.1),
        }
    };
    std::iter::once(end_of_run()).chain(controls.iter().map(message)).collect()
}

impl Dashboard {
    /// Returns the board, for events.
    pub fn board(&self) -> &Board {
        self.server.board()
    }

    /// Does what clients want, and publishes the state from time to time. Called from the waiting
    /// thread.
    pub fn attend(
        &mut self,
        now: Instant,
        elapsed: Duration,
        running: &RunningGraph,
        signals: impl FnOnce() -> Vec<SignalReport>,
    ) {
        while let Some(request) = self.board().take_control() {
            let outcome = self.obey(&request, running);
            let text = outcome.as_ref().map_or_else(Clone::clone, Clone::clone);
            self.board().note("control", &request.target, text);
            self.board().reply(&request, outcome);
        }
        self.look_at_sent(running);
        let period = if self.board().is_watched() { PERIODS.0 } else { PERIODS.1 };
        if self.before.as_ref().is_some_and(|before| now.duration_since(before.at) < period) {
            return;
        }
        if self.plan.as_ref() != Some(running.plan()) {
            let plan = running.plan().clone();
            self.board().change(|hello| hello.plan = document(&plan));
            self.plan = Some(plan);
        }
        let moment = Moment::of(now, elapsed, running, signals());
        self.tell_signals(&moment.signals);
        self.publish(moment, false);
    }

    /// Publishes the end.
    pub fn end(&mut self, run: &GraphReport, signals: Vec<SignalReport>) {
        let moment = Moment::of_end(run, signals);
        self.tell_signals(&moment.signals);
        self.publish(moment, true);
    }

    fn publish(&mut self, moment: Moment, ended: bool) {
        let mut status = moment.status(self.before.as_ref(), self.plan.as_ref(), ended);
        self.note_delays(&moment);
        status.latencies = self.delays.iter().map(|delay| delay.2.status()).collect();
        let (results, plan) = (self.results.clone(), self.plan.clone());
        let copy = moment.clone();
        let report = Arc::new(move || copy.report(&results, plan.as_ref()));
        self.server.board().publish(status, report);
        self.before = Some(moment);
    }

    /// Takes the delays of blocks that transmit, as of this look.
    fn note_delays(&mut self, moment: &Moment) {
        for (block, transmitted, delay_s) in moment.transmit_delays() {
            let known = self.delays.iter().position(|delay| delay.0 == block);
            let place = known.unwrap_or_else(|| {
                self.delays.push((block.to_owned(), 0, delays_of(&format!("{block}.in"))));
                self.delays.len() - 1
            });
            let (_, before, shown) = &mut self.delays[place];
            if std::mem::replace(before, transmitted) != transmitted {
                shown.record((delay_s * 1e9) as u64);
            }
        }
    }

    fn obey(&mut self, request: &ControlRequest, running: &RunningGraph) -> Result<String, String> {
        let ControlRequest { target, name, .. } = request;
        if (target.as_str(), name.as_str()) == ("run", "stop") {
            interrupt::ask();
            return Ok("the run ends".to_owned());
        }
        let known = |(block, spec): &&(String, MessageSpec)| block == target && spec.name == name;
        let Some((_, spec)) = self.controls.iter().find(known) else {
            let own = self.controls.iter().filter(|(block, _)| block == target);
            return Err(unknown_control(request, own.map(|(_, spec)| spec.name)));
        };
        let value = value_of(request, spec.kind)?;
        let done = format!("sent {target}.{name} = {value}");
        let before = counts(running, target);
        running.send(target, name, value).map_err(|error| error.to_string())?;
        let waiting = self.sent.iter().filter(|sent| sent.block == *target).map(|sent| sent.goal);
        let goal = waiting.max().unwrap_or(0).max(before.taken) + 1;
        let (block, refused) = (target.clone(), before.refused);
        let text = done.replacen("sent", "applied", 1);
        self.sent.push(SentMessage { block, text, goal, refused });
        Ok(done)
    }

    /// Shows that a block has taken a message, or why it refused it.
    fn look_at_sent(&mut self, running: &RunningGraph) {
        let board = self.server.board();
        // The refusals of each block that belong to earlier messages.
        let mut told = BTreeMap::<String, u64>::new();
        for mut sent in std::mem::take(&mut self.sent) {
            let now = counts(running, &sent.block);
            let refused = told.entry(sent.block.clone()).or_default();
            *refused = sent.refused.max(*refused);
            if now.taken < sent.goal {
                sent.refused = *refused;
                self.sent.push(sent);
            } else if now.refused > *refused {
                *refused += 1;
                board.note("control", &sent.block, now.refusal.unwrap_or_default());
            } else {
                board.note("control", &sent.block, sent.text);
            }
        }
    }

    /// Tells the changes of the receivers' states.
    fn tell_signals(&mut self, signals: &[SignalReport]) {
        self.told.resize(signals.len(), 0);
        for (signal, told) in signals.iter().zip(&mut self.told) {
            let first = *told;
            for change in signal.events.iter().filter(|change| change.at_sample >= first) {
                let text = format!("{} at sample {}", change.state, change.at_sample);
                self.server.board().note("signal", &signal.receiver, text);
                *told = change.at_sample + 1;
            }
        }
    }
}

/// The delays of a transmit stream of this name.
pub fn delays_of(stream: &str) -> ShownLatency {
    let about = "from sending samples to the radio's report that it has taken them to transmit";
    ShownLatency::new("transmit_delay", stream, about)
}

/// The counts of the messages of a block.
fn counts(running: &RunningGraph, block: &str) -> MessageStats {
    let snapshot = running.snapshot();
    snapshot.block(block).and_then(|block| block.messages.clone()).unwrap_or_default()
}

/// What the parameters of a graph file say about the samples of its blocks.
pub fn facts_of<'a>(
    file: &'a millstream_flow::GraphFile,
    set: &'a [String],
) -> impl Fn(&str) -> StreamFacts + 'a {
    let (registry, _) = block_types::registry();
    move |block| {
        let number = |name| file.number(&registry, set, (block, name)).ok().flatten();
        let of_graph = || {
            let rated = file
                .block_names()
                .find_map(|other| file.number(&registry, set, (other, "rate_hz")).ok().flatten());
            rated.filter(|_| file.parameters().contains_key("rate"))
        };
        let centre_hz = number("freq_hz").filter(|_| file.type_of(block) == Some("radio_rx"));
        StreamFacts {
            rate_hz: number("rate_hz").or_else(of_graph).filter(|rate| *rate > 0.0),
            centre_hz: centre_hz.filter(|hz| *hz > 0.0),
            is_live: file.type_of(block) == Some("radio_rx"),
            // The times of tags are fractions of seconds: a clock of nanoseconds shows them.
            ticks_hz: Some(1e9),
        }
    }
}
