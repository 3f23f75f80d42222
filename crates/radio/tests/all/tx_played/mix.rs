//! Mixes of faults and calls of a transmission, and the check of its ledger.

use std::ops::Range;
use std::time::Duration;

use millstream_radio::{TxArgs, TxCause, TxLedger, TxMetadata};

use super::rig::TxRig;
use crate::common::PATIENCE;
use crate::common::draw::Draw;
use crate::common::played::{Played, numbered};
use crate::common::shrink::{Shrink, Variants, tell};

/// A call of the sender, or a fault between two calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TxStep {
    /// Sends samples; the first of a burst with time are so far ahead of the device's time.
    Send {
        samples: usize,
        ends: bool,
        ahead_us: i32,
    },
    Flush,
    Drain,
    Pause {
        us: u64,
    },
    /// A fault of the device.
    Device(String),
}

/// The faults and calls of one transmission.
#[derive(Debug, Clone)]
pub struct TxMix {
    /// Faults of packets, from the first call to the last.
    pub faults: Vec<String>,
    pub steps: Vec<TxStep>,
    pub samples_per_packet: u32,
    /// Bursts have times.
    pub timed: bool,
}

const DATA: [&str; 9] = [
    "lose to_device data",
    "duplicate to_device data",
    "duplicate to_device data copies=3",
    "reorder to_device data packets=1",
    "reorder to_device data packets=3",
    "reorder to_device data packets=30",
    "truncate to_device data bytes=40",
    "delay to_device data ms=1",
    "delay to_device data ms=20",
];

const OTHERS: [&str; 13] = [
    "lose to_host status",
    "duplicate to_host status",
    "reorder to_host status packets=1",
    "reorder to_host status packets=6",
    "delay to_host status ms=1",
    "delay to_host status ms=20",
    "truncate to_host status bytes=12",
    "lose to_device command",
    "duplicate to_device command",
    "reorder to_device command packets=1",
    "delay to_device command ms=3",
    "lose to_host request",
    "duplicate to_host request",
];

