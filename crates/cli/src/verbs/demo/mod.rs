//! `millstream demo`: the main job on one machine, without root and without hardware.
//!
//! A second process serves an emulated radio whose antenna is a live 8-VSB transmitter; this one
//! opens it over loopback, streams, decodes, and writes a file that a video player opens.

mod picture;

use crate::block_types;
use crate::child_radio::{self, ChildRadio};
use crate::dashboard::{DashboardTopic, WebArgs, facts_of};
use crate::force::ForceArgs;
use crate::graph_report::{self, GraphReport, LedgerReport};
use crate::graph_run;
use crate::live::Live;
use crate::numbers::{positive, rate, seconds, within};
use crate::output::{Report, describe, note, shown};
use crate::signal::{self, SignalReport};
use anyhow::{Context, anyhow};
use millstream_flow::{GraphFile, Snapshot};
use millstream_web::StreamFacts;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Samples that wait in the radio while the host is busy: 0.67 s at 6.25 MS/s.
const BUFFER_SAMPLES: u64 = 1 << 22;
/// A test picture, a running clock and a tone; made by scripts/make-test-picture.sh.
pub const TEST_PICTURE: &[u8] = include_bytes!("../../../assets/test-picture.ts");
/// The graph that the demo runs; `millstream run` accepts it too.
const GRAPH: &str = include_str!("../../../../../graphs/radio-atsc-rx.toml");
/// Transport packets per second of signal (A/53 Part 2: 19.392658 Mbit/s).
const PACKETS_PER_SECOND: f64 = 19_392_658.46 / (188.0 * 8.0);
/// Least decoded signal of a successful demo, seconds.
const SIGNAL_MIN_S: f64 = 2.0;

/// Shows the whole program: an emulated radio sends a television channel, and a receiver decodes it
/// to a video file. It needs no root and no hardware.
#[derive(clap::Args)]
pub struct Args {
    /// Transport stream to transmit. The default is a built-in test picture.
    #[arg(long, value_name = "FILE.ts")]
    ts: Option<PathBuf>,

    /// Length of the signal, at least 0.1s. The demo succeeds only if it decodes 2s.
    #[arg(long, value_name = "TIME", default_value = "8s", value_parser = seconds)]
    duration: f64,

    /// Sample rate, in Hz.
    #[arg(long, value_name = "HZ", default_value_t = 6.25e6, value_parser = rate)]
    rate: f64,

    /// Speed of the radio's clock relative to real time. Use a value below 1 on a machine that is
    /// too slow.
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = positive)]
    time_scale: f64,

    /// File for the decoded transport stream.
    #[arg(long, value_name = "FILE.ts", default_value = "demo.ts")]
    out: PathBuf,

    /// File for one decoded picture, which ffmpeg makes.
    #[arg(long, value_name = "FILE.png", default_value = "demo.png")]
    picture: PathBuf,

    #[command(flatten)]
    force: ForceArgs,

    #[command(flatten)]
    web: WebArgs,
}

crate::results! {
    also [graph_report::results, signal::results],

    /// A demonstration.
    struct ShownDemo<'a> {
        /// Whether all went well.
        ok: bool,
        /// The file of the decoded transport stream.
        transport_stream: String,
        /// Decoded signal, seconds.
        signal_s: f64,
        /// The file of the picture.
        picture: Option<String>,
        /// Why there is none.
        picture_missing: Option<String>,
        /// The receiver.
        signal: &'a SignalReport,
        /// The samples of the radio.
        ledger: &'a LedgerReport,
        /// The counters of the emulated radio.
        radio: &'a Value,
        /// The run of the graph.
        run: &'a GraphReport,
    }
}

