//! What the host and the radio counted, and whether both agree.
//!
//! The radio counts what it sent and what it transmitted, and each fault counts the packets that it
//! hit. Every sample that the host's ledger calls lost has to be one of theirs.

use super::control::RadioCounts;
use super::round::{RoundFault, overruns};
use super::starved::CpuWait;
use crate::Direction;
use serde::Serialize;
use std::collections::BTreeMap;

/// Causes of a loss on the way to the host, and to the radio.
const TO_HOST: [&str; 4] = ["network_loss", "unknown", "malformed", "late"];
const TO_RADIO: [&str; 1] = ["network_loss"];
/// Causes that no fault of a soak has.
const NEVER: [&str; 4] = ["host_queue_drop", "consumer_full", "reopened", "discarded"];

/// What the error of a stream says whose radio is gone.
const REASONS: [&str; 3] = ["stopped answering", "did not answer", "no sample came"];

/// The end of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamEnd {
    /// It ended when it was asked to.
    #[default]
    InOrder,
    /// It ended with this error.
    Failed(String),
    /// No progress and no error: a defect.
    Hangs,
}

/// The books of the channels of one direction.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Books {
    /// Samples that should have come, or that the stream accepted.
    pub expected: u64,
    /// Samples that came, or were transmitted.
    pub delivered: u64,
    /// Samples lost, by cause; those of an unknown outcome are `unknown`.
    pub lost: BTreeMap<&'static str, u64>,
    /// Samples that one channel dropped since another had lost them; at the end of a stream also
    /// those of the channel that stopped later.
    pub alignment: u64,
    /// Whether every channel's ledger balances.
    pub balances: bool,
    /// What the radio has counted by the ledgers: the least and the most.
    pub radio_samples: (u64, u64),
    /// Samples whose value was not that of their time.
    pub wrong_samples: u64,
    /// The longest time that the thread did not come by to send, seconds.
    pub away_s: f64,
    /// Seconds of samples that the radio keeps for transmission.
    pub ahead_s: f64,
}

/// All that is known about the streams of one moment: of either direction, or of both.
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct SoakAccount {
    /// From the radio.
    pub rx: Option<Books>,
    /// To the radio.
    pub tx: Option<Books>,
    /// What the radio counted meanwhile.
    pub radio: RadioCounts,
    /// Packets that the fault hit.
    pub hits: u64,
    /// How the streams ended.
    pub end: StreamEnd,
    /// The longest time without progress since the fault began, seconds.
    pub recovery_s: f64,
    /// How long the radio and this thread waited for a CPU.
    pub cpu_wait: CpuWait,
    /// The user asked to end.
    pub is_cut: bool,
}

impl Books {
    fn lost_by(&self, causes: &[&str]) -> u64 {
        causes.iter().filter_map(|cause| self.lost.get(cause)).sum()
    }

    /// Samples lost by any cause.
    #[must_use]
    pub fn lost_total(&self) -> u64 {
        self.lost.values().sum()
    }
}

impl SoakAccount {
    /// The books of both directions that are there.
    pub fn books(&self) -> impl Iterator<Item = (Direction, &Books)> {
        let rx = self.rx.iter().map(|books| (Direction::Rx, books));
        rx.chain(self.tx.iter().map(|books| (Direction::Tx, books)))
    }

    /// Says what does not agree, in words; nothing when every lost sample was injected.
    #[must_use]
    pub fn complaints(&self, fault: Option<RoundFault>, packet_samples: u32) -> Vec<String> {
        let rules = Rules { account: self, fault, packet: u64::from(packet_samples) };
        let mut all = rules.of_the_end();
        for (direction, books) in self.books() {
            let of_it = rules.of_books(direction, books);
            all.extend(of_it.into_iter().map(|text| format!("{}: {text}", direction.name())));
        }
        all.extend(rules.of_the_radio());
        all
    }
}

struct Rules<'a> {
    account: &'a SoakAccount,
    fault: Option<RoundFault>,
    packet: u64,
}

