//! `millstream atsc report`: a recording in one picture.

use crate::numbers::rate;
use crate::output::{Report, signed};
use crate::signal::SignalReport;
use anyhow::{Context, bail};
use millstream_atsc::monitor::Status;
use millstream_blocks::sigmf::Source;
use millstream_flow::blocks::SampleFormat;
use millstream_lab::atsc::{Survey, portrait};
use serde_json::json;
use std::fmt::Write;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

/// The rate of recordings that do not tell theirs.
const USUAL_RATE_HZ: f64 = 6.25e6;

/// Receives a recording and draws what the receiver sees.
///
/// One picture: spectrum, echoes, the symbols over time and their eight levels as a histogram,
/// modulation error ratio over time, and the equaliser's taps. `--json` gives the figures.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  millstream sim generate tv.sc16 --cn 22 --echo 5.6us:-10dB
  millstream atsc report tv.sc16 --out tv.png
  millstream rx --args addr=127.0.0.2 --rate 6.25e6 --duration 2 --out tv.sigmf-meta
  millstream atsc report tv.sigmf-meta")]
pub struct Args {
    /// The recording, the middle of the channel at 0 Hz: either file of a SigMF recording, or raw
    /// samples, the format by the name.
    #[arg(value_name = "RECORDING")]
    recording: PathBuf,

    /// Format, where the name does not tell it: sc16 or cf32.
    #[arg(long, value_name = "FORMAT")]
    format: Option<String>,

    /// Sample rate, Hz; where no metadata tells it, 6.25e6 unless given.
    #[arg(long, value_name = "HZ", value_parser = rate)]
    rate: Option<f64>,

    /// The picture to write; RECORDING.png unless given.
    #[arg(long, value_name = "FILE.png")]
    out: Option<PathBuf>,
}

/// Receives, draws, and says in words what is drawn.
pub fn run(args: Args) -> anyhow::Result<Report> {
    let name = args.recording.display();
    if let Some(out) = args.out.as_deref().filter(|out| !is_png(out)) {
        bail!("--out {}: the picture is a PNG: give a name that ends in .png", out.display());
    }
    let format = args.format.as_deref().map(|said| {
        let format = SampleFormat::from_name(said);
        format.with_context(|| format!("--format {said}: there are: sc16, cf32"))
    });
    let source = Source::open(&args.recording, format.transpose()?)?;
    let rate_hz = match (args.rate, source.rate_hz) {
        (Some(said), Some(found)) if said != found => {
            bail!("{name}: its metadata says {found} samples a second: leave --rate out")
        }
        (said, found) => said.or(found).unwrap_or(USUAL_RATE_HZ),
    };
    let survey = Survey::of(&source, rate_hz)?;
    let out = args.out.unwrap_or_else(|| {
        let mut name = args.recording.clone().into_os_string();
        name.push(".png");
        name.into()
    });
    let shown = out.display();
    let file = File::create(&out).with_context(|| format!("cannot write {shown}"))?;
    let canvas = portrait(&survey, &name.to_string());
    canvas.write_png(BufWriter::new(file)).with_context(|| format!("cannot write {shown}"))?;
    let signal = SignalReport {
        receiver: "atsc".to_owned(),
        status: survey.status,
        events: survey.events.clone(),
        gaps: Vec::new(),
    };
    let mut text = words(&survey, rate_hz);
    let _ = writeln!(text, "picture {shown}");
    let results = json!({ "picture": out.display().to_string(), "survey": survey });
    Ok(Report { text, results, failure: signal.failure() })
}

/// Whether a name promises what is written. A device or a pipe promises nothing.
fn is_png(out: &Path) -> bool {
    let is_stream = out.metadata().is_ok_and(|data| !data.is_file());
    is_stream || out.extension().is_some_and(|end| end.eq_ignore_ascii_case("png"))
}

fn words(survey: &Survey, rate_hz: f64) -> String {
    let Status { state, packets, uncorrected_packets, corrected_bytes, .. } = survey.status;
    let mut text = format!("signal  {:.2} s, {state}\n", survey.seconds);
    for event in &survey.events {
        let time_s = event.at_sample as f64 / rate_hz;
        let _ = writeln!(text, "        {time_s:8.3} s  {}", event.state);
    }
    let status = &survey.status;
    for (what, value, unit) in [
        ("MER", status.mer_db, "dB"),
        ("pilot", status.pilot_offset_hz, "Hz"),
        ("clock", status.clock_offset_ppm, "ppm"),
    ] {
        if let Some(value) = value {
            let _ = writeln!(text, "{what:<7} {} {unit}", signed(value, 2));
        }
    }
    let _ = writeln!(
        text,
        "packets {packets}, {uncorrected_packets} damaged, {corrected_bytes} bytes corrected"
    );
    for (delay_us, level_db) in strongest(&survey.echoes) {
        let _ = writeln!(text, "echo    {} µs {level_db:.1} dB", signed(delay_us, 2));
    }
    text
}

/// Peaks that stand out, beside the signal itself: 15 dB below it at most, and not within the five
/// symbols that its own peak takes.
fn strongest(echoes: &[(f64, f64)]) -> Vec<(f64, f64)> {
    const LEAST_DB: f64 = -15.0;
    const LEAST_US: f64 = 0.45;
    let mut peaks: Vec<(f64, f64)> = echoes
        .windows(3)
        .filter(|w| w[1].1 > w[0].1 && w[1].1 >= w[2].1)
        .map(|w| w[1])
        .filter(|(delay_us, level_db)| delay_us.abs() > LEAST_US && *level_db > LEAST_DB)
        .collect();
    peaks.sort_by(|a, b| b.1.total_cmp(&a.1));
    peaks.truncate(5);
    peaks
}
