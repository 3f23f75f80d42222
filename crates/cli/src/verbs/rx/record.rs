//! The graph of a recording: one source, and a file for each channel.

use super::target::RecordingFiles;
use crate::graph_report::{GraphReport, LedgerReport};
use crate::output::note;
use crate::start;
use anyhow::Context;
use millstream_blocks::sigmf::{SigmfSample, SigmfSink};
use millstream_flow::Graph;
use millstream_flow::blocks::FileSink;
use millstream_output::Existing;
use millstream_radio::block::{
    GroupReport, GroupSource, OpenAgain, OpenGroupAgain, RadioSource, RecordingSegment,
    StartSettings,
};
use millstream_radio::{DeviceSet, RxArgs, StreamSample};
use std::sync::mpsc::Receiver;
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

/// The source's report besides samples.
pub enum SourceEvent {
    /// One channel, whose ledger is in the metrics.
    One(Receiver<RecordingSegment>),
    /// Several channels.
    Group(GroupReport),
}

impl RecordingTarget<'_> {
    /// Adds the blocks. One channel of one device needs no time alignment.
    pub fn connect<T>(self, graph: &mut Graph) -> anyhow::Result<(SourceEvent, Start)>
    where
        T: StreamSample + Default + SigmfSample,
    {
        let samples = self.samples;
        let facts = self.channels;
        let settings: Vec<_> = facts.iter().map(|facts| facts.settings.clone()).collect();
        let alone = self.places.len() == 1 && self.devices.devices().len() == 1;
        let channel = |(device, channel): &(usize, usize)| {
            let mut args = RxArgs::new(*channel);
            args.reorder_window = self.reorder_window;
            (*device, args)
        };
        let channels: Vec<_> = self.places.iter().map(channel).collect();
        // The start is chosen when all else is ready.
        let next_pps = || self.at_pps.then(|| start::next_pps(&self.devices)).transpose();
        let (told, start) = if let (true, [(_, args)]) = (alone, &channels[..]) {
            let stream = self.devices.devices()[0].rx_stream(*args)?;
            let start = next_pps()?.unzip();
            let device = self.devices.into_devices().pop().context("no device")?;
            let (source, segments) = RadioSource::<T>::new(device, stream, samples);
            let mut source = source.tunable(args.channel);
            source = source.with_settings(settings.into_iter().next().unwrap_or_default());
            if self.may_change_rate {
                source = source.with_rates(*args);
            }
            if let Some(plan) = self.reopen {
                let patience = plan.patience;
                source = source.reopening(plan.one(*args), patience);
            }
            graph.add("radio", source.starting_at(start.0).without_waiting())?;
            (SourceEvent::One(segments), start)
        } else {
            let group = self.devices.rx_group(&channels)?;
            let start = next_pps()?.unzip();
            let (mut source, report) = GroupSource::<T>::new(self.devices, group, samples)?;
            if self.may_change_rate {
                source = source.with_rates(channels.clone());
            }
            if let Some(plan) = self.reopen {
                let patience = plan.patience;
                source = source.reopening(plan.group(channels), patience)?;
            }
            let source = source.with_settings(settings).tunable(self.places);
            graph.add("radio", source.starting_at(start.0))?;
            (SourceEvent::Group(report), start)
        };
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
        Ok((told, start))
    }
}

impl ReopenPlan {
    /// Opens a stream of one channel too.
    fn one(mut self, args: RxArgs) -> OpenAgain {
        Box::new(move || {
            let devices = (self.open)()?;
            let stream = devices.devices()[0].rx_stream(args)?;
            let device = devices.into_devices().pop().context("no device")?;
            note(format_args!("{OPENED_AGAIN}"));
            Ok((device, stream))
        })
    }

    /// Opens a group of channels too.
    fn group(mut self, channels: Vec<(usize, RxArgs)>) -> OpenGroupAgain {
        Box::new(move || {
            let devices = (self.open)()?;
            let group = devices.rx_group(&channels)?;
            note(format_args!("{OPENED_AGAIN}"));
            Ok((devices, group))
        })
    }
}

impl SourceEvent {
    /// The segments, and the ledger of every channel.
    pub fn collect(
        self,
        run: &GraphReport,
    ) -> anyhow::Result<(Vec<RecordingSegment>, Vec<LedgerReport>)> {
        match self {
            Self::One(segments) => {
                let ledger = run.snapshot.block("radio").and_then(LedgerReport::of);
                let ledger = ledger
                    .context("the radio source kept no ledger, which is a defect of Millstream")?;
                Ok((segments.try_iter().collect(), vec![ledger]))
            }
            Self::Group(report) => {
                let ledgers = report
                    .ledgers
                    .try_recv()
                    .context("the channels kept no ledgers, which is a defect of Millstream")?;
                let ledgers = ledgers.iter().map(LedgerReport::from).collect();
                Ok((report.segments.try_iter().collect(), ledgers))
            }
        }
    }
}
