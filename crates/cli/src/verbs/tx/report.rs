//! The result of a transmission.

use crate::dashboard::LedgerStatus;
use crate::front_end::{self, ChannelTuning};
use crate::graph_report::{causes, verdict};
use crate::output::{Report, count, document};
use millstream_radio::tx::{TxCounters, TxError, TxEvent, TxLedger, TxStreamer};
use serde_json::Value;
use std::collections::BTreeMap;

crate::results! {
    also [front_end::results],

    /// A transmission.
    struct Transmitted<'a> {
        /// The transmitted file.
        input: &'a str,
        /// Samples per second.
        rate_hz: f64,
        /// The settings of each channel's front end.
        tuned: &'a [ChannelTuning],
        /// Time of the first sample, ticks.
        start_ticks: Option<u64>,
        /// Wall-clock time, seconds.
        elapsed_s: f64,
        /// Whether the user ended it.
        interrupted: bool,
        /// What became of the samples.
        ledger: TransmittedSamples,
        /// Bursts.
        bursts: u64,
        /// The device's events.
        events: &'a Events,
        /// Packets sent.
        packets: u64,
        /// Waits for the radio's buffer.
        stalls: u64,
        /// Waits for the file.
        reader_waits: u64,
    }

    /// accepted = transmitted + in_flight + lost + unknown.
    struct TransmittedSamples {
        /// Samples that the stream took.
        accepted: u64,
        /// Samples that were transmitted.
        transmitted: u64,
        /// Samples under way.
        in_flight: u64,
        /// Samples lost, by cause.
        lost: BTreeMap<&'static str, u64>,
        /// Samples of which it is not known.
        unknown: UnknownSamples,
        /// Samples that were transmitted again.
        repeated: RepeatedSamples,
        /// Whether the sums are equal.
        balances: bool,
    }

    /// Samples of which it is not known whether they were transmitted.
    struct UnknownSamples {
        /// Their number.
        samples: u64,
        /// At least as many were lost.
        lost_min: u64,
        /// At most as many were lost.
        lost_max: u64,
    }

    /// Samples that were transmitted again.
    struct RepeatedSamples {
        /// At least.
        min: u64,
        /// At most; null if nobody knows.
        max: Option<u64>,
    }

    /// The device's events, counted.
    #[derive(Debug, Default, Clone, PartialEq, Eq)]
    pub struct Events {
        /// Samples were not there at their time.
        underflows: u64,
        /// Packets came after their time.
        lates: u64,
        /// Bursts that were transmitted to their end.
        burst_acks: u64,
        /// Gaps in the sequence of packets.
        sequence_errors: u64,
        /// Times that the stream was set up anew.
        reestablished: u64,
    }
}

impl Events {
    /// Takes the pending events.
    pub fn fetch(&mut self, stream: &mut TxStreamer) -> Result<(), TxError> {
        while let Some((_, event)) = stream.poll_event()? {
            self.count(event);
        }
        Ok(())
    }

    /// Counts one event.
    pub fn count(&mut self, event: TxEvent) {
        match event {
            TxEvent::Underflow { .. } => self.underflows += 1,
            TxEvent::Late { .. } => self.lates += 1,
            TxEvent::BurstAck { .. } => self.burst_acks += 1,
            TxEvent::SequenceError => self.sequence_errors += 1,
            TxEvent::Reestablished { .. } => self.reestablished += 1,
            // The ledger has the number of lost samples.
            _ => {}
        }
    }
}

/// The ledger as the dashboard shows it.
pub fn ledger_status(ledger: &TxLedger) -> LedgerStatus {
    let mut lost: BTreeMap<String, u64> =
        ledger.losses().map(|(cause, lost)| (cause.name().to_owned(), lost)).collect();
    // Without an outcome, neither transmitted nor in flight.
    *lost.entry("unknown".to_owned()).or_insert(0) += ledger.unknown.samples;
    LedgerStatus {
        name: "radio".to_owned(),
        expected: ledger.accepted,
        delivered: ledger.transmitted,
        held: Some(ledger.in_flight),
        balances: ledger.balance().is_ok(),
        lost,
        after_end: 0,
    }
}

/// Largest counts without failure.
#[derive(Debug, Default, Clone, Copy)]
pub struct TxLimits {
    /// Underflows; `None`: any number.
    pub underflows: Option<u64>,
    /// Late packets.
    pub lates: Option<u64>,
    /// Samples lost, including those in an unknown state.
    pub lost: Option<u64>,
}

/// A transmission, finished or as of now.
#[derive(Clone)]
pub struct Played<'a> {
    /// The transmitted file.
    pub input: &'a str,
    /// Samples per second.
    pub rate_hz: f64,
    /// The settings of each channel's front end.
    pub tuned: Vec<ChannelTuning>,
    /// Time of the first sample, ticks.
    pub start_ticks: Option<u64>,
    /// Samples requested; `None`: without end.
    pub wanted: Option<u64>,
    /// Wall-clock time, seconds.
    pub elapsed_s: f64,
    /// Whether the user ended it early.
    pub interrupted: bool,
    /// Number of waits for the file.
    pub reader_waits: u64,
    /// The device's events.
    pub events: Events,
    /// The counts at the port.
    pub counters: TxCounters,
    /// The ledger of its samples.
    pub ledger: TxLedger,
    /// Largest counts without failure.
    pub limits: TxLimits,
}

