//! Our host and that of UHD in interleaved rounds against the same radio.

use super::Args;
use super::contender::{Flow, HighestRate, Ours, Uhd, highest};
use super::place::SideCpus;
use crate::child_radio::RadioUnderTest;
use crate::output::{Report, count, note};
use crate::table::Table;
use millstream_lab::Direction;
use millstream_stats::Summary;
use serde_json::{Value, json};
use std::fmt::Write;

/// Searches in interleaved rounds and prints medians, spread and ratio. Fails when a host held no
/// rate at all: there is no ratio then.
pub fn run(
    args: &Args,
    mut ours: Ours,
    uhd: Uhd,
    mut radio: RadioUnderTest,
    place: &SideCpus,
) -> anyhow::Result<Report> {
    note(format_args!("searching {}; both hosts in turns", args.criterion()));
    let mut rows = Vec::new();
    for &direction in args.direction {
        let mut row =
            DirectionRow { direction, ours: HostFigures::default(), uhd: HostFigures::default() };
        for repetition in 1..=args.repeat {
            note(format_args!("{} {repetition}: millstream", direction.name()));
            let found = highest(args, |rate_hz| {
                ours.attempt(Flow::One(direction), rate_hz, args.duration(), true)
            });
            row.ours.add(found.map_err(|error| radio.explain(error))?);
            note(format_args!("{} {repetition}: UHD", direction.name()));
            let found = highest(args, |rate_hz| uhd.attempt(direction, rate_hz, args.duration()));
            row.uhd.add(found.map_err(|error| radio.explain(error))?);
        }
        rows.push(row);
    }
    let counters = radio.stop()?;
    let mut text = place.describe(args.args.is_none());
    let channels = count(args.channel.len() as u64, "channel");
    let _ = writeln!(text, "\n{}; {}\n", channels, args.criterion());
    text.extend(rows.iter().map(DirectionRow::text));
    let results = json!({
        "place": place, "grid": args.grid(), "criterion": args.criterion(), "radio": counters,
        "channels": args.channel, "repetitions": args.repeat,
        "rmem_max": sysctl("rmem_max"), "wmem_max": sysctl("wmem_max"),
        "rows": rows.iter().map(DirectionRow::to_json).collect::<Vec<_>>(),
    });
    let failure = rows.iter().any(|row| row.ratio().is_none()).then(|| {
        format!("one host could not sustain {} MS/s, so there is no ratio", args.step / 1e6)
    });
    Ok(Report { text, results, failure })
}

/// One direction.
struct DirectionRow {
    direction: Direction,
    ours: HostFigures,
    uhd: HostFigures,
}

/// The results of one host, repetition by repetition.
#[derive(Default)]
struct HostFigures {
    rates_hz: Vec<f64>,
    cpu: Vec<f64>,
    tried: Vec<Value>,
}

impl HostFigures {
    /// A search without result counts as 0.
    fn add(&mut self, found: HighestRate) {
        self.rates_hz.push(found.rate_hz.unwrap_or(0.0));
        self.cpu.extend(found.best.as_ref().map(|best| best.cpu_s_per_gigasample()));
        self.tried.push(json!({ "best": found.best, "others": found.tried }));
    }

    fn rate(&self) -> Option<Summary> {
        Summary::of(&self.rates_hz)
    }

    fn to_json(&self) -> Value {
        json!({
            "rates_hz": self.rates_hz, "rate": self.rate(), "tried": self.tried,
            "cpu_s_per_gigasample": Summary::of(&self.cpu),
        })
    }
}

impl DirectionRow {
    /// The ratio of the medians.
    fn ratio(&self) -> Option<f64> {
        let (ours, uhd) = (self.ours.rate()?.median, self.uhd.rate()?.median);
        (ours > 0.0 && uhd > 0.0).then(|| ours / uhd)
    }

    /// Its lines: each host, and the ratio.
    fn text(&self) -> String {
        let mhz = |of: fn(&Summary) -> f64| {
            move |(_, figures): (_, &HostFigures)| {
                figures.rate().map_or("-".to_owned(), |rate| format!("{:.3}", of(&rate) / 1e6))
            }
        };
        let cpu = |(_, figures): (_, &HostFigures)| {
            Summary::of(&figures.cpu).map_or("-".to_owned(), |cpu| format!("{:.3}", cpu.median))
        };
        let text = Table::of([("millstream", &self.ours), ("UHD", &self.uhd)])
            .left(self.direction.name(), |(name, _)| name)
            .right("MS/s, min", mhz(|rate| rate.min))
            .right("median", mhz(|rate| rate.median))
            .right("max", mhz(|rate| rate.max))
            .right("CPU s per gigasample", cpu)
            .text();
        text + &self.ratio().map_or(String::new(), |ratio| format!("ratio       {ratio:.2}\n"))
    }

    fn to_json(&self) -> Value {
        json!({
            "direction": self.direction, "millstream": self.ours.to_json(),
            "uhd": self.uhd.to_json(), "ratio": self.ratio(),
        })
    }
}

/// A limit of the kernel to socket buffers, bytes: UHD asks for 25 MB and takes what it gets.
fn sysctl(name: &str) -> Option<u64> {
    std::fs::read_to_string(format!("/proc/sys/net/core/{name}")).ok()?.trim().parse().ok()
}
