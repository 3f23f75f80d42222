//! What became of the packets of a group's channels, and the comparison with their ledgers.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex};

use millstream_radio::{Cause, Ledger, RxCounters};
use millstream_wire::Width;
use millstream_wire::chdr::Packet;
use millstream_wire::ctrl::CtrlRepr;
use millstream_wire::regs::radio::async_msg::Event;

use super::CHANNELS;
use crate::common::shrink::tell;
use crate::common::{SPP, Seen};

/// The times at which each channel overran, as the radio reports them.
pub type Overruns = Arc<Mutex<[Vec<u64>; CHANNELS]>>;

/// Notes the radio's messages about overruns.
pub fn note_overrun(bytes: &[u8], overruns: &Overruns) {
    let control = Packet::parse(bytes, Width::W64).and_then(|packet| CtrlRepr::parse(&packet));
    let Some(message) = control.ok().filter(|control| !control.is_ack) else { return };
    let event = Event::from_message(message.address, message.data.first());
    if let (Some((Event::RxOverrun, channel)), Some(ticks)) = (event, message.timestamp) {
        // The message has the time of the last sample.
        overruns.lock().unwrap()[usize::from(channel)].push(ticks + 1);
    }
}

/// What became of a channel's packets.
#[derive(Debug, Default)]
pub struct Truth {
    lost: u64,
    damaged: u64,
    /// The stretches that arrived.
    came: Vec<(u64, u64)>,
    /// Never sent, between two runs.
    unsent: u64,
    sent: u64,
    /// The stretches that the radio sent.
    runs: Vec<(u64, u64)>,
    /// Of the samples that were never sent, those behind an overrun of this channel.
    overrun: u64,
    /// The last stretch ended with an overrun.
    overran_last: bool,
    /// Nothing came of a whole run.
    lost_run: bool,
    /// The samples that came behind later ones.
    overtaken: u64,
}

impl Truth {
    /// `overruns`: the times at which the channel overran, as the radio reported them.
    pub fn of(sent: &[Seen], arrived: &[Seen], overruns: &[u64]) -> Self {
        let mut truth = Self::default();
        let (mut due, mut newest, mut before) = (None, 0, BTreeSet::new());
        for whole in arrived.iter().filter_map(|seen| seen.whole) {
            let is_overtaken = before.insert(whole.ticks) && whole.ticks < newest;
            truth.overtaken += if is_overtaken { whole.samples } else { 0 };
            newest = newest.max(whole.ticks);
        }
        for seen in sent {
            let whole = seen.whole.expect("nothing damages packets before the faults do");
            let came = |whole| arrived.contains(&Seen { seq: seen.seq, whole });
            let unsent = due.map_or(0, |due| whole.ticks - due);
            truth.unsent += unsent;
            truth.overrun += due.filter(|due| overruns.contains(due)).map_or(0, |_| unsent);
            match truth.runs.last_mut().filter(|_| due == Some(whole.ticks)) {
                Some((_, samples)) => *samples += whole.samples,
                None => truth.runs.push((whole.ticks, whole.samples)),
            }
            truth.sent += whole.samples;
            due = Some(whole.ticks + whole.samples);
            if came(seen.whole) {
                truth.came.push((whole.ticks, whole.samples));
            } else if came(None) {
                truth.damaged += whole.samples;
            } else {
                truth.lost += whole.samples;
            }
        }
        truth.overran_last = due.is_some_and(|end| overruns.contains(&end));
        truth.lost_run = truth.runs.iter().any(|run| common(&[*run], &truth.came).is_empty());
        truth
    }

    fn came_samples(&self) -> u64 {
        sum(&self.came)
    }
}

impl fmt::Display for Truth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lost, damaged, unsent, sent, overrun, overtaken, runs, .. } = self;
        let came = self.came_samples();
        writeln!(f, "{lost} lost, {damaged} damaged, {came} came, {overtaken} of them overtaken")?;
        write!(f, "  {sent} sent, {unsent} unsent, {overrun} of them overrun\n  {runs:?}")
    }
}

pub fn sum(stretches: &[(u64, u64)]) -> u64 {
    stretches.iter().map(|(_, samples)| samples).sum()
}

/// Returns the stretches that both lists have; each is in the order of time.
fn common(one: &[(u64, u64)], other: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let (mut both, mut rest) = (Vec::new(), other);
    for &(from, samples) in one {
        let end = from + samples;
        while let Some((first, more)) = rest.split_first() {
            let (begin, over) = (from.max(first.0), end.min(first.0 + first.1));
            if begin < over {
                both.push((begin, over - begin));
            }
            if first.0 + first.1 > end {
                break;
            }
            rest = more;
        }
    }
    both
}

/// Compares the ledgers with what really became of the packets, cause by cause. `taken`: the
/// stretches that were handed out; `is_calm`: no channel was restarted twice.
pub fn check(
    taken: &[(u64, u64)],
    finite: Option<u64>,
    is_calm: bool,
    counters: &[RxCounters],
    ledgers: &[Ledger],
    truths: &[Truth],
) {
    let delivered = sum(taken);
    for ((counters, ledger), truth) in counters.iter().zip(ledgers).zip(truths) {
        tell(format_args!("  {counters:?}\n{ledger}\n  {truth}"));
        assert_eq!((ledger.balance(), ledger.held), (Ok(()), 0));
        assert_eq!(ledger.delivered, delivered, "each channel hands out the same");
        let more = sum(&common(&truth.came, taken));
        assert_eq!(delivered, more, "all that was handed out came");
    }
    if counters.iter().any(|counters| counters.stalls > 0) {
        // The numbers of packets were restarted: see the mixes of one stream.
        return;
    }
    let mut late_in_all = 0;
    for ((counters, ledger), truth) in counters.iter().zip(ledgers).zip(truths) {
        let lost = |cause| ledger.lost(cause);
        let late = truth.overtaken.min(counters.late * SPP);
        // The rest of a capture, which the radio did not send: it overran, or had no credit.
        let kept = finite.map_or(0, |samples| samples - truth.sent);
        assert_eq!(ledger.expected, truth.sent + truth.unsent + kept, "expected");
        let (unsent, unused) = (truth.unsent + kept, truth.came_samples() - delivered);
        let own = truth.overrun + if truth.overran_last { kept } else { 0 };
        let overrun = lost(Cause::DeviceOverrun);
        assert!(lost(Cause::NetworkLoss) <= truth.lost + late, "more than really");
        assert!(lost(Cause::Malformed) <= truth.damaged, "more than really");
        assert!(overrun <= unsent && (overrun == 0 || own > 0), "device_overrun");
        assert!(lost(Cause::Alignment) <= unused + unsent, "alignment");
        let happened = [truth.lost + late, truth.damaged, unsent];
        // Of a capture that never began, the start may have been too late.
        let began = finite.is_none() || truth.came_samples() > 0;
        let is_one = happened.iter().filter(|samples| **samples > 0).count() < 2;
        if is_calm && began && is_one {
            assert_eq!(lost(Cause::Unknown), 0, "one thing happened");
        }
        late_in_all += late;
    }
    // What all channels had in time was handed out on all of them.
    let first = truths[0].came.clone();
    let all = truths[1..].iter().fold(first, |all, truth| common(&all, &truth.came));
    let all = sum(&all);
    assert!((delivered..=delivered + late_in_all).contains(&all), "{delivered} of {all}");
}
