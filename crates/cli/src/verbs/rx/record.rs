//! The graph of a recording: one source, and a file for each channel.

use super::target::RecordingFiles;
use crate::graph_report::LedgerReport;
use crate::output::note;
use crate::start;
use anyhow::Context;
use millstream_blocks::sigmf::{SigmfSample, SigmfSink};
use millstream_flow::Graph;
use millstream_flow::blocks::FileSink;
use millstream_output::Existing;
use millstream_radio::block::{
    OpenAgain, RadioSource, RecordingSegment, SourceReport, StartSettings,
};
use millstream_radio::{DeviceSet, RxArgs, StreamSample};
use std::time::Duration;

const OPENED_AGAIN: &str = "radio   opened again: the recording goes on";

/// The start of a recording, where it was requested: ticks, and the time until then.
pub type Start = (Option<u64>, Option<Duration>);

/// The inputs of a recording.
pub struct RecordingTarget<'a> {
    /// The devices, which have one time.
    pub devices: DeviceSet,
    /// The device of each channel, and its number there.
    pub places: Vec<(usize, usize)>,
    /// How to open the only device again.
    pub reopen: Option<ReopenPlan>,
    /// Samples per channel; `None`: without end.
    pub samples: Option<u64>,
    /// Whether it begins at the next PPS edge.
    pub at_pps: bool,
    /// Whether clients of the dashboard may change the rate.
    pub may_change_rate: bool,
    /// How long packets wait for earlier ones, if the user says so.
    pub reorder_window: Option<Duration>,
    /// A target for each channel.
    pub targets: &'a [RecordingFiles],
    /// What is known of each channel.
    pub channels: Vec<ChannelFacts>,
    /// What becomes of old files of these names.
    pub existing: Existing,
}

/// What a recording says of its channel.
pub struct ChannelFacts {
    /// The device, as text.
    pub hardware: String,
    /// Which channel it is, if there are several.
    pub description: Option<String>,
    /// The settings of its front end.
    pub settings: StartSettings,
}

/// How to open the device again when it stops answering.
pub struct ReopenPlan {
    /// Opens it, with all settings.
    pub open: Box<dyn FnMut() -> anyhow::Result<DeviceSet> + Send>,
    /// For how long it is tried.
    pub patience: Duration,
}

impl RecordingTarget<'_> {
    /// Adds the blocks.
    pub fn connect<T>(self, graph: &mut Graph) -> anyhow::Result<(SourceReport, Start)>
    where
        T: StreamSample + Default + SigmfSample,
    {
        let samples = self.samples;
        let facts = self.channels;
        let settings: Vec<_> = facts.iter().map(|facts| facts.settings.clone()).collect();
        let alone = self.places.len() == 1;
        let channel = |(device, channel): &(usize, usize)| {
            let mut args = RxArgs::new(*channel);
            args.reorder_window = self.reorder_window;
            (*device, args)
        };
        let channels: Vec<_> = self.places.iter().map(channel).collect();
        // The start is chosen when all else is ready.
        let next_pps = || self.at_pps.then(|| start::next_pps(&self.devices)).transpose();
        let stream = self.devices.rx_group(&channels)?;
        let start = next_pps()?.unzip();
        let (mut source, report) = RadioSource::<T>::new(self.devices, stream, samples);
        if self.may_change_rate {
            source = source.with_rates(channels.clone());
        }
        if let Some(plan) = self.reopen {
            let patience = plan.patience;
            source = source.reopening(plan.again(channels), patience)?;
        }
        let source = source.with_settings(settings).tunable(self.places).starting_at(start.0);
        graph.add("radio", source.without_waiting())?;
        for (index, (target, facts)) in self.targets.iter().zip(facts).enumerate() {
            let file = format!("file{index}");
            match &target.meta {
                Some(meta) => {
                    let lead = start.1.unwrap_or_default();
                    let sink = SigmfSink::<T>::new(meta, None)?.direct();
                    let sink = sink.describing(&facts.hardware, facts.description, lead);
                    let sink = sink.existing(self.existing);
                    graph.add(&file, sink)?;
                }
                None => {
                    let sink = FileSink::<T>::new(&target.data).direct();
                    graph.add(&file, sink.existing(self.existing))?
                }
            }
            let out = if alone { "radio.out".to_owned() } else { format!("radio.out{index}") };
            graph.connect(&out, &format!("{file}.in"))?;
        }
        Ok((report, start))
    }
}

impl ReopenPlan {
    /// Opens the stream too.
    fn again(mut self, channels: Vec<(usize, RxArgs)>) -> OpenAgain {
        Box::new(move || {
            let devices = (self.open)()?;
            let stream = devices.rx_group(&channels)?;
            note(format_args!("{OPENED_AGAIN}"));
            Ok((devices, stream))
        })
    }
}

/// The segments, and the ledger of every channel.
pub fn collect(
    report: &SourceReport,
) -> anyhow::Result<(Vec<RecordingSegment>, Vec<LedgerReport>)> {
    let ledgers = report.ledgers.try_recv();
    let ledgers = ledgers.context("the radio kept no ledgers, which is a defect of Millstream")?;
    let ledgers = ledgers.iter().map(LedgerReport::from).collect();
    Ok((report.segments.try_iter().collect(), ledgers))
}
