//! Our host and that of UHD in interleaved rounds against the same radio.

use super::Args;
use super::contender::{Flow, HighestRate, Ours, RateAttempt, Uhd, highest};
use super::place::SideCpus;
use crate::child_radio::RadioUnderTest;
use crate::experiment::{Experiment, Unmeasured, in_rounds};
use crate::output::{Report, count, note};
use crate::table::Table;
use millstream_lab::{CaseRuns, Direction, Grid};
use millstream_stats::Summary;
use serde_json::Value;
use std::fmt::Write;

crate::results! {
    /// With `--against-uhd`: the rates of our host and of UHD's.
    struct AgainstUhd<'a> {
        /// The CPUs of both sides.
        place: SideCpus,
        /// The rates of a search.
        grid: Grid,
        /// When a rate holds.
        criterion: String,
        /// The emulated radio's own report.
        radio: Option<Value>,
        /// The channels.
        channels: &'a [usize],
        /// Searches with each host.
        repetitions: u32,
        /// The kernel's limit of receive buffers, bytes.
        rmem_max: Option<u64>,
        /// The kernel's limit of send buffers, bytes.
        wmem_max: Option<u64>,
        /// Each direction.
        rows: Vec<DirectionRates>,
    }

    /// The rates of one direction.
    struct DirectionRates {
        /// The direction.
        direction: Direction,
        /// Our host.
        millstream: HostRates,
        /// UHD's.
        uhd: HostRates,
        /// Our median rate over UHD's.
        ratio: Option<f64>,
    }

    /// The rates of a host.
    struct HostRates {
        /// The highest rate of each search; 0: none held.
        rates_hz: Vec<f64>,
        /// The same in short.
        rate: Option<Summary>,
        /// The measurements of each search.
        tried: Vec<TriedRates>,
        /// CPU time for 10⁹ samples at the highest rates, seconds.
        cpu_s_per_gigasample: Option<Summary>,
    }

    /// The measurements of a search.
    struct TriedRates {
        /// The last one at the highest rate.
        best: Option<RateAttempt>,
        /// The others.
        others: Vec<RateAttempt>,
    }
}

/// The hosts, ours first.
const HOSTS: [&str; 2] = ["millstream", "UHD"];

/// The searches of both hosts.
struct Searches<'a> {
    args: &'a Args,
    ours: Ours,
    uhd: Uhd,
    radio: RadioUnderTest,
}

impl Experiment for Searches<'_> {
    type Case = (Direction, &'static str);
    type Outcome = HighestRate;

    fn name(&self, (direction, host): &Self::Case) -> String {
        format!("{}: {host}", direction.name())
    }

    fn step(&mut self, (way, host): &Self::Case, _: usize) -> Result<HighestRate, Unmeasured> {
        let (args, span) = (self.args, self.args.duration());
        let found = match *host == HOSTS[0] {
            true => {
                highest(args, |rate_hz| self.ours.attempt(Flow::One(*way), rate_hz, span, true))
            }
            false => highest(args, |rate_hz| self.uhd.attempt(*way, rate_hz, span)),
        };
        Ok(found.map_err(|error| self.radio.explain(error))?)
    }
}

/// Searches in interleaved rounds and prints medians, spread and ratio. Fails when a host held no
/// rate at all: there is no ratio then.
pub fn run(
    args: &Args,
    ours: Ours,
    uhd: Uhd,
    radio: RadioUnderTest,
    place: &SideCpus,
) -> anyhow::Result<Report> {
    note(format_args!("searching {}; both hosts in turns", args.criterion()));
    let cases = args.direction.iter().flat_map(|way| HOSTS.map(|host| (*way, host)));
    let cases: Vec<_> = cases.collect();
    let mut searches = Searches { args, ours, uhd, radio };
    let all = in_rounds(&mut searches, &cases, args.repeat as usize).whole()?;
    let mut hosts = all.cases.into_iter().map(HostRates::of);
    let rows = args.direction.iter().filter_map(|direction| {
        Some(DirectionRates::of(*direction, [hosts.next()?, hosts.next()?]))
    });
    let rows: Vec<_> = rows.collect();
    let radio = searches.radio.stop()?;
    let mut text = place.describe(args.args.is_none());
    let channels = count(args.channel.len() as u64, "channel");
    let _ = writeln!(text, "\n{}; {}\n", channels, args.criterion());
    text.extend(rows.iter().map(DirectionRates::text));
    let failure = rows.iter().any(|row| row.ratio.is_none()).then(|| {
        format!("one host could not sustain {} MS/s, so there is no ratio", args.step / 1e6)
    });
    let results = AgainstUhd {
        place: *place,
        grid: args.grid(),
        criterion: args.criterion(),
        radio,
        channels: &args.channel,
        repetitions: args.repeat,
        rmem_max: sysctl("rmem_max"),
        wmem_max: sysctl("wmem_max"),
        rows,
    };
    Ok(Report::of(text, &results).failing(failure))
}

impl HostRates {
    /// A search without result counts as 0.
    fn of(searches: CaseRuns<HighestRate>) -> Self {
        let cpu = |found: &HighestRate| found.best.as_ref().map(RateAttempt::cpu_s_per_gigasample);
        let rates_hz: Vec<_> =
            searches.outcomes().map(|found| found.rate_hz.unwrap_or(0.0)).collect();
        Self {
            rate: Summary::of(&rates_hz),
            rates_hz,
            cpu_s_per_gigasample: searches.summary(cpu),
            tried: searches
                .runs
                .into_iter()
                .map(|(_, found)| TriedRates { best: found.best, others: found.tried })
                .collect(),
        }
    }
}

impl DirectionRates {
    fn of(direction: Direction, [millstream, uhd]: [HostRates; 2]) -> Self {
        let of = |host: &HostRates| host.rate.map(|rate| rate.median).filter(|rate| *rate > 0.0);
        let ratio = of(&millstream).zip(of(&uhd)).map(|(ours, uhd)| ours / uhd);
        Self { direction, millstream, uhd, ratio }
    }

    /// Its lines: each host, and the ratio.
    fn text(&self) -> String {
        let mhz = |of: fn(&Summary) -> f64| {
            move |(_, host): (_, &HostRates)| {
                host.rate.map_or("-".to_owned(), |rate| format!("{:.3}", of(&rate) / 1e6))
            }
        };
        let cpu = |(_, host): (_, &HostRates)| {
            host.cpu_s_per_gigasample.map_or("-".to_owned(), |cpu| format!("{:.3}", cpu.median))
        };
        let text = Table::of(HOSTS.into_iter().zip([&self.millstream, &self.uhd]))
            .left(self.direction.name(), |(name, _)| name)
            .right("MS/s, min", mhz(|rate| rate.min))
            .right("median", mhz(|rate| rate.median))
            .right("max", mhz(|rate| rate.max))
            .right("CPU s per gigasample", cpu)
            .text();
        text + &self.ratio.map_or(String::new(), |ratio| format!("ratio       {ratio:.2}\n"))
    }
}

/// A limit of the kernel to socket buffers, bytes: UHD asks for 25 MB and takes what it gets.
fn sysctl(name: &str) -> Option<u64> {
    std::fs::read_to_string(format!("/proc/sys/net/core/{name}")).ok()?.trim().parse().ok()
}
