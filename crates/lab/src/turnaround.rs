//! The turnaround of a radio and its host: from the time of the newest received sample to the
//! earliest time at which an answer can still be transmitted.
//!
//! Every try receives a short burst, and answers with one for a time a given lead after the newest
//! sample received. Only the radio's clock decides: it acknowledges the burst, or reports the tick
//! at which the late one came. With a lead of 0 every burst is late, and each of those ticks is the
//! turnaround of one try, exactly.

use crate::rate::RateError;
use millstream_radio::{
    Complex32, Device, RxArgs, RxEvent, RxStreamer, TxArgs, TxEvent, TxMetadata, TxStreamer,
};
use millstream_stats::Histogram;
use serde::Serialize;
use std::time::{Duration, Instant};

/// Largest number of consecutive captures that come too late.
const RETRIES: u32 = 12;
/// Largest factor by which a slow host makes the interval longer.
const STRETCH_MAX: u32 = 256;
/// Number of captures in time after which the interval becomes shorter again.
const CALM: u32 = 32;
/// Beyond the lead itself, the radio answers sooner than this.
const PATIENCE: Duration = Duration::from_secs(2);
/// Time from the opening of the stream to the first capture.
const LEAD_S: f64 = 0.05;

/// The parameters of a try.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TurnaroundSpec {
    /// Receive and transmit channel.
    pub channels: (usize, usize),
    /// Samples per second.
    pub rate_hz: f64,
    /// Samples of a capture; one packet.
    pub rx_samples: u32,
    /// Samples of an answer; one packet.
    pub tx_samples: u32,
    /// From the end of a try to the next capture, seconds of the radio's time. A host that needs
    /// longer to command a capture makes it longer.
    pub interval_s: f64,
    /// Whether to poll without sleeping for samples: owns the core.
    pub spin: bool,
}

/// The radio's report of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// It was transmitted at its time.
    InTime,
    /// It came this many ticks after the newest sample received, which was too late.
    Late {
        /// The turnaround.
        ticks: u64,
    },
}

/// The reason why a try has no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TurnaroundError {
    /// Radio and streams.
    #[error(transparent)]
    Rate(#[from] RateError),
    /// The radio reported neither.
    #[error(
        "the radio did not report the end of a burst within {waited_s:.1} s: its reports were \
         lost, or it sends none"
    )]
    NoAnswer {
        /// The time waited.
        waited_s: f64,
    },
    /// Captures cannot be scheduled.
    #[error(
        "{RETRIES} received bursts in a row came too late or lost samples, the last one {ahead_s} \
         s after its command: this host or this radio is too busy; stop other programs, and \
         measure again"
    )]
    NoCapture {
        /// The time from the last command to its capture, seconds.
        ahead_s: f64,
    },
}

/// A sequence of tries.
pub struct Turnaround<'d> {
    device: &'d Device,
    plan: TurnaroundSpec,
    rx: RxStreamer,
    tx: TxStreamer,
    received: Vec<Complex32>,
    answer: Vec<Complex32>,
    next_start: u64,
    /// The factor of the interval, and the captures in time since it changed.
    stretch: (u32, u32),
}

impl<'d> Turnaround<'d> {
    /// Opens both streams of a device that has the plan's rate.
    ///
    /// # Errors
    /// [`TurnaroundError::Rate`].
    pub fn open(device: &'d mut Device, plan: TurnaroundSpec) -> Result<Self, TurnaroundError> {
        crate::rate::set_rate(device, plan.rate_hz)?;
        let rx_args = RxArgs::new(plan.channels.0).with_samples_per_packet(plan.rx_samples);
        let tx_args = TxArgs::new(plan.channels.1).with_samples_per_packet(plan.tx_samples);
        let rx = device.rx_stream(rx_args).map_err(RateError::from)?;
        let tx = device.tx_stream(tx_args).map_err(RateError::from)?;
        let now = device.time_ticks().map_err(RateError::from)?;
        let lead_ticks = (LEAD_S * device.tick_rate_hz()) as u64;
        Ok(Self {
            device,
            plan,
            rx,
            tx,
            received: vec![Complex32::default(); plan.rx_samples as usize],
            answer: vec![Complex32::new(0.5, 0.0); plan.tx_samples as usize],
            next_start: now.wrapping_add(lead_ticks),
            stretch: (1, 0),
        })
    }

    /// Ticks per second of the radio's time, in which leads and turnarounds are counted.
    pub fn ticks_hz(&self) -> f64 {
        self.device.tick_rate_hz()
    }