impl Rules<'_> {
    /// Whether the fault concerns the samples of this direction, and is so.
    fn is(&self, direction: Direction, so: impl Fn(&RoundFault) -> bool) -> bool {
        self.fault.is_some_and(|fault| fault.direction == direction && so(&fault))
    }

    /// Whether the fault's text has one of these words.
    fn has(&self, words: &[&str]) -> bool {
        let specs = self.fault.map(|fault| fault.case.specs(fault.direction)).unwrap_or_default();
        specs.iter().any(|spec| words.iter().any(|word| spec.contains(word)))
    }

    /// Whether the fault may end streams: those of the other direction, too.
    fn may_end(&self) -> bool {
        self.fault.is_some_and(|fault| !fault.case.ends.is_empty())
    }

    fn of_the_end(&self) -> Vec<String> {
        let mut all = Vec::new();
        let may_end = self.may_end();
        let must_end = self.fault.is_some_and(|fault| fault.case.ends.contains(&fault.direction));
        match &self.account.end {
            StreamEnd::Hangs => all.push("the streams neither go on nor end".to_owned()),
            StreamEnd::Failed(_) if !may_end && self.account.cpu_wait.is_starved() => {}
            StreamEnd::Failed(error) if !may_end => {
                all.push(format!("the streams ended, and nothing asked them to: {error}"));
            }
            StreamEnd::Failed(error) if !REASONS.iter().any(|reason| error.contains(reason)) => {
                all.push(format!("the error does not name the cause: {error}"));
            }
            StreamEnd::InOrder if must_end && !self.account.is_cut => {
                all.push("the radio was gone, or stopped, and no stream noticed".to_owned());
            }
            _ => {}
        }
        // A fault of the whole stream waits for its turn among few messages.
        let strikes = self.fault.is_some_and(|fault| !fault.case.throughout);
        // A stream that ended before its fault, excused or complained about above.
        let ended_before = match self.account.end {
            StreamEnd::InOrder => self.account.is_cut,
            StreamEnd::Failed(_) => !may_end || self.account.cpu_wait.is_starved(),
            StreamEnd::Hangs => true,
        };
        if strikes && self.account.hits == 0 && !ended_before {
            all.push("the fault hit nothing, so nothing was tested".to_owned());
        }
        all
    }

    fn of_books(&self, direction: Direction, books: &Books) -> Vec<String> {
        let mut all = Vec::new();
        let mut complain = |wrong: bool, text: &dyn Fn() -> String| {
            if wrong {
                all.push(text());
            }
        };
        let SoakAccount { radio, hits, .. } = self.account;
        let packets = hits * self.packet;
        complain(!books.balances, &|| "the ledger does not balance".to_owned());
        let counted = match direction {
            Direction::Rx => radio.rx_samples,
            Direction::Tx => radio.tx_samples,
        };
        let (least, most) = books.radio_samples;
        let misleads = self.is(direction, |fault| {
            fault.case.misleads || fault.case.passes_audits && direction == Direction::Tx
        });
        let slack = if misleads { packets } else { 0 };
        // A radio that restarts drops samples that it had taken.
        let restarts = direction == Direction::Tx && self.account.end != StreamEnd::InOrder;
        let flushed = if restarts { radio.tx_dropped } else { 0 };
        let agrees = least.saturating_sub(slack + flushed) <= counted
            && counted <= most.saturating_add(slack);
        // A receive stream that could not stop leaves a radio that goes on.
        let goes_on =
            direction == Direction::Rx && self.account.end != StreamEnd::InOrder && counted > least;
        complain(!agrees && !goes_on, &|| {
            format!("the radio counts {counted} samples, but the ledgers {least} to {most}")
        });
        let damages = self.is(direction, |fault| fault.case.damages_samples || fault.case.misleads);
        complain(books.wrong_samples > 0 && !damages, &|| {
            format!("{} samples are not those of their time", books.wrong_samples)
        });
        // On the way.
        let (on_the_way, way) = match direction {
            Direction::Rx => (books.lost_by(&TO_HOST), ["to_host data", "to_host any"]),
            Direction::Tx => (books.lost_by(&TO_RADIO), ["to_device data", "to_device any"]),
        };
        let overruns = self.fault.is_some_and(|fault| overruns(fault.case));
        // Behind an overrun whose report or end did not come the host cannot know what was sent.
        let open = direction == Direction::Rx && overruns;
        let on_the_way = on_the_way - if open { books.lost_by(&["unknown"]) } else { 0 };
        let may_end = self.may_end();
        let hits_samples = self.has(&way) || may_end && !overruns;
        complain(on_the_way > 0 && !hits_samples, &|| {
            format!("{on_the_way} samples were lost that no fault hit: {}", lost(books))
        });
        let loses_hits = self.is(direction, |fault| fault.case.loses_hits);
        complain(loses_hits && on_the_way != packets, &|| {
            format!("the fault hit {packets} samples, but {on_the_way} were lost: {}", lost(books))
        });
        // In the radio.
        let overrun = books.lost_by(&["device_overrun", "late_command"]);
        let starved = self.account.cpu_wait.is_starved();
        // A stream that hears nothing for long starts again.
        let silence = self.has(&["for_ms"]) || may_end || misleads;
        complain(overrun > 0 && !overruns && !silence && !starved, &|| {
            let RadioCounts { rx_overruns, rx_overruns_own, .. } = radio;
            format!(
                "{overrun} samples overflowed the radio, which nobody injected; it counts \
                 {rx_overruns} overruns, {rx_overruns_own} of them for want of a CPU"
            )
        });
        let jumped = books.lost_by(&["clock_jump"]);
        complain(jumped > 0 && !self.has(&["clock_jump", "reboot"]) && !misleads, &|| {
            format!("{jumped} samples were lost by a jump of a clock that nobody set")
        });
        // Reports that a fault took may leave the end of samples open; the radio's count has to lie
        // within the bounds all the same.
        let open = if direction == Direction::Tx { books.lost_by(&["unknown"]) } else { 0 };
        let explained = radio.tx_late > 0 || self.account.cpu_wait.is_starved();
        complain(open > 0 && self.fault.is_none() && !explained, &|| {
            format!("{open} samples are unknown, and no fault took a report")
        });
        // The thread that sends was away, for want of a CPU or because the other direction waited.
        let late = if direction == Direction::Tx { books.lost_by(&["late"]) } else { 0 };
        let was_away = books.away_s > books.ahead_s / 4.0;
        complain(late > 0 && !was_away && !hits_samples && !starved, &|| {
            format!(
                "{late} samples came late to the radio, and the thread that sends them was never \
                 away for more than {:.3} s, where {:.3} s wait in the radio",
                books.away_s, books.ahead_s
            )
        });
        let never = books.lost_by(&NEVER);
        complain(never > 0, &|| format!("{never} samples were lost in this host: {}", lost(books)));
        all
    }

    fn of_the_radio(&self) -> Vec<String> {
        let mut all = Vec::new();
        let radio = &self.account.radio;
        let gone = radio.tx_samples + radio.tx_late + radio.tx_dropped + radio.tx_waiting;
        // A reboot empties its buffer.
        if radio.tx_received != gone && !self.has(&["reboot"]) {
            all.push(format!(
                "the radio got {} samples to transmit, but accounts for {gone}",
                radio.tx_received
            ));
        }
        let late = self.account.tx.as_ref().map_or(0, |books| books.lost_by(&["late"]));
        let unknown = self.account.tx.as_ref().map_or(0, |books| books.lost_by(&["unknown"]));
        if late > radio.tx_late || radio.tx_late > late + unknown {
            let misleads = self.is(Direction::Tx, |fault| fault.case.misleads);
            if !misleads && !self.has(&["reboot"]) {
                all.push(format!(
                    "the radio dropped {} late samples, but the ledgers say {late}",
                    radio.tx_late
                ));
            }
        }
        for (count, what) in [
            (radio.queue_drops, "datagrams in its receive queue"),
            (radio.send_errors, "packets that it could not send"),
        ] {
            if count > 0 {
                all.push(format!("the radio lost {count} {what}"));
            }
        }
        all
    }
}

fn lost(books: &Books) -> String {
    let all: Vec<_> = books.lost.iter().map(|(cause, count)| format!("{cause} {count}")).collect();
    all.join(", ")
}

#[cfg(test)]
mod tests;
