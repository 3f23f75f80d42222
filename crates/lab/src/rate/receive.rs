//! The null sink: receives, converts to `Complex32`, and drops.

use super::{RateError, RxOutcome, set_rate};
use crate::lag::Lag;
use millstream_radio::{Cause, Complex32, Device, Ledger, RxArgs, RxEvent, RxMember, RxStreamer};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Longest wait of one call.
const PATIENCE: Duration = Duration::from_millis(100);
/// The same with a side task.
const PATIENCE_BESIDE: Duration = Duration::from_millis(1);
/// Silence after the start that ends a measurement.
const SILENCE_MAX: Duration = Duration::from_secs(10);
/// Packets that one call converts.
const BLOCK_PACKETS: usize = 8;
/// Bytes of a sample on the wire.
const WIRE_BYTES: f64 = 4.0;

/// The parameters of a reception.
#[derive(Debug, Clone)]
pub struct RxPlan {
    /// Channels of the device.
    pub channels: Vec<usize>,
    /// Samples per second of each.
    pub rate_hz: f64,
    /// Duration.
    pub duration: Duration,
    /// Whether to end at the first loss, when the answer is known.
    pub until_loss: bool,
    /// Polled repeatedly: whether to end early.
    pub ended: fn() -> bool,
    /// Wanted size of each receive queue, bytes; `None` for the streamer's own choice.
    pub recv_queue_bytes: Option<usize>,
}

/// One channel of an [`RxOutcome`].
#[derive(Debug, Clone, Default, Serialize)]
pub struct RxChannelOutcome {
    /// Its number.
    pub channel: usize,
    /// Samples that should have come.
    pub expected: u64,
    /// Samples that came.
    pub delivered: u64,
    /// Samples lost, by cause.
    pub lost: BTreeMap<&'static str, u64>,
    /// Whether the three agree.
    pub balances: bool,
    /// Times that the device dropped samples because it could not send in time.
    pub overruns: u64,
    /// Datagrams or trains that this machine's receive queue dropped.
    pub queue_drops: u64,
    /// Credit reports sent.
    pub reports: u64,
    /// Credit reports without room in the link: a later one had the same content.
    pub reports_put_off: u64,
    /// Bytes that the device may have in flight.
    pub window_bytes: u64,
    /// Share of the window that was in flight: median.
    pub window_median: f64,
    /// Share of the window that was in flight: 99th percentile.
    pub window_p99: f64,
}

/// The state of a task beside the reception.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SideTask {
    /// It continues.
    Going,
    /// It may end with the reception.
    Done,
    /// The whole measurement ends: the answer is known.
    End,
}

/// The task between two receive calls, if any.
type Task<'t> = Option<&'t mut dyn FnMut() -> Result<SideTask, RateError>>;

/// Receives by `plan`, all channels aligned in time.
///
/// # Errors
/// [`RateError`]; [`RateError::OtherRate`] when the radio does not take the plan's rate.
pub fn receive(device: &mut Device, plan: &RxPlan) -> Result<RxOutcome, RateError> {
    receive_beside(device, plan, None)
}

/// The same, with a task.
pub(super) fn receive_beside(
    device: &mut Device,
    plan: &RxPlan,
    task: Task<'_>,
) -> Result<RxOutcome, RateError> {
    set_rate(device, plan.rate_hz)?;
    let args: Vec<_> = plan.channels.iter().map(|&channel| plan.args(channel)).collect();
    let mut group = device.rx_group(&args)?;
    let packet = group.samples_per_packet();
    let block = vec![Complex32::default(); packet as usize * BLOCK_PACKETS];
    let mut blocks = vec![block; plan.channels.len()];
    let mut lag = Lag::new(group.rate().ticks_hz);
    group.start_continuous(None)?;
    let cpu_before = millstream_cpu::usage::process_cpu_time();
    let drained = drain(&mut group, &mut blocks, &mut lag, plan, task)?;
    let cpu_s = (millstream_cpu::usage::process_cpu_time() - cpu_before).as_secs_f64();

    let rate_hz = group.rate_hz();
    let lag_ns = [0.5, 0.99, 1.0].map(|quantile| lag.histogram().quantile_ns(quantile));
    let numbers = plan.channels.iter();
    let mut channels: Vec<_> = numbers
        .zip(group.members())
        .map(|(&channel, member)| RxChannelOutcome::of(channel, member, rate_hz, lag_ns))
        .collect();
    group.end();
    channels.iter_mut().zip(group.ledgers()).for_each(|(channel, ledger)| channel.close(ledger));
    let samples = channels.iter().map(|channel| channel.delivered).sum::<u64>();
    let sustained_hz = drained.samples as f64 / drained.seconds / plan.channels.len() as f64;
    Ok(RxOutcome {
        rate_hz: plan.rate_hz,
        seconds: drained.seconds,
        samples,
        sustained_hz,
        lossless: drained.lossless && channels.iter().all(RxChannelOutcome::is_lossless),
        cpu_s,
        cpu_s_per_gigasample: cpu_s / samples.max(1) as f64 * 1e9,
        lag_ns: Some(lag_ns),
        channels,
    })
}

