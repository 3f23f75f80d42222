//! The judge: which hop lost what is missing.
//!
//! ```text
//! account: gaps, messages ─┐        ┌─▶ drops: each dropped packet explains a number of a gap,
//! dropped packets ─────────┤ Judge ─┤          or is a loss that no gap shows
//! readings of hops ────────┤        ├─▶ history: counters that grew by what is missing yet
//! waits of threads ────────┘        ├─▶ sockets: what their counters show and nobody named
//!                                   └─▶ threads: what the program did meanwhile
//! ```
//!
//! A loss is judged once all that could explain it has come. What the kernel or a radio names is
//! sure, and so is what just one counter shows exactly. The rest is said with "perhaps", or by the
//! hops between which it lies.

mod cause;
mod counters;
mod drops;
mod history;
mod sockets;
mod texts;
mod threads;

use std::collections::VecDeque;
use std::net::Ipv4Addr;

pub use cause::LossCause;
use counters::Way;
use drops::Drops;
use history::{History, NoWindow, Span, Window};
use millstream_wire::regs::radio::async_msg::Event;
use sockets::Sockets;

use crate::account::{CaptureAccount, RadioMessage};
use crate::flow::{FlowGap, LossPlace};
use crate::reading::{DroppedPacket, HopReading, ThreadWait};
use crate::verdict::{Certainty, HopVerdict, JudgedLoss, LossKind, LossSource};

/// For how long packets and what is said of them may come in any order.
const GRACE_NS: u64 = 200_000_000;
/// How far the times of packets and of readings may differ.
const SLACK_NS: u64 = 2_000_000;
/// For how long a packet may wait in a queue on the way out.
const QUEUED_NS: u64 = 300_000_000;
/// Some cards count so late.
const LAG_NS: u64 = 2_500_000_000;
/// A radio that overran goes on within this time, and then shows what is missing.
const RESTART_NS: u64 = 10_000_000_000;
/// The most gaps, messages and waits that wait for their explanation.
const PENDING_MAX: usize = 1 << 14;
const WAITS_MAX: usize = 1 << 12;

/// Gives a verdict for each loss of an account. It keeps some seconds, whatever comes.
#[derive(Debug, Default)]
pub struct Judge {
    history: History,
    drops: Drops,
    sockets: Sockets,
    waits: VecDeque<ThreadWait>,
    next_gap: u64,
    next_message: u64,
    pending: VecDeque<Pending>,
    messages: VecDeque<(u64, RadioMessage)>,
    /// Overruns whose gaps were found: the radio, from when, and until when.
    overruns: VecDeque<(Ipv4Addr, u64, u64)>,
}

/// A gap that waits for its verdict.
#[derive(Debug)]
struct Pending {
    number: u64,
    /// Packets that no dropped packet explains, once that is known.
    rest: Option<u64>,
    /// No counter grew around it; slow ones may yet.
    stood_still: bool,
}

impl Judge {
    /// Returns a judge without evidence.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a reading of this host's hops.
    pub fn reading(&mut self, reading: HopReading) {
        // Other namespaces are other hosts, which may have the same addresses.
        self.drops.set_namespace(reading.namespace);
        self.history.take(reading);
    }

    /// Takes a packet that the kernel dropped.
    pub fn dropped(&mut self, packet: DroppedPacket) {
        self.drops.take(packet);
    }

    /// Takes a wait of a thread.
    pub fn wait(&mut self, wait: ThreadWait) {
        if self.waits.len() == WAITS_MAX {
            self.waits.pop_front();
        }
        self.waits.push_back(wait);
    }

    /// Returns the losses about which all is known at a time, in the order of time. What was
    /// captured, read and dropped until then has been taken, but for the last 100 ms. Call it some
    /// ten times for each second of packets, live or of a recording: a judge keeps the readings and
    /// dropped packets of 10 s.
    pub fn settle(&mut self, account: &CaptureAccount, now_ns: u64) -> Vec<JudgedLoss> {
        let mut judged = Vec::new();
        self.take_new(account);
        self.gaps(account, now_ns, &mut judged);
        for run in self.drops.runs(account, now_ns) {
            let verdict = self.dropped_verdict(account, &run, None);
            judged.push(JudgedLoss {
                kind: LossKind::Lost,
                source: LossSource::Dropped,
                flow: Some(run.flow),
                at_ns: Some(run.first_ns),
                packets: run.packets,
                samples: samples(account, Some(run.flow), run.packets),
                verdict,
            });
        }
        let known_ns = now_ns.saturating_sub(2 * GRACE_NS);
        let mut counted = Vec::new();
        for reading in self.history.between(self.sockets.read_ns(), known_ns) {
            counted.extend(self.sockets.read(reading, &self.drops, account));
        }
        self.counted(account, counted, &mut judged);
        self.radio_messages(account, now_ns, &mut judged);
        self.history.prune(now_ns);
        self.drops.prune(now_ns);
        let old = now_ns.saturating_sub(RESTART_NS + LAG_NS);
        self.waits.retain(|wait| wait.until_ns >= old);
        self.overruns.retain(|overrun| overrun.2 >= old);
        judged.sort_by_key(|loss| loss.at_ns);
        judged
    }

