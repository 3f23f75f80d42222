//! The time from a change at the host to the change at the radio's antenna, by the size of the
//! transmit buffer: a full buffer is transmitted before what is sent after it.

use crate::rate::{RateError, set_rate};
use millstream_radio::{Complex32, Device, DeviceArgs, TxArgs, TxEvent, TxMetadata, TxStreamer};
use serde::Serialize;
use std::time::Duration;

/// Longest wait of one call.
const PATIENCE: Duration = Duration::from_secs(1);
/// Samples of a call, as a part of the buffer.
const BLOCK_PART: u64 = 16;
/// Buffers to send before the first look: the host is faster than the radio, so the buffer is full.
const FILLS: u64 = 2;

/// The delays with a transmit buffer. Times are the radio's.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Response {
    /// The actual buffer, samples.
    pub buffer_samples: u64,
    /// The time that the buffer lasts, seconds.
    pub buffer_s: f64,
    /// From the moment at which the stream took a sample until it left the antenna, seconds: the
    /// median of all looks, the least and the largest.
    pub median_s: f64,
    /// The least delay.
    pub least_s: f64,
    /// The largest delay.
    pub largest_s: f64,
    /// Underflows meanwhile: with any, the delays mean nothing.
    pub underflows: u64,
}

/// Streams through the radio at `args`, which has the buffer to measure, and looks `looks` times at
/// how much later than now the sample sent last leaves. The first one leaves `lead_s` after the
/// beginning.
///
/// # Errors
/// [`RateError`].
pub fn measure(
    args: &DeviceArgs,
    rate_hz: f64,
    lead_s: f64,
    looks: usize,
) -> Result<Response, RateError> {
    let mut device = Device::open(args.clone())?;
    set_rate(&mut device, rate_hz)?;
    let mut stream = device.tx_stream(TxArgs::new(0))?;
    let buffer_samples = stream.members()[0].credit_window_bytes() / 4;
    let block = vec![Complex32::default(); (buffer_samples / BLOCK_PART).max(1) as usize];
    let buffer_s = buffer_samples as f64 / rate_hz;
    let ticks_hz = device.tick_rate_hz();
    let start_ticks = device.time_ticks()? + (lead_s * ticks_hz) as u64;
    let mut sent = send(&mut stream, &block, TxMetadata::at(start_ticks))?;
    while sent < FILLS * buffer_samples {
        sent += send(&mut stream, &block, TxMetadata::now())?;
    }
    let mut delays_s = Vec::with_capacity(looks);
    for _ in 0..looks.max(1) {
        sent += send(&mut stream, &block, TxMetadata::now())?;
        let leaves_ticks = start_ticks as f64 + sent as f64 / rate_hz * ticks_hz;
        delays_s.push((leaves_ticks - device.time_ticks()? as f64) / ticks_hz);
    }
    let mut underflows = 0;
    while let Some((_, event)) = stream.poll_event()? {
        underflows += u64::from(matches!(event, TxEvent::Underflow { .. }));
    }
    stream.send::<Complex32>(&[], TxMetadata::now().ending(), PATIENCE)?;
    delays_s.sort_by(f64::total_cmp);
    Ok(Response {
        buffer_samples,
        buffer_s,
        median_s: delays_s[delays_s.len() / 2],
        least_s: delays_s[0],
        largest_s: delays_s[delays_s.len() - 1],
        underflows,
    })
}

/// Sends all of a block.
fn send(
    stream: &mut TxStreamer,
    block: &[Complex32],
    mut meta: TxMetadata,
) -> Result<u64, RateError> {
    let mut sent = 0;
    while sent < block.len() {
        let now = stream.send(&block[sent..], meta, PATIENCE)?.samples;
        sent += now;
        if now > 0 {
            meta.time_ticks = None;
        }
    }
    Ok(sent as u64)
}
