//! `millstream-lab lab compare`: whether sets of results differ.

use super::run::failed;
use super::sets::SetArgs;
use crate::numbers::positive;
use crate::output::Report;
use millstream_measure::Failure;
use millstream_measure::compare::{ChangeRule, Comparison, SetOrder, compare};
use millstream_measure::picture::short_time;
use millstream_stats::short_ratio;
use std::fmt::Write;

/// Compares runs or variants: ratios to the first one with confidence intervals, and changes.
///
/// Each variant is compared with the first one. Three or more runs of the same variants are taken
/// as a series in time, and the command finds the run at which a figure changes. The unit of
/// evidence is a fresh start of the program, or a boot. The command reports a change if a
/// permutation test finds it, at an error rate for the whole table, and it is at least as large as
/// --effect. The more comparisons a table has, the more starts the test needs: six starts of each
/// side are enough for up to 23 comparisons.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  millstream-lab lab compare last                      # the variants of the last run
  millstream-lab lab compare 'timer 2026-11-20' 'timer 2026-11-21' 'timer 2026-11-22'
  millstream-lab lab compare before.jsonl after.jsonl --fail-on-change")]
pub struct Args {
    #[command(flatten)]
    sets: SetArgs,

    /// Do not report changes smaller than this many percent.
    #[arg(long, value_name = "PERCENT", default_value_t = 10.0, value_parser = positive)]
    effect: f64,

    /// Probability that a table without any real change reports one, in percent.
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0, value_parser = positive)]
    error_rate: f64,

    /// End with status 1 if there is a change.
    #[arg(long)]
    fail_on_change: bool,
}

crate::results! {
    /// Whether sets of results differ.
    struct CompareResults<'a> {
        /// When a difference is a change.
        rule: ChangeRule,
        /// Each figure in each set.
        figures: &'a [Comparison],
        /// The number of changes.
        changes: usize,
        /// Starts without records.
        failures: &'a [Failure],
    }
}

/// Succeeds when there is something to compare.
pub fn run(args: Args) -> anyhow::Result<Report> {
    let sets = args.sets.read()?;
    anyhow::ensure!(
        sets.len() > 1,
        "there is only one set to compare ({}): name another run, or a run with several variants",
        sets.first().map_or("", |set| set.label.as_str())
    );
    let (alpha, effect_min) = (args.error_rate / 100.0, args.effect / 100.0);
    anyhow::ensure!(alpha < 1.0, "--error-rate is {}: give less than 100 percent", args.error_rate);
    let rule = ChangeRule { alpha, effect_min, ..ChangeRule::default() };
    let found = compare(&sets, &rule);
    let changes = found.iter().map(|figure| figure.changes.len()).sum::<usize>();
    let failures = args.sets.failures()?;
    let mut text = table(&found) + &failed(&failures);
    let titles = |figure| found.iter().filter(|one| one.figure == figure).count();
    let without = titles("p50") - titles("p99");
    if without > 0 {
        text += &format!("p99 is not compared in {without} rows: starts have too few values\n");
    }
    let few = found.iter().flat_map(|figure| &figure.sides).any(|side| side.too_few);
    text += &match (changes, few) {
        (0, true) => "no change found; so few starts cannot show one\n".to_owned(),
        (0, false) => "no change\n".to_owned(),
        (1, _) => "1 change\n".to_owned(),
        _ => format!("{changes} changes\n"),
    };
    let failure = (args.fail_on_change && changes > 0)
        .then(|| format!("the comparison reports {changes} changes"));
    let results = CompareResults { rule, figures: &found, changes, failures: &failures };
    Ok(Report::of(text, &results).failing(failure))
}

fn table(found: &[Comparison]) -> String {
    let mut text = String::new();
    for figure in found {
        let _ = writeln!(text, "\n{}, {}", figure.title, figure.figure);
        for (index, side) in figure.sides.iter().enumerate() {
            let change = figure.changes.iter().find(|change| change.at == index);
            let ratio = side.beside_base(index);
            if side.starts == 0 {
                let _ = writeln!(text, "  {:<34} {ratio}", side.label);
                continue;
            }
            let change = match (change, figure.order) {
                (None, _) if side.too_few => "  too few starts to tell".to_owned(),
                (None, _) => String::new(),
                (Some(change), SetOrder::Base) => format!("  CHANGE, p {:.4}", change.p),
                (Some(change), SetOrder::Time) => {
                    format!("  CHANGE × {}, p {:.4}", short_ratio(change.ratio), change.p)
                }
            };
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
