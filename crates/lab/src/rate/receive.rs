//! The null sink: receives, converts to `Complex32`, and forgets.

use super::RateError;
use crate::lag::Lag;
use millstream_radio::{Complex32, Device, Ledger, RxArgs, RxEvent, RxStreamer};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Time between the command and the first sample, so that all channels begin together.
const LEAD_S: f64 = 0.05;
/// Silence after which a channel's turn is over.
const PATIENCE: Duration = Duration::from_millis(100);
/// Silence after the start that ends a measurement.
const SILENCE_MAX: Duration = Duration::from_secs(2);
/// Packets that one call converts.
const BLOCK_PACKETS: usize = 8;
/// Bytes of a sample on the wire.
const WIRE_BYTES: f64 = 4.0;

/// What to receive.
#[derive(Debug, Clone, PartialEq)]
pub struct RxPlan {
    /// Channels of the device.
    pub channels: Vec<usize>,
    /// Samples per second of each.
    pub rate_hz: f64,
    /// How long.
    pub duration: Duration,
    /// End at the first loss: the answer is known.
    pub until_loss: bool,
    /// Wanted size of each receive queue, bytes; `None` for the streamer's own choice.
    pub recv_queue_bytes: Option<usize>,
}

/// What was received.
#[derive(Debug, Clone, Serialize)]
pub struct RxOutcome {
    /// Samples per second of each channel.
    pub rate_hz: f64,
    /// From the first samples to the last.
    pub seconds: f64,
    /// Samples delivered, converted, of all channels.
    pub samples: u64,
    /// Samples delivered per second of a channel; the mean of all.
    pub sustained_hz: f64,
    /// Nothing was lost on any channel.
    pub lossless: bool,
    /// CPU time of the host's process.
    pub cpu_s: f64,
    /// The same for 10⁹ samples.
    pub cpu_s_per_gigasample: f64,
    /// Each channel.
    pub channels: Vec<RxChannelOutcome>,
}

/// One channel of an [`RxOutcome`].
#[derive(Debug, Clone, Serialize)]
pub struct RxChannelOutcome {
    /// Its number.
    pub channel: usize,
    /// Samples that should have come.
    pub expected: u64,
    /// Samples that came.
    pub delivered: u64,
    /// Samples lost, by cause.
    pub lost: BTreeMap<&'static str, u64>,
    /// Whether the three add up.
    pub balances: bool,
    /// Times that the device could not send in time.
    pub overruns: u64,
    /// Gaps in the sequence of packets.
    pub gaps: u64,
    /// Datagrams or trains that this machine's receive queue dropped.
    pub queue_drops: u64,
    /// Credit reports sent.
    pub reports: u64,
    /// Bytes that the device may have in flight.
    pub window_bytes: u64,
    /// Share of the window that was in flight: median.
    pub window_median: f64,
    /// Share of the window that was in flight: 99th percentile.
    pub window_p99: f64,
    /// How far consumption was behind the radio's clock, nanoseconds: median, 99th percentile and
    /// worst.
    pub lag_ns: [u64; 3],
}

/// One channel while it runs.
struct Sink {
    channel: usize,
    stream: RxStreamer,
    lag: Lag,
    gaps: u64,
}

/// Receives as `plan` says. The rate that was measured at is that of the plan, or it is an error.
///
/// # Errors
/// [`RateError`].
pub fn receive(device: &mut Device, plan: &RxPlan) -> Result<RxOutcome, RateError> {
    let taken_hz = device.set_rate(plan.rate_hz)?;
    if (taken_hz / plan.rate_hz - 1.0).abs() > 1e-6 {
        return Err(RateError::OtherRate { asked_hz: plan.rate_hz, taken_hz });
    }
    let mut sinks = open(device, plan)?;
    let start = device.time_ticks()?.wrapping_add((LEAD_S * taken_hz) as u64);
    for sink in &mut sinks {
        sink.stream.start_continuous(Some(start))?;
    }
    let packet = sinks.first().map_or(1, |sink| sink.stream.samples_per_packet() as usize);
    let mut block = vec![Complex32::default(); packet * BLOCK_PACKETS];
    let cpu_before = millstream_sys::usage::process_cpu_time();
    let drained = drain(&mut sinks, &mut block, plan)?;
    let cpu_s = (millstream_sys::usage::process_cpu_time() - cpu_before).as_secs_f64();
    let channels: Vec<_> = sinks.into_iter().map(Sink::end).collect();
    let samples = channels.iter().map(|channel| channel.delivered).sum::<u64>();
    let lossless = drained.lossless && channels.iter().all(RxChannelOutcome::is_lossless);
    Ok(RxOutcome {
        rate_hz: taken_hz,
        seconds: drained.seconds,
        samples,
        sustained_hz: drained.samples as f64 / drained.seconds / plan.channels.len() as f64,
        lossless,
        cpu_s,
        cpu_s_per_gigasample: cpu_s / samples.max(1) as f64 * 1e9,
        channels,
    })
}

