//! `millstream-lab bench graph`: the runtime's rates on this machine.

use super::costs::cost;
use super::peer::PeerArgs;
use crate::experiment::{Experiment, Unmeasured, in_rounds};
use crate::numbers::{seconds, whole};
use crate::output::{Report, count, now, percent};
use crate::table::Table;
use anyhow::ensure;
use millstream_lab::graph::{
    BlockKernel, ChainShape, GRAPHS, GraphAttempt, GraphBench, GraphCase, GraphFigures, GraphRate,
    GraphRow, GraphSpec, GraphSubject, ItemKind,
};
use millstream_measure::Measured;
use millstream_stats::Summary;
use serde::Serialize;
use std::fmt::Write;
use std::time::Duration;

/// Measures the speed of flowgraphs: single chains of simple blocks, and several chains in
/// parallel.
///
/// For comparison it runs the same processing in a loop written by hand, and in GNU Radio if that
/// is installed. Millstream runs each graph by several plans, on one CPU and on two. All of them
/// run in several rounds, one after the other. All graphs take some minutes; with --quick the
/// command takes some seconds.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  millstream-lab bench graph --quick
  millstream-lab bench graph --stage copy,fir --shape 8           chains of 8 blocks
  millstream-lab bench graph --item float --shape 4x6 --repeat 9  4 parallel chains of 6 blocks
  millstream-lab bench graph --no-gnuradio --json")]
pub struct Args {
    /// Processing of the blocks: copy, multiply, fir (a filter with 16 taps). The default is all.
    #[arg(long, value_name = "STAGE,…", value_delimiter = ',')]
    stage: Vec<BlockKernel>,

    /// Type of the items: float, complex. The default is both.
    #[arg(long, value_name = "ITEM,…", value_delimiter = ',')]
    item: Vec<ItemKind>,

    /// Number of blocks in a chain (8), or parallel chains x blocks in each (4x6). The default is
    /// 1, 4, 8, 12, 16, 32, 4x6.
    #[arg(long, value_name = "SHAPE,…", value_delimiter = ',')]
    shape: Vec<ChainShape>,

    /// Only measure graphs whose name contains this text. A name is for example `copy float 8`.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,

    /// Measure only chains of 8 and 4x6 blocks that copy or filter (fir) floats, three times.
    #[arg(long, conflicts_with_all = ["stage", "item", "shape"])]
    quick: bool,

    /// How often to repeat all measurements: 5 times by default, 3 times with --quick.
    #[arg(long, value_name = "N", value_parser = whole::<u64>(1..=1000))]
    repeat: Option<u64>,

    /// Length of each measurement.
    #[arg(long, value_name = "TIME", default_value = "200ms", value_parser = seconds)]
    duration: f64,

    #[command(flatten)]
    peer: PeerArgs,
}

crate::results! {
    /// The rates of graphs.
    struct GraphResults<'a> {
        /// The CPU time of each graph by each subject, of its median round.
        records: Vec<Measured>,
        /// Rounds.
        repeats: usize,
        /// Length of a measurement, milliseconds.
        time_ms: f64,
        /// The CPUs.
        cpus: &'a [usize],
        /// Bytes of a batch.
        batch_bytes: usize,
        /// The version of GNU Radio, if it was measured.
        gnuradio: Option<&'a str>,
        /// Each graph on each number of CPUs.
        rows: &'a [GraphRow],
        /// CPU time for an item with the clock reads of the cost model, over without, less 1.
        cost_of_timing: Summary,
    }
}

