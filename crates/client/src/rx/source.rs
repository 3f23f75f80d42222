//! One channel or several, as one source of samples.

use std::ops::Range;
use std::time::Duration;

use millstream_radio::{
    GroupMetadata, Ledger, RxError, RxEvent, RxGroup, RxMetadata, RxStreamer, StreamRate,
    StreamSample,
};

use crate::parts::{CHANNELS_MAX, parts_mut};

/// The streams of the channels.
#[derive(Debug)]
pub(crate) enum RxSource {
    One(Box<RxStreamer>),
    Several(Box<RxGroup>),
}

/// The metadata that both kinds of streams have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RxMeta {
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
    pub fn new(mut streams: Vec<RxStreamer>) -> Result<Self, RxError> {
        match streams.len() {
            1 => Ok(Self::One(Box::new(streams.remove(0)))),
            count if count > CHANNELS_MAX => {
                Err(RxError::BadGroup { reason: "32 channels at most can be received as one" })
            }
            _ => Ok(Self::Several(Box::new(RxGroup::new(streams)?))),
        }
    }

    fn members(&self) -> &[RxStreamer] {
        match self {
            Self::One(stream) => std::slice::from_ref(&**stream),
            Self::Several(group) => group.members(),
        }
    }

    pub fn rate(&self) -> StreamRate {
        self.members()[0].rate()
    }

    pub fn samples_per_packet(&self) -> u32 {
        self.members()[0].samples_per_packet()
    }

    pub fn ledgers(&self) -> impl Iterator<Item = &Ledger> {
        self.members().iter().map(RxStreamer::ledger)
    }

    pub fn start(&mut self, samples: Option<u64>, at: Option<u64>) -> Result<(), RxError> {
        match (self, samples) {
            (Self::One(stream), Some(samples)) => stream.start_finite(samples, at),
            (Self::One(stream), None) => stream.start_continuous(at),
            (Self::Several(group), Some(samples)) => group.start_finite(samples, at),
            (Self::Several(group), None) => group.start_continuous(at),
        }
    }

    /// Stops, and drops what is in flight.
    pub fn end(&mut self) {
        match self {
            Self::One(stream) => stream.end(),
            Self::Several(group) => group.end(),
        }
    }

    /// Receives into the places `at` of each slice.
    pub fn recv<T: StreamSample>(
        &mut self,
        outs: &mut [&mut [T]],
        at: &Range<usize>,
        timeout: Duration,
    ) -> Result<RxMeta, RxError> {
        parts_mut(outs, at, |outs| match self {
            Self::One(stream) => stream.recv_as(outs[0], timeout).map(RxMeta::from),
            Self::Several(group) => group.recv_as(outs, timeout).map(RxMeta::from),
        })
    }

    /// Returns what comes next without receiving a sample: an event directly behind the last one,
    /// or none if it is a sample. Waits up to `timeout` until that is known.
    pub fn peek(&mut self, timeout: Duration) -> Result<RxMeta, RxError> {
        let mut none: [&mut [[i16; 2]]; CHANNELS_MAX] = Default::default();
        let channels = self.members().len();
        self.recv(&mut none[..channels], &(0..0), timeout)
    }
}