    /// Returns the losses that are left: nothing more comes.
    pub fn finish(&mut self, account: &CaptureAccount) -> Vec<JudgedLoss> {
        let mut judged = self.settle(account, u64::MAX);
        let counted = self.sockets.finish();
        self.counted(account, counted, &mut judged);
        judged.sort_by_key(|loss| loss.at_ns);
        judged
    }

    fn take_new(&mut self, account: &CaptureAccount) {
        for (number, _) in account.gaps_from(self.next_gap) {
            self.pending.push_back(Pending { number, rest: None, stood_still: false });
        }
        self.next_gap = account.next_gap();
        for (number, message) in account.messages_from(self.next_message) {
            self.next_message = number + 1;
            if message.event != Event::TxBurstAck {
                self.messages.push_back((number, *message));
            }
        }
    }

    /// Judges gaps.
    fn gaps(&mut self, account: &CaptureAccount, now_ns: u64, judged: &mut Vec<JudgedLoss>) {
        let mut pending = std::mem::take(&mut self.pending);
        for one in pending.iter_mut().filter(|one| one.rest.is_none()) {
            let Some(gap) = account.gap(one.number) else {
                one.rest = Some(0);
                continue;
            };
            if gap.at_ns.is_some_and(|at_ns| at_ns.saturating_add(GRACE_NS) > now_ns) {
                continue;
            }
            self.name(account, one, gap, judged);
        }
        self.history.compare(&self.drops, now_ns);
        // Beyond the limit the oldest are judged by what is there.
        let over = pending.len().saturating_sub(PENDING_MAX);
        let mut n = 0;
        pending.retain_mut(|one| {
            n += 1;
            let now_ns = if n <= over { u64::MAX } else { now_ns };
            !self.judge_gap(account, one, now_ns, judged)
        });
        self.pending = pending;
    }

    /// Takes the packets of a gap that the kernel named.
    fn name(
        &mut self,
        account: &CaptureAccount,
        one: &mut Pending,
        gap: &FlowGap,
        judged: &mut Vec<JudgedLoss>,
    ) {
        let flow = &account.flows()[gap.flow];
        let is_received = account.is_from_radio(flow);
        if gap.place == LossPlace::Sender {
            if gap.overrun {
                let (radio, at_ns) = (*flow.key().source.ip(), gap.at_ns.unwrap_or(0));
                let times = [gap.since_ns, gap.overrun_ns];
                let from_ns = times.into_iter().flatten().min().unwrap_or(at_ns);
                self.overruns.push_back((radio, from_ns, at_ns));
            }
            one.rest = Some(1);
            return;
        }
        let (runs, known) = self.drops.explain(gap, account);
        for run in runs {
            let verdict = self.dropped_verdict(account, &run, Some(gap.place));
            judged.push(loss_of(account, one.number, gap, LossKind::Lost, run.packets, verdict));
        }
        let rest = gap.packets - known;
        one.rest = Some(rest);
        let span = span_of(one.number, gap, way_of(gap, is_received), rest);
        if let Some(span) = span.filter(|span| span.packets > 0) {
            self.history.miss(span);
        }
    }

    /// Judges what is left of a gap; returns whether that is done.
    fn judge_gap(
        &mut self,
        account: &CaptureAccount,
        one: &mut Pending,
        now_ns: u64,
        judged: &mut Vec<JudgedLoss>,
    ) -> bool {
        let gap = account.gap(one.number);
        let (gap, rest) = match (gap, one.rest) {
            (None, _) | (_, Some(0)) => return true,
            // It is beyond the limit, and not even named.
            (Some(gap), None) if now_ns == u64::MAX => (gap, gap.packets),
            (_, None) => return false,
            (Some(gap), Some(rest)) => (gap, rest),
        };
        if gap.place == LossPlace::Sender {
            let verdict = self.not_sent_verdict(account, gap);
            judged.push(loss_of(account, one.number, gap, LossKind::NotSent, 0, verdict));
            return true;
        }
        let is_received = account.is_from_radio(&account.flows()[gap.flow]);
        let way = way_of(gap, is_received);
        let mut found = Err(NoWindow::Ever);
        if let Some(span) = span_of(one.number, gap, way, rest) {
            let window = |lag_ns| self.history.window(&span, lag_ns, &self.drops, now_ns);
            if !one.stood_still {
                found = window(0);
                let grown = found.as_ref().map(|found| found.counters.grown.len());
                one.stood_still = grown == Ok(0);
            }
            if one.stood_still && way == Some(Way::In) {
                found = window(LAG_NS);
                // What grew later may be of later losses.
                let tells = |found: &Window<'_>| found.counters.grown.len() < 2;
                if found.as_ref().map_or_else(|why| *why == NoWindow::Ever, |one| !tells(one)) {
                    found = window(0);
                }
            }
        }
        let found = match found {
            Err(NoWindow::Yet) => return false,
            Err(NoWindow::Ever) => None,
            Ok(found) => Some(found),
        };
        let (kind, verdict) = self.lost_verdict(gap, way, rest, found.as_ref());
        if let (Some(found), Certainty::Sure) = (&found, verdict.certainty) {
            if let [counter] = &found.counters.grown[..] {
                let counter = (counter.cause, counter.interface.clone());
                self.history.count(one.number, counter);
            }
        }
        judged.push(loss_of(account, one.number, gap, kind, rest, verdict));
        true
    }

