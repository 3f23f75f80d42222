//! The smallest buffer that holds, found by trials, beside the calculated one.

use super::{Args, check};
use crate::child_radio::ChildRadio;
use crate::experiment::{Experiment, Unmeasured, in_rounds};
use crate::live::Live;
use crate::numbers::allowed_cpus;
use crate::output::Report;
use crate::table::Table;
use crate::{interrupt, network};
use anyhow::Context;
use millstream_lab::packets::{TestNetwork, Testbed};
use millstream_lab::trial::{self, BufferTrial};
use millstream_lab::{Direction, buffer, search};
use millstream_measure::picture::short_time;
use millstream_radio::DeviceArgs;
use serde_json::Value;
use std::time::Instant;

/// The search ends at this share of the buffer.
const RESOLUTION: f64 = 0.04;
/// The smallest buffer of an emulated radio, samples.
pub(super) const SAMPLES_MIN: u64 = 4096;
/// What an interrupt comes before.
const UNTIL: &str = "the search had a result";

crate::results! {
    /// With `--search`: the smallest buffers that hold.
    struct SmallestBuffers<'a> {
        /// Samples per second.
        rate_hz: f64,
        /// The round trip, seconds.
        latency_s: f64,
        /// The radio's clock, relative to real time.
        time_scale: f64,
        /// The calculated buffer, samples.
        calculated_samples: u64,
        /// The share of the buffer at which a search ends.
        resolution: f64,
        /// Each link and direction.
        found: &'a [FoundBuffer],
    }

    /// The smallest buffer of a link and a direction.
    struct FoundBuffer {
        /// The link; none for kernel sockets on the loopback.
        link: Option<String>,
        /// The direction of the samples.
        direction: Direction,
        /// Samples; none if none that was tried held.
        samples: Option<u64>,
        /// To the calculated buffer.
        to_calculated: Option<f64>,
        /// To the smallest buffer of the first link in the same direction.
        to_first_link: Option<f64>,
        /// Buffers tried, in their order, and whether they held.
        tried: Vec<(u64, bool)>,
    }
}

/// Returns the calculated buffer, if an emulated radio can have one of that size.
pub(super) fn calculated(args: &Args, latency_s: f64) -> anyhow::Result<u64> {
    let calculated = buffer::samples_for(latency_s, args.rate);
    anyhow::ensure!(calculated >= SAMPLES_MIN, "{}", too_small(calculated));
    Ok(calculated)
}

fn too_small(samples: u64) -> String {
    format!(
        "a buffer of {samples} samples is too small for a trial: an emulated radio has at least \
         {SAMPLES_MIN}, and smaller ones must be tried, too; give a higher --rate or --latency"
    )
}

/// The searches over links.
struct Searches<'a> {
    args: &'a Args,
    latency_s: f64,
    calculated: u64,
    bed: Option<Testbed>,
}

