//! Handles of an open radio's channels.

use std::ops::Deref;
use std::sync::Arc;

use millstream_radio::graph::StreamDirection;
use millstream_radio::{Ledger, TxLedger};

use crate::error::ClientError;
use crate::radio::{Radio, RadioParts, RadioState};
use crate::rx::{RxOptions, RxStream, StreamGap};
use crate::tx::{TxOptions, TxStream};

/// One channel of an open radio, in one direction: its settings and readings.
///
/// It is a name for the channel, costs nothing, and claims nothing. [`Radio::rx`] and [`Radio::tx`]
/// return one; a channel that does not exist shows in the first call that needs it.
#[derive(Debug, Clone, Copy)]
pub struct Channel<'a> {
    pub(crate) parts: &'a Arc<RadioParts>,
    pub(crate) direction: StreamDirection,
    pub(crate) index: usize,
}

/// A receive channel: a [`Channel`] from which samples come.
#[derive(Debug, Clone, Copy)]
pub struct ReceiveChannel<'a>(pub(crate) Channel<'a>);

/// A transmit channel: a [`Channel`] to which samples go.
#[derive(Debug, Clone, Copy)]
pub struct TransmitChannel<'a>(pub(crate) Channel<'a>);

impl<'a> Deref for ReceiveChannel<'a> {
    type Target = Channel<'a>;

    fn deref(&self) -> &Channel<'a> {
        &self.0
    }
}

impl<'a> Deref for TransmitChannel<'a> {
    type Target = Channel<'a>;

    fn deref(&self) -> &Channel<'a> {
        &self.0
    }
}

impl Radio {
    /// Returns a receive channel, counted from 0.
    pub fn rx(&self, index: usize) -> ReceiveChannel<'_> {
        ReceiveChannel(self.channel(StreamDirection::Rx, index))
    }

    /// Returns a transmit channel, counted from 0.
    pub fn tx(&self, index: usize) -> TransmitChannel<'_> {
        TransmitChannel(self.channel(StreamDirection::Tx, index))
    }

    /// Returns a channel of either direction, for programs whose users name the direction.
    pub fn channel(&self, direction: StreamDirection, index: usize) -> Channel<'_> {
        Channel { parts: &self.parts, direction, index }
    }

    /// Opens a receive stream of several channels, whose samples are of the same moments.
    ///
    /// # Errors
    /// [`ClientError::Radio`] when a channel does not exist or has a stream already.
    pub fn rx_stream(
        &self,
        channels: &[usize],
        options: RxOptions,
    ) -> Result<RxStream, ClientError> {
        RxStream::open(&self.parts, channels, options)
    }

    /// Opens a transmit stream of several channels, whose samples leave at the same moments.
    ///
    /// # Errors
    /// [`ClientError::Radio`] when a channel does not exist or has a stream already.
    pub fn tx_stream(
        &self,
        channels: &[usize],
        options: TxOptions,
    ) -> Result<TxStream, ClientError> {
        TxStream::open(&self.parts, channels, options)
    }
}

impl Channel<'_> {
    /// Runs `call` with the connection, the direction and the number.
    pub(crate) fn with<R>(
        &self,
        call: impl FnOnce(&mut RadioState, StreamDirection, usize) -> Result<R, ClientError>,
    ) -> Result<R, ClientError> {
        self.parts.with(|state| call(state, self.direction, self.index))
    }
}

impl ReceiveChannel<'_> {
    /// Opens a receive stream of this channel.
    ///
    /// # Errors
    /// [`ClientError::Radio`] when the channel does not exist or has a stream already.
    pub fn stream(&self, options: RxOptions) -> Result<RxStream, ClientError> {
        RxStream::open(self.parts, &[self.index], options)
    }

    /// Returns the outcome of every sample, by the stream that is open on the channel.
    pub fn ledger(&self) -> Option<Ledger> {
        self.parts.streams().iter().rev().find_map(|stream| stream.rx_ledger(self.index))
    }

    /// Returns the latest gap of the stream that is open on the channel.
    pub fn last_gap(&self) -> Option<StreamGap> {
        self.parts.streams().iter().rev().find_map(|stream| stream.last_gap(self.index))
    }
}

impl TransmitChannel<'_> {
    /// Opens a transmit stream of this channel.
    ///
    /// # Errors
    /// [`ClientError::Radio`] when the channel does not exist or has a stream already.
    pub fn stream(&self, options: TxOptions) -> Result<TxStream, ClientError> {
        TxStream::open(self.parts, &[self.index], options)
    }

    /// Returns the outcome of every sample, by the stream that is open on the channel.
    pub fn ledger(&self) -> Option<TxLedger> {
        self.parts.streams().iter().rev().find_map(|stream| stream.tx_ledger(self.index))
    }
}
