//! The signal generator: a tone in `Complex32`, converted and sent.

use super::shares::Shares;
use super::{RateError, TxOutcome, set_rate};
use millstream_radio::{
    Complex32, Device, TxArgs, TxEvent, TxLedger, TxMember, TxMetadata, TxStreamer,
};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Longest wait of one call.
const PATIENCE: Duration = Duration::from_millis(100);
/// Time limit of the device's report that it has transmitted all samples.
const SETTLE: Duration = Duration::from_secs(2);
/// Interval of the polls for that report.
const PAUSE: Duration = Duration::from_millis(1);
/// A late burst stays late: a new one begins, but not more often than this.
const RESTART_PAUSE: Duration = Duration::from_millis(200);
/// Packets of a call.
const BLOCK_PACKETS: usize = 8;
/// Level and period of the tone.
const AMPLITUDE: f32 = 0.5;
const PERIOD_SAMPLES: usize = 40;

/// The parameters of a transmission.
#[derive(Debug, Clone)]
pub struct TxPlan {
    /// Channels of the device, at most 32.
    pub channels: Vec<usize>,
    /// Samples per second of each.
    pub rate_hz: f64,
    /// Duration.
    pub duration: Duration,
    /// Whether to end at the first underflow or loss, when the answer is known.
    pub until_loss: bool,
    /// Polled repeatedly: whether to end early.
    pub ended: fn() -> bool,
}

/// One channel of a [`TxOutcome`].
#[derive(Debug, Clone, Default, Serialize)]
pub struct TxChannelOutcome {
    /// Its number.
    pub channel: usize,
    /// Samples given to the stream.
    pub accepted: u64,
    /// Samples that the device took.
    pub transmitted: u64,
    /// Samples lost, by cause.
    pub lost: BTreeMap<&'static str, u64>,
    /// Samples in an unknown state: transmitted or not.
    pub unknown: u64,
    /// Whether all of these agree.
    pub balances: bool,
    /// Times that the device had no sample to transmit inside the burst.
    pub underflows: u64,
    /// Packets that came after their time.
    pub lates: u64,
    /// Gaps in the sequence of packets that the device saw.
    pub sequence_errors: u64,
    /// Whether the device acknowledged the end of the burst.
    pub acknowledged: bool,
    /// Trains sent; each is one system call.
    pub trains: u64,
    /// Credit reports taken.
    pub reports: u64,
    /// Bytes that may be in flight.
    pub window_bytes: u64,
    /// Share of the window that was in flight: median.
    pub window_median: f64,
    /// Share of the window that was in flight: 99th percentile.
    pub window_p99: f64,
}

/// A running generator.
pub(super) struct LoadGenerator {
    group: TxStreamer,
    block: Vec<Complex32>,
    /// Longest wait of one call.
    pub patience: Duration,
    /// Samples still to send.
    left: u64,
    /// Fill level of each channel's window, call by call.
    shares: Vec<Shares>,
    /// Channels whose end was acknowledged.
    acknowledged: Vec<bool>,
    /// Whether another event was reported.
    troubled: bool,
    /// Whether samples come too late; the start of the burst.
    behind: bool,
    burst_since: Instant,
}

/// Transmits by `plan`, all channels from the same moment on.
///
/// # Errors
/// [`RateError`]; [`RateError::OtherRate`] when the radio does not take the plan's rate.
pub fn transmit(device: &mut Device, plan: &TxPlan) -> Result<TxOutcome, RateError> {
    set_rate(device, plan.rate_hz)?;
    let mut generator = LoadGenerator::open(device, plan)?;
    let cpu_before = millstream_cpu::usage::process_cpu_time();
    let began = Instant::now();
    while generator.left > 0 && !(plan.until_loss && generator.troubled) && !(plan.ended)() {
        generator.step()?;
    }
    let cpu_s = (millstream_cpu::usage::process_cpu_time() - cpu_before).as_secs_f64();
    generator.outcome(plan, began, cpu_s)
}

/// Whole periods of a tone, at least `samples` long.
fn tone(samples: usize) -> Vec<Complex32> {
    let count = samples.next_multiple_of(PERIOD_SAMPLES);
    let step = std::f32::consts::TAU / PERIOD_SAMPLES as f32;
    (0..count)
        .map(|n| Complex32::from_polar(AMPLITUDE, (n % PERIOD_SAMPLES) as f32 * step))
        .collect()
}

impl LoadGenerator {
    pub fn open(device: &Device, plan: &TxPlan) -> Result<Self, RateError> {
        let args: Vec<_> = plan.channels.iter().map(|&channel| TxArgs::new(channel)).collect();
        let group = device.tx_group(&args)?;
        let samples = (plan.rate_hz * plan.duration.as_secs_f64()).round().max(1.0);
        Ok(Self {
            block: tone(group.samples_per_packet() * BLOCK_PACKETS),
            group,
            patience: PATIENCE,
            left: samples as u64,
            shares: plan.channels.iter().map(|_| Shares::new()).collect(),
            acknowledged: vec![false; plan.channels.len()],
            troubled: false,
            behind: false,
            burst_since: Instant::now(),
        })
    }