impl TxMix {
    pub fn draw(draw: &mut Draw<'_>) -> Self {
        let mut faults = Vec::new();
        let add = |faults: &mut Vec<String>, of: &[&str], draw: &mut Draw<'_>| {
            let fault = draw.one_of(of);
            let select = if draw.one_in(6) {
                // Fewer than the attempts to set a stream up again.
                let most = if fault.contains("data") { 200 } else { 12 };
                format!("skip={} count={}", draw.range(1, 100), draw.range(1, most))
            } else {
                let chance = draw.one_of(&[0.002, 0.01, 0.05, 0.2]);
                format!("p={chance} seed={}", draw.range(0, 1 << 20))
            };
            // Without a first message nothing shows that one is missing.
            let first = if fault.contains("request") { " skip=1" } else { "" };
            let select = if select.contains("skip") { select } else { select + first };
            faults.push(format!("{fault} {select}"));
        };
        add(&mut faults, &DATA, draw);
        let simple = draw.one_in(3);
        if !simple {
            (0..draw.range(0, 3)).for_each(|_| add(&mut faults, &DATA, draw));
            (0..draw.range(0, 4)).for_each(|_| add(&mut faults, &OTHERS, draw));
        }
        let (samples_per_packet, timed) = (50 + draw.range(0, 400) as u32, draw.one_in(3));
        let steps = (0..draw.range(1, 8)).map(|_| Self::step(draw, simple)).collect();
        Self { faults, steps, samples_per_packet, timed }
    }

    fn step(draw: &mut Draw<'_>, simple: bool) -> TxStep {
        match draw.range(0, 14) {
            0..9 => TxStep::Send {
                samples: draw.range(1, 20_000) as usize,
                ends: !draw.one_in(4),
                ahead_us: draw.range(0, 25_000) as i32 - 5_000,
            },
            9 => TxStep::Flush,
            10 => TxStep::Drain,
            11 => TxStep::Pause { us: draw.range(0, 40_000) },
            12 if !simple => {
                let ticks = draw.one_of(&[-20_000, 3_000, 50_000]);
                TxStep::Device(format!("clock_jump ticks={ticks}"))
            }
            13 if !simple => TxStep::Device(format!("stall ms={}", draw.range(1, 120))),
            _ => TxStep::Pause { us: draw.range(0, 2_000) },
        }
    }

    /// Returns whether packets of samples are the only ones with faults, and of one kind.
    fn is_simple(&self) -> bool {
        let device = |step: &TxStep| matches!(step, TxStep::Device(_));
        let one = matches!(&self.faults[..], [] | [_]);
        let data = self.faults.iter().all(|fault| fault.contains("to_device data"));
        one && data && !self.timed && !self.steps.iter().any(device)
    }

    /// Returns whether all packets of samples reach the radio.
    fn is_lossless(&self) -> bool {
        !self.faults.iter().any(|fault| {
            let taken = fault.starts_with("lose") || fault.starts_with("truncate");
            taken && fault.contains("data")
        })
    }

    fn samples(&self) -> usize {
        let samples = |step: &TxStep| match step {
            TxStep::Send { samples, .. } => *samples,
            _ => 0,
        };
        self.steps.iter().map(samples).sum()
    }

    /// Runs the mix and checks its ledger.
    ///
    /// # Panics
    /// With what is wrong.
    pub fn check(&self, rig: &mut impl TxRig) -> Checked {
        let before = rig.counters();
        let samples = numbered(self.samples());
        let args = TxArgs::new(0).with_samples_per_packet(self.samples_per_packet);
        let mut stream = rig.open(args);
        self.faults.iter().for_each(|fault| rig.add(fault));
        let mut left = &samples[..];
        for step in &self.steps {
            match step {
                TxStep::Send { samples, ends, ahead_us } => {
                    let (now, later) = left.split_at(*samples);
                    left = later;
                    let mut meta = TxMetadata { time_ticks: None, end_of_burst: *ends };
                    if self.timed && !stream.is_in_burst() {
                        let ahead = f64::from(*ahead_us) * 1e-6 * stream.rate_hz();
                        let time = stream.time_ticks().expect("the device lives");
                        meta.time_ticks = Some(time.wrapping_add_signed(ahead as i64));
                    }
                    let sent = stream.send(now, meta, PATIENCE).expect("the device lives");
                    assert_eq!((sent.samples, sent.end_of_burst), (now.len(), *ends));
                }
                TxStep::Flush => stream.flush().expect("the network lives"),
                TxStep::Drain => drop(stream.drain(PATIENCE).expect("the device lives")),
                TxStep::Pause { us } => rig.pass(Duration::from_micros(*us)),
                TxStep::Device(fault) => rig.add(fault),
            }
            assert_eq!(stream.ledger().balance(), Ok(()), "behind {step:?}");
        }
        // The packets for the end of the stream are not lost.
        rig.clear();
        rig.pass(Duration::from_millis(2));
        let sent = stream.counters();
        let ledger = stream.finish();
        let counters = rig.counters();
        let played = rig.played(samples.len());
        let late = counters.tx_late_samples - before.tx_late_samples;
        let overflow = counters.tx_overflow_samples - before.tx_overflow_samples;
        tell(format_args!("  {sent:?}\n  {late} late, {overflow} overflowed\n{ledger}"));
        tell(format_args!("  {} once, {} again", played.once(), played.again()));
        let wrong = self.wrong(&ledger, &played, overflow);
        assert!(wrong.is_empty(), "{}", wrong.join("; "));
        if let Some(arrived) = rig.arrived() {
            check_packets(&arrived, &played, &ledger, late, overflow);
        }
        Checked {
            simple: self.is_simple(),
            unknown: ledger.unknown.samples,
            samples: ledger.accepted,
            again: played.again() > 0,
        }
    }

    /// Runs the mix. The stream may fail, and its ledger balances.
    ///
    /// # Panics
    /// When it does not.
    pub fn endure(&self, rig: &impl TxRig) {
        let samples = numbered(self.samples());
        let mut stream = rig.open(TxArgs::new(0).with_samples_per_packet(self.samples_per_packet));
        self.faults.iter().for_each(|fault| rig.add(fault));
        let mut left = &samples[..];
        for step in &self.steps {
            let outcome = match step {
                TxStep::Send { samples, ends, ahead_us } => {
                    let (now, later) = left.split_at(*samples);
                    left = later;
                    let time_ticks = (self.timed && !stream.is_in_burst())
                        .then(|| (1 << 40) + 4 * u64::from(ahead_us.unsigned_abs()));
                    let meta = TxMetadata { time_ticks, end_of_burst: *ends };
                    stream.send(now, meta, Duration::from_millis(50)).map(drop)
                }
                TxStep::Flush => stream.flush(),
                TxStep::Drain => stream.drain(Duration::from_millis(50)).map(drop),
                TxStep::Pause { us } => {
                    rig.pass(Duration::from_micros(*us));
                    stream.poll_event().map(drop)
                }
                TxStep::Device(fault) => {
                    rig.add(fault);
                    Ok(())
                }
            };
            assert_eq!(stream.ledger().balance(), Ok(()), "behind {step:?}");
            if outcome.is_err() {
                break;
            }
        }
        let ledger = stream.finish_within(Duration::from_millis(100));
        assert_eq!((ledger.balance(), ledger.in_flight), (Ok(()), 0));
        let unknown = ledger.unknown;
        assert!(unknown.lost_min <= unknown.lost_max && unknown.lost_max <= unknown.samples);
        assert!(ledger.repeated.min <= ledger.repeated.max, "{ledger}");
    }

    /// Returns the errors of the ledger.
    fn wrong(&self, ledger: &TxLedger, played: &Played, overflow: u64) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut check = |good: bool, what: String| wrong.extend((!good).then_some(what));
        let samples = self.samples() as u64;
        check(ledger.balance().is_ok(), "it does not balance".to_owned());
        check(ledger.in_flight == 0, format!("{} in flight", ledger.in_flight));
        check(ledger.accepted == samples, "not all were accepted".to_owned());
        let (unknown, repeated) = (ledger.unknown, ledger.repeated);
        let lost = samples - played.once();
        let known = ledger.lost_total();
        let bounds = known + unknown.lost_min..=known + unknown.lost_max;
        check(bounds.contains(&lost), format!("{lost} of {bounds:?} were not played"));
        let again = repeated.min..=repeated.max;
        check(again.contains(&played.again()), format!("{} of {again:?} again", played.again()));
        let network = ledger.lost(TxCause::NetworkLoss);
        // Where packets come later than several queries of the device's count, the host has sent
        // others in their place, and cannot know that its buffer was full.
        let lost_here = if self.is_lossless() { overflow } else { u64::MAX };
        check(network <= lost_here, format!("the network lost nothing, not {network}"));
        if self.is_simple() {
            check(unknown.samples == 0, format!("{} unknown", unknown.samples));
            check(repeated.min == repeated.max, format!("{again:?} again"));
            let crowded = overflow > 0 || repeated.max > 0;
            check(
                crowded || lost == network || !self.is_lossless(),
                format!("{network} of {lost}"),
            );
        }
        wrong
    }
}