fn open(device: &Device, plan: &RxPlan) -> Result<Vec<Sink>, RateError> {
    let open = |&channel: &usize| {
        let mut args = RxArgs::new(channel);
        if let Some(bytes) = plan.recv_queue_bytes {
            args = args.with_recv_queue_bytes(bytes);
        }
        let stream = device.rx_stream(args)?;
        Ok(Sink { channel, stream, lag: Lag::new(device.rate_hz()), gaps: 0 })
    };
    plan.channels.iter().map(open).collect()
}

/// How the samples came.
struct Drained {
    /// From the end of each channel's first turn to that of the last.
    seconds: f64,
    /// Samples in that time.
    samples: u64,
    /// Samples came, and nothing was missed.
    lossless: bool,
}

/// Takes samples of all channels in turn until the time is over, then stops.
fn drain(sinks: &mut [Sink], block: &mut [Complex32], plan: &RxPlan) -> Result<Drained, RateError> {
    let delivered =
        |sinks: &[Sink]| sinks.iter().map(|sink| sink.stream.ledger().delivered).sum::<u64>();
    let silent_until = Instant::now() + Duration::from_secs_f64(LEAD_S) + SILENCE_MAX;
    let mut lossless = true;
    let mut first: Option<(Instant, u64)> = None;
    let (now, samples) = loop {
        for sink in &mut *sinks {
            lossless &= sink.turn(block)?;
        }
        let (now, samples) = (Instant::now(), delivered(sinks));
        if first.is_none() && samples > 0 {
            first = Some((now, samples));
        }
        let over = match first {
            Some((began, _)) => now - began >= plan.duration,
            None => now >= silent_until,
        };
        if over || (plan.until_loss && !lossless) {
            break (now, samples);
        }
    };
    for sink in &mut *sinks {
        sink.stream.stop()?;
    }
    let (began, before) = first.unwrap_or((now, samples));
    let seconds = (now - began).as_secs_f64().max(1e-9);
    Ok(Drained { seconds, samples: samples - before, lossless: lossless && first.is_some() })
}

impl Sink {
    /// Takes one block; false when something was lost.
    fn turn(&mut self, block: &mut [Complex32]) -> Result<bool, RateError> {
        let meta = self.stream.recv(block, PATIENCE)?;
        if let (Some(ticks), 1..) = (meta.time_ticks, meta.samples) {
            self.lag.note(Instant::now(), ticks.wrapping_add(meta.samples as u64));
        }
        Ok(match meta.event {
            RxEvent::None | RxEvent::Timeout => true,
            RxEvent::SequenceGap { .. } => {
                self.gaps += 1;
                false
            }
            _ => false,
        })
    }

    fn end(self) -> RxChannelOutcome {
        let (counters, queue_drops) = (*self.stream.counters(), self.stream.queue_drops());
        let window_bytes = self.stream.credit_window_bytes();
        let rate_hz = self.stream.rate_hz();
        let lag = self.lag.histogram();
        let lag_ns = [0.5, 0.99, 1.0].map(|quantile| lag.quantile_ns(quantile));
        let share =
            |ns: u64| (ns as f64 / 1e9 * rate_hz * WIRE_BYTES / window_bytes as f64).min(1.0);
        let ledger: Ledger = self.stream.finish();
        let lost = ledger.losses().filter(|loss| loss.1 > 0);
        RxChannelOutcome {
            channel: self.channel,
            expected: ledger.expected,
            delivered: ledger.delivered,
            lost: lost.map(|(cause, samples)| (cause.name(), samples)).collect(),
            balances: ledger.balance().is_ok(),
            overruns: counters.overruns,
            gaps: self.gaps,
            queue_drops,
            reports: counters.reports,
            window_bytes,
            window_median: share(lag_ns[0]),
            window_p99: share(lag_ns[1]),
            lag_ns,
        }
    }
}

impl RxChannelOutcome {
    /// What was discarded at the end on purpose is no loss.
    fn is_lossless(&self) -> bool {
        let discarded = millstream_radio::Cause::Discarded.name();
        self.balances && self.lost.keys().all(|cause| *cause == discarded)
    }
}
