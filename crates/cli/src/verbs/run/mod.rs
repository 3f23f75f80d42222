//! `millstream run`: a flowgraph from a file.

mod plan;
mod send;
mod supervisor;
mod view;

use crate::block_types;
use crate::dashboard::{Dashboard, DashboardTopic, WebArgs, facts_of};
use crate::force::ForceArgs;
use crate::graph_report::{self, GraphReport, LedgerReport};
use crate::live::Live;
use crate::output::{Report, document, note, short};
use crate::signal::{self, SignalReport};
use crate::{crossings, graph_run};
use crate::{stdout, stored};
use anyhow::Context;
use millstream_atsc::blocks::Monitors;
use millstream_flow::{BlockStats, Graph, GraphFile, LatencyStats, Plan, Snapshot};
use millstream_publish::{Publications, PublishLedger};
use plan::{PlanArg, RequestedPlan};
use send::{Outbox, Sending};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;
use supervisor::Supervisor;
use view::{LiveView, SeenCaches};

/// Runs a flowgraph.
///
/// It ends when the sources of the graph end, or after SIGINT (Ctrl-C), when it completes its
/// files. A file is called NAME.part until it is complete; after a failure the .part file remains.
#[derive(clap::Args)]
pub struct Args {
    /// The graph file, for example graphs/atsc-rx.toml.
    #[arg(value_name = "GRAPH.toml")]
    graph: PathBuf,

    /// Set a parameter of the graph. Repeat the option for more parameters. Numbers may end in k, M
    /// or G, for example rate=6.25M. With out=- samples go to standard output and the summary goes
    /// to standard error.
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,

    /// Plan to use, instead of the plan that `millstream graph tune` stored or that the graph file
    /// contains: single (one thread), per-block (a thread for each block), auto, measured, or a
    /// file.
    ///
    /// measured: the graph first runs for half a second without writing files, and the blocks are
    /// placed by their measured costs. Do not use it if reading removes data, as from a pipe.
    #[arg(long, value_name = "PLAN")]
    plan: Option<PlanArg>,

    /// Do not use a stored plan.
    #[arg(long)]
    no_stored_plan: bool,

    /// Show every block, connection and partition while the graph runs, instead of one line.
    #[arg(long)]
    live: bool,

    /// Move blocks to other threads when their load changes. Partitions to which the plan gives a
    /// CPU, or which spin, do not change.
    #[arg(long)]
    adapt: bool,

    /// Send a message to a block at a given time. Repeat the option for more messages.
    ///
    /// Example: 2s:gain.factor=0.5. `millstream graph blocks TYPE` lists the messages of a block
    /// type.
    #[arg(long, value_name = "AFTER:BLOCK.MESSAGE=VALUE")]
    send: Vec<Sending>,

    /// End with an error if no item moves for this long, or if one call of a block takes this long.
    #[arg(long, value_name = "TIME", value_parser = crate::numbers::seconds)]
    stall_limit: Option<f64>,

    #[command(flatten)]
    force: ForceArgs,

    #[command(flatten)]
    web: WebArgs,
}

crate::results! {
    also [graph_report::results, signal::results, view::results],

    /// A run of a graph.
    struct RanGraph<'a> {
        /// The run.
        run: &'a GraphReport,
        /// The ledgers of its sources.
        ledgers: &'a [LedgerReport],
        /// What sinks published.
        published: &'a [PublishLedger],
        /// Its receivers.
        signals: &'a [SignalReport],
        /// Blocks that --adapt moved.
        moves: usize,
        /// Messages that were sent, and moves, with their times.
        events: &'a [String],
        /// Advice to tune the graph again.
        advice: Option<String>,
        /// Choices of accelerators.
        choices: Vec<String>,
        /// What --live saw of the caches.
        caches: Option<SeenCaches<'a>>,
    }

    /// The metrics of all blocks, for sinks that publish them.
    struct PublishedMetrics<'a> {
        /// Time since the start, seconds.
        elapsed_s: f64,
        /// The metrics of each block.
        blocks: BTreeMap<&'a str, Value>,
    }
}

