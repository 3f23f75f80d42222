//! `millstream bench packets --choose`: the link for a need, measured, and stored for `auto`.

use super::Args;
use crate::live::Live;
use crate::output::{Report, note};
use millstream_lab::choice::{
    Candidate, LINKS, Need, Recommended, SPINNING, measure_link, recommend,
};
use millstream_lab::packets::{Span, Stage};
use millstream_net::choice::{Machine, Stored, store};
use millstream_sys::Environment;
use serde_json::json;
use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

/// Succeeds when a link meets the need.
pub fn run(args: &Args, stage: &mut Stage) -> anyhow::Result<Report> {
    let [size] = args.size[..] else {
        anyhow::bail!("--choose: give one --size, that of the packets you have");
    };
    let need =
        Need { frame_bytes: size as usize, rate_pps: args.rate, latency_max_us: args.latency_max };
    let span = Span::of(Duration::from_secs_f64(args.duration));
    let mut live = Live::on_terminal_only();
    let mut candidates = Vec::new();
    for (at, link) in LINKS.iter().chain(&SPINNING).enumerate() {
        let soon_enough = || recommend(&need, &candidates).is_some_and(|found| found.meets);
        // A core for nothing but waiting is only worth its price where latency asks for it.
        if at >= LINKS.len() && (need.latency_max_us.is_none() || soon_enough()) {
            break;
        }
        live.show(Instant::now(), || format!("measuring {link}"));
        let (repeat, fifo) = (args.repeat as usize, args.ground.seats.fifo);
        candidates.push(measure_link(stage, link, &need, span, repeat, fifo)?);
    }
    let found = recommend(&need, &candidates);
    let found = found.ok_or_else(|| anyhow::anyhow!("{}", refusals(&candidates)))?;
    let mut text = table(&candidates);
    let _ = writeln!(text, "\nlink    {}\nreason  {}", found.link, found.reason);
    let mut failure = (!found.meets).then(|| "no link is good enough".to_owned());
    match args.interface() {
        Some(interface) if found.meets => match store(stored(&interface, &found)) {
            Ok(path) => {
                let path = path.display();
                let _ = writeln!(text, "stored  for {interface} in {path}: auto follows it");
            }
            Err((path, error)) => {
                failure = Some(format!("not stored: cannot write {}: {error}", path.display()));
            }
        },
        Some(_) => {}
        None => note("not stored: say which interface it is for (--for INTERFACE)"),
    }
    let results = json!({ "need": need, "candidates": candidates, "recommended": found });
    Ok(Report { text, results, failure })
}

fn stored(interface: &str, found: &Recommended) -> Stored {
    let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let environment = Environment::read(Path::new("/"), &now);
    Stored {
        interface: interface.to_owned(),
        link: found.link.clone(),
        reason: found.reason.clone(),
        measured: now,
        machine: Machine::of(&environment),
        environment: serde_json::to_value(environment).unwrap_or_default(),
    }
}

fn table(candidates: &[Candidate]) -> String {
    let wide = candidates.iter().map(|one| one.link.len()).max().unwrap_or(0).max(22);
    let head = "safest first";
    let mut text = format!("\n{head:<wide$}  thousand packets/s   round trips, p99\n");
    for one in candidates {
        let _ = match &one.refused {
            Some(reason) => writeln!(text, "{:<wide$}  not measured: {reason}", one.link),
            None => {
                let kilo = one.rate_pps / 1e3;
                writeln!(text, "{:<wide$}  {kilo:>18.0}   {:>13.0} µs", one.link, one.p99_us)
            }
        };
    }
    text
}

fn refusals(candidates: &[Candidate]) -> String {
    let reason = |one: &Candidate| Some(format!("{}: {}", one.link, one.refused.as_deref()?));
    candidates.iter().filter_map(reason).collect::<Vec<_>>().join("; ")
}
