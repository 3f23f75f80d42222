//! `millstream lab compare`: whether sets of results differ.

use super::run::failed;
use super::sets::SetArgs;
use crate::numbers::positive;
use crate::output::Report;
use millstream_lab::compare::{Comparison, Rule, compare};
use millstream_lab::picture::short_time;
use serde_json::json;
use std::fmt::Write;

/// Compares runs or variants: ratios with their intervals, and where figures change along them.
///
/// The unit of evidence is a fresh start of the program (or a boot): six of each side tell a change
/// from chance. A change is one when random orders of the same starts show so much only once in a
/// hundred times, and when it is at least as large as --effect.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  millstream lab compare last                      # the variants of the last run
  millstream lab compare 'timer 2026-11-20' 'timer 2026-11-21' 'timer 2026-11-22'
  millstream lab compare before.jsonl after.jsonl --fail-on-change")]
pub struct Args {
    #[command(flatten)]
    sets: SetArgs,

    /// Smaller changes are no news, percent.
    #[arg(long, value_name = "PERCENT", default_value_t = 10.0, value_parser = positive)]
    effect: f64,

    /// End with status 1 when there is a change.
    #[arg(long)]
    fail_on_change: bool,
}

/// Succeeds when there is something to compare.
pub fn run(args: &Args) -> anyhow::Result<Report> {
    let sets = args.sets.read()?;
    anyhow::ensure!(
        sets.len() > 1,
        "only one set ({}): name another run, or one with several variants",
        sets.first().map_or("", |set| set.label.as_str())
    );
    let rule = Rule { effect_min: args.effect / 100.0, ..Rule::default() };
    let found = compare(&sets, &rule);
    let changes = found.iter().map(|figure| figure.changes.len()).sum::<usize>();
    let failures = args.sets.failures()?;
    let mut text = table(&found) + &failed(&failures);
    let few = found.iter().flat_map(|figure| &figure.sides).any(|side| side.too_few);
    text += &match (changes, few) {
        (0, true) => "no change found, but with so few starts none could be\n".to_owned(),
        (0, false) => "no change\n".to_owned(),
        (1, _) => "1 change\n".to_owned(),
        _ => format!("{changes} changes\n"),
    };
    let failure = (args.fail_on_change && changes > 0).then(|| format!("{changes} changes"));
    let results =
        json!({ "rule": rule, "figures": found, "changes": changes, "failures": failures });
    Ok(Report { text, results, failure })
}

fn table(found: &[Comparison]) -> String {
    let mut text = String::new();
    for figure in found {
        let _ = writeln!(text, "\n{}, {}", figure.title, figure.figure);
        for (index, side) in figure.sides.iter().enumerate() {
            let change = figure.changes.iter().find(|change| change.at == index);
            let ratio = side.ratio.map_or("base".to_owned(), |ratio| {
                format!("{:.2} ({:.2} to {:.2})", ratio.estimate, ratio.low, ratio.high)
            });
            let change = change.map_or(String::new(), |change| {
                format!("  CHANGE × {:.2}, p {:.4}", change.ratio, change.p)
            });
            let (time, max) = (short_time(side.figure_ns as u64), short_time(side.max_ns));
            let _ = writeln!(
                text,
                "  {:<34} {:>3} starts {time:>9}  max {max:>9}  {ratio}{change}",
                side.label, side.starts
            );
        }
    }
    text + "\n"
}
