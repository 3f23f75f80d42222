//! The verdicts: hop, certainty, and the sentences that say why and what to do.

use millstream_wire::regs::radio::async_msg::Event;

use super::cause::{LossCause, Values};
use super::counters::{Growth, Way};
use super::drops::{Run, seen_from};
use super::history::Window;
use super::threads::{Story, ms, story};
use super::{Judge, SLACK_NS};
use crate::account::{CaptureAccount, RadioMessage};
use crate::flow::{Credit, DataFlow, FlowGap, LossPlace};
use crate::reading::SocketReading;
use crate::verdict::{Certainty, Hop, HopVerdict, LossKind};

/// For how long before a loss its cause may have begun, nanoseconds.
const CAUSE_NS: u64 = 100_000_000;
/// Reports that come so soon are usual, nanoseconds.
const REPORT_MIN_NS: u64 = 2_000_000;
/// A thread that was kept from running for so long explains a lack of samples, nanoseconds.
const KEPT_MIN_NS: u64 = 1_000_000;
/// A wait that is sure to be why samples came late.
const KEPT_LONG_NS: u64 = 10_000_000;

/// A verdict in the making.
struct Finding {
    hops: (Hop, Hop),
    certainty: Certainty,
    cause: LossCause,
    evidence: Vec<String>,
    values: Values,
}

impl Finding {
    fn at(hop: Hop, certainty: Certainty, cause: LossCause, evidence: String) -> Self {
        let (evidence, values) = (vec![evidence], Values::default());
        Self { hops: (hop, hop), certainty, cause, evidence, values }
    }

    fn between(hop: Hop, until: Hop, cause: LossCause, evidence: String) -> Self {
        Self { hops: (hop, until), ..Self::at(hop, Certainty::Between, cause, evidence) }
    }

    /// Adds what the program did.
    fn with(mut self, story: Story) -> Self {
        self.values.tid = story.tid;
        self.evidence.extend(story.sentences);
        self
    }

    fn verdict(self) -> HopVerdict {
        let ((hop, until), certainty) = (self.hops, self.certainty);
        let remedies = self.values.remedies(self.cause);
        HopVerdict { hop, until, certainty, evidence: self.evidence, remedies }
    }
}

impl Judge {
    /// Says where the kernel dropped packets that it named.
    pub(super) fn dropped_verdict(
        &self,
        account: &CaptureAccount,
        run: &Run,
        place: Option<LossPlace>,
    ) -> HopVerdict {
        let is_received = account.is_from_radio(&account.flows()[run.flow]);
        let hop = seen_from(run.hop, is_received, place);
        let (packets, reason) = (run.packets, &run.packet.reason);
        let sentence = format!("The kernel dropped {} of this flow: {reason}.", counted(packets));
        let (here, there) = (run.packet.destination, run.packet.source);
        let socket = self.history.socket(here, there, run.last_ns);
        if let (Hop::Socket, Some(socket)) = (hop, socket) {
            let time = (run.first_ns, run.last_ns);
            return self.socket_verdict(account, Some(run.flow), socket, time, sentence);
        }
        let cause = match hop {
            Hop::Radio | Hop::Wire => LossCause::Wire,
            Hop::Card => LossCause::CardRing,
            Hop::Backlog => LossCause::Backlog,
            Hop::Stack => LossCause::Stack,
            Hop::Socket => LossCause::SocketFull,
            Hop::Program => LossCause::NoSocket,
            Hop::SendQueue => LossCause::SendQueue,
        };
        let mut finding = Finding::at(hop, Certainty::Sure, cause, sentence);
        finding.values = self.values(None);
        finding.verdict()
    }

