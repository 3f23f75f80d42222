//! The summary that `benchmark_rate` prints at its end.

use serde::Serialize;

/// Its figures, in its order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct UhdSummary {
    /// Samples received.
    pub received: u64,
    /// Samples that it knows to be missing.
    pub dropped: u64,
    /// Overruns that the radio reported.
    pub overruns: u64,
    /// Samples given to the radio.
    pub transmitted: u64,
    /// Gaps that the radio saw.
    pub sequence_errors_tx: u64,
    /// Gaps that the host saw.
    pub sequence_errors_rx: u64,
    /// Underflows that the radio reported.
    pub underruns: u64,
    /// Commands or samples that came too late.
    pub late: u64,
    /// Calls that could not send in time.
    pub timeouts_tx: u64,
    /// Calls that could not receive in time.
    pub timeouts_rx: u64,
}

/// A run that ended without its summary.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the output of UHD's benchmark_rate lacks `{missing}`; it says: {said}")]
pub struct SummaryError {
    /// The missing line.
    pub missing: &'static str,
    /// Its last lines.
    pub said: String,
}

impl UhdSummary {
    /// Parses its output; `complaints` is its standard error, for the error.
    pub(super) fn parse(text: &str, complaints: &str) -> Result<Self, SummaryError> {
        let figure = |name: &'static str| {
            let line = text.lines().find_map(|line| line.trim().strip_prefix(name));
            let number = line.and_then(|rest| rest.trim_start_matches(':').trim().parse().ok());
            number.ok_or_else(|| SummaryError { missing: name, said: last_lines(text, complaints) })
        };
        Ok(Self {
            received: figure("Num received samples")?,
            dropped: figure("Num dropped samples")?,
            overruns: figure("Num overruns detected")?,
            transmitted: figure("Num transmitted samples")?,
            sequence_errors_tx: figure("Num sequence errors (Tx)")?,
            sequence_errors_rx: figure("Num sequence errors (Rx)")?,
            underruns: figure("Num underruns detected")?,
            late: figure("Num late commands")?,
            timeouts_tx: figure("Num timeouts (Tx)")?,
            timeouts_rx: figure("Num timeouts (Rx)")?,
        })
    }

    /// Sum of all figures that should be zero.
    pub fn troubles(&self) -> u64 {
        self.dropped
            + self.overruns
            + self.sequence_errors_tx
            + self.sequence_errors_rx
            + self.underruns
            + self.late
            + self.timeouts_tx
            + self.timeouts_rx
    }
}

fn last_lines(text: &str, complaints: &str) -> String {
    let of = |text: &str| {
        let lines: Vec<_> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        lines[lines.len().saturating_sub(3)..].join(" / ")
    };
    let (out, err) = (of(text), of(complaints));
    if err.is_empty() { out } else { format!("{out} / {err}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As UHD 4.3 prints it.
    const TEXT: &str = "[00:00:03.823153581] Benchmark complete.


Benchmark rate summary:
  Num received samples:     78011034
  Num dropped samples:      1
  Num overruns detected:    2
  Num transmitted samples:  3
  Num sequence errors (Tx): 4
  Num sequence errors (Rx): 5
  Num underruns detected:   6
  Num late commands:        7
  Num timeouts (Tx):        8
  Num timeouts (Rx):        9


Done!
";

    #[test]
    fn every_figure_finds_its_place() {
        let summary = UhdSummary::parse(TEXT, "").unwrap();
        let expected = UhdSummary {
            received: 78_011_034,
            dropped: 1,
            overruns: 2,
            transmitted: 3,
            sequence_errors_tx: 4,
            sequence_errors_rx: 5,
            underruns: 6,
            late: 7,
            timeouts_tx: 8,
            timeouts_rx: 9,
        };
        assert_eq!(summary, expected);
        assert_eq!(summary.troubles(), 1 + 2 + 4 + 5 + 6 + 7 + 8 + 9);
    }

    #[test]
    fn a_run_without_a_summary_says_what_was_printed_last() {
        let error =
            UhdSummary::parse("Creating the device\n", "\n[ERROR] no device\n").unwrap_err();
        assert_eq!(
            error.to_string(),
            "the output of UHD's benchmark_rate lacks `Num received samples`; it says: Creating \
             the device / [ERROR] no device"
        );
    }
}
