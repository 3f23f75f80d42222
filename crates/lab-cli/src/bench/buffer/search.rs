//! The smallest buffer that holds, found by trials, beside the calculated one.

use super::{Args, check};
use crate::child_radio::{ChildRadio, ChildRadioOptions};
use crate::live::Live;
use crate::numbers::allowed_cpus;
use crate::output::Report;
use crate::table::Table;
use crate::{experiment, interrupt, network, program};
use anyhow::Context;
use millstream_lab::packets::{TestNetwork, Testbed};
use millstream_lab::trial::{self, BufferTrial};
use millstream_lab::{Direction, buffer, search};
use millstream_measure::picture::short_time;
use millstream_radio::DeviceArgs;
use serde::Serialize;
use serde_json::Value;
use std::process::Stdio;
use std::time::Instant;

/// The search ends at this share of the buffer.
const RESOLUTION: f64 = 0.04;
/// The smallest buffer of an emulated radio, samples.
pub(super) const SAMPLES_MIN: u64 = 4096;
/// What an interrupt comes before.
const UNTIL: &str = "the search had a result";

/// The smallest buffer of a link and a direction.
#[derive(Debug, Serialize)]
struct Found {
    /// The link; `None` for kernel sockets on the loopback.
    link: Option<String>,
    direction: Direction,
    /// Samples; `None` if none that was tried held.
    samples: Option<u64>,
    /// To the calculated buffer.
    to_calculated: Option<f64>,
    /// To the smallest buffer of the first link in the same direction.
    to_first_link: Option<f64>,
    /// Buffers tried, in their order, and whether they held.
    tried: Vec<(u64, bool)>,
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

/// Succeeds when each search found a buffer.
pub fn run(args: &Args, latency_s: f64) -> anyhow::Result<Report> {
    interrupt::install();
    let calculated = calculated(args, latency_s)?;
    let bed = (!args.link.is_empty()).then(network_of_links).transpose()?;
    let links: Vec<Option<&str>> = match args.link.is_empty() {
        true => vec![None],
        false => args.link.iter().map(|link| Some(link.as_str())).collect(),
    };
    let mut live = Live::seldom();
    let mut all: Vec<Found> = Vec::new();
    for link in links {
        for &direction in args.direction {
            let mut tried = Vec::new();
            let samples = search::smallest(calculated, RESOLUTION, |samples| {
                interrupt::check(UNTIL)?;
                if samples < SAMPLES_MIN {
                    return anyhow::Ok(false);
                }
                live.show(Instant::now(), || {
                    let place = link.map_or(String::new(), |link| format!("{link}, "));
                    format!(
                        "trial {}: {place}{}, {samples} samples",
                        tried.len() + 1,
                        direction.name()
                    )
                });
                let trial = args.trial(direction, samples, latency_s);
                let is_enough = match bed.as_ref().zip(link) {
                    None => on_loopback(args, &trial)?,
                    Some((bed, link)) => over(args, &trial, bed, link)?,
                };
                tried.push((samples, is_enough));
                Ok(is_enough)
            })?;
            anyhow::ensure!(samples != Some(SAMPLES_MIN), "{}", too_small(SAMPLES_MIN));
            let first = all.iter().find(|found| found.direction == direction);
            let to = |other: Option<u64>| Some(samples? as f64 / other? as f64);
            all.push(Found {
                link: link.map(str::to_owned),
                direction,
                samples,
                to_calculated: to(Some(calculated)),
                to_first_link: first.and_then(|first| to(first.samples)),
                tried,
            });
        }
    }
    live.end();
    report(args, latency_s, calculated, &all)
}

fn report(args: &Args, latency_s: f64, calculated: u64, all: &[Found]) -> anyhow::Result<Report> {
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
    let results = Results {
        rate_hz: args.rate,
        latency_s,
        time_scale: args.time_scale,
        calculated_samples: calculated,
        resolution: RESOLUTION,
        found: all,
    };
    experiment::report(text, &results, failure)
}

#[derive(Serialize)]
struct Results<'a> {
    rate_hz: f64,
    latency_s: f64,
    time_scale: f64,
    calculated_samples: u64,
    resolution: f64,
    found: &'a [Found],
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
    let ends = [0, 1].map(|side| end_of(link, bed.places()[side].interface.as_deref()));
    let [ours, theirs] = ends;
    let (address, radio_cpu) = (bed.places()[1].address, bed.places()[1].cpu);
    let enter = |command: &mut std::process::Command| bed.start_in(true, command);
    let mut options = check::radio_options(args, trial.samples);
    options.args.extend(["--mtu".to_owned(), "9000".to_owned(), "--link".to_owned(), theirs]);
    let options =
        ChildRadioOptions { addr: Some(address), cpu: radio_cpu, prepare: Some(&enter), ..options };
    let radio = ChildRadio::start(&options)?;
    let mut host = program::command(["bench", "buffer", "--check", "--json"])?;
    host.args(["--rate", &trial.rate_hz.to_string()])
        .args(["--latency", &trial.latency_s.to_string()])
        .args(["--buffer-samples", &trial.samples.to_string()])
        .args(["--direction", if trial.direction == Direction::Rx { "rx" } else { "tx" }])
        .args(["--time-scale", &trial.time_scale.to_string()])
        .args(["--check-duration", &trial.duration_s.to_string()])
        .args(["--args", &format!("addr={address},link={ours}")])
        .stdin(Stdio::null());
    bed.start_in(false, &mut host)?;
    millstream_host::child::tie(&mut host, bed.places()[0].cpu);
    let output = host.output().context("cannot start the process of the host")?;
    drop(radio);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let holds = document.pointer("/results/trials/0/outcome/holds").and_then(Value::as_bool);
    holds.with_context(|| match document["error"].as_str() {
        Some(error) => format!("{link}: {error}"),
        None => {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            format!("{link}: the host ended early: {said}")
        }
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