    /// Says why a socket had no room.
    pub(super) fn socket_verdict(
        &self,
        account: &CaptureAccount,
        flow: Option<usize>,
        socket: &SocketReading,
        time: (u64, u64),
        sentence: String,
    ) -> HopVerdict {
        let story = self.story(socket, time);
        let cause = match story.cause {
            LossCause::ProgramSlow => LossCause::SocketFull,
            cause => cause,
        };
        let mut finding = Finding::at(Hop::Socket, Certainty::Sure, cause, sentence);
        let bytes_per_s = flow.and_then(|number| bytes_per_s(&account.flows()[number]));
        finding.values = self.values(None);
        finding.values.pid = socket.pid;
        finding.values.bytes = Some(bytes_wanted(socket.buffer_bytes, bytes_per_s));
        let owner = socket.pid.map_or(String::new(), |pid| format!(" of process {pid}"));
        // Half of the limit is for the kernel's own overhead (socket(7), SO_RCVBUF).
        let rate = bytes_per_s.filter(|rate| *rate > 0.0);
        let holds = rate.map(|rate| socket.buffer_bytes as f64 / 2.0 / rate * 1e3);
        let holds =
            holds.map_or(String::new(), |ms| format!(": about {ms:.1} ms of samples at this rate"));
        if socket.buffer_bytes > 0 {
            finding.evidence.push(format!(
                "The buffer of the socket {}{owner} has {} bytes{holds}.",
                socket.local, socket.buffer_bytes
            ));
        }
        finding.with(story).verdict()
    }

    /// Says where packets were lost that nobody named, by the counters around them.
    pub(super) fn lost_verdict(
        &self,
        gap: &FlowGap,
        way: Option<Way>,
        packets: u64,
        window: Option<&Window<'_>>,
    ) -> (LossKind, HopVerdict) {
        let Some(way) = way else {
            let sentence = format!("The receiver misses {} that came here.", counted(packets));
            let finding = Finding::between(Hop::Stack, Hop::Program, LossCause::Unknown, sentence);
            return (LossKind::Lost, finding.verdict());
        };
        let sentence = match way {
            Way::In => format!("{} did not come to the place of the capture.", counted(packets)),
            Way::Out => format!("{} did not leave: the numbers are missing.", counted(packets)),
            Way::Sent => format!("The radio misses {} that left here.", counted(packets)),
        };
        let (first, last) = match way {
            // What goes through this host's queue unseen is the driver's matter.
            Way::Sent => (Hop::Radio, Hop::Wire),
            way => way.range(),
        };
        let Some(window) = window else {
            let mut finding = Finding::between(first, last, LossCause::Unknown, sentence);
            if way != Way::Sent {
                finding.evidence.push("No counters were read right before and behind it.".into());
            }
            return (LossKind::Lost, finding.verdict());
        };
        let counters = &window.counters;
        let is_shared = |counter: &Growth| self.history.is_shared(counter);
        let may_be_others = |counter: &Growth| {
            let is_slow = way == Way::In && !counter.interface.is_empty();
            is_shared(counter) || is_slow && window.is_behind_others
        };
        let found = counters.explain(way, window.packets, may_be_others);
        let missed = counters.capture_missed;
        let (mut kind, mut finding) = (
            LossKind::Lost,
            match found {
                Some((hop, until, certainty)) => {
                    let [one, ..] = &counters.grown[..] else { unreachable!("some grew") };
                    let cause = match &counters.grown[..] {
                        [_] => one.cause,
                        _ => LossCause::Unknown,
                    };
                    let mut finding = Finding::at(hop, certainty, cause, sentence);
                    finding.hops = (hop, until);
                    finding.evidence.extend(counters.grown.iter().map(|one| grew(one, &is_shared)));
                    finding
                }
                None if missed >= packets && way != Way::Sent => {
                    Finding::between(first, last, LossCause::Capture, sentence)
                }
                None if way == Way::In && counters.are_complete && missed == 0 => {
                    let certainty =
                        if window.is_late { Certainty::Sure } else { Certainty::Perhaps };
                    let mut finding = Finding::at(Hop::Wire, certainty, LossCause::Wire, sentence);
                    finding.evidence.push("No counter of this host's card or backlog grew.".into());
                    finding
                }
                None if way == Way::In => {
                    // The backlog stood still, or it is not known.
                    let is_counted = counters.is_counted(LossCause::Backlog);
                    let last = if is_counted { Hop::Card } else { last };
                    let mut finding = Finding::between(first, last, LossCause::Wire, sentence);
                    let text = "No counter of this host's card or backlog grew, of those it has.";
                    finding.evidence.push(text.into());
                    finding
                }
                None if way == Way::Out => {
                    Finding::between(first, last, LossCause::SendQueue, sentence)
                }
                None => Finding::between(first, last, LossCause::Wire, sentence),
            },
        );
        if missed > 0 && way != Way::Sent {
            finding.evidence.push(format!("The capture itself missed {}.", counted(missed)));
        }
        if finding.cause == LossCause::Capture {
            kind = LossKind::NotCaptured;
            finding.evidence.push("Perhaps nothing was lost.".into());
        }
        if window.packets > packets {
            finding.evidence.push(format!(
                "In the same {:.0} ms {} packets are missing in all flows.",
                window
                    .readings
                    .last()
                    .zip(window.readings.first())
                    .map_or(0.0, |(last, first)| { ms(last.at_ns - first.at_ns) }),
                window.packets
            ));
        }
        if !gap.is_sure {
            let text = "Numbers repeat after 16 packets: 16 more may be missing, or 32 and so on.";
            finding.evidence.push(text.into());
            if finding.certainty == Certainty::Sure && !counters.grown.is_empty() {
                finding.certainty = Certainty::Perhaps;
            }
        }
        let interface = counters.grown.iter().map(|one| &one.interface).find(|one| !one.is_empty());
        finding.values = self.values(interface.map(String::as_str));
        (kind, finding.verdict())
    }