/// Measures; prints a table.
pub fn run(args: Args) -> anyhow::Result<Report> {
    let time = Duration::from_secs_f64(args.duration.min(1e3));
    let repeats = args.repeat.unwrap_or(if args.quick { 3 } else { 5 }) as usize;
    let cpus: Vec<_> = millstream_cpu::thread::allowed_cpus()?.iter().take(2).collect();
    let cases = cases(&args);
    ensure!(
        !cases.is_empty(),
        "no graph has a name that contains the text of --only; a name is for example `copy float \
         8`"
    );
    let spec = GraphSpec { cpus: cpus.clone(), warm_up: time / 4, time };
    let (peer, started) = (args.peer.start(GRAPHS)?, now());
    let mut bench = GraphBench::new(spec, peer);
    let attempts = bench.attempts(&cases);
    let rates = in_rounds(&mut bench, &attempts, repeats).whole()?.cases;
    let rows = bench.rows(&attempts, &rates);
    let mut timing = Timing { bench: &bench, case: cases[0] };
    let timed = in_rounds(&mut timing, &[true, false], 2 * repeats).whole()?.cases;
    let cpu = |rate: &GraphRate| rate.cpu_s_per_gigaitem;
    let of_untimed = timed[0].ratios(&timed[1], cpu, cpu).unwrap_or_default();
    let Summary { min, median, max, count } = of_untimed;
    let [min, median, max] = [min, median, max].map(|ratio| ratio - 1.0);
    let mut text = table(&rows);
    text += &verdict(&rows, bench.version());
    let _ = writeln!(
        text,
        "cost model on against off ({}, single thread): {:+.1} % CPU per item \
         (between {:+.1} and {:+.1})",
        cases[0],
        100.0 * median,
        100.0 * min,
        100.0 * max,
    );
    let each = rows.iter().flat_map(|row| row.entries.iter().map(move |entry| (row, entry)));
    let records: Vec<_> = each.map(|(row, entry)| record(row, entry, &started)).collect();
    let results = GraphResults {
        records,
        repeats,
        time_ms: args.duration * 1e3,
        cpus: &cpus,
        batch_bytes: millstream_flow::plan::default_batch_bytes(),
        gnuradio: bench.version(),
        rows: &rows,
        cost_of_timing: Summary { min, median, max, count },
    };
    Ok(Report::of(text, &results))
}

impl Experiment for GraphBench {
    type Case = GraphAttempt;
    type Outcome = GraphRate;

    fn name(&self, GraphAttempt { case, cpus, subject }: &GraphAttempt) -> String {
        format!("{case}, {cpus} CPU, {}", subject.name())
    }

    fn step(&mut self, attempt: &GraphAttempt, _: usize) -> Result<GraphRate, Unmeasured> {
        Ok(self.measure(attempt)?)
    }
}

/// The measurement of a graph with the cost model's clock reads, and without.
struct Timing<'b> {
    bench: &'b GraphBench,
    case: GraphCase,
}

impl Experiment for Timing<'_> {
    type Case = bool;
    type Outcome = GraphRate;

    fn name(&self, timed: &bool) -> String {
        format!("{}, cost model {}", self.case, if *timed { "on" } else { "off" })
    }

    fn step(&mut self, timed: &bool, _: usize) -> Result<GraphRate, Unmeasured> {
        Ok(self.bench.measure_timed(self.case, *timed)?)
    }
}

/// The median over all repetitions.
fn record(row: &GraphRow, entry: &GraphFigures, started: &str) -> Measured {
    let contender = entry.contender.name();
    let series =
        format!("{}, {} CPU, {contender}: CPU time of a million items", row.case, row.cpus);
    let parameters = Parameters { graph: row.case, cpus: row.cpus, contender };
    cost("graph", series, entry.cpu_s_per_gigaitem.median * 1e6, started, &parameters)
}

#[derive(Serialize)]
struct Parameters {
    graph: GraphCase,
    cpus: usize,
    contender: &'static str,
}

/// What was given, or all.
fn or<T: Clone>(given: &[T], all: &[T]) -> Vec<T> {
    if given.is_empty() { all.to_vec() } else { given.to_vec() }
}

