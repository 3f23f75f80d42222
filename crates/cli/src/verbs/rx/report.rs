//! The result of a recording.

use super::target::RecordingFiles;
use crate::front_end::{self, ChannelTuning};
use crate::graph_report::{self, GraphReport, LedgerReport};
use crate::graph_run;
use crate::output::{Report, shown};
use millstream_flow::Snapshot;
use millstream_radio::StreamRate;
use millstream_radio::block::RecordingSegment;
use std::num::NonZero;
use std::time::Duration;

crate::results! {
    also [graph_report::results, front_end::results],

    /// A recording. One of a single channel has the fields of that channel but `channel`; one of
    /// several has `channels`.
    struct RecordedFiles<'a> {
        /// Samples per second.
        rate_hz: f64,
        /// Ticks of the radio's clock per sample.
        ticks_per_sample: NonZero<u32>,
        /// The requested start, ticks.
        start_ticks: Option<u64>,
        /// Stretches without a gap.
        segments: usize,
        /// The run of the graph.
        run: &'a GraphReport,
        /// The files of the only channel.
        #[serde(flatten)]
        only: Option<ChannelFiles<'a>>,
        /// The files of several channels.
        #[serde(skip_serializing_if = "Option::is_none")]
        channels: Option<Vec<ChannelFiles<'a>>>,
    }

    /// The files of a channel.
    struct ChannelFiles<'a> {
        /// Its number, counted through all devices.
        #[serde(skip_serializing_if = "Option::is_none")]
        channel: Option<usize>,
        /// The file of samples.
        data: String,
        /// The file of metadata.
        meta: Option<String>,
        /// The ledger of its samples.
        ledger: &'a LedgerReport,
        /// The settings of its front end.
        tuned: &'a ChannelTuning,
    }
}

/// A recorded channel.
pub struct RecordedChannel {
    /// Its number, counted through all devices.
    pub number: usize,
    /// Its files.
    pub target: RecordingFiles,
    /// The settings of its front end.
    pub tuned: ChannelTuning,
    /// The ledger of its samples.
    pub ledger: LedgerReport,
}

/// A finished recording.
pub struct FinishedRecording {
    /// At least one.
    pub channels: Vec<RecordedChannel>,
    /// The rates of samples and of the radios' time.
    pub rate: StreamRate,
    /// The requested start, ticks, if any.
    pub start_ticks: Option<u64>,
    /// Its stretches without a gap, the same on all channels.
    pub segments: Vec<RecordingSegment>,
    /// Samples requested per channel.
    pub wanted: Option<u64>,
    /// Largest number of lost samples without failure.
    pub max_lost: Option<u64>,
    /// The run of the graph.
    pub run: GraphReport,
}

/// The live line.
pub fn status(
    elapsed: Duration,
    snapshot: &Snapshot,
    channels: u64,
    wanted: Option<u64>,
) -> String {
    let Some(ledger) = snapshot.block("radio").and_then(LedgerReport::of) else {
        return String::new();
    };
    let delivered = ledger.delivered / channels;
    let share = wanted.map_or(String::new(), |wanted| {
        let expected = (ledger.expected / channels) as f64;
        format!("{:3.0} %  ", 100.0 * expected / wanted as f64)
    });
    let rate = delivered as f64 / elapsed.as_secs_f64().max(1e-3) / 1e6;
    format!("{share}{rate:.2} MS/s  {delivered} samples  {} lost", ledger.lost_total())
}

/// Adds to the error of a failed run the paths of the partial files, and what to do.
pub fn with_part(error: anyhow::Error, targets: &[RecordingFiles]) -> anyhow::Error {
    let error =
        targets.iter().fold(error, |error, target| graph_run::with_part(error, &target.data));
    let parts = targets.iter().filter(|target| target.meta.is_some());
    let mut parts = parts.map(|target| millstream_output::part_of(&target.data));
    match parts.find(|part| part.exists()) {
        Some(part) => anyhow::anyhow!(
            "{error}; `millstream inspect {}` shows it. With --reopen TIME a recording goes on \
             when the radio is back",
            part.display()
        ),
        None => error,
    }
}

