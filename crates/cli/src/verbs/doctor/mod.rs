//! `millstream doctor`: what on this machine stands in the way, and how to change it.

mod mend;
mod table;

use crate::output::Report;
use anyhow::bail;
use millstream_sys::CpuSet;
use millstream_sys::doctor::{Finding, Focus, RULES, Rule, Topic, Verdict, View, examine};
use millstream_sys::sched::Class;
use std::path::PathBuf;

/// Says what on this machine stands in the way of a stream or a deadline, and how to change it.
///
/// Fails when something does. Nothing is changed without `--apply`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  millstream doctor --cpus 2-3 --interface eth1
  sudo millstream doctor --apply                   what is safe; `--undo` puts it back
  sudo millstream doctor rt-throttling --apply     one rule; its risk is yours
  sudo millstream doctor --undo")]
pub struct Args {
    /// Topics (cpu, scheduling, memory, network, clock, dpdk) or rules; none: all but dpdk.
    #[arg(value_name = "TOPIC|RULE")]
    names: Vec<String>,

    /// CPUs that the stream is to have, `2-3`; otherwise all but the first.
    #[arg(long, value_name = "CPUS")]
    cpus: Option<CpuSet>,

    /// Interface that the stream comes over, may be repeated; otherwise all that are up.
    #[arg(long, value_name = "NAME")]
    interface: Vec<String>,

    /// Scheduling class of the stream's threads: what packets wait for should be above it.
    #[arg(long, value_name = "CLASS", default_value = "fifo:50")]
    class: Class,

    /// Mend what can be mended by writing files; what is risky only where its rule is named.
    #[arg(long)]
    apply: bool,

    /// Put everything back that `--apply` changed.
    #[arg(long, conflicts_with_all = ["apply", "names", "cpus", "interface", "evidence"])]
    undo: bool,

    /// Show what was read for what is good, too.
    #[arg(long)]
    evidence: bool,

    /// Look at a machine that was recorded: files below this folder.
    #[arg(long, value_name = "FOLDER", default_value = "/")]
    root: PathBuf,
}

/// Succeeds when nothing stands in the way, or all that was asked for is done.
pub fn run(args: &Args) -> anyhow::Result<Report> {
    if !args.root.is_dir() {
        bail!("there is no folder {}", args.root.display());
    }
    if args.undo {
        return mend::undo(&args.root);
    }
    let rules = chosen(&args.names)?;
    let view = View::of(&args.root, focus(args)?);
    let found = examine(rules, &view);
    if args.apply {
        let named: Vec<_> = args.names.iter().map(String::as_str).collect();
        return mend::apply(&args.root, &found, &named);
    }
    let count = |verdict| found.iter().filter(|finding| finding.verdict == verdict).count();
    let (costs, unknown, good) =
        (count(Verdict::Costs), count(Verdict::Unknown), count(Verdict::Good));
    let failure = match costs {
        0 => None,
        1 => Some("1 thing stands in the way".to_owned()),
        many => Some(format!("{many} things stand in the way")),
    };
    let results = serde_json::json!({
        "cpus": view.stream_cpus(), "interfaces": view.interfaces(), "findings": found,
        "summary": { "costs": costs, "unknown": unknown, "good": good },
    });
    let text = head(&view) + &table::draw(&found, args.evidence, table::Style::of_terminal());
    Ok(Report { text, results, failure })
}

fn head(view: &View) -> String {
    let interfaces = match view.interfaces() {
        none if none.is_empty() => "no interface that is up".to_owned(),
        some => some.join(", "),
    };
    let cpus = match view.stream_cpus() {
        none if none.is_empty() => "no CPU of its own".to_owned(),
        some => format!("CPUs {some} (of {})", view.online()),
    };
    format!("a stream on {cpus} over {interfaces}\n")
}

fn focus(args: &Args) -> anyhow::Result<Focus> {
    let here = View::of(&args.root, Focus::default());
    if let Some(cpus) = &args.cpus {
        let online = here.online();
        if let Some(cpu) = cpus.iter().find(|cpu| !online.contains(*cpu)) {
            bail!("there is no CPU {cpu}; online are {online}");
        }
    }
    for interface in &args.interface {
        if !here.has(&format!("sys/class/net/{interface}")) || interface.contains('/') {
            let known = here.names("sys/class/net").join(", ");
            bail!("there is no interface {interface}; there are: {known}");
        }
    }
    let interfaces = (!args.interface.is_empty()).then(|| args.interface.clone());
    Ok(Focus { cpus: args.cpus.clone(), interfaces, class: Some(args.class) })
}

/// The rules of some names; without any, all that need not be asked for.
fn chosen(names: &[String]) -> anyhow::Result<Vec<&'static Rule>> {
    let all = RULES.iter().copied();
    if names.is_empty() {
        return Ok(all.filter(|rule| rule.topic != Topic::Dpdk).collect());
    }
    let is_meant = |rule: &Rule, name: &str| rule.id == name || rule.topic.name() == name;
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

/// Why a rule is there.
fn why(finding: &Finding) -> &'static str {
    RULES.iter().find(|rule| rule.id == finding.rule).map_or("", |rule| rule.why)
}