fn cases(args: &Args) -> Vec<GraphCase> {
    let (kernels, items, shapes) = if args.quick {
        let shapes = vec![ChainShape::chain(8), ChainShape { pipes: 4, stages: 6 }];
        (vec![BlockKernel::Copy, BlockKernel::Fir], vec![ItemKind::Float], shapes)
    } else {
        let (items, shapes) = (or(&args.item, &ItemKind::ALL), or(&args.shape, &ChainShape::ALL));
        (or(&args.stage, &BlockKernel::ALL), items, shapes)
    };
    let mut cases = Vec::new();
    for kernel in kernels {
        for item in &items {
            cases.extend(shapes.iter().map(|shape| GraphCase {
                kernel,
                item: *item,
                shape: *shape,
            }));
        }
    }
    let wanted = args.only.as_deref().unwrap_or("");
    cases.retain(|case| case.to_string().contains(wanted));
    cases
}

/// A block of lines for each graph on each number of CPUs.
fn table(rows: &[GraphRow]) -> String {
    let each = rows.iter().flat_map(|row| row.entries.iter().map(move |entry| (row, entry)));
    let first = |(row, entry): (&GraphRow, &GraphFigures)| {
        let cpus = if row.cpus == 1 { "1 CPU" } else { "2 CPUs" };
        let is_first = std::ptr::eq(&raw const row.entries[0], entry);
        if is_first { format!("{}, {cpus}", row.case) } else { String::new() }
    };
    let planned = |entry: &GraphFigures| {
        matches!(entry.contender, GraphSubject::Single | GraphSubject::Planned)
    };
    let own = |figure: Option<Summary>, entry| figure.filter(|_| planned(entry));
    Table::of(each)
        .left("graph", first)
        .left("", |(row, entry)| match (entry.contender, row.partitions) {
            (GraphSubject::Planned, threads) => {
                format!("planned: {}", count(threads as u64, "thread"))
            }
            (contender, _) => contender.name().to_owned(),
        })
        .right("million items/s\nmin/median/max", |(_, entry)| {
            let Summary { min, median, max, .. } = entry.items_per_s;
            let [min, median, max] = [min, median, max].map(|items| items / 1e6);
            format!("{min:.0}/{median:.0}/{max:.0}")
        })
        .right("CPU s per\n10^9 items", |(_, entry)| {
            format!("{:.2}", entry.cpu_s_per_gigaitem.median)
        })
        .right("switches per\n10^6 items", |(_, entry)| {
            format!("{:.2}", entry.switches_per_million.median)
        })
        .right("of the\nloop", |(row, entry)| {
            own(row.of_fused, entry).map_or(String::new(), |share| percent(share.median))
        })
        .left("", |(row, entry)| {
            own(row.of_gnuradio, entry)
                .map_or(String::new(), |ratio| format!("{:.1} x GNU Radio", ratio.median))
        })
        .text()
}

/// The main figures, in words.
fn verdict(rows: &[GraphRow], peer: Option<&str>) -> String {
    let lowest = |figure: &dyn Fn(&GraphRow) -> Option<Summary>| {
        let figures = rows.iter().filter_map(|row| Some((figure(row)?.median, row)));
        let (figure, row) = figures.min_by(|a, b| a.0.total_cmp(&b.0))?;
        Some((figure, format!("{}, {} CPU", row.case, row.cpus)))
    };
    let long = |row: &GraphRow| row.of_gnuradio.filter(|_| row.case.shape.stages >= 8);
    let mut text = String::new();
    if let (Some((ratio, case)), Some(version)) = (lowest(&long), peer) {
        let _ = writeln!(
            text,
            "chains of 8 and more: at least {ratio:.1} times GNU Radio {version} ({case})"
        );
    }
    if let Some((share, case)) = lowest(&|row| row.of_fused) {
        let share = percent(share);
        let _ = writeln!(text, "one CPU: at least {share} of the hand-written loop ({case})");
    }
    if let Some((gain, case)) = lowest(&|row| row.of_per_block) {
        let _ = writeln!(
            text,
            "a planned run is at least {gain:.1} times our own thread per block ({case})"
        );
    }
    text
}