/// Runs until every source has ended or the user asks to end.
pub fn run(args: Args) -> anyhow::Result<Report> {
    let file = GraphFile::read(&args.graph)?;
    let (registry, monitors, publications) = block_types::registry_with_sinks();
    stdout::for_graph(&file, &registry, &args.set)?;
    let file = if args.force.is_given() { file.overwriting(&registry) } else { file };
    // Before the blocks, which may open radios and files.
    let (wanted, tuned) = match &args.plan {
        Some(said) => (RequestedPlan::read(said, &file, &args.set)?, None),
        None if args.no_stored_plan => (RequestedPlan::Given(file.plan().clone()), None),
        None => {
            let (plan, tuned) = stored::plan_for(&file, &registry, &args.set);
            (RequestedPlan::Given(plan), tuned)
        }
    };
    if let Some(caveat) = wanted.caveat(args.adapt) {
        note(format_args!("millstream: {caveat}"));
    }
    let mut graph = file.build(&registry, &args.set)?;
    let choices: Vec<_> = millstream_accel::choices().iter().map(ToString::to_string).collect();
    choices.iter().for_each(|choice| note(format_args!("millstream: {choice}")));
    let mut dashboard = None;
    if let Some(mut plan) = args.web.plan() {
        plan.show_all(&mut graph, facts_of(&file, &args.set))?;
        let title = args.graph.display().to_string();
        let topic = DashboardTopic { verb: "run", title, ..DashboardTopic::default() };
        dashboard = Some(plan.start(&graph, topic)?);
    }
    let plan = wanted.of(&graph);
    let adapter = if args.adapt { Some(plan::adapter(&graph, &plan)?) } else { None };
    let stall_limit = args.stall_limit.map(Duration::try_from_secs_f64).transpose();
    let stall_limit = stall_limit.context("--stall-limit")?;
    let outbox = Outbox::new(&args.send, &graph)?;
    let mut attendant = Supervisor::new(adapter, outbox, stall_limit);
    let mut view = args.live.then(|| LiveView::new(&args.graph, std::io::stderr().is_terminal()));
    let display = (&mut attendant, &mut dashboard, &mut view);
    let run = attended(graph, &plan, display, &monitors, &publications)?;
    supervisor::tell(attendant.end(run.elapsed_s));
    let without = file.rehearsed(&registry);
    let advice = tuned.and_then(|record| stored::advice(&record, &run.snapshot, &without));
    if let Some(advice) = &advice {
        note(format_args!("millstream: {advice}"));
    }
    let signals = SignalReport::all(&monitors);
    let published = publications.ledgers();
    let ledgers: Vec<_> = run.snapshot.blocks.iter().filter_map(LedgerReport::of).collect();
    let (seen, caches) = view.as_mut().map(|view| view.end(&run)).unzip();
    let text = summary(&run, &ledgers, &published, &signals) + &seen.unwrap_or_default();
    let failure = failure(&run, &ledgers, &published, &signals);
    let results = RanGraph {
        run: &run,
        ledgers: &ledgers,
        published: &published,
        signals: &signals,
        moves: attendant.moves,
        events: &attendant.events,
        advice,
        choices,
        caches,
    };
    Ok(Report::of(text, &results).failing(failure))
}

/// Who attends to a running graph: its supervisor, and displays that the user asked for.
type Display<'a> = (&'a mut Supervisor, &'a mut Option<Dashboard>, &'a mut Option<LiveView>);

/// Runs the graph, with the requested display.
fn attended(
    graph: Graph,
    plan: &Plan,
    (attendant, dashboard, view): Display,
    monitors: &Monitors,
    publications: &Publications,
) -> anyhow::Result<GraphReport> {
    let mut live = Live::new();
    let run = graph_run::attended(graph, plan, |now, elapsed, running| {
        let signals = || SignalReport::all(monitors);
        let events = attendant.attend(now, elapsed, running)?.to_vec();
        publications.feed(elapsed, || metrics(elapsed, &running.snapshot()));
        if let Some(dashboard) = dashboard {
            events.iter().for_each(|event| dashboard.board().note("note", "run", event.as_str()));
            dashboard.attend(now, elapsed, running, signals);
        }
        let drawn =
            |view: &mut LiveView| view.show(now, elapsed, running, &signals(), &attendant.events);
        if view.as_mut().is_some_and(drawn) {
            return Ok(());
        }
        graph_run::tell_notes(publications, &mut live);
        if !events.is_empty() {
            live.end();
            supervisor::tell(&events);
        }
        live.show(now, || {
            let snapshot = running.snapshot();
            let busy = view.is_some().then(|| view::brief(&running.profile(), &snapshot));
            status(elapsed, &snapshot, &signals()) + &busy.unwrap_or_default()
        });
        Ok(())
    });
    live.end();
    if let (Some(dashboard), Ok(run)) = (dashboard, &run) {
        dashboard.end(run, SignalReport::all(monitors));
    }
    if view.as_ref().is_some_and(LiveView::is_terminal) {
        supervisor::tell(&attendant.events);
    }
    graph_run::tell_notes(publications, &mut live);
    run
}

/// The metrics of all blocks, for sinks that publish them.
fn metrics(elapsed: Duration, snapshot: &Snapshot) -> String {
    let blocks =
        snapshot.blocks.iter().map(|block| (block.name.as_str(), document(&block.metrics)));
    let (elapsed_s, blocks) = (elapsed.as_secs_f64(), blocks.collect());
    document(&PublishedMetrics { elapsed_s, blocks }).to_string()
}

