//! `millstream host doctor`: the settings of this machine that cost samples or time, and how to
//! change them.

mod mend;
mod table;

use crate::numbers::rate;
use crate::output::Report;
use anyhow::bail;
use millstream_cpu::CpuSet;
use millstream_cpu::sched::Class;
use millstream_host::doctor::{
    DoctorRule, Finding, Focus, MachineFiles, RATE_HZ, RULES, Since, Topic, Verdict, examine,
};
use std::path::PathBuf;

/// Shows the settings of this machine that harm a stream or a deadline, and how to change them.
///
/// Fails when something makes the stream lose samples (`fails`) or repeatedly costs it time
/// (`matters`). Nothing is changed without `--apply`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  millstream host doctor --cpus 2-3 --interface eth1 --rate 50e6
  millstream host doctor --apply --dry-run              which files would be written, old -> new
  sudo millstream host doctor --apply                   what is safe; `--undo` puts it back
  sudo millstream host doctor rt-throttling --apply     applies one rule, even a risky one
  sudo millstream host doctor --undo")]
pub struct Args {
    /// Topics (cpu, scheduling, memory, network, clock, dpdk) or rules; none: all but dpdk.
    #[arg(value_name = "TOPIC|RULE")]
    names: Vec<String>,

    /// CPUs that the stream is to have, `2-3`; otherwise all but the first.
    #[arg(long, value_name = "CPUS")]
    cpus: Option<CpuSet>,

    /// Interface that the stream comes over, may be repeated; otherwise all that are up.
    #[arg(long, value_name = "INTERFACE")]
    interface: Vec<String>,

    /// Scheduling class of the stream's threads: what packets wait for should be above it.
    #[arg(long, value_name = "CLASS", default_value = "fifo:50")]
    class: Class,

    /// Samples a second that the machine is judged for.
    #[arg(long, value_name = "HZ", value_parser = rate, default_value_t = RATE_HZ)]
    rate: f64,

    /// Mend findings by writing files; risky ones only where their rule is named.
    #[arg(long)]
    apply: bool,

    /// Put everything back that `--apply` changed.
    #[arg(long, conflicts_with_all = ["apply", "names", "cpus", "interface", "evidence"])]
    undo: bool,

    /// With `--undo`: put back also settings that others changed since.
    #[arg(long, requires = "undo")]
    force: bool,

    /// With `--apply` or `--undo`: show which files would be written, and write nothing.
    #[arg(long)]
    dry_run: bool,

    /// Show the evidence of good findings, too.
    #[arg(long)]
    evidence: bool,

    /// Examine a recorded machine: files below this folder.
    #[arg(long, value_name = "FOLDER", default_value = "/")]
    root: PathBuf,
}

/// Succeeds when no finding fails or matters, or all requested changes are made.
pub fn run(args: &Args) -> anyhow::Result<Report> {
    if !args.root.is_dir() {
        bail!("there is no folder {}", args.root.display());
    }
    let run = if args.dry_run { mend::MendMode::Dry } else { mend::MendMode::Real };
    if args.undo {
        let since = if args.force { Since::Overruled } else { Since::Left };
        return mend::undo(&args.root, since, run);
    }
    if args.dry_run && !args.apply {
        bail!("--dry-run shows what --apply or --undo would do: add one of them");
    }
    let rules = chosen(&args.names)?;
    let view = MachineFiles::of(&args.root, focus(args)?);
    let found = examine(rules, &view);
    if args.apply {
        let named: Vec<_> = args.names.iter().map(String::as_str).collect();
        return mend::apply(&args.root, &found, &named, run);
    }
    let count = |verdict| found.iter().filter(|finding| finding.verdict == verdict).count();
    let (fails, matters) = (count(Verdict::Fails), count(Verdict::Matters));
    let style = table::Style::of_terminal();
    let first = heaviest(&found);
    let results = serde_json::json!({
        "cpus": view.stream_cpus(), "interfaces": view.interfaces(), "rate_hz": view.rate_hz(),
        "findings": found, "first": first,
        "summary": {
            "fails": fails, "matters": matters, "minor": count(Verdict::Minor),
            "unknown": count(Verdict::Unknown), "good": count(Verdict::Good),
        },
    });
    let costs = found.iter().filter(|finding| finding.verdict.costs()).count();
    // A few need no summary.
    let first = if costs > FIRST { table::draw_first(&first, style) } else { String::new() };
    let text = head(&view) + &first + &table::draw(&found, args.evidence, style);
    Ok(Report { text, results, failure: failure(fails, matters) })
}

