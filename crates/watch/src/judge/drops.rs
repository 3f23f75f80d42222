//! Packets that the kernel dropped: each explains a part of a gap, or is a loss that no gap shows.

use std::collections::VecDeque;

use super::{GRACE_NS, QUEUED_NS, SLACK_NS};
use crate::account::CaptureAccount;
use crate::flow::{FlowGap, LossPlace};
use crate::reading::DroppedPacket;
use crate::verdict::Hop;

/// The most dropped packets that are kept.
const DROPS_MAX: usize = 1 << 16;
/// For how long a gap may still show a dropped packet that was told already: packets of the flow
/// may pause behind it.
const KEPT_NS: u64 = 10_000_000_000;
/// Dropped packets of a flow with no longer pauses between them are one loss, unless it lasts long.
const PAUSE_NS: u64 = 20_000_000;
const RUN_NS: u64 = 1_000_000_000;

/// Returns the hop that a reason of the kernel names; `None` for one that names none.
///
/// Reasons are those of `enum skb_drop_reason` (Linux, include/net/dropreason-core.h).
pub(crate) fn hop_of(reason: &str) -> Option<Hop> {
    Some(match reason {
        "SOCKET_RCVBUFF" | "PROTO_MEM" | "SOCKET_BACKLOG" => Hop::Socket,
        "CPU_BACKLOG" => Hop::Backlog,
        "FULL_RING" | "DEV_HDR" | "XDP" => Hop::Card,
        "NO_SOCKET" | "SOCKET_CLOSE" | "SOCKET_FILTER" => Hop::Program,
        "NOT_SPECIFIED" | "UNKNOWN" | "NOT_DROPPED_YET" | "CONSUMED" | "PACKET_SOCK_ERROR" => {
            return None;
        }
        // For another host, or of a socket that was closed.
        "OTHERHOST" | "QUEUE_PURGE" => return None,
        "TC_EGRESS" => Hop::SendQueue,
        queue if ["QDISC_", "FQ_", "CAKE_"].iter().any(|one| queue.starts_with(one)) => {
            Hop::SendQueue
        }
        _ => Hop::Stack,
    })
}

/// A dropped packet with its place in the account.
#[derive(Debug)]
pub(super) struct Dropped {
    pub packet: DroppedPacket,
    /// The hop, from the program's host.
    pub hop: Hop,
    /// A gap has it, or it was told as a loss.
    is_told: bool,
}

impl Dropped {
    /// Returns its datagrams.
    pub fn count(&self) -> u64 {
        self.packet.segments.max(1).into()
    }
}

/// Dropped packets of one flow at one hop that are one loss.
#[derive(Debug)]
pub(super) struct Run {
    pub flow: usize,
    pub hop: Hop,
    pub first_ns: u64,
    pub last_ns: u64,
    pub packets: u64,
    /// The first of them.
    pub packet: DroppedPacket,
}

impl Run {
    fn of(one: &Dropped, flow: usize, packets: u64) -> Self {
        let (packet, at_ns) = (one.packet.clone(), one.packet.at_ns);
        Self { flow, hop: one.hop, first_ns: at_ns, last_ns: at_ns, packets, packet }
    }
}

/// The dropped packets of the last seconds, in the order of time.
#[derive(Debug, Default)]
pub(super) struct Drops {
    kept: VecDeque<Dropped>,
    namespace: Option<u32>,
}

impl Drops {
    /// Takes a dropped packet.
    pub fn take(&mut self, packet: DroppedPacket) {
        let Some(hop) = hop_of(&packet.reason) else { return };
        if is_elsewhere(&packet, self.namespace) {
            return;
        }
        if self.kept.len() == DROPS_MAX {
            self.kept.pop_front();
        }
        let at = self.kept.partition_point(|one| one.packet.at_ns <= packet.at_ns);
        self.kept.insert(at, Dropped { packet, hop, is_told: false });
    }

    /// Sets the network namespace whose packets count, once it is known.
    pub fn set_namespace(&mut self, namespace: Option<u32>) {
        if self.namespace != namespace {
            self.namespace = namespace;
            self.kept.retain(|one| !is_elsewhere(&one.packet, namespace));
        }
    }

