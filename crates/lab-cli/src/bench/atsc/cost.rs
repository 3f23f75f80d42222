//! CPU time and speed.

use super::super::costs::cost;
use super::super::peer::PeerArgs;
use crate::block_types;
use crate::experiment::{Experiment, Unmeasured, in_rounds};
use crate::live::during;
use crate::numbers::{rate, seconds, whole};
use crate::output::{Report, note, now};
use crate::stored;
use crate::table::Table;
use millstream_atsc::tx::Impairments;
use millstream_flow::{GraphFile, Plan};
use millstream_lab::atsc::{
    AtscBench, AtscCase, AtscFigures, AtscRun, AtscSubject, BACKGROUND_CN_DB, ECHOES, RECEIVER,
    ReceiverBench, ReceiverFigures, Recording,
};
use millstream_measure::Measured;
use millstream_stats::Summary;
use serde::Serialize;
use std::fmt::Write;

/// The signal of the measurement: a good one, as of most receivers.
const CN_DB: f64 = 25.0;
const GRAPH: &str = include_str!("../../../../../graphs/atsc-rx.toml");

/// What the command measures when no subcommand is given.
#[derive(clap::Args)]
#[group(skip)]
pub struct Args {
    /// Length of the signal in the recording.
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = seconds)]
    duration: f64,

    /// Sample rate, in Hz.
    #[arg(long, value_name = "HZ", default_value_t = 6.25e6, value_parser = rate)]
    rate: f64,

    /// Number of times to make the measurement. Each round measures every receiver once.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = whole::<u64>(1..=1000))]
    repeat: u64,

    /// Seed of the random packets and of the noise.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<u64>(..))]
    seed: u64,

    /// Sample rate inside GNU Radio's receiver, in samples per symbol.
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "1.5,1.1",
          value_parser = super::samples_per_symbol)]
    samples_per_symbol: Vec<f64>,

    /// Leave out the signals with echoes.
    #[arg(long)]
    no_echoes: bool,

    #[command(flatten)]
    peer: PeerArgs,
}

crate::results! {
    /// The cost of the receivers.
    struct ReceptionCosts<'a> {
        /// The CPU time of each receiver, of its median round.
        records: Vec<Measured>,
        /// Samples per second.
        rate_hz: f64,
        /// Length of the signal, seconds.
        signal_s: f64,
        /// The seed of packets and noise.
        seed: u64,
        /// Carrier to noise of the good signal, dB.
        cn_db: f64,
        /// The same of the signals with echoes, dB.
        echoes_cn_db: f64,
        /// Rounds.
        repeats: usize,
        /// The CPUs.
        cpus: Vec<usize>,
        /// The version of GNU Radio, if it was measured.
        gnuradio: Option<String>,
        /// The figures of each receiver, our blocks and the signals with echoes.
        outcome: &'a ReceiverFigures,
    }
}

/// Measures; prints a table and the ratios.
pub fn run(args: Args) -> anyhow::Result<Report> {
    super::check_duration(args.duration)?;
    let impairments = Impairments {
        cn_db: Some(CN_DB),
        offset_hz: 2e3,
        clock_ppm: 3.0,
        ..Impairments::default()
    };
    let (rate_hz, seconds, seed) = (args.rate, args.duration, args.seed);
    let plan = AtscBench {
        recording: Recording { rate_hz, seconds, seed, impairments },
        cpus: millstream_cpu::thread::allowed_cpus()?,
        tuned: tuned(rate_hz),
        samples_per_symbol: args.samples_per_symbol,
        echoes: if args.no_echoes { Vec::new() } else { ECHOES.to_vec() },
    };
    let (mut peer, started) = (args.peer.start(RECEIVER)?, now());
    let version = peer.as_ref().map(|peer| peer.version.clone());
    let folder = tempfile::tempdir()?;
    let (bench, path, peer) = (&plan, folder.path(), peer.as_mut());
    let prepare = move || ReceiverBench::prepare(bench, path, peer);
    note(format_args!("writing {seconds} s of signal"));
    let mut receivers = during("writing the signals and warming up", None, prepare)?;
    let (cases, repeats) = (receivers.cases(), args.repeat as usize);
    let runs = in_rounds(&mut receivers, &cases, repeats).whole()?.cases;
    let outcome = receivers.figures(&cases, &runs);
    let record = |entry: &AtscFigures| {
        let receiver = entry.contender.to_string();
        let series = format!("{receiver}: CPU time of a second of signal");
        let ns = entry.cpu_s_per_signal_s.median * 1e9;
        cost("atsc", series, ns, &started, &Parameters { receiver })
    };
    let records: Vec<_> = outcome.entries.iter().map(record).collect();
    let text = table(&outcome)
        + &stages(&outcome)
        + &echoes(&outcome)
        + &verdict(&outcome, version.as_deref());
    let results = ReceptionCosts {
        records,
        rate_hz,
        signal_s: seconds,
        seed,
        cn_db: CN_DB,
        echoes_cn_db: BACKGROUND_CN_DB,
        repeats,
        cpus: plan.cpus.iter().collect(),
        gnuradio: version,
        outcome: &outcome,
    };
    Ok(Report::of(text, &results))
}

