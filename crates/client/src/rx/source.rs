//! One channel or several, as one source of samples.

use std::time::Duration;

use millstream_radio::{
    Complex32, GroupMetadata, Ledger, RxError, RxEvent, RxGroup, RxMetadata, RxStreamer, StreamRate,
};

use crate::sample::Pieces;

/// The streams of a reader.
#[derive(Debug)]
pub struct RxSource {
    streams: Streams,
    pieces: Pieces,
}

#[derive(Debug)]
enum Streams {
    One(Box<RxStreamer>),
    Several(Box<RxGroup>),
}

/// The metadata that both kinds of streams have.
#[derive(Debug, Clone, Copy)]
pub struct RxMeta {
    /// Samples in each slice.
    pub samples: usize,
    /// The time of the first one, or at which samples resume.
    pub ticks: Option<u64>,
    /// The burst is over.
    pub ends: bool,
    /// The event.
    pub event: RxEvent,
    /// The position of its channel.
    pub channel: usize,
}

impl From<RxMetadata> for RxMeta {
    fn from(meta: RxMetadata) -> Self {
        let RxMetadata { samples, time_ticks, end_of_burst, event } = meta;
        Self { samples, ticks: time_ticks, ends: end_of_burst, event, channel: 0 }
    }
}

impl From<GroupMetadata> for RxMeta {
    fn from(meta: GroupMetadata) -> Self {
        Self {
            samples: meta.samples,
            ticks: meta.time_ticks,
            ends: meta.end_of_burst,
            event: meta.event,
            channel: meta.channel,
        }
    }
}

impl RxSource {
    /// Returns the source of one stream, or of several that are aligned.
    pub(crate) fn new(mut streams: Vec<RxStreamer>) -> Result<Self, RxError> {
        let streams = match streams.len() {
            1 => Streams::One(Box::new(streams.remove(0))),
            _ => Streams::Several(Box::new(RxGroup::new(streams)?)),
        };
        Ok(Self { streams, pieces: Pieces::default() })
    }

    pub(crate) fn pieces(&mut self) -> &mut Pieces {
        &mut self.pieces
    }

    fn members(&self) -> &[RxStreamer] {
        match &self.streams {
            Streams::One(stream) => std::slice::from_ref(&**stream),
            Streams::Several(group) => group.members(),
        }
    }

    pub(crate) fn rate(&self) -> StreamRate {
        self.members()[0].rate()
    }

    pub(crate) fn samples_per_packet(&self) -> u32 {
        self.members()[0].samples_per_packet()
    }

    pub(crate) fn ledgers(&self) -> impl Iterator<Item = &Ledger> {
        self.members().iter().map(RxStreamer::ledger)
    }

    pub(crate) fn start(&mut self, samples: Option<u64>, at: Option<u64>) -> Result<(), RxError> {
        match (&mut self.streams, samples) {
            (Streams::One(stream), Some(samples)) => stream.start_finite(samples, at),
            (Streams::One(stream), None) => stream.start_continuous(at),
            (Streams::Several(group), Some(samples)) => group.start_finite(samples, at),
            (Streams::Several(group), None) => group.start_continuous(at),
        }
    }

    /// Stops, and drops what is in flight.
    pub(crate) fn end(&mut self) {
        match &mut self.streams {
            Streams::One(stream) => stream.end(),
            Streams::Several(group) => group.end(),
        }
    }

    pub(crate) fn recv(
        &mut self,
        outs: &mut [&mut [Complex32]],
        timeout: Duration,
    ) -> Result<RxMeta, RxError> {
        match &mut self.streams {
            Streams::One(stream) => stream.recv(outs[0], timeout).map(RxMeta::from),
            Streams::Several(group) => group.recv(outs, timeout).map(RxMeta::from),
        }
    }

    pub(crate) fn recv_sc16(
        &mut self,
        outs: &mut [&mut [[i16; 2]]],
        timeout: Duration,
    ) -> Result<RxMeta, RxError> {
        match &mut self.streams {
            Streams::One(stream) => stream.recv_sc16(outs[0], timeout).map(RxMeta::from),
            Streams::Several(group) => group.recv_sc16(outs, timeout).map(RxMeta::from),
        }
    }

    /// Returns what comes next without receiving a sample: an event directly behind the last one,
    /// or none if it is a sample. Waits up to `timeout` until that is known.
    pub(crate) fn peek(&mut self, timeout: Duration) -> Result<RxMeta, RxError> {
        match &mut self.streams {
            Streams::One(stream) => stream.recv_sc16(&mut [], timeout).map(RxMeta::from),
            Streams::Several(group) => match group.members().len() {
                2 => group.recv_sc16(&mut [&mut [], &mut []], timeout).map(RxMeta::from),
                more => {
                    let mut none: Vec<&mut [[i16; 2]]> = Vec::with_capacity(more);
                    none.resize_with(more, Default::default);
                    group.recv_sc16(&mut none, timeout).map(RxMeta::from)
                }
            },
        }
    }
}