/// The result of [`drain`].
struct Drained {
    /// From the end of the first call with samples to that of the last.
    seconds: f64,
    /// Samples in that time, all channels.
    samples: u64,
    /// Whether samples came, and none was missing.
    lossless: bool,
}

/// Takes samples until the time is over, then stops.
fn drain(
    group: &mut RxStreamer,
    blocks: &mut [Vec<Complex32>],
    lag: &mut Lag,
    plan: &RxPlan,
    mut task: Task<'_>,
) -> Result<Drained, RateError> {
    let patience = if task.is_some() { PATIENCE_BESIDE } else { PATIENCE };
    let channels = blocks.len() as u64;
    let mut outs: Vec<_> = blocks.iter_mut().map(Vec::as_mut_slice).collect();
    let began = Instant::now();
    let mut first = None;
    let (mut samples, mut lossless) = (0, true);
    let last = loop {
        let meta = group.recv_all(&mut outs, patience)?;
        let beside = task.as_mut().map_or(Ok(SideTask::Done), |task| task())?;
        let last = Instant::now();
        let over = match first {
            None if meta.samples > 0 => {
                first = Some(last);
                false
            }
            None => last - began >= SILENCE_MAX,
            Some(first) => {
                samples += meta.samples as u64 * channels;
                last - first >= plan.duration
            }
        };
        if let (Some(ticks), 1..) = (meta.time_ticks, meta.samples) {
            lag.note(last, ticks.wrapping_add(group.rate().ticks(meta.samples as u64)));
        }
        lossless &= matches!(meta.event, RxEvent::None | RxEvent::Timeout);
        let over = over && beside == SideTask::Done || beside == SideTask::End;
        if over || (plan.until_loss && !lossless) || (plan.ended)() {
            break last;
        }
    };
    group.stop()?;
    let seconds = first.map_or(0.0, |first| (last - first).as_secs_f64()).max(1e-9);
    Ok(Drained { seconds, samples, lossless: lossless && first.is_some() })
}

impl RxPlan {
    fn args(&self, channel: usize) -> RxArgs {
        let args = RxArgs::new(channel);
        match self.recv_queue_bytes {
            Some(bytes) => args.with_recv_queue_bytes(bytes),
            None => args,
        }
    }
}

impl RxChannelOutcome {
    /// Reads a stream's counts before it is closed.
    fn of(channel: usize, member: &RxMember, rate_hz: f64, lag_ns: [u64; 3]) -> Self {
        let (counters, window_bytes) = (member.counters(), member.credit_window_bytes());
        let share = |ns: u64| {
            let waiting_bytes = ns as f64 / 1e9 * rate_hz * WIRE_BYTES;
            (waiting_bytes / window_bytes as f64).min(1.0)
        };
        Self {
            channel,
            overruns: counters.overruns,
            queue_drops: member.queue_drops(),
            reports: counters.reports,
            reports_put_off: counters.reports_put_off,
            window_bytes,
            window_median: share(lag_ns[0]),
            window_p99: share(lag_ns[1]),
            ..Self::default()
        }
    }

    fn close(&mut self, ledger: &Ledger) {
        self.lost = ledger.lost_by_name();
        (self.expected, self.delivered) = (ledger.expected, ledger.delivered);
        self.balances = ledger.balance().is_ok();
    }

    /// Samples that other channels lacked at the end are not a loss.
    fn is_lossless(&self) -> bool {
        self.balances && self.lost.keys().all(|cause| *cause == Cause::Alignment.name())
    }
}