/// Succeeds when enough signal was decoded without an error and no sample was lost.
pub fn run(args: Args) -> anyhow::Result<Report> {
    within("--duration", (args.duration, " s"), 0.1..=3600.0, "0.1 to 3600 seconds of signal")?;
    check_files(&args)?;
    for path in [&args.out, &args.picture] {
        args.force.check(path)?;
    }
    let mut radio = ChildRadio::start(&radio_options(&args)?)?;
    note(format_args!("radio   E320 emulated by process {} at {}", radio.pid(), radio.addr));
    let samples = (args.duration * args.rate).round() as u64;
    let (run, signal) = match receive(&args, &radio, samples) {
        Ok(received) => received,
        Err(error) => return Err(graph_run::with_part(radio.explain(error), &args.out)),
    };
    let counters = radio.stop()?;

    let ledger = source_ledger(&run.snapshot)?;
    let picture = match signal.status.packets {
        0 => Err(anyhow!("nothing was decoded")),
        _ => picture::extract(&args.out, &args.picture, args.force),
    };
    let verdict = judge(&run, &ledger, &signal, &counters);
    let results = ShownDemo {
        ok: verdict.is_ok(),
        transport_stream: shown(&args.out),
        signal_s: signal.status.packets as f64 / PACKETS_PER_SECOND,
        picture: picture.as_ref().ok().map(|path| shown(path)),
        picture_missing: picture.as_ref().err().map(describe),
        signal: &signal,
        ledger: &ledger,
        radio: &counters,
        run: &run,
    };
    let text = summary(&args, &run, &ledger, &signal, &picture);
    Ok(Report::of(text, &results).failing(verdict.err()))
}

/// Options of a radio whose antenna is the given transport stream, or the test picture.
fn radio_options(args: &Args) -> anyhow::Result<child_radio::ChildRadioOptions<'static>> {
    let (stdin, stream) = match &args.ts {
        Some(path) => (
            None,
            path.to_str().context("--ts: the file name must be valid UTF-8: rename the file")?,
        ),
        None => (Some(TEST_PICTURE), "/dev/stdin"),
    };
    let (antenna, scale) = (format!("atsc:{stream}"), args.time_scale);
    let options = format!("--time-scale {scale} --rx-buffer-samples {BUFFER_SAMPLES} --rx-antenna");
    let mut options =
        child_radio::ChildRadioOptions { stdin, ..child_radio::ChildRadioOptions::new(&options) };
    options.args.push(antenna);
    Ok(options)
}

/// Checks that no file overwrites another one of the same demo: `demo.ts` is a likely input.
fn check_files(args: &Args) -> anyhow::Result<()> {
    let (out, picture) = (args.out.display(), args.picture.display());
    let (a, b) = (place(&args.out), place(&args.picture));
    anyhow::ensure!(a != b, "--out and --picture are both {out}: give two different files");
    let Some(ts) = &args.ts else { return Ok(()) };
    let is_ts = |path: &Path| {
        let (path, ts) = (path.canonicalize(), ts.canonicalize());
        matches!((path, ts), (Ok(path), Ok(ts)) if path == ts)
    };
    anyhow::ensure!(
        !is_ts(&args.out),
        "--out {out} is the file that --ts transmits: give another --out"
    );
    anyhow::ensure!(
        !is_ts(&args.picture),
        "--picture {picture} is the file that --ts transmits: give another --picture"
    );
    Ok(())
}

/// The canonical path of a file, existing or not: two spellings of one name are the same.
fn place(path: &Path) -> PathBuf {
    let spelled = || {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new(".")).canonicalize().ok()?;
        Some(folder.join(path.file_name()?))
    };
    path.canonicalize().ok().or_else(spelled).unwrap_or_else(|| path.to_owned())
}

