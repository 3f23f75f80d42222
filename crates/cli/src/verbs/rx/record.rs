//! The graph of a recording: one source, and a file for each channel.

use super::target::Target;
use crate::graph_run::{LedgerReport, Run};
use anyhow::Context;
use millstream_flow::Graph;
use millstream_flow::blocks::FileSink;
use millstream_radio::block::{GroupReport, GroupSource, RadioSource, Segment, WireSample};
use millstream_radio::{DeviceSet, RxArgs};
use std::sync::mpsc::Receiver;

/// What is recorded where.
pub struct Record<'a> {
    /// The devices, which have one time.
    pub devices: DeviceSet,
    /// The device of each channel, and its number there.
    pub places: Vec<(usize, usize)>,
    /// How many samples of time; no end when none.
    pub samples: Option<u64>,
    /// When it begins, ticks.
    pub at: Option<u64>,
    /// A target for each channel.
    pub targets: &'a [Target],
}

/// What the source tells besides samples.
pub enum Told {
    /// One channel, whose ledger is in the metrics.
    One(Receiver<Segment>),
    /// Several.
    Group(GroupReport),
}

impl Record<'_> {
    /// Adds the blocks. One channel of one device needs no time to be aligned by.
    pub fn connect<T>(self, graph: &mut Graph) -> anyhow::Result<Told>
    where
        T: WireSample + Default + bytemuck::NoUninit,
    {
        let (samples, at) = (self.samples, self.at);
        let alone = self.places.len() == 1 && self.devices.devices().len() == 1;
        let told = if alone {
            let device = self.devices.into_devices().pop().context("no device")?;
            let stream = device.rx_stream(RxArgs::new(self.places[0].1))?;
            let (source, segments) = RadioSource::<T>::new(device, stream, samples);
            graph.add("radio", source.starting_at(at).without_waiting())?;
            Told::One(segments)
        } else {
            let channel = |(device, channel): &(usize, usize)| (*device, RxArgs::new(*channel));
            let channels: Vec<_> = self.places.iter().map(channel).collect();
            let group = self.devices.rx_group(&channels)?;
            let (source, report) = GroupSource::<T>::new(self.devices, group, samples)?;
            graph.add("radio", source.starting_at(at))?;
            Told::Group(report)
        };
        for (index, target) in self.targets.iter().enumerate() {
            let file = format!("file{index}");
            graph.add(&file, FileSink::<T>::new(&target.data))?;
            let out = if alone { "radio.out".to_owned() } else { format!("radio.out{index}") };
            graph.connect(&out, &format!("{file}.in"))?;
        }
        Ok(told)
    }
}

impl Told {
    /// The segments, and the ledger of every channel.
    pub fn collect(self, run: &Run) -> anyhow::Result<(Vec<Segment>, Vec<LedgerReport>)> {
        match self {
            Self::One(segments) => {
                let ledger = run.snapshot.block("radio").and_then(LedgerReport::of);
                let ledger = ledger.context("the radio source published no ledger")?;
                Ok((segments.try_iter().collect(), vec![ledger]))
            }
            Self::Group(report) => {
                let ledgers = report.ledgers.try_recv().context("the channels have no ledgers")?;
                let ledgers = ledgers.iter().map(LedgerReport::from).collect();
                Ok((report.segments.try_iter().collect(), ledgers))
            }
        }
    }
}