impl<'a> Experiment for Searches<'a> {
    type Case = (Option<&'a str>, Direction);
    type Outcome = FoundBuffer;

    fn name(&self, (link, direction): &Self::Case) -> String {
        link.map_or(String::new(), |link| format!("{link}, ")) + direction.name()
    }

    fn step(&mut self, case: &Self::Case, _: usize) -> Result<FoundBuffer, Unmeasured> {
        let &(link, direction) = case;
        let (mut live, mut tried) = (Live::seldom(), Vec::new());
        let samples = search::smallest(self.calculated, RESOLUTION, |samples| {
            interrupt::check(UNTIL)?;
            if samples < SAMPLES_MIN {
                return anyhow::Ok(false);
            }
            live.show(Instant::now(), || {
                format!("trial {}: {}, {samples} samples", tried.len() + 1, self.name(case))
            });
            let trial = self.args.trial(direction, samples, self.latency_s);
            let is_enough = match self.bed.as_ref().zip(link) {
                None => on_loopback(self.args, &trial)?,
                Some((bed, link)) => over(self.args, &trial, bed, link)?,
            };
            tried.push((samples, is_enough));
            Ok(is_enough)
        })?;
        if samples == Some(SAMPLES_MIN) {
            return Err(Unmeasured::Ended(anyhow::anyhow!("{}", too_small(SAMPLES_MIN))));
        }
        let to_calculated = samples.map(|samples| samples as f64 / self.calculated as f64);
        let link = link.map(str::to_owned);
        Ok(FoundBuffer { link, direction, samples, to_calculated, to_first_link: None, tried })
    }
}

/// Succeeds when each search found a buffer.
pub fn run(args: &Args, latency_s: f64) -> anyhow::Result<Report> {
    interrupt::install();
    let calculated = calculated(args, latency_s)?;
    let bed = (!args.link.is_empty()).then(network_of_links).transpose()?;
    let links: Vec<Option<&str>> = match args.link.is_empty() {
        true => vec![None],
        false => args.link.iter().map(|link| Some(link.as_str())).collect(),
    };
    let cases = links.iter().flat_map(|link| args.direction.iter().map(|way| (*link, *way)));
    let cases: Vec<_> = cases.collect();
    let mut searches = Searches { args, latency_s, calculated, bed };
    let mut all: Vec<_> = in_rounds(&mut searches, &cases, 1).whole()?.outcomes().collect();
    // The first link's come first.
    let firsts: Vec<_> = all.iter().map(|found| (found.direction, found.samples)).collect();
    for (at, found) in all.iter_mut().enumerate() {
        let first = firsts[..at].iter().find(|(direction, _)| *direction == found.direction);
        let to = |(_, first): &(_, Option<u64>)| Some(found.samples? as f64 / (*first)? as f64);
        found.to_first_link = first.and_then(to);
    }
    Ok(report(args, latency_s, calculated, &all))
}

fn report(args: &Args, latency_s: f64, calculated: u64, all: &[FoundBuffer]) -> Report {
    let ratio = |ratio: Option<f64>| ratio.map_or(String::new(), |ratio| format!("{ratio:.2}"));
    let table = Table::of(all)
        .left("link", |found| found.link.as_deref().unwrap_or("udp, loopback").to_owned())
        .left("direction", |found| found.direction.name().to_owned())
        .right("samples", |found| found.samples.map_or("-".to_owned(), |n| n.to_string()))
        .right("of the calculated", |found| ratio(found.to_calculated))
        .right("of the first link", |found| ratio(found.to_first_link))
        .right("trials", |found| found.tried.len().to_string());
    let text = format!(
        "smallest buffers that hold, to {:.0} %, at {} MS/s with a round trip of {}; calculated: \
         {calculated} samples\n\n{}",
        RESOLUTION * 100.0,
        args.rate / 1e6,
        short_time((latency_s * 1e9).round() as u64),
        table.text()
    );
    let failure = all.iter().find(|found| found.samples.is_none()).map(|found| {
        let largest = found.tried.iter().map(|(samples, _)| samples).max();
        format!(
            "{}: even {} samples did not hold; the machine is too busy for this rate: try a \
             smaller --time-scale or a lower --rate",
            found.direction.name(),
            largest.unwrap_or(&0)
        )
    });
    let results = SmallestBuffers {
        rate_hz: args.rate,
        latency_s,
        time_scale: args.time_scale,
        calculated_samples: calculated,
        resolution: RESOLUTION,
        found: all,
    };
    Report::of(text, &results).failing(failure)
}

/// A trial between this process and an emulated radio, over the loopback.
fn on_loopback(args: &Args, trial: &BufferTrial) -> anyhow::Result<bool> {
    let mut radio = ChildRadio::start(&check::radio_options(args, trial.samples))?;
    let outcome = trial::run(&DeviceArgs::new(radio.addr), trial);
    let outcome = outcome.map_err(|error| radio.explain(error.into()))?;
    Ok(outcome.holds)
}

/// Two network namespaces joined by a veth pair, with a CPU for each side if there are two.
fn network_of_links() -> anyhow::Result<Testbed> {
    let allowed: Vec<usize> = allowed_cpus()?.iter().collect();
    let cpus = [allowed.last().copied(), allowed.first().copied()];
    Ok(Testbed::set(&TestNetwork::Private { mtu: 9000 }, cpus, network::worker, interrupt::asked)?)
}

/// A trial between two processes over a link, both ends of its kind.
fn over(args: &Args, trial: &BufferTrial, bed: &Testbed, link: &str) -> anyhow::Result<bool> {
    let links = [0, 1].map(|side| end_of(link, bed.places()[side].interface.as_deref()));
    let options = [
        ("--rate", trial.rate_hz.to_string()),
        ("--latency", trial.latency_s.to_string()),
        ("--buffer-samples", trial.samples.to_string()),
        ("--direction", if trial.direction == Direction::Rx { "rx" } else { "tx" }.to_owned()),
        ("--time-scale", trial.time_scale.to_string()),
        ("--check-duration", trial.duration_s.to_string()),
    ];
    let verb = ["bench", "buffer", "--check"].map(str::to_owned).into_iter();
    let options = options.into_iter().flat_map(|(name, value)| [name.to_owned(), value]);
    let words: Vec<_> = verb.chain(options).collect();
    let (address, radio) = (bed.places()[1].address, check::radio_options(args, trial.samples));
    let document = network::against_radio(bed, radio, address, &links, &words)?;
    let holds = document.pointer("/results/trials/0/outcome/holds").and_then(Value::as_bool);
    holds.with_context(|| {
        let error = document["error"].as_str().unwrap_or("the host printed no trial");
        format!("{link}: {error}")
    })
}

/// The link string of one end: the interface comes before the options.
fn end_of(link: &str, interface: Option<&str>) -> String {
    match (network::RowArgs::has_frames(link), interface, link.split_once(':')) {
        (true, Some(interface), Some((kind, options))) => format!("{kind}:{interface},{options}"),
        (true, Some(interface), None) => format!("{link}:{interface}"),
        _ => link.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_of_frames_gets_its_interface() {
        assert_eq!(end_of("udp:gro=off", Some("a")), "udp:gro=off");
        assert_eq!(end_of("xdp", Some("a")), "xdp:a");
        assert_eq!(end_of("xdp:mode=native", Some("a")), "xdp:a,mode=native");
    }
}
