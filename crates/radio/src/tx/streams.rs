//! The transmit stream of one channel, or of several.

use std::time::Duration;

use super::{TxError, TxEvent, TxGroup, TxLedger, TxMetadata, TxSent, TxStreamer};
use crate::Clock;
use crate::convert::StreamSample;

/// The most channels of [`TxStreams`].
pub const TX_CHANNELS_MAX: usize = 32;

/// The error of a group with more channels.
const TOO_MANY: TxError = TxError::BadGroup { reason: "32 channels at most can transmit as one" };

/// The interval of a group's polls for events.
const POLL: Duration = Duration::from_millis(5);

/// The transmit stream of one channel, or of several that take the same moments.
#[derive(Debug)]
pub enum TxStreams {
    /// One channel.
    One(Box<TxStreamer>),
    /// Several.
    Group(TxGroup),
}

impl TxStreams {
    /// Returns one stream as it is, or several as a group.
    ///
    /// # Errors
    /// [`TxError::BadGroup`], also for no stream and for more than [`TX_CHANNELS_MAX`].
    pub fn new(mut streams: Vec<TxStreamer>) -> Result<Self, TxError> {
        match streams.len() {
            1 => Ok(Self::One(Box::new(streams.remove(0)))),
            _ => Self::of_group(TxGroup::new(streams)?),
        }
    }

    /// Returns the streams of a group.
    ///
    /// # Errors
    /// [`TxError::BadGroup`] for more than [`TX_CHANNELS_MAX`].
    pub fn of_group(group: TxGroup) -> Result<Self, TxError> {
        if group.members().len() > TX_CHANNELS_MAX {
            return Err(TOO_MANY);
        }
        Ok(Self::Group(group))
    }

    /// Returns the streams, in the order of the channels.
    pub fn members(&self) -> &[TxStreamer] {
        match self {
            Self::One(stream) => std::slice::from_ref(&**stream),
            Self::Group(group) => group.members(),
        }
    }

    /// Returns the stream of the first channel.
    pub fn first(&self) -> &TxStreamer {
        &self.members()[0]
    }

    /// Returns whether a burst has been started and not ended.
    pub fn is_in_burst(&self) -> bool {
        self.members().iter().any(TxStreamer::is_in_burst)
    }

    /// Returns the sum of the ledgers of all channels.
    pub fn ledger(&self) -> TxLedger {
        TxLedger::sum(self.members().iter().map(TxStreamer::ledger))
    }

    /// Sends a slice to each channel, see [`TxStreamer::send`] and [`TxGroup::send`].
    ///
    /// # Errors
    /// Those of these functions.
    pub fn send<T: StreamSample>(
        &mut self,
        samples: &[&[T]],
        meta: TxMetadata,
        timeout: Duration,
    ) -> Result<TxSent, TxError> {
        match (self, samples) {
            (Self::One(stream), [samples]) => stream.send_as(samples, meta, timeout),
            (Self::One(_), _) => Err(TxError::BadGroup { reason: "there must be one slice" }),
            (Self::Group(group), _) => group.send_as(samples, meta, timeout),
        }
    }

    /// Sends the same samples to every channel.
    ///
    /// # Errors
    /// Those of [`TxStreams::send`].
    pub fn send_to_all<T: StreamSample>(
        &mut self,
        samples: &[T],
        meta: TxMetadata,
        timeout: Duration,
    ) -> Result<TxSent, TxError> {
        let channels = self.members().len();
        if channels > TX_CHANNELS_MAX {
            return Err(TOO_MANY);
        }
        self.send(&[samples; TX_CHANNELS_MAX][..channels], meta, timeout)
    }

    /// Ends an open burst, after waiting up to `timeout` for room.
    ///
    /// # Errors
    /// Those of [`TxStreams::send`].
    pub fn end_burst(&mut self, timeout: Duration) -> Result<(), TxError> {
        if !self.is_in_burst() {
            return Ok(());
        }
        self.send_to_all::<[i16; 2]>(&[], TxMetadata::now().ending(), timeout).map(drop)
    }

    /// Returns the next event and the position of its channel, if there is one.
    ///
    /// # Errors
    /// [`TxError::Radio`] when the system refuses.
    pub fn poll_event(&mut self) -> Result<Option<(usize, TxEvent)>, TxError> {
        match self {
            Self::One(stream) => Ok(stream.poll_event()?.map(|event| (0, event))),
            Self::Group(group) => group.poll_event(),
        }
    }

    /// Waits for the next event; `None` after `timeout`.
    ///
    /// # Errors
    /// [`TxError::Radio`] when the system refuses.
    pub fn next_event(&mut self, timeout: Duration) -> Result<Option<(usize, TxEvent)>, TxError> {
        if let Self::One(stream) = self {
            return Ok(stream.next_event(timeout)?.map(|event| (0, event)));
        }
        let until = Clock::MACHINE.deadline(timeout);
        loop {
            let event = self.poll_event()?;
            let left = Clock::MACHINE.left(until);
            if event.is_some() || left.is_zero() {
                return Ok(event);
            }
            std::thread::sleep(left.min(POLL));
        }
    }

    /// Ends an open burst, waits until the device has taken everything, and returns the final
    /// ledgers, in the order of the channels.
    pub fn finish(self) -> Vec<TxLedger> {
        match self {
            Self::One(stream) => vec![stream.finish()],
            Self::Group(group) => group.finish(),
        }
    }

    /// Does the same as [`Self::finish`], but samples that the device has not taken within
    /// `timeout` are unknown.
    pub fn finish_within(self, timeout: Duration) -> Vec<TxLedger> {
        match self {
            Self::One(stream) => vec![stream.finish_within(timeout)],
            Self::Group(group) => group.finish_within(timeout),
        }
    }
}
