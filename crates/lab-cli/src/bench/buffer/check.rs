//! The law's check: an emulated radio whose time runs slower, behind a long round trip.

use super::Args;
use crate::child_radio::{ChildRadioOptions, RadioUnderTest};
use crate::experiment::report;
use crate::output::{Report, note};
use millstream_lab::trial::{self, BufferTrial, TrialOutcome};
use millstream_lab::{Direction, buffer};
use millstream_measure::picture::short_time;
use serde::Serialize;
use std::fmt::Write;

/// Succeeds when the radio agrees with the law.
pub fn run(args: &Args, samples: u64, latency_s: f64) -> anyhow::Result<Report> {
    let mut radio = RadioUnderTest::start(args.args.as_ref(), radio_options(args, samples))?;
    note(format_args!("{}, its time {} times slower", radio.describe(), 1.0 / args.time_scale));
    let expected = buffer::holds(samples, args.rate, latency_s);
    let mut text = String::new();
    let mut failure = None;
    let mut trials = Vec::new();
    for &direction in args.direction {
        let trial = args.trial(direction, samples, latency_s);
        let outcome = trial::run(&radio.device_args(), &trial);
        let outcome = outcome.map_err(|error| radio.explain(error.into()))?;
        let _ = writeln!(text, "{}", line(&trial, &outcome));
        if outcome.holds != expected {
            let verdict = |holds| if holds { "holds" } else { "is too small" };
            failure = Some(format!(
                "{}: by calculation the buffer {}, but on the emulated radio it {}; a busy machine \
                 can cause this: try a smaller --time-scale",
                direction.name(),
                verdict(expected),
                verdict(outcome.holds)
            ));
        }
        trials.push(CheckedTrial { trial, outcome, expected });
    }
    radio.stop()?;
    report(text, &Results { holds: expected, trials }, failure)
}

#[derive(Serialize)]
struct Results {
    holds: bool,
    trials: Vec<CheckedTrial>,
}

#[derive(Serialize)]
struct CheckedTrial {
    trial: BufferTrial,
    outcome: TrialOutcome,
    expected: bool,
}

/// The emulated radio of a trial, with these buffers.
pub fn radio_options(args: &Args, samples: u64) -> ChildRadioOptions<'static> {
    ChildRadioOptions::new(&format!(
        "--rx-antenna ramp --time-scale {} --rx-buffer-samples {samples} --tx-buffer-samples \
         {samples}",
        args.time_scale
    ))
}

fn line(trial: &BufferTrial, outcome: &TrialOutcome) -> String {
    let ns = |seconds: f64| short_time((seconds * 1e9).round() as u64);
    let what = match trial.direction {
        Direction::Rx => "credit window",
        Direction::Tx => "transmit buffer",
    };
    let verdict = match outcome.broke_after_s {
        None => format!("held for {}", ns(trial.duration_s)),
        Some(after_s) => format!("BROKE after {}", ns(after_s)),
    };
    format!(
        "{:<8} {} MS/s, round trip {}, {what} {} samples ({}): {verdict}",
        trial.direction.name(),
        trial.rate_hz / 1e6,
        ns(trial.latency_s),
        outcome.buffer_samples,
        ns(buffer::slack_s(outcome.buffer_samples, trial.rate_hz)),
    )
}
