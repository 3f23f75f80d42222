//! Packet error rates on weak and spoilt signals.

use super::super::peer::PeerArgs;
use crate::interrupt;
use crate::live::Live;
use crate::numbers::positive;
use crate::output::Report;
use millstream_lab::atsc::{
    Axis, BACKGROUND_CN_DB, DELAYS_US, LEVELS_DB, Line, OURS, Peer, Point, SETTLE_S, Store, Sweep,
    grid, peer_name, sweep,
};
use serde_json::json;
use std::fmt::Write;
use std::path::PathBuf;
use std::time::Instant;

/// Packet error rates against C/N, echo, carrier offset and clock error, on the same recordings.
///
/// Noise is white; the other signals have a C/N of 30 dB. A packet counts as wrong when it does not
/// come out as it was sent; those sent in the first half second, in which receivers look for the
/// signal, do not count.
#[derive(clap::Args)]
pub struct Args {
    /// What to vary: noise, echo, carrier, clock; everything by default.
    #[arg(long, value_name = "AXIS,…", value_delimiter = ',')]
    only: Vec<Axis>,

    /// C/N to try instead, dB; as `14.5,14.75,15`.
    #[arg(long, value_name = "DB,…", value_delimiter = ',', allow_negative_numbers = true)]
    cn: Vec<f64>,

    /// Seconds of signal each.
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0, value_parser = positive,
          allow_negative_numbers = true)]
    duration: f64,

    /// Sample rate, Hz.
    #[arg(long, value_name = "HZ", default_value_t = 6.25e6, value_parser = positive,
          allow_negative_numbers = true)]
    rate: f64,

    /// Which random packets and which noise.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Keeps results as they come, and goes on where they end.
    #[arg(long, value_name = "FILE.jsonl")]
    store: Option<PathBuf>,

    /// Forgets our own results in --store, for a receiver that has changed.
    #[arg(long, requires = "store")]
    again: bool,

    /// GNU Radio's internal rate.
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "1.1",
          value_parser = super::samples_per_symbol)]
    samples_per_symbol: Vec<f64>,

    #[command(flatten)]
    peer: PeerArgs,
}

/// Tries what is not known yet, and shows what is.
pub fn run(args: Args) -> anyhow::Result<Report> {
    super::check_duration(args.duration)?;
    let plan = Sweep {
        points: points(&args),
        rate_hz: args.rate,
        seconds: args.duration,
        seed: args.seed,
        samples_per_symbol: args.samples_per_symbol,
        cpus: millstream_sys::thread::allowed_cpus()?,
    };
    let mut store = Store::open(args.store.as_deref(), |name| args.again && name == OURS)?;
    let mut peer = args.peer.start(Peer::start)?;
    let folder = tempfile::tempdir()?;
    interrupt::install();
    let mut live = Live::new();
    let total = plan.points.len();
    sweep(&plan, &mut store, folder.path(), peer.as_mut(), |done, point| {
        live.show(Instant::now(), || format!("{done} of {total}: {point}"));
        !interrupt::asked()
    })?;
    live.end();
    let lines: Vec<&Line> = store.lines.iter().filter(|line| line.is_part_of(&plan)).collect();
    let mut text = String::new();
    let mut receivers = vec![OURS.to_owned()];
    receivers.extend(plan.samples_per_symbol.iter().map(|setting| peer_name(*setting)));
    receivers.retain(|name| lines.iter().any(|line| line.receiver == *name));
    for axis in Axis::ALL {
        text += &match axis {
            Axis::Echo => echoes(&lines, &receivers),
            _ => list(&lines, &receivers, axis),
        };
    }
    let _ = writeln!(
        text,
        "{} s of signal each, seed {}; packets from {SETTLE_S} s on, C/N {BACKGROUND_CN_DB} dB \
         where it is not varied",
        plan.seconds, plan.seed
    );
    let results = json!({
        "rate_hz": plan.rate_hz,
        "seconds": plan.seconds,
        "seed": plan.seed,
        "gnuradio": peer.as_ref().map(|peer| peer.version()),
        "lines": lines,
    });
    let failure = interrupt::asked().then(|| "interrupted before its end".to_owned());
    Ok(Report { text, results, failure })
}

fn points(args: &Args) -> Vec<Point> {
    if !args.cn.is_empty() {
        return args.cn.iter().map(|cn_db| Point::noise(*cn_db)).collect();
    }
    let axes = if args.only.is_empty() { Axis::ALL.to_vec() } else { args.only.clone() };
    axes.into_iter().flat_map(grid).collect()
}

/// A rate for people: `0` where no packet was wrong.
fn rate(line: Option<&&Line>) -> String {
    let Some(line) = line else { return "-".to_owned() };
    match line.score.error_rate() {
        0.0 => "0".to_owned(),
        1.0 => "1".to_owned(),
        rate if rate >= 0.01 => format!("{rate:.2}"),
        rate => format!("{rate:.0e}"),
    }
}

/// A line for each signal of an axis.
fn list(lines: &[&Line], receivers: &[String], axis: Axis) -> String {
    let mut points: Vec<Point> = Vec::new();
    for line in lines.iter().filter(|line| line.point.axis() == axis) {
        if !points.contains(&line.point) {
            points.push(line.point);
        }
    }
    if points.is_empty() {
        return String::new();
    }
    let mut text = format!("{:<20}", "packet error rate");
    for receiver in receivers {
        let _ = write!(text, "{receiver:>16}");
    }
    for point in points {
        let _ = write!(text, "\n{point:<20}");
        for receiver in receivers {
            let found = lines.iter().find(|l| l.point == point && l.receiver == *receiver);
            let _ = write!(text, "{:>16}", rate(found));
        }
    }
    text + "\n\n"
}

/// A square of delays and levels for each receiver.
fn echoes(lines: &[&Line], receivers: &[String]) -> String {
    let mut text = String::new();
    if !lines.iter().any(|line| line.point.axis() == Axis::Echo) {
        return text;
    }
    for receiver in receivers {
        let _ = write!(text, "{:<20}", format!("echo, {receiver}"));
        for level in LEVELS_DB {
            let _ = write!(text, "{:>9}", format!("{level} dB"));
        }
        for delay_us in DELAYS_US {
            let _ = write!(text, "\n{:<20}", format!("{delay_us:+} µs"));
            for level_db in LEVELS_DB {
                let point = Point::Echo { delay_us, level_db };
                let found = lines.iter().find(|l| l.point == point && l.receiver == *receiver);
                let _ = write!(text, "{:>9}", rate(found));
            }
        }
        text += "\n\n";
    }
    text
}
