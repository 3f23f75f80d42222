//! Packet error rates on weak and spoilt signals.

use super::super::peer::PeerArgs;
use crate::force::ForceArgs;
use crate::interrupt;
use crate::live::{Live, TimeLeft};
use crate::numbers::{decibels, rate, seconds, whole};
use crate::output::Report;
use crate::table::Table;
use millstream_lab::atsc::{
    Axis, BACKGROUND_CN_DB, LimitsTable, OURS, ParameterGrid, Point, RECEIVER, ResultStore,
    SETTLE_S, StoredResult, grid, peer_name, rate_word, sweep, tableau,
};
use std::fmt::Write;
use std::path::PathBuf;
use std::time::Instant;

/// Measures packet error rates of the ATSC receiver and GNU Radio's receiver on the same signals.
///
/// The signals vary in noise (C/N), echoes, carrier offset and clock error. The noise is white;
/// signals with other impairments have a C/N of 30 dB. A packet is wrong if it does not come out as
/// it was sent. Packets of the first half second do not count, because the receivers look for the
/// signal then.
#[derive(clap::Args)]
pub struct Args {
    /// What to vary: noise, echo, doppler, ensemble (sets of echoes), carrier, clock. The default
    /// is all.
    #[arg(long, value_name = "AXIS,…", value_delimiter = ',')]
    axis: Vec<Axis>,

    /// Carrier-to-noise ratios to try instead of the default ones, in dB, for example
    /// `14.5,14.75,15`.
    #[arg(long, value_name = "DB,…", value_delimiter = ',', value_parser = decibels)]
    cn: Vec<f64>,

    /// Length of each signal.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = seconds)]
    duration: f64,

    /// Sample rate, in Hz.
    #[arg(long, value_name = "HZ", default_value_t = 6.25e6, value_parser = rate)]
    rate: f64,

    /// Seed of the random packets and of the noise.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<u64>(..))]
    seed: u64,

    /// Store each result in this file. If the file has results already, measure only the missing
    /// ones.
    #[arg(long, value_name = "FILE.jsonl")]
    store: Option<PathBuf>,

    /// Number of signals to decode at the same time. The default is the number of CPUs.
    #[arg(long, value_name = "N", value_parser = whole::<u64>(1..=64))]
    jobs: Option<u64>,

    /// Draw the results to this file.
    #[arg(long, value_name = "FILE.png")]
    picture: Option<PathBuf>,

    #[command(flatten)]
    force: ForceArgs,

    /// Remove Millstream's own results from --store and measure them again, for example after the
    /// receiver has changed.
    #[arg(long, requires = "store")]
    again: bool,

    /// Sample rates inside GNU Radio's receiver, in samples per symbol.
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "1.1",
          value_parser = super::samples_per_symbol)]
    samples_per_symbol: Vec<f64>,

    #[command(flatten)]
    peer: PeerArgs,
}

crate::results! {
    /// With `table`: packet errors on weak and impaired signals.
    struct ReceptionLimits<'a> {
        /// Samples per second.
        rate_hz: f64,
        /// Length of each signal, seconds.
        seconds: f64,
        /// The seed of packets and noise.
        seed: u64,
        /// The version of GNU Radio, if it was measured.
        gnuradio: Option<&'a str>,
        /// Each receiver on each signal.
        lines: &'a [&'a StoredResult],
    }
}

/// Runs the missing tests, and prints all results.
pub fn run(args: Args) -> anyhow::Result<Report> {
    super::check_duration(args.duration)?;
    let plan = ParameterGrid {
        points: points(&args),
        rate_hz: args.rate,
        seconds: args.duration,
        seed: args.seed,
        samples_per_symbol: args.samples_per_symbol,
        cpus: millstream_cpu::thread::allowed_cpus()?,
    };
    let mut store = ResultStore::open(args.store.as_deref(), |name| args.again && name == OURS)?;
    let jobs = args.jobs.map_or(plan.cpus.len(), |jobs| jobs as usize);
    let jobs = jobs.min(plan.points.len()).max(1);
    let mut peers = vec![args.peer.start(RECEIVER)?];
    while peers.len() < jobs {
        let is_there = peers[0].is_some();
        peers.push(if is_there { args.peer.start(RECEIVER)? } else { None });
    }
    let picture = args.picture.as_deref().map(|path| args.force.create(path)).transpose()?;
    let folder = tempfile::tempdir()?;
    interrupt::install();
    let (mut live, mut estimate) = (Live::seldom(), TimeLeft::new(Instant::now()));
    let total = plan.points.len();
    sweep(&plan, &mut store, folder.path(), &mut peers, |done, point| {
        let left = estimate.left(Instant::now(), done, total);
        live.show(Instant::now(), || format!("{done} of {total}{left}: {point}"));
        !interrupt::asked()
    })?;
    live.end();
    let lines = store.lines.iter().filter(|line| line.is_part_of(&plan));
    let lines: Vec<&StoredResult> = lines.collect();
    let mut receivers = vec![OURS.to_owned()];
    receivers.extend(plan.samples_per_symbol.iter().map(|setting| peer_name(*setting)));
    receivers.retain(|name| lines.iter().any(|line| line.receiver == *name));
    let mut text = String::new();
    for table in Axis::ALL.into_iter().flat_map(|axis| LimitsTable::of(axis, &lines, &receivers)) {
        text += &(shown(&table) + "\n");
    }
    if let Some(mut file) = picture {
        tableau(&lines, &receivers, "Packet errors of ATSC receivers").write_png(&mut file)?;
        file.complete()?;
    }
    let _ = writeln!(
        text,
        "{} s of signal each, seed {}; packets from {SETTLE_S} s on, C/N {BACKGROUND_CN_DB} dB \
         where it is not varied",
        plan.seconds, plan.seed
    );
    let results = ReceptionLimits {
        rate_hz: plan.rate_hz,
        seconds: plan.seconds,
        seed: plan.seed,
        gnuradio: peers[0].as_ref().map(|peer| &*peer.version),
        lines: &lines,
    };
    let failure = interrupt::asked().then(|| "interrupted before the end".to_owned());
    Ok(Report::of(text, &results).failing(failure))
}

/// Error rates in rows and columns.
fn shown(limits: &LimitsTable) -> String {
    let mut table = Table::of(&limits.rows).left(&limits.title, |(head, _)| head);
    for (at, column) in limits.columns.iter().enumerate() {
        table = table.right(column, |(_, cells)| cells[at].map_or("-".to_owned(), rate_word));
    }
    table.text()
}

fn points(args: &Args) -> Vec<Point> {
    if !args.cn.is_empty() {
        return args.cn.iter().map(|cn_db| Point::noise(*cn_db)).collect();
    }
    let axes = if args.axis.is_empty() { Axis::ALL.to_vec() } else { args.axis.clone() };
    axes.into_iter().flat_map(grid).collect()
}