    /// Says why a sender left out samples.
    pub(super) fn not_sent_verdict(&self, account: &CaptureAccount, gap: &FlowGap) -> HopVerdict {
        let flow = &account.flows()[gap.flow];
        let at_ns = gap.at_ns.unwrap_or(0);
        let time = (gap.since_ns.unwrap_or(at_ns).min(at_ns), at_ns);
        let mut finding = if account.is_from_radio(flow) {
            match gap.overrun {
                true => self.overrun(flow, gap.overrun_ns.unwrap_or(at_ns), gap.credit),
                false => Self::clock_jumped(),
            }
        } else {
            let socket = self.history.socket(flow.key().source, flow.key().destination, at_ns);
            let story = socket.map(|socket| self.story(socket, time));
            let sentence = "The program left out samples within a burst.".to_owned();
            let cause = match &story {
                Some(story) if story.cause != LossCause::ProgramSlow => story.cause,
                _ => LossCause::SentLate,
            };
            let mut finding = Finding::at(Hop::Program, Certainty::Sure, cause, sentence);
            finding.values.pid = socket.and_then(|socket| socket.pid);
            match story {
                Some(story) => finding.with(story),
                None => finding,
            }
        };
        if !gap.is_sure {
            finding.evidence.push("Perhaps a burst ended there, and nothing is missing.".into());
            finding.certainty = Certainty::Perhaps;
        }
        finding.verdict()
    }

    /// Says why a radio left out samples without an overrun: one without credit waits.
    fn clock_jumped() -> Finding {
        let sentence = "The radio left out samples without an overrun: its clock jumped.".into();
        Finding::at(Hop::Radio, Certainty::Perhaps, LossCause::Radio, sentence)
    }