fn failure(
    run: &GraphReport,
    ledgers: &[LedgerReport],
    published: &[PublishLedger],
    signals: &[SignalReport],
) -> Option<String> {
    if let Some(ledger) = ledgers.iter().find(|ledger| !ledger.balances) {
        return Some(ledger.defect());
    }
    if let Some(ledger) = published.iter().find(|ledger| !ledger.balances) {
        return Some(ledger.defect());
    }
    // After an early end by the user, missing results are not a failure.
    signals.iter().filter(|_| !run.interrupted).find_map(SignalReport::failure)
}

/// Items of every source and sink, and the metrics that blocks publish.
fn status(elapsed: Duration, snapshot: &Snapshot, signals: &[SignalReport]) -> String {
    let mut text = format!("{:6.1} s", elapsed.as_secs_f64());
    for block in &snapshot.blocks {
        if block.items_in == 0 && block.items_out > 0 {
            let rate = block.items_out as f64 / elapsed.as_secs_f64().max(1e-3);
            let _ = write!(text, "  {} {:.2} M/s", block.name, rate / 1e6);
        }
    }
    for signal in signals {
        let _ = write!(text, "  {}", signal.brief());
    }
    text
}

/// A line for each block and for each other result.
fn summary(
    run: &GraphReport,
    ledgers: &[LedgerReport],
    published: &[PublishLedger],
    signals: &[SignalReport],
) -> String {
    let mut text = String::new();
    for block in &run.snapshot.blocks {
        let _ = writeln!(text, "{}", describe(block));
    }
    for latency in &run.snapshot.latency {
        let _ = writeln!(text, "{}", under_way(latency));
    }
    for line in crossings::lines(None, &run.snapshot, run.elapsed_s) {
        let _ = writeln!(text, "{line}");
    }
    for ledger in ledgers {
        let _ = writeln!(text, "ledger: {}", ledger.summary());
    }
    for ledger in published {
        let _ = writeln!(text, "published to {}: {}", ledger.to, ledger.summary());
    }
    for signal in signals {
        let _ = writeln!(text, "{}: {}", signal.receiver, signal.summary());
    }
    let _ = writeln!(text, "{:.2} s, {:.2} s of CPU", run.elapsed_s, run.cpu_s);
    text
}

fn describe(block: &BlockStats) -> String {
    let per_item = block.busy_ns as f64 / block.items_in.max(block.items_out).max(1) as f64;
    let mut text = format!(
        "{:<14} {:>10} calls {:>12} in {:>12} out {:>8.1} ns/item",
        block.name, block.calls, block.items_in, block.items_out, per_item
    );
    for metric in graph_run::metrics(block) {
        let _ = write!(text, "  {metric}");
    }
    let Some(messages) = block.messages.as_ref().filter(|messages| messages.taken > 0) else {
        return text;
    };
    let _ = write!(text, "  messages {}", messages.taken);
    if let Some(refusal) = &messages.refusal {
        let _ = write!(text, " ({} refused, the last: {refusal})", messages.refused);
    }
    text
}

/// A source's items in flight, beside its bound.
fn under_way(latency: &LatencyStats) -> String {
    let amount = |items: u64| match latency.ms(items) {
        Some(ms) => format!("{items} items ({} ms)", short(ms)),
        None => format!("{items} items"),
    };
    let LatencyStats { source, p50_items, p99_items, max_items, held_back, .. } = latency;
    let mut text = format!(
        "latency from {source}: median {}, 99 of 100 within {}, most {}",
        amount(*p50_items),
        amount(*p99_items),
        amount(*max_items)
    );
    let _ = match latency.bound_items {
        Some(bound) => write!(text, "; bound {}, held back {held_back} times", amount(bound)),
        None => write!(text, "; no bound"),
    };
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latency_is_told_in_items_and_in_time_where_the_rate_is_known() {
        let mut latency = LatencyStats {
            source: "radio".into(),
            bound_items: Some(2000),
            rate_hz: Some(1e6),
            max_items: 1900,
            p50_items: 1000,
            p99_items: 1500,
            held_back: 7,
        };
        assert_eq!(
            under_way(&latency),
            "latency from radio: median 1000 items (1 ms), 99 of 100 within 1500 items \
             (1.500 ms), most 1900 items (1.900 ms); bound 2000 items (2 ms), held back 7 times"
        );
        (latency.bound_items, latency.rate_hz) = (None, None);
        assert_eq!(
            under_way(&latency),
            "latency from radio: median 1000 items, 99 of 100 within 1500 items, most 1900 items; \
             no bound"
        );
    }
}