impl Experiment for ReceiverBench<'_> {
    type Case = AtscCase;
    type Outcome = AtscRun;

    fn name(&self, case: &AtscCase) -> String {
        Self::name(self, *case)
    }

    fn step(&mut self, case: &AtscCase, _: usize) -> Result<AtscRun, Unmeasured> {
        Ok(self.measure(*case)?)
    }
}

#[derive(Serialize)]
struct Parameters {
    receiver: String,
}

/// The plan that `millstream graph tune` stored for this graph on this machine.
fn tuned(rate_hz: f64) -> Option<Plan> {
    let file = GraphFile::parse("atsc-rx", GRAPH).ok()?;
    // File names and formats do not count.
    let set = ["in=x.sc16".to_owned(), "out=x.ts".to_owned(), format!("rate={rate_hz}")];
    let place = stored::PlanStoreEntry::of(&file, &block_types::registry().0, &set).ok()?;
    place.load(file.pins()).ok()?.map(|record| record.plan)
}

/// The least, the median and the largest.
pub(super) fn three(summary: Summary, digits: usize) -> String {
    let Summary { min, median, max, .. } = summary;
    format!("{min:.digits$}/{median:.digits$}/{max:.digits$}")
}

fn table(outcome: &ReceiverFigures) -> String {
    Table::of(&outcome.entries)
        .left("receiver", |entry| entry.contender)
        .right("MS/s\nmin/median/max", |entry| three(entry.megasamples_per_s, 1))
        .right("× real time\nmin/median/max", |entry| three(entry.real_time, 2))
        .right("CPU s/signal s\nmin/median/max", |entry| three(entry.cpu_s_per_signal_s, 3))
        .right("packet errors", |entry| format!("{:.1e}", entry.score.error_rate()))
        .text()
}

fn stages(outcome: &ReceiverFigures) -> String {
    let table = Table::of(&outcome.stages)
        .left("on one thread", |stage| format!("  {}", stage.block))
        .right("CPU s/signal s", |stage| format!("{:.4}", stage.cpu_s_per_signal_s))
        .right("share", |stage| format!("{:.1} %", 100.0 * stage.share))
        .left("", |stage| "█".repeat((stage.share * 40.0).round() as usize));
    format!("\n{}", table.text())
}

fn echoes(outcome: &ReceiverFigures) -> String {
    if outcome.echoes.is_empty() {
        return String::new();
    }
    let first = format!("echoes, C/N {BACKGROUND_CN_DB} dB\non one thread");
    let table = Table::of(&outcome.echoes)
        .left(&first, |row| &row.signal)
        .right("× real time\nmin/median/max", |row| three(row.real_time, 2))
        .right("CPU s/signal s\nmin/median/max", |row| three(row.cpu_s_per_signal_s, 3))
        .right("× without\nmin/median/max", |row| three(row.of_clean, 2))
        .right("equalizer", |row| format!("{:.1} %", 100.0 * row.equalizer_share))
        .right("packet errors", |row| format!("{:.1e}", row.score.error_rate()));
    format!("\n{}", table.text())
}

/// The main figures, in words.
fn verdict(outcome: &ReceiverFigures, version: Option<&str>) -> String {
    let mut text = "\n".to_owned();
    let Some(single) = outcome.entries.first() else { return text };
    let by_cpu = 1.0 / single.cpu_s_per_signal_s.median;
    let _ = writeln!(
        text,
        "one core: {:.2} times real time by the clock, {by_cpu:.2} by CPU time",
        single.real_time.median
    );
    for entry in &outcome.entries {
        if let (AtscSubject::GnuRadio { samples_per_symbol }, Some(version)) =
            (entry.contender, version)
        {
            let _ = writeln!(
                text,
                "CPU: {:.1} times less than GNU Radio {version} at {samples_per_symbol} samples a \
                 symbol (between {:.1} and {:.1} in {} turns)",
                entry.of_single.median,
                entry.of_single.min,
                entry.of_single.max,
                entry.of_single.count
            );
        }
    }
    text
}