    /// Says why a radio overran, by its credit when it reported that.
    fn overrun(&self, flow: &DataFlow, at_ns: u64, credit: Option<Credit>) -> Finding {
        let silent_ns = credit.and_then(|credit| credit.next_report_ns).unwrap_or(0);
        let time = (at_ns.saturating_sub(silent_ns), at_ns);
        let socket = self.history.socket(flow.key().destination, flow.key().source, at_ns);
        let story = socket.map(|socket| self.story(socket, time));
        let queue = socket.map(|socket| self.fullest(socket, time));
        let is_full = queue.is_some_and(fills);
        let least_ns = (silent_ns / 2).max(KEPT_MIN_NS);
        let is_kept = story.as_ref().is_some_and(|story| story.kept_ns >= least_ns);
        let cause = story.as_ref().map_or(LossCause::ProgramSlow, |story| story.cause);
        // It did not answer packets that came to it: a sender of trains stops with some room left.
        let is_mute = |credit: &Credit| {
            let usual_ns = credit.usual_ns.unwrap_or(0).saturating_mul(8);
            credit.report_age_ns >= usual_ns.max(REPORT_MIN_NS)
        };
        // It had read all that had come: its reports were lost, or the radio did not take them.
        let has_read = socket.is_some_and(|socket| {
            let inside = self.history.between(time.0, time.1).flat_map(|one| &one.sockets);
            let same = inside.filter(|one| one.inode == socket.inode);
            let most = same.map(|one| one.queued_bytes).max();
            let is_empty = most.is_some_and(|queued| queued < socket.buffer_bytes / 64);
            is_empty && silent_ns >= 5 * REPORT_MIN_NS
        });
        let mut finding = match credit {
            Some(credit) if has_read && credit.room_packets <= 1 => {
                let sentence = format!(
                    "The radio reported an overrun: it had had no credit for {:.1} ms, and the \
                     program had read all that had come.",
                    ms(silent_ns)
                );
                Finding::between(Hop::Radio, Hop::Wire, LossCause::Wire, sentence)
            }
            Some(credit) if is_mute(&credit) => {
                let certainty =
                    if is_full || is_kept { Certainty::Sure } else { Certainty::Perhaps };
                let sentence = format!(
                    "The radio reported an overrun: it had got no report for {:.1} ms.",
                    ms(credit.report_age_ns.saturating_add(silent_ns))
                );
                Finding::at(Hop::Program, certainty, cause, sentence)
            }
            Some(credit) if credit.room_packets <= 1 && silent_ns >= REPORT_MIN_NS => {
                let is_sure = credit.room_packets == 0 && (is_full || is_kept);
                let certainty = if is_sure { Certainty::Sure } else { Certainty::Perhaps };
                let sentence = format!(
                    "The radio reported an overrun: its credit had been used up for {:.1} ms.",
                    ms(silent_ns)
                );
                Finding::at(Hop::Program, certainty, cause, sentence)
            }
            Some(credit) if credit.room_packets <= 1 => {
                let sentence = format!(
                    "The radio reported an overrun only {:.1} ms after its credit was used up.",
                    ms(silent_ns)
                );
                Finding::at(Hop::Radio, Certainty::Perhaps, LossCause::Radio, sentence)
            }
            Some(credit) => {
                let sentence = format!(
                    "The radio reported an overrun, although the reports seen here gave it credit \
                     for {} packets.",
                    credit.room_packets
                );
                // It failed itself, or the reports did not reach it.
                Finding::between(Hop::Radio, Hop::Wire, LossCause::Radio, sentence)
            }
            None => {
                let sentence = "The radio reported an overrun.".to_owned();
                let (hop, cause) = match is_full || is_kept {
                    true => (Hop::Program, cause),
                    false => (Hop::Radio, LossCause::Radio),
                };
                Finding::at(hop, Certainty::Perhaps, cause, sentence)
            }
        };
        finding.values = self.values(None);
        if let Some(socket) = socket {
            finding.values.pid = socket.pid;
            finding.values.bytes = Some(bytes_wanted(socket.buffer_bytes, bytes_per_s(flow)));
        }
        if let Some((queued, buffer)) = queue {
            finding.evidence.push(format!(
                "The program's socket held up to {queued} of {buffer} bytes unread."
            ));
        }
        match story.filter(|_| finding.hops.0 == Hop::Program) {
            Some(story) => finding.with(story),
            None => finding,
        }
    }

