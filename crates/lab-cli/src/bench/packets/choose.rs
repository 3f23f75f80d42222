//! `millstream-lab bench packets --choose`: the link for a need, measured, and stored for `auto`.

use super::Args;
use crate::experiment::{Experiment, Unmeasured, in_rounds};
use crate::output::{Join, Report, note, now};
use crate::table::Table;
use millstream_cpu::Environment;
use millstream_lab::CaseRuns;
use millstream_lab::choice::{
    LINKS, MeasuredLink, Need, Recommended, SPINNING, measure_link, recommend,
};
use millstream_lab::packets::{Span, Testbed};
use millstream_net::choice::{MachineKey, StoredChoice, store};
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

/// Rejects other interfaces: a measurement elsewhere says nothing about a card, because its driver
/// and its XDP mode decide.
pub fn check(args: &Args, sys: &Path) -> anyhow::Result<()> {
    let Some(wanted) = &args.store_for else { return Ok(()) };
    let here = sys.join("class/net").join(wanted);
    anyhow::ensure!(
        here.exists(),
        "--for {wanted}: there is no such network interface; `ip link` lists them"
    );
    let is_card = here.join("device").exists();
    let measured = args.ground.measured();
    anyhow::ensure!(
        !is_card || measured == Some(wanted.as_str()),
        "--for {wanted}: the command would measure {} instead of this network card, whose driver \
         decides the result. Give --interface {wanted}, and with --peer a second interface that a \
         cable connects to it",
        measured.unwrap_or("a veth pair")
    );
    Ok(())
}

crate::results! {
    /// With `--choose`: the links, and the recommended one.
    struct ChoiceResults<'a> {
        /// What is required.
        need: Need,
        /// The links, the safest first.
        candidates: &'a [MeasuredLink],
        /// The link for the need.
        recommended: &'a Recommended,
    }
}

/// Succeeds when a link meets the need.
pub fn run(args: &Args, stage: &mut Testbed) -> anyhow::Result<Report> {
    let [size] = args.size[..] else {
        anyhow::bail!(
            "--choose needs the size of your packets: give --size with exactly one value"
        );
    };
    let latency_max_us = args.max_latency.map(|seconds| seconds * 1e6);
    let need = Need { frame_bytes: size as usize, rate_pps: args.packet_rate, latency_max_us };
    // A core that only waits is worth its price only where latency requires it.
    let spinning = if need.latency_max_us.is_some() { &SPINNING[..] } else { &[] };
    let links = [&LINKS[..], spinning].concat();
    let mut choice = Choice { args, stage, need };
    let all = in_rounds(&mut choice, &links, 1).whole()?;
    let candidates: Vec<_> = all.outcomes().collect();
    let found = recommend(&need, &candidates);
    let found = found.ok_or_else(|| anyhow::anyhow!("{}", refusals(&candidates)))?;
    let mut text = table(&candidates);
    let _ = writeln!(text, "\nlink    {}\nreason  {}", found.link, found.reason);
    let mut failure = (!found.meets).then(|| "no link is good enough".to_owned());
    match args.interface() {
        Some(interface) if found.meets => match store(stored(&interface, &found)) {
            Ok(path) => {
                let path = path.display();
                let _ = writeln!(text, "stored  for {interface} in {path}: the link auto uses it");
            }
            Err((path, error)) => {
                failure = Some(format!("not stored: cannot write {}: {error}", path.display()));
            }
        },
        Some(_) => {}
        None => note("not stored: give its interface with --for INTERFACE"),
    }
    let results = ChoiceResults { need, candidates: &candidates, recommended: &found };
    Ok(Report::of(text, &results).failing(failure))
}

/// The measurement of links, the safest first.
struct Choice<'a> {
    args: &'a Args,
    stage: &'a mut Testbed,
    need: Need,
}

impl Experiment for Choice<'_> {
    type Case = &'static str;
    type Outcome = MeasuredLink;

    fn name(&self, link: &&'static str) -> String {
        format!("measuring {link}")
    }

    fn step(&mut self, link: &&'static str, _: usize) -> Result<MeasuredLink, Unmeasured> {
        let span = Span::of(Duration::from_secs_f64(self.args.duration));
        let (repeat, fifo) = (self.args.repeat as usize, self.args.ground.seats.fifo());
        Ok(measure_link(self.stage, link, &self.need, span, repeat, fifo)?)
    }

    fn is_done(&self, so_far: &[CaseRuns<MeasuredLink>]) -> bool {
        let measured: Vec<_> = so_far.iter().flat_map(CaseRuns::outcomes).cloned().collect();
        measured.len() >= LINKS.len()
            && recommend(&self.need, &measured).is_some_and(|found| found.meets)
    }
}

fn stored(interface: &str, found: &Recommended) -> StoredChoice {
    let now = now();
    let environment = Environment::read(Path::new("/"), &now);
    StoredChoice {
        interface: interface.to_owned(),
        link: found.link.clone(),
        reason: found.reason.clone(),
        measured: now,
        machine: MachineKey::of(&environment),
        environment: serde_json::to_value(environment).unwrap_or_default(),
    }
}

fn table(candidates: &[MeasuredLink]) -> String {
    let of = |one: &MeasuredLink, figure: String| match &one.refused {
        Some(_) => String::new(),
        None => figure,
    };
    let why = |reason: &String| format!("not measured: {reason}");
    let table = Table::of(candidates)
        .left("safest first", |one| &one.link)
        .right("thousand packets/s", |one| of(one, format!("{:.0}", one.rate_pps / 1e3)))
        .right("round trips, p99", |one| of(one, format!("{:.0} µs", one.p99_us)))
        .left("", |one| one.refused.as_ref().map_or(String::new(), why));
    format!("\n{}", table.text())
}

fn refusals(candidates: &[MeasuredLink]) -> String {
    let reason = |one: &MeasuredLink| Some(format!("{}: {}", one.link, one.refused.as_deref()?));
    candidates.iter().filter_map(reason).join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn a_card_is_measured_itself_or_nothing_is_stored_for_it() {
        let sys = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(sys.path().join("class/net/eth1/device")).unwrap();
        std::fs::create_dir_all(sys.path().join("class/net/veth7")).unwrap();
        let check = |rest: &str| {
            let words = format!("bench --choose --size 1514 {rest}");
            let line = Line::parse_from(words.split_whitespace());
            check(&line.args, sys.path()).map_err(|error| error.to_string())
        };
        let error = check("--for eth1").unwrap_err();
        assert!(
            error.contains("would measure a veth pair instead of this network card"),
            "{error}"
        );
        let error = check("--for eth1 --interface eth2 --peer eth3").unwrap_err();
        assert!(error.contains("would measure eth2 instead of this network card"), "{error}");
        assert_eq!(check("--for eth1 --interface eth1 --peer eth2@other"), Ok(()));
        assert_eq!(check("--for eth1 --interface eth1@a --peer eth2"), Ok(()));
        assert_eq!(check("--for veth7"), Ok(()));
        assert_eq!(check(""), Ok(()));
        assert!(check("--for eth9").unwrap_err().contains("there is no such network interface"));
    }
}