/// Number of the worst findings that come first.
const FIRST: usize = 3;

/// The findings that matter most, the worst first.
fn heaviest(found: &[Finding]) -> Vec<&Finding> {
    let mut costs: Vec<_> = found.iter().filter(|finding| finding.verdict.costs()).collect();
    // Findings of equal weight stay in the order of the rules.
    costs.sort_by_key(|finding| finding.verdict);
    costs.truncate(FIRST);
    costs
}

fn failure(fails: usize, matters: usize) -> Option<String> {
    let parts = [(fails, "fails", "fail"), (matters, "matters", "matter")];
    let parts: Vec<_> = parts
        .into_iter()
        .filter(|(count, ..)| *count > 0)
        .map(|(count, one, many)| format!("{count} {}", if count == 1 { one } else { many }))
        .collect();
    let need = if fails + matters == 1 { "setting needs" } else { "settings need" };
    (fails + matters > 0)
        .then(|| format!("{} {need} attention: {}", fails + matters, parts.join(", ")))
}

fn head(view: &MachineFiles) -> String {
    let interfaces = match view.interfaces() {
        none if none.is_empty() => "no interface that is up".to_owned(),
        some => some.join(", "),
    };
    let cpus = match view.stream_cpus() {
        none if none.is_empty() => "no CPU of its own".to_owned(),
        some => format!("{} (of {})", some.named(), view.online()),
    };
    let rate = view.rate_hz() / 1e6;
    format!("a stream of {rate} MS/s on {cpus} over {interfaces}\n")
}

fn focus(args: &Args) -> anyhow::Result<Focus> {
    let here = MachineFiles::of(&args.root, Focus::default());
    if let Some(cpus) = &args.cpus {
        let online = here.online();
        if let Some(cpu) = cpus.iter().find(|cpu| !online.contains(*cpu)) {
            bail!("there is no CPU {cpu}; the CPUs that are online: {online}");
        }
    }
    for interface in &args.interface {
        if !here.has(&format!("sys/class/net/{interface}")) || interface.contains('/') {
            let known = here.names("sys/class/net").join(", ");
            bail!("there is no interface {interface}; there are: {known}");
        }
    }
    let interfaces = (!args.interface.is_empty()).then(|| args.interface.clone());
    let (class, rate_hz) = (Some(args.class), Some(args.rate));
    Ok(Focus { cpus: args.cpus.clone(), interfaces, class, rate_hz })
}

/// The rules with these names; without names, all default rules.
fn chosen(names: &[String]) -> anyhow::Result<Vec<&'static DoctorRule>> {
    let all = RULES.iter().copied();
    if names.is_empty() {
        return Ok(all.filter(|rule| rule.topic != Topic::Dpdk).collect());
    }
    let is_meant = |rule: &DoctorRule, name: &str| rule.id == name || rule.topic.name() == name;
    for name in names {
        if !RULES.iter().any(|rule| is_meant(rule, name)) {
            let known: Vec<_> = RULES.iter().map(|rule| rule.id).collect();
            bail!(
                "there is no rule or topic `{name}`; topics are cpu, scheduling, memory, network, \
                 clock and dpdk, rules are: {}",
                known.join(", ")
            );
        }
    }
    Ok(all.filter(|rule| names.iter().any(|name| is_meant(rule, name))).collect())
}

/// The reason of a rule.
fn why(finding: &Finding) -> &'static str {
    RULES.iter().find(|rule| rule.id == finding.rule).map_or("", |rule| rule.why)
}
