//! Streams as flowgraph blocks: `radio_rx` and `radio_tx` in graph files, and recordings.
//!
//! A source of N samples covers N samples of *time*: lost samples count too, and after an overrun
//! the device is started again without an end. So the device runs without an end, and the source
//! stops it when the number is reached.

mod group;
mod metrics;
mod one;
mod register;
mod rehearsal;
mod reopen;
mod segments;
mod settings;
mod transmit;

use std::time::Duration;

use millstream_flow::Item;
use num_complex::Complex32;

use crate::convert::HostSample;
use crate::{
    GroupMetadata, RxError, RxGroup, RxMetadata, RxStreamer, TxError, TxGroup, TxMetadata, TxSent,
    TxStreamer,
};

pub use group::{CHANNELS_MAX, GroupReport, GroupSource};
pub use one::RadioSource;
pub use register::register;
pub use reopen::{NotBack, OpenAgain, OpenGroupAgain};
pub use segments::{GapCause, LateStart, RecordingSegment};
pub use transmit::{RadioSink, TX_CHANNELS_MAX, TransmitStart};

/// The interval of polls for a device that is being opened again.
const REOPEN_POLL: Duration = Duration::from_millis(20);

/// The samples that are received at once when there is no space for them.
const SPILL_SAMPLES: usize = 4096;

/// An item that a stream can produce or take.
pub trait WireSample: Item + HostSample {
    /// Receives into a slice of such items, see [`RxStreamer::recv`].
    ///
    /// # Errors
    /// Those of [`RxStreamer::recv`].
    fn recv(
        stream: &mut RxStreamer,
        out: &mut [Self],
        timeout: Duration,
    ) -> Result<RxMetadata, RxError>;

    /// Receives into a slice for each member, see [`RxGroup::recv`].
    ///
    /// # Errors
    /// Those of [`RxGroup::recv`].
    fn recv_group(
        group: &mut RxGroup,
        outs: &mut [&mut [Self]],
        timeout: Duration,
    ) -> Result<GroupMetadata, RxError>;

    /// Sends such items, see [`TxStreamer::send`].
    ///
    /// # Errors
    /// Those of [`TxStreamer::send`].
    fn send(
        stream: &mut TxStreamer,
        samples: &[Self],
        meta: TxMetadata,
        timeout: Duration,
    ) -> Result<TxSent, TxError>;

    /// Sends a slice to each member, see [`TxGroup::send`].
    ///
    /// # Errors
    /// Those of [`TxGroup::send`].
    fn send_group(
        group: &mut TxGroup,
        samples: &[&[Self]],
        meta: TxMetadata,
        timeout: Duration,
    ) -> Result<TxSent, TxError>;
}

impl WireSample for Complex32 {
    fn recv(
        stream: &mut RxStreamer,
        out: &mut [Self],
        timeout: Duration,
    ) -> Result<RxMetadata, RxError> {
        stream.recv(out, timeout)
    }

    fn recv_group(
        group: &mut RxGroup,
        outs: &mut [&mut [Self]],
        timeout: Duration,
    ) -> Result<GroupMetadata, RxError> {
        group.recv(outs, timeout)
    }

    fn send(
        stream: &mut TxStreamer,
        samples: &[Self],
        meta: TxMetadata,
        timeout: Duration,
    ) -> Result<TxSent, TxError> {
        stream.send(samples, meta, timeout)
    }

    fn send_group(
        group: &mut TxGroup,
        samples: &[&[Self]],
        meta: TxMetadata,
        timeout: Duration,
    ) -> Result<TxSent, TxError> {
        group.send(samples, meta, timeout)
    }
}

impl WireSample for [i16; 2] {
    fn recv(
        stream: &mut RxStreamer,
        out: &mut [Self],
        timeout: Duration,
    ) -> Result<RxMetadata, RxError> {
        stream.recv_sc16(out, timeout)
    }

    fn recv_group(
        group: &mut RxGroup,
        outs: &mut [&mut [Self]],
        timeout: Duration,
    ) -> Result<GroupMetadata, RxError> {
        group.recv_sc16(outs, timeout)
    }

    fn send(
        stream: &mut TxStreamer,
        samples: &[Self],
        meta: TxMetadata,
        timeout: Duration,
    ) -> Result<TxSent, TxError> {
        stream.send_sc16(samples, meta, timeout)
    }

    fn send_group(
        group: &mut TxGroup,
        samples: &[&[Self]],
        meta: TxMetadata,
        timeout: Duration,
    ) -> Result<TxSent, TxError> {
        group.send_sc16(samples, meta, timeout)
    }
}