    fn counted(
        &self,
        account: &CaptureAccount,
        counted: Vec<sockets::CountedLoss>,
        judged: &mut Vec<JudgedLoss>,
    ) {
        for loss in counted {
            let mut flows =
                account.flows().iter().enumerate().filter(|(_, flow)| {
                    loss.socket.is_of(flow.key().destination, flow.key().source)
                });
            let Some((first, _)) = flows.next() else {
                // The program has other sockets, too.
                continue;
            };
            let flow = flows.next().is_none().then_some(first);
            judged.push(JudgedLoss {
                kind: LossKind::Lost,
                source: LossSource::Counter,
                flow,
                at_ns: Some(loss.until_ns),
                packets: loss.packets,
                samples: samples(account, flow, loss.packets),
                verdict: self.socket_verdict(
                    account,
                    flow,
                    &loss.socket,
                    (loss.from_ns, loss.until_ns),
                    format!(
                        "The kernel counted {} datagrams for which this socket had no room.",
                        loss.packets
                    ),
                ),
            });
        }
    }

    /// Judges what radios reported.
    fn radio_messages(
        &mut self,
        account: &CaptureAccount,
        now_ns: u64,
        judged: &mut Vec<JudgedLoss>,
    ) {
        let mut messages = std::mem::take(&mut self.messages);
        messages.retain(|(number, message)| {
            let at_ns = message.at_ns.unwrap_or(0);
            let of_gap = |overrun: &(Ipv4Addr, u64, u64)| {
                // The channels of a radio overrun one after the other.
                let from_ns = overrun.1.saturating_sub(10 * SLACK_NS);
                let times = from_ns..=overrun.2.saturating_add(SLACK_NS);
                overrun.0 == message.radio && times.contains(&at_ns)
            };
            let is_overrun = message.event == Event::RxOverrun;
            if is_overrun && self.overruns.iter().any(of_gap) {
                return false;
            }
            let wait_ns = 2 * GRACE_NS + if is_overrun { RESTART_NS } else { 0 };
            if at_ns.saturating_add(wait_ns) > now_ns {
                return true;
            }
            let (kind, verdict) = self.message_verdict(account, message);
            judged.push(JudgedLoss {
                kind,
                source: LossSource::Message(*number),
                flow: None,
                at_ns: message.at_ns,
                packets: 0,
                samples: None,
                verdict,
            });
            false
        });
        while messages.len() > PENDING_MAX {
            messages.pop_front();
        }
        self.messages = messages;
    }
}

/// Returns which counters can explain a gap; `None` where none of this host can.
fn way_of(gap: &FlowGap, is_received: bool) -> Option<Way> {
    match (gap.place, is_received) {
        (LossPlace::Before, true) => Some(Way::In),
        (LossPlace::Before, false) => Some(Way::Out),
        (LossPlace::Behind, false) => Some(Way::Sent),
        (LossPlace::Behind, true) | (LossPlace::Sender, _) => None,
    }
}

fn span_of(number: u64, gap: &FlowGap, way: Option<Way>, packets: u64) -> Option<Span> {
    let (at_ns, way) = (gap.at_ns?, way?);
    let mut since_ns = gap.since_ns.unwrap_or(at_ns).min(at_ns);
    if way == Way::Out {
        since_ns = since_ns.saturating_sub(QUEUED_NS);
    }
    Some(Span { gap: number, way, since_ns, at_ns, packets, counted: None })
}

fn loss_of(
    account: &CaptureAccount,
    number: u64,
    gap: &FlowGap,
    kind: LossKind,
    packets: u64,
    verdict: HopVerdict,
) -> JudgedLoss {
    let samples = match kind {
        LossKind::NotSent => gap.samples,
        _ if packets == gap.packets && gap.samples.is_some() => gap.samples,
        _ => samples(account, Some(gap.flow), packets),
    };
    let (source, flow, at_ns) = (LossSource::Gap(number), Some(gap.flow), gap.at_ns);
    JudgedLoss { kind, source, flow, at_ns, packets, samples, verdict }
}

/// Returns the samples of so many packets of a flow, if all are as long as usual.
fn samples(account: &CaptureAccount, flow: Option<usize>, packets: u64) -> Option<u64> {
    packets.checked_mul(account.flows()[flow?].samples_per_packet()?)
}
