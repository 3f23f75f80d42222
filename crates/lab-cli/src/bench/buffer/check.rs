//! The law's check: an emulated radio whose time runs slower, behind a long round trip.

use super::Args;
use crate::child_radio::{ChildRadioOptions, RadioUnderTest};
use crate::experiment::{Experiment, Unmeasured, in_rounds};
use crate::output::{Report, note};
use millstream_lab::trial::{self, BufferTrial, TrialOutcome};
use millstream_lab::{Direction, buffer};
use millstream_measure::picture::short_time;
use std::fmt::Write;

crate::results! {
    /// With `--check`: whether trials agree with the calculation.
    struct CheckedBuffer {
        /// Whether the buffer holds by calculation.
        holds: bool,
        /// Each direction.
        trials: Vec<CheckedTrial>,
    }

    /// A trial.
    struct CheckedTrial {
        /// What was tried.
        trial: BufferTrial,
        /// What became of the stream.
        outcome: TrialOutcome,
        /// Whether the buffer holds by calculation.
        expected: bool,
    }
}

/// The trials of a buffer.
struct Checks<'a> {
    args: &'a Args,
    radio: RadioUnderTest,
    samples: u64,
    latency_s: f64,
}

impl Experiment for Checks<'_> {
    type Case = Direction;
    type Outcome = CheckedTrial;

    fn name(&self, direction: &Direction) -> String {
        direction.name().to_owned()
    }

    fn step(&mut self, direction: &Direction, _: usize) -> Result<CheckedTrial, Unmeasured> {
        let trial = self.args.trial(*direction, self.samples, self.latency_s);
        let outcome = trial::run(&self.radio.device_args(), &trial);
        let outcome = outcome.map_err(|error| self.radio.explain(error.into()))?;
        let expected = buffer::holds(self.samples, self.args.rate, self.latency_s);
        Ok(CheckedTrial { trial, outcome, expected })
    }
}

/// Succeeds when the radio agrees with the law.
pub fn run(args: &Args, samples: u64, latency_s: f64) -> anyhow::Result<Report> {
    let radio = RadioUnderTest::start(args.args.as_ref(), radio_options(args, samples))?;
    note(format_args!("{}, its time {} times slower", radio.describe(), 1.0 / args.time_scale));
    let mut checks = Checks { args, radio, samples, latency_s };
    let trials: Vec<_> = in_rounds(&mut checks, args.direction, 1).whole()?.outcomes().collect();
    checks.radio.stop()?;
    let mut text = String::new();
    let mut failure = None;
    for CheckedTrial { trial, outcome, expected } in &trials {
        let _ = writeln!(text, "{}", line(trial, outcome));
        if outcome.holds != *expected {
            let verdict = |holds| if holds { "holds" } else { "is too small" };
            failure = Some(format!(
                "{}: by calculation the buffer {}, but on the emulated radio it {}; a busy machine \
                 can cause this: try a smaller --time-scale",
                trial.direction.name(),
                verdict(*expected),
                verdict(outcome.holds)
            ));
        }
    }
    let holds = buffer::holds(samples, args.rate, latency_s);
    Ok(Report::of(text, &CheckedBuffer { holds, trials }).failing(failure))
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