/// Returns the document and the final lines.
pub fn report(recorded: FinishedRecording) -> Report {
    let count = recorded.segments.len();
    let plural = if count == 1 { "" } else { "s" };
    let (mut text, mut channels) = (String::new(), Vec::new());
    for channel in &recorded.channels {
        let meta = channel.target.meta.as_deref();
        let data = channel.target.name();
        text += &format!("{data}: {count} segment{plural}; {}\n", channel.ledger.summary());
        channels.push(ChannelFiles {
            channel: Some(channel.number),
            data,
            meta: meta.map(shown),
            ledger: &channel.ledger,
            tuned: &channel.tuned,
        });
    }
    let failure = failure(&recorded);
    let (only, channels) = match <[_; 1]>::try_from(channels) {
        Ok([only]) => (Some(ChannelFiles { channel: None, ..only }), None),
        Err(several) => (None, Some(several)),
    };
    let results = RecordedFiles {
        rate_hz: recorded.rate.samples_hz(),
        ticks_per_sample: recorded.rate.ticks_per_sample,
        start_ticks: recorded.start_ticks,
        segments: count,
        run: &recorded.run,
        only,
        channels,
    };
    Report::of(text, &results).failing(failure)
}

/// The first reason to fail, of the channels in order.
fn failure(recorded: &FinishedRecording) -> Option<String> {
    let limits = RxLimits { wanted: recorded.wanted, max_lost: recorded.max_lost };
    let interrupted = recorded.run.interrupted;
    recorded.channels.iter().find_map(|channel| {
        let data = channel.target.name();
        limits.failure(interrupted, &channel.ledger, &data)
    })
}

/// The required samples of a channel, and the allowed losses.
struct RxLimits {
    wanted: Option<u64>,
    max_lost: Option<u64>,
}

impl RxLimits {
    fn failure(&self, interrupted: bool, ledger: &LedgerReport, data: &str) -> Option<String> {
        if !ledger.balances {
            return Some(ledger.defect());
        }
        if !interrupted && ledger.delivered == 0 {
            return Some(
                "no sample arrived: check the rate, the cable and the firewall".to_owned(),
            );
        }
        let delivered = ledger.delivered;
        if let Some(wanted) = self.wanted.filter(|wanted| ledger.expected < *wanted) {
            let how = if interrupted { "interrupted" } else { "the stream ended early" };
            return Some(format!(
                "{how}: {data} has {delivered} of the {wanted} samples asked for"
            ));
        }
        let lost = ledger.lost_total();
        let max_lost = self.max_lost.filter(|max_lost| lost > *max_lost)?;
        Some(format!("{data}: {lost} samples were lost, and {max_lost} were allowed"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_that_was_missed_and_too_many_losses_fail() {
        let ledger = LedgerReport {
            expected: 10,
            delivered: 9,
            lost: [("network_loss", 1)].into(),
            after_end: 5,
            balances: true,
        };
        assert_eq!(
            ledger.summary(),
            "10 samples expected = 9 delivered + 1 lost (network_loss 1): balances; 5 arrived \
             after the end, not counted"
        );
        let failure = |interrupted, wanted, max_lost| {
            RxLimits { wanted, max_lost }.failure(interrupted, &ledger, "x.sc16")
        };
        assert_eq!(failure(true, None, None), None);
        assert_eq!(failure(true, Some(10), None), None, "all were there when it was interrupted");
        assert_eq!(failure(false, Some(10), Some(1)), None);
        let short = "interrupted: x.sc16 has 9 of the 20 samples asked for";
        assert_eq!(failure(true, Some(20), None).as_deref(), Some(short));
        let short = "the stream ended early: x.sc16 has 9 of the 20 samples asked for";
        assert_eq!(failure(false, Some(20), None).as_deref(), Some(short));
        let lost = "x.sc16: 1 samples were lost, and 0 were allowed";
        assert_eq!(failure(false, Some(10), Some(0)).as_deref(), Some(lost));
        let nothing = LedgerReport { delivered: 0, lost: [("network_loss", 10)].into(), ..ledger };
        let limits = RxLimits { wanted: Some(10), max_lost: None };
        let text = limits.failure(false, &nothing, "x.sc16").unwrap();
        assert!(text.starts_with("no sample arrived: "), "{text}");
    }
}