    /// Samples of each channel that are still to be sent.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Whether samples were lost, late or missing.
    pub fn is_troubled(&self) -> bool {
        self.troubled
    }

    /// Sends one block on every channel, or the rest.
    pub fn step(&mut self) -> Result<(), RateError> {
        let count = self.block.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let meta = TxMetadata { end_of_burst: count as u64 == self.left, ..TxMetadata::now() };
        // The same tone on every channel.
        let sent = self.group.send(&self.block[..count], meta, self.patience)?;
        self.left -= sent.samples as u64;
        for (shares, stream) in self.shares.iter_mut().zip(self.group.members()) {
            shares.note(stream.in_flight_bytes(), stream.credit_window_bytes());
        }
        self.listen()
    }

    fn listen(&mut self) -> Result<(), RateError> {
        while let Some((index, event)) = self.group.poll_event()? {
            match event {
                TxEvent::BurstAck { .. } => self.acknowledged[index] = true,
                event => {
                    self.troubled = true;
                    self.behind |= matches!(event, TxEvent::Late { .. });
                }
            }
        }
        if self.behind && self.left > 0 && self.burst_since.elapsed() >= RESTART_PAUSE {
            self.restart()?;
        }
        Ok(())
    }

    /// Ends the burst: the next samples begin another, at a future time.
    fn restart(&mut self) -> Result<(), RateError> {
        self.group.end_burst(PATIENCE)?;
        if !self.group.is_in_burst() {
            (self.behind, self.burst_since) = (false, Instant::now());
        }
        Ok(())
    }

    /// Waits for the device's report of the end.
    fn settle(&mut self) -> Result<(), RateError> {
        let until = Instant::now() + SETTLE;
        while self.left == 0 && self.acknowledged.contains(&false) && Instant::now() < until {
            std::thread::sleep(PAUSE);
            self.listen()?;
        }
        Ok(())
    }

    /// Waits for the end, and returns the result since `began`.
    pub fn outcome(
        mut self,
        plan: &TxPlan,
        began: Instant,
        cpu_s: f64,
    ) -> Result<TxOutcome, RateError> {
        self.settle()?;
        let seconds = began.elapsed().as_secs_f64();
        let whole = self.is_lossless();
        let channels = self.end(&plan.channels);
        let samples = channels.iter().map(|channel| channel.transmitted).sum::<u64>();
        Ok(TxOutcome {
            rate_hz: plan.rate_hz,
            seconds,
            samples,
            sustained_hz: samples as f64 / seconds / plan.channels.len() as f64,
            lossless: whole && channels.iter().all(TxChannelOutcome::is_lossless),
            cpu_s,
            cpu_s_per_gigasample: cpu_s / samples.max(1) as f64 * 1e9,
            lag_ns: None,
            channels,
        })
    }

    fn is_lossless(&self) -> bool {
        // An acknowledged end may belong to an earlier burst: then there was trouble.
        self.left == 0 && !self.troubled && !self.acknowledged.contains(&false)
    }

    fn end(mut self, numbers: &[usize]) -> Vec<TxChannelOutcome> {
        let streams = self.group.members().iter().zip(&self.shares);
        let parts = numbers.iter().zip(streams).zip(&self.acknowledged);
        let mut channels: Vec<_> = parts
            .map(|((&channel, (stream, shares)), &acknowledged)| {
                TxChannelOutcome::of(channel, stream, shares, acknowledged)
            })
            .collect();
        self.group.end(None);
        let ledgers = self.group.ledgers();
        channels.iter_mut().zip(ledgers).for_each(|(channel, ledger)| channel.close(ledger));
        channels
    }
}

impl TxChannelOutcome {
    /// Reads a stream's counts before it is closed.
    fn of(channel: usize, member: &TxMember, shares: &Shares, acknowledged: bool) -> Self {
        let counters = member.counters();
        Self {
            channel,
            underflows: counters.underflows,
            lates: counters.lates,
            sequence_errors: counters.sequence_errors,
            acknowledged,
            trains: counters.trains,
            reports: counters.reports,
            window_bytes: member.credit_window_bytes(),
            window_median: shares.quantile(0.5),
            window_p99: shares.quantile(0.99),
            ..Self::default()
        }
    }

    fn close(&mut self, ledger: &TxLedger) {
        self.lost = ledger.lost_by_name();
        (self.accepted, self.transmitted) = (ledger.accepted, ledger.transmitted);
        self.unknown = ledger.unknown.samples;
        self.balances = ledger.balance().is_ok();
    }

    fn is_lossless(&self) -> bool {
        self.balances && self.lost.is_empty() && self.unknown == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_repeats_without_a_jump() {
        let block = tone(1000);
        assert_eq!(block.len() % PERIOD_SAMPLES, 0);
        let step = block[1] * block[0].conj();
        let wrap = block[0] * block[block.len() - 1].conj();
        assert!((step - wrap).norm() < 1e-6, "{step} {wrap}");
        assert!(block.iter().all(|sample| (sample.norm() - AMPLITUDE).abs() < 1e-6));
    }
}