    /// Makes one try: captures, and answers `lead` ticks after the newest sample.
    ///
    /// # Errors
    /// [`TurnaroundError`].
    pub fn attempt(&mut self, lead: u64) -> Result<Answer, TurnaroundError> {
        let newest = self.capture()?;
        let at = newest.wrapping_add(lead);
        let meta = TxMetadata::at(at).ending();
        self.tx.send(&self.answer, meta, PATIENCE).map_err(RateError::from)?;
        let patience = PATIENCE + Duration::from_secs_f64(lead as f64 / self.device.tick_rate_hz());
        let until = Instant::now() + patience;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let event = self.tx.next_event(left).map_err(RateError::from)?;
            let (answer, ticks) = match event {
                Some((_, TxEvent::BurstAck { time_ticks })) => (Answer::InTime, time_ticks),
                Some((_, TxEvent::Late { time_ticks })) => {
                    (Answer::Late { ticks: time_ticks.wrapping_sub(newest) }, time_ticks)
                }
                Some(_) => continue,
                None if left.is_zero() => {
                    return Err(TurnaroundError::NoAnswer { waited_s: patience.as_secs_f64() });
                }
                None => continue,
            };
            self.next_start = ticks.wrapping_add(self.interval_ticks());
            return Ok(answer);
        }
    }

    /// Receives one burst; returns the time one past its newest sample.
    fn capture(&mut self) -> Result<u64, TurnaroundError> {
        for _ in 0..RETRIES {
            let samples = u64::from(self.plan.rx_samples);
            self.rx.start_finite(samples, Some(self.next_start)).map_err(RateError::from)?;
            if let Some(newest) = self.receive()? {
                self.calm();
                return Ok(newest);
            }
            self.stretch = ((2 * self.stretch.0).min(STRETCH_MAX), 0);
            let now = self.device.time_ticks().map_err(RateError::from)?;
            self.next_start = now.wrapping_add(2 * self.interval_ticks());
        }
        let ahead_s = 2.0 * self.plan.interval_s * f64::from(self.stretch.0);
        Err(TurnaroundError::NoCapture { ahead_s })
    }

    /// Returns `None` when the burst is incomplete.
    fn receive(&mut self) -> Result<Option<u64>, TurnaroundError> {
        let wait = if self.plan.spin { Duration::ZERO } else { PATIENCE };
        let mut newest = None;
        while self.rx.is_running() {
            let meta = self.rx.recv(&mut self.received, wait).map_err(RateError::from)?;
            if meta.samples > 0 {
                let length = self.rx.rate().ticks(meta.samples as u64);
                newest = meta.time_ticks.map(|ticks| ticks.wrapping_add(length));
            }
            if !matches!(meta.event, RxEvent::None | RxEvent::Timeout) {
                newest = None;
            }
        }
        Ok(newest)
    }

    /// Shortens a stretched interval after enough captures in time. A late command costs far more
    /// time than a longer interval, so this is seldom tried.
    fn calm(&mut self) {
        self.stretch.1 += 1;
        if self.stretch.1 >= CALM * self.stretch.0 {
            self.stretch = ((self.stretch.0 / 2).max(1), 0);
        }
    }

    fn interval_ticks(&self) -> u64 {
        let interval_s = self.plan.interval_s * f64::from(self.stretch.0);
        (interval_s * self.device.tick_rate_hz()).ceil() as u64
    }
}

/// The tries of a lead, and how many were late.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LeadResult {
    /// The lead, seconds of the radio's time.
    pub lead_s: f64,
    /// Tries.
    pub tries: u64,
    /// Tries that were late.
    pub late: u64,
    /// The share that the measured distribution of turnarounds predicts.
    pub predicted: f64,
}

/// Leads from half the shortest turnaround to twice the longest, in equal steps of the logarithm.
pub fn leads_s(turnarounds: &Histogram, count: usize) -> Vec<f64> {
    let low = turnarounds.min_ns().max(1) as f64 / 2.0;
    let high = turnarounds.max_ns().max(1) as f64 * 2.0;
    let steps = count.max(2) - 1;
    let lead = |step: usize| low * (high / low).powf(step as f64 / steps as f64) / 1e9;
    (0..=steps).map(lead).collect()
}

/// The shortest lead without a late try at it or at any longer one.
pub fn never_late(results: &[LeadResult]) -> Option<f64> {
    let tail = results.iter().rev().take_while(|result| result.tries > 0 && result.late == 0);
    tail.last().map(|result| result.lead_s)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leads_span_all_turnarounds() {
        let mut turnarounds = Histogram::default();
        for ns in [40_000, 90_000, 1_000_000] {
            turnarounds.record(ns);
        }
        let leads = leads_s(&turnarounds, 5);
        assert_eq!(leads.len(), 5);
        assert!((leads[0] - 20e-6).abs() < 1e-12 && (leads[4] - 2e-3).abs() < 1e-9, "{leads:?}");
        assert!(leads.is_sorted());
    }

    #[test]
    fn a_lead_below_a_late_one_is_not_safe() {
        let result = |lead_s, late| LeadResult { lead_s, tries: 10, late, predicted: 0.0 };
        let of = |lates: &[u64]| {
            let results: Vec<_> =
                lates.iter().enumerate().map(|(lead, late)| result(lead as f64, *late)).collect();
            never_late(&results)
        };
        assert_eq!(of(&[9, 0, 1, 0, 0]), Some(3.0));
        assert_eq!(of(&[1, 1]), None);
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[0]), Some(0.0));
    }
}