/// What a mix had.
#[derive(Debug, Clone, Copy)]
pub struct Checked {
    pub simple: bool,
    /// Samples that may have been transmitted or lost, of all.
    pub unknown: u64,
    pub samples: u64,
    pub again: bool,
}

/// Compares the ledger with the fate of each packet: how often its samples `arrived` at the radio,
/// and how often they were played.
fn check_packets(arrived: &[u32], played: &Played, ledger: &TxLedger, late: u64, overflow: u64) {
    let fates = || arrived.iter().zip(&played.times);
    assert!(fates().all(|(came, played)| played <= came), "played more often than it came");
    let lost = fates().filter(|(came, _)| **came == 0).count() as u64;
    let dropped = fates().filter(|(came, played)| **came > 0 && **played == 0).count() as u64;
    let booked = |cause| ledger.lost(cause);
    tell(format_args!("  {lost} lost, {dropped} dropped by the radio"));
    tell(format_args!("  not played: {:?}", stretches(fates().map(|(_, played)| *played == 0))));
    assert!(booked(TxCause::NetworkLoss) <= lost + overflow, "{lost} lost\n{ledger}");
    assert!(booked(TxCause::Late) <= late, "{late} late\n{ledger}");
    assert_eq!(booked(TxCause::Discarded), 0);
    if ledger.unknown.samples == 0 && overflow == 0 {
        let really = (lost, dropped);
        let by_cause = (booked(TxCause::NetworkLoss), booked(TxCause::Late));
        assert_eq!(by_cause, really, "lost, dropped\n{ledger}");
    }
}

/// Returns the stretches of samples that something is true of, as their numbers from 0.
fn stretches(of: impl Iterator<Item = bool>) -> Vec<Range<usize>> {
    let mut stretches: Vec<Range<usize>> = Vec::new();
    for (index, _) in of.enumerate().filter(|(_, is)| *is) {
        match stretches.last_mut().filter(|last| last.end == index) {
            Some(last) => last.end += 1,
            None => stretches.push(index..index + 1),
        }
    }
    stretches
}

impl Shrink for TxMix {
    fn smaller(&self) -> Vec<Self> {
        let mut all = Variants::of(self);
        all.without_each(|mix| &mut mix.faults);
        all.without_each(|mix| &mut mix.steps);
        if self.timed {
            all.put(|mix| mix.timed = false);
        }
        for (index, step) in self.steps.iter().enumerate() {
            match *step {
                TxStep::Send { samples, ends, ahead_us } if samples > 1 => {
                    for samples in [samples / 2, samples * 3 / 4, samples - 1] {
                        all.put(|mix| mix.steps[index] = TxStep::Send { samples, ends, ahead_us });
                    }
                }
                TxStep::Pause { us } if us > 1 => {
                    all.put(|mix| mix.steps[index] = TxStep::Pause { us: us / 2 });
                }
                _ => {}
            }
        }
        all.into_vec()
    }
}