/// The live line.
pub fn status(ledger: &TxLedger, events: &Events, wanted: Option<u64>, elapsed_s: f64) -> String {
    let share = wanted.map_or(String::new(), |wanted| {
        format!("{:3.0} %  ", 100.0 * ledger.transmitted as f64 / wanted.max(1) as f64)
    });
    let rate = ledger.transmitted as f64 / elapsed_s.max(1e-3) / 1e6;
    format!(
        "{share}{rate:.2} MS/s  {} samples  {} underflows  {} late  {} lost  {} unknown",
        ledger.transmitted,
        events.underflows,
        events.lates,
        ledger.lost_total(),
        ledger.unknown.samples
    )
}

/// The document and the final line.
pub fn report(played: Played) -> Report {
    let Played { ledger, events, counters, .. } = &played;
    let (causes, verdict) = (causes(ledger.losses()), verdict(ledger.balance().is_ok()));
    let (unknown, repeated) = (ledger.unknown, ledger.repeated);
    // Only where it is not zero: the common line stays short.
    let doubt = match unknown.samples {
        0 => String::new(),
        samples => format!(
            " + {samples} unknown ({} to {} of them lost)",
            unknown.lost_min, unknown.lost_max
        ),
    };
    let again = match (repeated.min, repeated.max) {
        (_, 0) => String::new(),
        (min, max) if min == max => format!("; {min} transmitted again"),
        (min, _) => format!("; {min} or more transmitted again"),
    };
    let text = format!(
        "{}: {} samples accepted = {} transmitted + {} lost ({causes}){doubt}: {verdict}{again}; \
         {}, {} acknowledged, {}, {} late\n",
        played.input,
        ledger.accepted,
        ledger.transmitted,
        ledger.lost_total(),
        count(counters.bursts, "burst"),
        events.burst_acks,
        count(events.underflows, "underflow"),
        events.lates,
    );
    Report::of(text, &Transmitted::of(&played)).failing(failure(&played))
}

/// The results for the dashboard. While it goes on, samples are in flight, too.
pub fn shown(played: &Played) -> Value {
    document(&Transmitted::of(played))
}

impl<'a> Transmitted<'a> {
    fn of(played: &'a Played) -> Self {
        let Played { ledger, events, counters, .. } = played;
        let (unknown, repeated) = (ledger.unknown, ledger.repeated);
        Self {
            input: played.input,
            rate_hz: played.rate_hz,
            tuned: &played.tuned,
            start_ticks: played.start_ticks,
            elapsed_s: played.elapsed_s,
            interrupted: played.interrupted,
            ledger: TransmittedSamples {
                accepted: ledger.accepted,
                transmitted: ledger.transmitted,
                in_flight: ledger.in_flight,
                lost: ledger.losses().map(|(cause, lost)| (cause.name(), lost)).collect(),
                unknown: UnknownSamples {
                    samples: unknown.samples,
                    lost_min: unknown.lost_min,
                    lost_max: unknown.lost_max,
                },
                repeated: RepeatedSamples {
                    min: repeated.min,
                    max: Some(repeated.max).filter(|most| *most != u64::MAX),
                },
                balances: ledger.balance().is_ok(),
            },
            bursts: counters.bursts,
            events,
            packets: counters.packets,
            stalls: counters.stalls,
            reader_waits: played.reader_waits,
        }
    }
}

fn failure(played: &Played) -> Option<String> {
    let Played { ledger, events, limits, .. } = played;
    if let Err(imbalance) = ledger.balance() {
        return Some(format!("{imbalance}; this is a defect, please report it"));
    }
    let over = |limit: Option<u64>, count, what| {
        let limit = limit.filter(|limit| count > *limit)?;
        Some(format!("{count} {what}, and {limit} were allowed"))
    };
    let (unknown, most) = (ledger.unknown.samples, ledger.lost_total() + ledger.unknown.lost_max);
    over(limits.underflows, events.underflows, "underflows")
        .or_else(|| over(limits.lates, events.lates, "late packets"))
        .or_else(|| over(limits.lost, most, "samples were or may have been lost"))
        .or_else(|| {
            (unknown > 0 && limits.lost.is_none()).then(|| {
                format!(
                    "of {unknown} samples it is not known whether they were transmitted: reports \
                     of the device are missing; give --max-lost to allow it"
                )
            })
        })
        .or_else(|| {
            let wanted = played.wanted.filter(|wanted| ledger.accepted < *wanted)?;
            let accepted = ledger.accepted;
            let input = played.input;
            Some(format!("interrupted: {accepted} of {wanted} samples of {input} were sent"))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn played(limits: TxLimits, events: Events, wanted: Option<u64>) -> Option<String> {
        report(Played {
            input: "x.sc16",
            rate_hz: 1e6,
            tuned: Vec::new(),
            start_ticks: None,
            wanted,
            elapsed_s: 1.0,
            interrupted: false,
            reader_waits: 0,
            events,
            counters: TxCounters::default(),
            ledger: TxLedger::default(),
            limits,
        })
        .failure
    }

    #[test]
    fn only_what_exceeds_a_limit_fails() {
        let two = Events { underflows: 2, lates: 1, ..Events::default() };
        assert_eq!(played(TxLimits::default(), two.clone(), None), None);
        let limits = TxLimits { underflows: Some(2), lates: Some(0), lost: None };
        let text = played(limits, two, None).unwrap();
        assert_eq!(text, "1 late packets, and 0 were allowed");
    }

    #[test]
    fn an_end_before_the_last_sample_fails() {
        let text = played(TxLimits::default(), Events::default(), Some(5)).unwrap();
        assert_eq!(text, "interrupted: 0 of 5 samples of x.sc16 were sent");
        assert_eq!(played(TxLimits::default(), Events::default(), Some(0)), None);
    }
}