    /// Takes the dropped packets of a gap out: for each reason the hop and the packets that were
    /// not told before. The second number is of all those that the gap has.
    pub fn explain(&mut self, gap: &FlowGap, account: &CaptureAccount) -> (Vec<Run>, u64) {
        let (mut runs, mut known): (Vec<Run>, _) = (Vec::new(), 0);
        let at_ns = gap.at_ns.unwrap_or(u64::MAX);
        let until = at_ns.saturating_add(SLACK_NS);
        // The packet before the gap may have waited in a queue when those behind it were dropped.
        let is_out = !account.is_from_radio(&account.flows()[gap.flow]);
        let early_ns = if is_out { QUEUED_NS } else { SLACK_NS };
        let since = gap.since_ns.unwrap_or(at_ns).saturating_sub(early_ns);
        let first = self.kept.partition_point(|one| one.packet.at_ns < since);
        for one in self.kept.range_mut(first..) {
            if one.packet.at_ns > until || known == gap.packets {
                break;
            }
            let Some((flow, number, mask)) = account.place_of(&one.packet) else { continue };
            let from_first = number.wrapping_sub(gap.first) & mask;
            let is_there = can_explain(one.hop, gap.place, !is_out);
            if flow != gap.flow || from_first >= gap.numbers || !is_there {
                continue;
            }
            let count = one.count().min(gap.numbers - from_first).min(gap.packets - known);
            known += count;
            if std::mem::replace(&mut one.is_told, true) {
                continue;
            }
            match runs.iter_mut().find(|run| run.hop == one.hop) {
                Some(run) => (run.packets, run.last_ns) = (run.packets + count, one.packet.at_ns),
                None => runs.push(Run::of(one, flow, count)),
            }
        }
        (runs, known)
    }

    /// Takes the dropped packets out that no gap has, once each run of them is over.
    pub fn runs(&mut self, account: &CaptureAccount, until_ns: u64) -> Vec<Run> {
        let mut runs: Vec<(Run, Vec<usize>)> = Vec::new();
        for (n, one) in self.kept.iter().enumerate().filter(|(_, one)| !one.is_told) {
            let at_ns = one.packet.at_ns;
            // Others are of no stream that is followed.
            let Some((flow, ..)) = account.place_of(&one.packet) else { continue };
            let same = runs.iter_mut().rev().find(|(run, _)| {
                (run.flow, run.hop) == (flow, one.hop)
                    && at_ns - run.last_ns <= PAUSE_NS
                    && (at_ns - run.first_ns < RUN_NS || one.hop == Hop::Program)
            });
            if let Some((run, members)) = same {
                (run.packets, run.last_ns) = (run.packets + one.count(), at_ns);
                members.push(n);
            } else {
                runs.push((Run::of(one, flow, one.count()), vec![n]));
            }
        }
        let is_over = |run: &Run| run.last_ns.saturating_add(2 * GRACE_NS) <= until_ns;
        let over = runs.into_iter().filter(|(run, _)| is_over(run));
        let runs = over.filter_map(|(run, members)| {
            members.iter().for_each(|n| self.kept[*n].is_told = true);
            // A program that ends its stream closes its socket with packets under way.
            let last_ns = account.flows()[run.flow].captured_ns().map_or(0, |(_, last)| last);
            let goes_on = last_ns > run.last_ns.saturating_add(PAUSE_NS);
            (run.hop != Hop::Program || goes_on).then_some(run)
        });
        runs.collect()
    }

    /// Returns the packets that were dropped at a hop within a time.
    pub fn at_hop(&self, hop: Hop, from_ns: u64, until_ns: u64) -> u64 {
        self.between(from_ns, until_ns).filter(|one| one.hop == hop).map(Dropped::count).sum()
    }

    /// Returns the packets that were dropped behind a time, until another one.
    pub fn between(&self, from_ns: u64, until_ns: u64) -> impl Iterator<Item = &Dropped> {
        let first = self.kept.partition_point(|one| one.packet.at_ns <= from_ns);
        self.kept.range(first..).take_while(move |one| one.packet.at_ns <= until_ns)
    }

    /// Forgets those that are old.
    pub fn prune(&mut self, until_ns: u64) {
        let old = until_ns.saturating_sub(KEPT_NS);
        while self.kept.front().is_some_and(|one| one.packet.at_ns < old) {
            self.kept.pop_front();
        }
    }
}

/// Returns whether a packet that was dropped at a hop can be missing at this place.
fn can_explain(hop: Hop, place: LossPlace, is_received: bool) -> bool {
    let is_behind = matches!(hop, Hop::Stack | Hop::Socket | Hop::Program);
    match (place, is_received) {
        (LossPlace::Before, true) => !is_behind,
        (LossPlace::Before, false) => matches!(hop, Hop::Stack | Hop::SendQueue),
        (LossPlace::Behind, true) => is_behind,
        (LossPlace::Behind, false) => true,
        (LossPlace::Sender, _) => false,
    }
}

/// Returns whether a packet was dropped in another network namespace than this one.
fn is_elsewhere(packet: &DroppedPacket, namespace: Option<u32>) -> bool {
    packet.namespace.zip(namespace).is_some_and(|(of_packet, here)| of_packet != here)
}

/// Returns the hop of a drop as the program sees it: on the way to a radio, receiving hops are
/// those of the radio's side, and on the way from it, sending ones.
pub(super) fn seen_from(hop: Hop, is_received: bool, place: Option<LossPlace>) -> Hop {
    match (is_received, hop) {
        (true, Hop::SendQueue) => Hop::Wire,
        (false, Hop::Card | Hop::Backlog) => Hop::Wire,
        (false, Hop::Socket | Hop::Program) => Hop::Radio,
        (false, Hop::Stack) if place == Some(LossPlace::Behind) => Hop::Wire,
        (_, hop) => hop,
    }
}
