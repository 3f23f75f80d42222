//! The result of a search, as text and as JSON.

use super::check::{self, Check, CheckedTuning};
use super::settings;
use crate::output::Report;
use crate::table::Table;
use millstream_flow::{GraphFile, Plan};
use millstream_host::doctor::Finding;
use millstream_planner::tune::{
    Length, Objective, Percent, PlanAttempt, RatioEstimate, Rehearsal, Space, Tuned,
};
use std::fmt::Write;
use std::time::Duration;

crate::results! {
    also [check::results],

    /// A search and its outcome.
    struct TunedGraph<'a> {
        /// The graph file.
        graph: &'a str,
        /// What is the best.
        objective: Objective,
        /// The unit of the figures.
        unit: &'a str,
        /// Blocks that decide how fast items pass.
        paced_by: &'a [String],
        /// Blocks that were replaced, so that nothing outside was touched.
        left_out: &'a [String],
        /// Whether it is better than the default beyond noise.
        is_better: bool,
        /// The plan found, relative to the default.
        gain: RatioEstimate,
        /// What the plan found is.
        what: &'a str,
        /// Its figure, in `unit`.
        figure: f64,
        /// The plan found.
        plan: &'a Plan,
        /// The plans tried.
        attempts: &'a [PlanAttempt],
        /// Coarse combinations that were measured together.
        together: MeasuredTogether,
        /// Runs of the graph.
        runs: usize,
        /// Time used, seconds.
        used_s: f64,
        /// Where the plan is stored, or why it is not.
        store: &'a str,
        /// What the machine could be set to.
        machine: &'a [Finding],
        /// The check by a sweep, with --check.
        check: Option<CheckedTuning<'a>>,
    }

    /// Coarse combinations.
    struct MeasuredTogether {
        /// Those that were measured.
        looked_at: usize,
        /// All.
        there: usize,
    }
}

/// Remarks before it starts, as text.
pub fn remarks(file: &GraphFile, space: &Space, trial: &Rehearsal) -> String {
    let mut text = match trial.objective {
        Objective::Throughput => "objective: source items per second".to_owned(),
        Objective::Cpu => "objective: source items per second of CPU time".to_owned(),
    };
    if !trial.paced.is_empty() {
        let _ = write!(text, " ({} decides how fast items pass)", trial.paced.join(", "));
    }
    let _ = match trial.length {
        Length::Whole => write!(text, "\neach run: to the end of the graph"),
        Length::Slice(slice) => {
            let (slice, warm_up) = (slice.as_millis(), (slice / 4).as_millis());
            write!(text, "\neach run: {slice} ms after {warm_up} ms of warm-up")
        }
    };
    if !trial.rehearsed.is_empty() {
        let blocks = trial.rehearsed.join(", ");
        let _ = write!(text, "\nreplaced, so that nothing outside is touched: {blocks}");
    }
    if !space.pins.is_empty() {
        let (partitions, layouts) = (file.pins().partitions(), space.layouts.len());
        let _ = write!(
            text,
            "\nthe graph's own plan stays as it is ({partitions} partitions; {layouts} ways to \
             place other blocks); --free changes it too"
        );
    }
    text
}

/// A search and its outcome.
pub struct TuningReport<'a> {
    pub graph: &'a str,
    pub trial: &'a Rehearsal<'a>,
    pub tuned: &'a Tuned,
    pub stored: String,
    pub check: Option<Check>,
    pub took: Duration,
    /// What the machine could be set to.
    pub machine: Vec<Finding>,
}

impl TuningReport<'_> {
    /// The verb's report.
    pub fn report(self) -> Report {
        let mut text = table(&self.tuned.attempts);
        if let (looked @ 1.., there) = self.tuned.together {
            let _ = writeln!(
                text,
                "\n{looked} of {there} coarse combinations were measured together; the best were \
                 compared further"
            );
        }
        let Tuned { what, gain, is_better, figure, measured, plan, .. } = self.tuned;
        let unit = self.trial.objective.unit();
        let verdict = match is_better {
            true => format!("better than the default beyond noise: {}", Percent(*gain)),
            false if gain.pairs == 0 => "nothing seemed better than the default".to_owned(),
            false => format!("nothing is better than the default beyond noise: {}", Percent(*gain)),
        };
        let _ = writeln!(text, "\n{verdict}\nplan: {what}, {} {unit}", si(*figure));
        let _ = writeln!(
            text,
            "{:.1} s used, {measured} runs; {}",
            self.took.as_secs_f64(),
            self.stored
        );
        text += &settings::lines(&self.machine);
        if let Some(check) = &self.check {
            text.push_str(&check.lines());
        }
        let (looked_at, there) = self.tuned.together;
        let results = TunedGraph {
            graph: self.graph,
            objective: self.trial.objective,
            unit,
            paced_by: &self.trial.paced,
            left_out: &self.trial.rehearsed,
            is_better: *is_better,
            gain: *gain,
            what,
            figure: *figure,
            plan,
            attempts: &self.tuned.attempts,
            together: MeasuredTogether { looked_at, there },
            runs: *measured,
            used_s: self.took.as_secs_f64(),
            store: &self.stored,
            machine: &self.machine,
            check: self.check.as_ref().map(Check::document),
        };
        let failure = self.check.as_ref().and_then(Check::failure);
        Report::of(text, &results).failing(failure)
    }
}

/// One line for each tried plan.
fn table(attempts: &[PlanAttempt]) -> String {
    let is_measured = |one: &PlanAttempt| one.to_default.high.is_finite();
    Table::of(attempts)
        .left("stage", |one| one.stage)
        .left("tried", |one| one.what.chars().take(44).collect::<String>())
        .right("of the default (interval)", |one| match is_measured(one) {
            true => Percent(one.to_default).to_string(),
            false => "-".to_owned(),
        })
        .right("pairs", |one| one.to_default.pairs)
        .left("verdict", |one| &one.verdict)
        .text()
}

/// A number with a unit's prefix.
pub fn si(value: f64) -> String {
    let (factor, prefix) = match value {
        _ if value >= 1e9 => (1e9, " G"),
        _ if value >= 1e6 => (1e6, " M"),
        _ if value >= 1e3 => (1e3, " k"),
        _ => (1.0, " "),
    };
    format!("{:.2}{prefix}", value / factor)
}