fn receive(
    args: &Args,
    radio: &ChildRadio,
    samples: u64,
) -> anyhow::Result<(GraphReport, SignalReport)> {
    let file = GraphFile::parse("the demo's graph", GRAPH)?;
    let set = [
        format!("args=addr={}", radio.addr),
        format!("rate={}", args.rate),
        format!("samples={samples}"),
        format!("out={}", args.out.to_str().context("--out: the name must be UTF-8")?),
    ];
    let (registry, monitors) = block_types::registry();
    let file = if args.force.is_given() { file.overwriting(&registry) } else { file };
    let mut graph = file.build(&registry, &set)?;
    let mut dashboard = None;
    if let Some(mut plan) = args.web.plan() {
        let (facts, is_live) = (facts_of(&file, &set), args.time_scale == 1.0);
        plan.show_all(&mut graph, |block| StreamFacts { is_live, ..facts(block) })?;
        let title = "an emulated E320 with a television transmitter".to_owned();
        let topic = DashboardTopic { verb: "demo", title, ..DashboardTopic::default() };
        dashboard = Some(plan.start(&graph, topic)?);
    }
    let signal = || SignalReport::all(&monitors).pop();
    let mut live = Live::new();
    let run = graph_run::run(
        graph,
        file.plan(),
        (&mut live, &mut dashboard),
        || SignalReport::all(&monitors),
        |elapsed, snapshot| status(elapsed, snapshot, signal().as_ref()),
    )?;
    Ok((run, signal().context("the graph contains no receiver, which is a defect of Millstream")?))
}

fn source_ledger(snapshot: &Snapshot) -> anyhow::Result<LedgerReport> {
    let mut ledgers = snapshot.blocks.iter().filter_map(LedgerReport::of);
    ledgers.next().context("the radio source kept no ledger, which is a defect of Millstream")
}

/// The live line.
fn status(elapsed: Duration, snapshot: &Snapshot, signal: Option<&SignalReport>) -> String {
    let seconds = elapsed.as_secs_f64();
    let Ok(ledger) = source_ledger(snapshot) else { return String::new() };
    let rate = ledger.delivered as f64 / seconds.max(1e-3) / 1e6;
    let signal = signal.map_or(String::new(), SignalReport::brief);
    format!("{seconds:4.1} s  {rate:5.2} MS/s  {signal}  {} samples lost", ledger.lost_total())
}

/// Checks what the demo promises.
fn judge(
    run: &GraphReport,
    ledger: &LedgerReport,
    signal: &SignalReport,
    radio: &Value,
) -> Result<(), String> {
    let signal_s = signal.status.packets as f64 / PACKETS_PER_SECOND;
    let ensure = |is_so: bool, otherwise: &dyn Fn() -> String| {
        if is_so { Ok(()) } else { Err(otherwise()) }
    };
    ensure(!run.interrupted, &|| "interrupted before the end".to_owned())?;
    ensure(ledger.balances, &|| ledger.defect())?;
    let starved = radio["rx_starved_samples"].as_u64().unwrap_or(0);
    let (lost, bad) = (ledger.lost_total(), signal.status.uncorrected_packets);
    let (busy, rest) =
        ("because this machine was too busy", "close other programs, or try --time-scale 0.5");
    ensure(lost == 0, &|| format!("{lost} samples were lost {busy}: {rest}"))?;
    ensure(starved == 0, &|| format!("the emulated radio sent {starved} zeros {busy}: {rest}"))?;
    ensure(bad == 0, &|| {
        format!("{bad} transport packets have errors that could not be corrected: {rest}")
    })?;
    ensure(signal_s >= SIGNAL_MIN_S, &|| {
        format!(
            "only {signal_s:.2} s of signal were decoded, but {SIGNAL_MIN_S} s are needed: give a \
             longer --duration"
        )
    })?;
    Ok(())
}

fn summary(
    args: &Args,
    run: &GraphReport,
    ledger: &LedgerReport,
    signal: &SignalReport,
    picture: &anyhow::Result<PathBuf>,
) -> String {
    let (out, packets) = (args.out.display(), signal.status.packets);
    let signal_s = packets as f64 / PACKETS_PER_SECOND;
    let picture = match picture {
        Ok(path) => path.display().to_string(),
        Err(reason) => format!("none: {}", describe(reason)),
    };
    let mut lines = vec![
        format!("ledger  {}", ledger.summary()),
        format!("signal  {}", signal.summary()),
        format!("stream  {out}: {packets} transport packets, {signal_s:.2} s of signal"),
        format!("cpu     {:.2} s in {:.2} s (receiving side)", run.cpu_s, run.elapsed_s),
        format!("picture {picture}"),
    ];
    if packets > 0 {
        lines.push(format!("play it ffplay {out}   or   mpv {out}   or   vlc {out}"));
    }
    lines.join("\n") + "\n"
}