    /// Says why a radio reported something.
    pub(super) fn message_verdict(
        &self,
        account: &CaptureAccount,
        message: &RadioMessage,
    ) -> (LossKind, HopVerdict) {
        let at_ns = message.at_ns.unwrap_or(0);
        let time = (at_ns.saturating_sub(CAUSE_NS), at_ns);
        let to_radio = account.flows().iter().rev().find(|flow| {
            *flow.key().destination.ip() == message.radio && !account.is_from_radio(flow)
        });
        let channel = message.channel;
        let (kind, mut finding) = match message.event {
            Event::RxOverrun => {
                let of_radio = |flow: &&DataFlow| *flow.key().source.ip() == message.radio;
                let told = account.flows().iter().filter(of_radio).find_map(|flow| {
                    let (told_ns, credit) = flow.overrun()?;
                    (told_ns == message.at_ns).then_some((flow, credit))
                });
                let finding = match told {
                    Some((flow, credit)) => self.overrun(flow, at_ns, credit),
                    None => {
                        let text = format!("The radio reported an overrun on channel {channel}.");
                        Finding::at(Hop::Radio, Certainty::Perhaps, LossCause::Unknown, text)
                    }
                };
                (LossKind::Overrun, finding)
            }
            Event::RxLateCommand => {
                let sentence = format!(
                    "The radio reported on channel {channel} that a command came after its time."
                );
                let cause = LossCause::LateCommand;
                let finding = Finding::at(Hop::Program, Certainty::Sure, cause, sentence);
                (LossKind::LateCommand, finding)
            }
            event => {
                let (kind, what) = match event {
                    Event::TxLate => (LossKind::LateData, "samples that came after their time"),
                    _ => (LossKind::Underflow, "an underflow: it had no samples in time"),
                };
                let sentence = format!("The radio reported on channel {channel} {what}.");
                let finding = self.sent_late(account, message, to_radio, time, sentence);
                (kind, finding)
            }
        };
        if let Some(ticks) = message.ticks {
            finding.evidence.push(format!("The report has the time {ticks} ticks."));
        }
        (kind, finding.verdict())
    }

    fn sent_late(
        &self,
        account: &CaptureAccount,
        message: &RadioMessage,
        flow: Option<&DataFlow>,
        time: (u64, u64),
        sentence: String,
    ) -> Finding {
        let near = time.0..=time.1.saturating_add(SLACK_NS);
        let lost = account.gaps().find(|gap| {
            gap.place != LossPlace::Sender
                && *account.flows()[gap.flow].key().destination.ip() == message.radio
                && gap.at_ns.is_some_and(|at_ns| {
                    // The packet that shows it may come long behind what was lost.
                    let since_ns = gap.since_ns.unwrap_or(at_ns).min(at_ns);
                    at_ns >= *near.start() && since_ns <= *near.end()
                })
        });
        if let Some(gap) = lost {
            let packets = gap.packets;
            let (hop, until, cause) = match gap.place {
                LossPlace::Before => (Hop::Stack, Hop::SendQueue, LossCause::SendQueue),
                _ => (Hop::Radio, Hop::Wire, LossCause::Wire),
            };
            let mut finding = Finding::between(hop, until, cause, sentence);
            finding
                .evidence
                .push(format!("Right before it, {} on the way to it got lost.", counted(packets)));
            finding.values = self.values(None);
            return finding;
        }
        let end = flow.map(|flow| (flow.key().source, flow.key().destination));
        let socket = end.and_then(|(here, there)| self.history.socket(here, there, time.1));
        let story = socket.map(|socket| self.story(socket, time));
        let is_kept = story.as_ref().is_some_and(|story| story.kept_ns >= KEPT_MIN_NS);
        let cause = match &story {
            Some(story) if is_kept => story.cause,
            _ => LossCause::SentLate,
        };
        // Any thread waits a little; a radio's buffer holds some milliseconds.
        let is_long = story.as_ref().is_some_and(|story| story.kept_ns >= KEPT_LONG_NS);
        let certainty = if is_long { Certainty::Sure } else { Certainty::Perhaps };
        let mut finding = Finding::at(Hop::Program, certainty, cause, sentence);
        if let Some(socket) = socket {
            finding.values.pid = socket.pid;
            let bytes_per_s = flow.and_then(bytes_per_s);
            finding.values.bytes = Some(bytes_wanted(0, bytes_per_s));
        }
        match story {
            Some(story) => finding.with(story),
            None => finding,
        }
    }

