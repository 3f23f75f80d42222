//! `millstream host doctor`: the settings of this machine that cost samples or time, and how to
//! change them.

mod mend;
mod table;

use crate::numbers::rate;
use crate::output::{Join, Report};
use anyhow::bail;
use millstream_cpu::CpuSet;
use millstream_cpu::sched::Class;
use millstream_host::doctor::{
    DoctorRule, Finding, Focus, MachineFiles, RATE_HZ, RULES, Since, Topic, Verdict, examine,
};
use std::path::PathBuf;

/// Lists settings of this machine that cause lost samples or missed deadlines, and how to fix them.
///
/// The command fails if a setting makes the stream lose samples (verdict `fails`) or repeatedly
/// costs it time (verdict `matters`). Without `--apply` it changes nothing.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  millstream host doctor --cpus 2-3 --interface eth1 --rate 50e6
  millstream host doctor --apply --dry-run              shows which files it would write
  sudo millstream host doctor --apply                   makes the safe fixes; `--undo` restores
  sudo millstream host doctor rt-throttling --apply     applies one rule, even a risky one
  sudo millstream host doctor --undo")]
pub struct Args {
    /// Topics (cpu, scheduling, memory, network, clock, dpdk) or rules to check. The default is all
    /// except dpdk.
    #[arg(value_name = "TOPIC|RULE")]
    names: Vec<String>,

    /// CPUs on which the stream will run, for example 2-3. The default is all except the first.
    #[arg(long, value_name = "CPUS")]
    cpus: Option<CpuSet>,

    /// Interface over which the stream comes. Repeat the option for more. The default is all
    /// interfaces that are up.
    #[arg(long, value_name = "INTERFACE")]
    interface: Vec<String>,

    /// Scheduling class of the stream's threads. Threads that handle its packets should have a
    /// higher one.
    #[arg(long, value_name = "CLASS", default_value = "fifo:50")]
    class: Class,

    /// Sample rate for which the machine is judged, in samples per second.
    #[arg(long, value_name = "HZ", value_parser = rate, default_value_t = RATE_HZ)]
    rate: f64,

    /// Fix the findings. A fix that can harm other programs is made only if you name its rule.
    #[arg(long)]
    apply: bool,

    /// Restore everything that `--apply` changed.
    #[arg(long, conflicts_with_all = ["apply", "names", "cpus", "interface", "evidence"])]
    undo: bool,

    /// With `--undo`: also restore settings that other programs have changed since.
    #[arg(long, requires = "undo")]
    force: bool,

    /// With `--apply` or `--undo`: show which files would be written, and write nothing.
    #[arg(long)]
    dry_run: bool,

    /// Also show the details of good findings.
    #[arg(long)]
    evidence: bool,

    /// Check the files below this folder, for example copied from another machine.
    #[arg(long, value_name = "FOLDER", default_value = "/")]
    root: PathBuf,
}

crate::results! {
    also [mend::results],

    /// The settings of the machine.
    struct Examined<'a> {
        /// The CPUs of the stream.
        cpus: CpuSet,
        /// Its interfaces.
        interfaces: Vec<String>,
        /// Its samples per second.
        rate_hz: f64,
        /// All findings, in the order of the rules.
        findings: &'a [Finding],
        /// Those that matter most, the worst first.
        first: &'a [&'a Finding],
        /// The number of findings of each verdict.
        summary: VerdictCounts,
    }

    /// Findings of each verdict.
    struct VerdictCounts {
        /// Those that make the stream lose samples.
        fails: usize,
        /// Those that cost it time again and again.
        matters: usize,
        /// Those that cost little.
        minor: usize,
        /// Those of which nothing is known.
        unknown: usize,
        /// Those that are as they should be.
        good: usize,
    }
}

/// Succeeds when no finding fails or matters, or all requested changes are made.
pub fn run(args: Args) -> anyhow::Result<Report> {
    if !args.root.is_dir() {
        bail!("--root {}: there is no such folder", args.root.display());
    }
    if args.undo {
        let since = if args.force { Since::Overruled } else { Since::Left };
        return mend::undo(&args.root, since, args.dry_run);
    }
    if args.dry_run && !args.apply {
        bail!("--dry-run only shows what --apply or --undo would write: add one of them");
    }
    let rules = chosen(&args.names)?;
    let view = MachineFiles::of(&args.root, focus(&args)?);
    let found = examine(rules, &view);
    if args.apply {
        let named: Vec<_> = args.names.iter().map(String::as_str).collect();
        return mend::apply(&args.root, &found, &named, args.dry_run);
    }
    let count = |verdict| found.iter().filter(|finding| finding.verdict == verdict).count();
    let (fails, matters) = (count(Verdict::Fails), count(Verdict::Matters));
    let first = heaviest(&found);
    let results = Examined {
        cpus: view.stream_cpus(),
        interfaces: view.interfaces(),
        rate_hz: view.rate_hz(),
        findings: &found,
        first: &first,
        summary: VerdictCounts {
            fails,
            matters,
            minor: count(Verdict::Minor),
            unknown: count(Verdict::Unknown),
            good: count(Verdict::Good),
        },
    };
    let costs = found.iter().filter(|finding| finding.verdict.costs()).count();
    // A few need no summary.
    let worst = if costs > FIRST { table::draw_first(&first) } else { String::new() };
    let text = head(&view) + &worst + &table::draw(&found, args.evidence);
    Ok(Report::of(text, &results).failing(failure(fails, matters)))
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
            bail!("there is no CPU {cpu}; these CPUs are online: {online}");
        }
    }
    for interface in &args.interface {
        if !here.has(&format!("sys/class/net/{interface}")) || interface.contains('/') {
            let known = here.names("sys/class/net").join(", ");
            bail!("there is no network interface {interface}; there are: {known}");
        }
    }
    let interfaces = (!args.interface.is_empty()).then(|| args.interface.clone());
    let (class, rate_hz) = (Some(args.class), Some(args.rate));
    Ok(Focus { cpus: args.cpus.clone(), interfaces, class, rate_hz })
}

/// The rules with these names; without names, all default rules.
fn chosen(names: &[String]) -> anyhow::Result<Vec<&'static DoctorRule>> {
    let all = RULES.iter();
    if names.is_empty() {
        return Ok(all.filter(|rule| rule.topic != Topic::Dpdk).collect());
    }
    let is_meant = |rule: &DoctorRule, name: &str| rule.id == name || rule.topic.name() == name;
    for name in names {
        if !RULES.iter().any(|rule| is_meant(rule, name)) {
            bail!(
                "there is no rule or topic `{name}`. Topics are cpu, scheduling, memory, network, \
                 clock and dpdk. Rules are: {}",
                RULES.iter().map(|rule| rule.id).join(", ")
            );
        }
    }
    Ok(all.filter(|rule| names.iter().any(|name| is_meant(rule, name))).collect())
}

/// The reason of a rule.
fn why(finding: &Finding) -> &'static str {
    RULES.iter().find(|rule| rule.id == finding.rule).map_or("", |rule| rule.why)
}
