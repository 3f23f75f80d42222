//! Our host and that of UHD in interleaved rounds against the same radio.

use super::Args;
use super::contender::{Flow, HighestRate, Ours, RateAttempt, Uhd, highest};
use super::place::SideCpus;
use crate::child_radio::RadioUnderTest;
use crate::experiment::report;
use crate::output::{Report, count, note};
use crate::table::Table;
use millstream_lab::{Direction, Grid};
use millstream_stats::Summary;
use serde::Serialize;
use serde_json::Value;
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
    let radio = radio.stop()?;
    let mut text = place.describe(args.args.is_none());
    let channels = count(args.channel.len() as u64, "channel");
    let _ = writeln!(text, "\n{}; {}\n", channels, args.criterion());
    text.extend(rows.iter().map(DirectionRow::text));
    let results = Results {
        place: *place,
        grid: args.grid(),
        criterion: args.criterion(),
        radio,
        channels: &args.channel,
        repetitions: args.repeat,
        rmem_max: sysctl("rmem_max"),
        wmem_max: sysctl("wmem_max"),
        rows: rows.iter().map(DirectionRow::document).collect(),
    };
    let failure = rows.iter().any(|row| row.ratio().is_none()).then(|| {
        format!("one host could not sustain {} MS/s, so there is no ratio", args.step / 1e6)
    });
    report(text, &results, failure)
}

#[derive(Serialize)]
struct Results<'a> {
    place: SideCpus,
    grid: Grid,
    criterion: String,
    /// The emulated radio's own report.
    radio: Option<Value>,
    channels: &'a [usize],
    repetitions: u32,
    rmem_max: Option<u64>,
    wmem_max: Option<u64>,
    rows: Vec<DirectionDocument<'a>>,
}

#[derive(Serialize)]
struct DirectionDocument<'a> {
    direction: Direction,
    millstream: HostDocument<'a>,
    uhd: HostDocument<'a>,
    ratio: Option<f64>,
}

#[derive(Serialize)]
struct HostDocument<'a> {
    rates_hz: &'a [f64],
    rate: Option<Summary>,
    tried: &'a [Tried],
    cpu_s_per_gigasample: Option<Summary>,
}

/// The measurements of a search.
#[derive(Serialize)]
struct Tried {
    best: Option<RateAttempt>,
    others: Vec<RateAttempt>,
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
    tried: Vec<Tried>,
}

impl HostFigures {
    /// A search without result counts as 0.
    fn add(&mut self, found: HighestRate) {
        self.rates_hz.push(found.rate_hz.unwrap_or(0.0));
        self.cpu.extend(found.best.as_ref().map(|best| best.cpu_s_per_gigasample()));
        self.tried.push(Tried { best: found.best, others: found.tried });
    }

    fn rate(&self) -> Option<Summary> {
        Summary::of(&self.rates_hz)
    }

    fn document(&self) -> HostDocument<'_> {
        HostDocument {
            rates_hz: &self.rates_hz,
            rate: self.rate(),
            tried: &self.tried,
            cpu_s_per_gigasample: Summary::of(&self.cpu),
        }
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

    fn document(&self) -> DirectionDocument<'_> {
        DirectionDocument {
            direction: self.direction,
            millstream: self.ours.document(),
            uhd: self.uhd.document(),
            ratio: self.ratio(),
        }
    }
}

/// A limit of the kernel to socket buffers, bytes: UHD asks for 25 MB and takes what it gets.
fn sysctl(name: &str) -> Option<u64> {
    std::fs::read_to_string(format!("/proc/sys/net/core/{name}")).ok()?.trim().parse().ok()
}
