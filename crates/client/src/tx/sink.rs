//! One channel or several, as one sink of samples.

use std::time::Duration;

use millstream_radio::{
    Complex32, StreamRate, TxError, TxEvent, TxGroup, TxLedger, TxMetadata, TxSent, TxStreamer,
};

use crate::sample::Pieces;

/// The longest wait for room to end a burst.
const END_TIME: Duration = Duration::from_secs(1);

/// The streams of a writer.
#[derive(Debug)]
pub struct TxSink {
    streams: Streams,
    pieces: Pieces,
}

#[derive(Debug)]
enum Streams {
    One(Box<TxStreamer>),
    Several(TxGroup),
}

impl TxSink {
    /// Returns the sink of one stream, or of several that are aligned.
    pub(crate) fn new(mut streams: Vec<TxStreamer>) -> Result<Self, TxError> {
        let streams = match streams.len() {
            1 => Streams::One(Box::new(streams.remove(0))),
            _ => Streams::Several(TxGroup::new(streams)?),
        };
        Ok(Self { streams, pieces: Pieces::default() })
    }

    pub(crate) fn pieces(&mut self) -> &mut Pieces {
        &mut self.pieces
    }

    fn members(&self) -> &[TxStreamer] {
        match &self.streams {
            Streams::One(stream) => std::slice::from_ref(&**stream),
            Streams::Several(group) => group.members(),
        }
    }

    pub(crate) fn rate(&self) -> StreamRate {
        self.members()[0].rate()
    }

    pub(crate) fn samples_per_packet(&self) -> usize {
        self.members()[0].samples_per_packet()
    }

    pub(crate) fn is_in_burst(&self) -> bool {
        self.members().iter().any(TxStreamer::is_in_burst)
    }

    pub(crate) fn ledgers(&self) -> impl Iterator<Item = &TxLedger> {
        self.members().iter().map(TxStreamer::ledger)
    }

    pub(crate) fn send(
        &mut self,
        ins: &[&[Complex32]],
        meta: TxMetadata,
        timeout: Duration,
    ) -> Result<TxSent, TxError> {
        match &mut self.streams {
            Streams::One(stream) => stream.send(ins[0], meta, timeout),
            Streams::Several(group) => group.send(ins, meta, timeout),
        }
    }

    pub(crate) fn send_sc16(
        &mut self,
        ins: &[&[[i16; 2]]],
        meta: TxMetadata,
        timeout: Duration,
    ) -> Result<TxSent, TxError> {
        match &mut self.streams {
            Streams::One(stream) => stream.send_sc16(ins[0], meta, timeout),
            Streams::Several(group) => group.send_sc16(ins, meta, timeout),
        }
    }

    /// Ends an open burst.
    pub(crate) fn end_burst(&mut self) -> Result<(), TxError> {
        if !self.is_in_burst() {
            return Ok(());
        }
        let none: Vec<&[[i16; 2]]> =
            self.members().iter().map(|_| -> &[[i16; 2]] { &[] }).collect();
        self.send_sc16(&none, TxMetadata::now().ending(), END_TIME).map(drop)
    }

    /// Returns the next event and the position of its channel.
    pub(crate) fn poll_event(&mut self) -> Result<Option<(usize, TxEvent)>, TxError> {
        match &mut self.streams {
            Streams::One(stream) => Ok(stream.poll_event()?.map(|event| (0, event))),
            Streams::Several(group) => group.poll_event(),
        }
    }

    /// Ends all bursts, and returns the final ledgers.
    pub(crate) fn finish(self) -> Vec<TxLedger> {
        match self.streams {
            Streams::One(stream) => vec![stream.finish_within(END_TIME)],
            Streams::Several(group) => group.finish_within(END_TIME),
        }
    }
}