    /// Returns what a socket's program did from some time before a loss until it was over.
    fn story(&self, socket: &SocketReading, time: (u64, u64)) -> Story {
        let from_ns = time.0.saturating_sub(CAUSE_NS);
        let readings = self.history.around(from_ns, time.1);
        // A process has no number 0: nothing is known of a program that may not be seen.
        let process = (socket.pid.unwrap_or(0), socket.inode);
        story(&readings, &self.waits, process, (from_ns, time.1))
    }

    /// Returns the most bytes that a socket held unread around a time, and its limit.
    fn fullest(&self, socket: &SocketReading, time: (u64, u64)) -> (u64, u64) {
        let readings = self.history.around(time.0, time.1);
        let sockets = readings.iter().flat_map(|reading| &reading.sockets);
        let same = sockets.filter(|one| one.inode == socket.inode);
        let queued = same.map(|one| one.queued_bytes).max().unwrap_or(socket.queued_bytes);
        (queued, socket.buffer_bytes)
    }

    /// Returns the values of an interface; of the only one, if none is named.
    fn values(&self, interface: Option<&str>) -> Values {
        let last = self.history.last();
        let interfaces = last.map_or(&[][..], |reading| &reading.interfaces);
        let found = match (interface, interfaces) {
            (Some(name), _) => interfaces.iter().find(|one| one.name == name),
            (None, [one]) => Some(one),
            (None, _) => None,
        };
        Values {
            interface: found.map(|one| one.name.clone()),
            ring: found
                .and_then(|one| one.ring_entries)
                .and_then(|(now, most)| (most > now).then_some(most)),
            ..Values::default()
        }
    }
}

/// Returns a number of packets in words.
fn counted(packets: u64) -> String {
    format!("{packets} packet{}", if packets == 1 { "" } else { "s" })
}

/// Returns whether a socket held so much that its program must have been late: bytes, and a limit
/// that is 0 where it is not known.
fn fills((queued, buffer): (u64, u64)) -> bool {
    buffer > 0 && queued >= buffer / 4
}

/// Says what a counter counted.
fn grew(one: &Growth, is_shared: &impl Fn(&Growth) -> bool) -> String {
    let Growth { by, interface, .. } = one;
    let least = if one.is_exact { "" } else { "at least " };
    let mut text = match one.cause {
        LossCause::Damaged => format!("{interface} received {least}{by} damaged packets"),
        LossCause::CardRing => {
            format!("The ring of {interface} had no room for {least}{by} packets")
        }
        LossCause::Driver => format!("{interface} dropped {least}{by} packets on receiving"),
        LossCause::Backlog => {
            format!("The backlogs of this host's CPUs dropped {least}{by} packets")
        }
        LossCause::SendQueue => format!("{interface} dropped {least}{by} packets on sending"),
        _ => format!("The kernel could not send {least}{by} datagrams"),
    };
    text +=
        if is_shared(one) { ", which it does without losses of these flows, too." } else { "." };
    text
}

/// Returns the mean bytes of a flow a second.
fn bytes_per_s(flow: &DataFlow) -> Option<f64> {
    let seconds = flow.seconds().filter(|seconds| *seconds > 0.0)?;
    Some(flow.bytes() as f64 / seconds)
}

/// Returns a buffer for 100 ms, at least four times of what is there: a power of two.
fn bytes_wanted(buffer_bytes: u64, bytes_per_s: Option<f64>) -> u64 {
    let of_rate = bytes_per_s.map_or(0, |rate| (rate / 10.0) as u64);
    buffer_bytes.saturating_mul(2).max(of_rate).clamp(1 << 20, 1 << 28).next_power_of_two()
}
