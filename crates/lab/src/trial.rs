//! A test of the buffer law: a radio on a scaled clock behind a round trip of chosen length.
//!
//! All packets of the radio for a stream arrive late by the latency: its samples, so that credit
//! for them comes late, or its credit, so that samples come late. Either way the buffer must cover
//! the round trip. Device time runs slower than this machine's, so the latency that the machine
//! adds is small against it.

use crate::Direction;
use crate::rate::{RateError, set_rate};
use millstream_link::fault::{FaultEffect, FaultRule, FaultSwitch};
use millstream_radio::{
    Complex32, Device, DeviceArgs, RxArgs, RxEvent, RxStreamer, TxArgs, TxEvent, TxMetadata,
};
use millstream_wire::Width;
use millstream_wire::chdr::{Packet, PacketType};
use serde::Serialize;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Longest wait of one call.
const PATIENCE: Duration = Duration::from_millis(100);
/// Samples of one call.
const BLOCK_SAMPLES: usize = 8192;
/// Attempts to open the receive stream with the right window.
const OPENINGS: u32 = 12;

/// A buffer, and the round trip that it has to cover. Times are the radio's.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct BufferTrial {
    /// The buffer's place: receive, the host's credit window; transmit, the radio's FIFO.
    pub direction: Direction,
    /// Samples per second.
    pub rate_hz: f64,
    /// The buffer, samples. To transmit, the radio must have been started with it.
    pub samples: u64,
    /// Length of the round trip, seconds.
    pub latency_s: f64,
    /// Duration, seconds.
    pub duration_s: f64,
    /// Seconds of the radio's time per second of this machine's.
    pub time_scale: f64,
}

/// The result of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TrialOutcome {
    /// Whether there was no overrun and no underflow.
    pub holds: bool,
    /// The actual buffer, samples.
    pub buffer_samples: u64,
    /// Samples streamed.
    pub streamed: u64,
    /// The first failure, seconds of the radio's time after the first sample.
    pub broke_after_s: Option<f64>,
}

/// Runs a trial against the emulated radio at `args`.
///
/// # Errors
/// [`RateError`].
pub fn run(args: &DeviceArgs, trial: &BufferTrial) -> Result<TrialOutcome, RateError> {
    let began = Instant::now();
    let switch = FaultSwitch::new(move || began.elapsed().as_nanos() as u64);
    let latency = Duration::from_secs_f64(trial.latency_s / trial.time_scale);
    let mut device = Device::open(behind(args, &switch, latency))?;
    set_rate(&mut device, trial.rate_hz)?;
    let late = FaultEffect::Delay { ns: latency.as_nanos() as u64 };
    let outcome = match trial.direction {
        Direction::Rx => receive(&device, trial, || slow_down(&switch, &late)),
        Direction::Tx => transmit(&device, trial, || slow_down(&switch, &late)),
    };
    // Delayed packets must not hold up the end of the stream.
    switch.clear();
    outcome
}

/// Returns the same device, with all its packets passing through `switch`.
fn behind(args: &DeviceArgs, switch: &FaultSwitch, latency: Duration) -> DeviceArgs {
    let (link, switch) = (args.link.clone(), switch.clone());
    let mut args = args.clone();
    args.silence_max += latency * 4;
    args.open_port = Some(Arc::new(move |bind, options| {
        let mut port = millstream_net::open(&link, bind, options)?;
        port.rx = switch.wrap_rx(port.rx);
        Ok(port)
    }));
    args
}

/// Delays samples and credit from now on. Setting streams up is not delayed.
fn slow_down(switch: &FaultSwitch, late: &FaultEffect) {
    let rule = FaultRule::new(is_of_a_stream, late.clone());
    switch.add(rule).expect("a fresh switch has room for a rule");
}

/// Commands as well: a resynchronisation that overtook samples would give credit for them.
fn is_of_a_stream(bytes: &[u8]) -> bool {
    use PacketType::{Data, StreamCommand, StreamStatus, TimedData};
    let kind = Packet::parse(bytes, Width::W64).map(|packet| packet.kind());
    matches!(kind, Ok(Data | TimedData | StreamCommand | StreamStatus))
}

fn receive(
    device: &Device,
    trial: &BufferTrial,
    slow_down: impl FnOnce(),
) -> Result<TrialOutcome, RateError> {
    let mut stream = with_window(device, trial.samples)?;
    let buffer_samples = window_samples(&stream);
    slow_down();
    let mut block = vec![Complex32::default(); BLOCK_SAMPLES];
    stream.start_continuous(None)?;
    until_it_breaks(trial, buffer_samples, || {
        let meta = stream.recv(&mut block, PATIENCE)?;
        // The event itself comes with the first samples after the gap, and the radio is slow.
        let overran = stream.counters().overruns > 0;
        let broke = overran || !matches!(meta.event, RxEvent::None | RxEvent::Timeout);
        Ok((meta.samples, broke))
    })
}

/// Opens a receive stream whose credit window is as near to `samples` as whole packets allow.
fn with_window(device: &Device, samples: u64) -> Result<RxStreamer, RateError> {
    let mut queue_bytes = samples as f64 * 6.0;
    for opening in 1.. {
        let args = RxArgs::new(0).with_recv_queue_bytes(queue_bytes as usize);
        let stream = device.rx_stream(args)?;
        let found = window_samples(&stream);
        let near = found.abs_diff(samples) <= u64::from(stream.samples_per_packet()) / 2;
        if near || opening == OPENINGS {
            return Ok(stream);
        }
        queue_bytes *= samples as f64 / found as f64;
    }
    unreachable!("the last opening returns")
}

/// Samples of the full packets that fit a stream's credit window.
fn window_samples(stream: &RxStreamer) -> u64 {
    let samples = u64::from(stream.samples_per_packet());
    // A packet: header and time, 16 bytes, and four for each sample.
    let packet_bytes = (samples * 4 + 16).next_multiple_of(8);
    stream.members()[0].credit_window_bytes() / packet_bytes * samples
}

fn transmit(
    device: &Device,
    trial: &BufferTrial,
    slow_down: impl FnOnce(),
) -> Result<TrialOutcome, RateError> {
    let mut stream = device.tx_stream(TxArgs::new(0))?;
    let buffer_samples = stream.members()[0].credit_window_bytes() / 4;
    slow_down();
    let block = vec![Complex32::default(); BLOCK_SAMPLES];
    until_it_breaks(trial, buffer_samples, || {
        let sent = stream.send(&block, TxMetadata::now(), PATIENCE)?;
        let mut broke = false;
        while let Some((_, event)) = stream.poll_event()? {
            broke |= matches!(event, TxEvent::Underflow { .. });
        }
        Ok((sent.samples, broke))
    })
}

/// Repeats `step`, which returns the samples streamed and whether the buffer failed, until it fails
/// or the time is over.
fn until_it_breaks(
    trial: &BufferTrial,
    buffer_samples: u64,
    mut step: impl FnMut() -> Result<(usize, bool), RateError>,
) -> Result<TrialOutcome, RateError> {
    let wanted = (trial.duration_s * trial.rate_hz) as u64;
    let (mut streamed, mut broke_after_s) = (0, None);
    while streamed < wanted && broke_after_s.is_none() {
        let (samples, broke) = step()?;
        streamed += samples as u64;
        broke_after_s = broke.then(|| streamed as f64 / trial.rate_hz);
    }
    Ok(TrialOutcome { holds: broke_after_s.is_none(), buffer_samples, streamed, broke_after_s })
}
