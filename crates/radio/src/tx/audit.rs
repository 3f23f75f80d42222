//! Audits: exactly what did not arrive, from the device's own count.
//!
//! Between two audits the device's count says how much has come, but not of what. An audit is three
//! commands in one train, PING, PING, RESYNC. The answer to the last is known by its totals, which
//! are ours; the two before it have consecutive numbers and differ by one command, so they count
//! everything sent before the audit and nothing else. What they lack did not arrive. The
//! RESYNC then sets the device's count right (facts page, section 8).

use std::collections::VecDeque;

use super::deficit::{Lost, Mix};
use super::window::Totals;

/// Commands of an audit.
pub(super) const AUDIT_COMMANDS: u64 = 3;

/// Audits without answer that are remembered, more than are ever on their way; older ones are
/// joined to the next.
const OPEN_MAX: usize = 64;

/// An audit that was sent.
#[derive(Debug, Clone, Copy)]
struct Open {
    /// Our totals before its RESYNC and after it.
    before: Totals,
    after: Totals,
    /// What was sent since the audit before.
    mix: Mix,
}

/// A status, as far as it matters here.
#[derive(Debug, Clone, Copy)]
struct Seen {
    seq: u16,
    totals: Totals,
    /// It may answer a ping: it does not answer a RESYNC.
    may_be_ping: bool,
}

/// What an audit brought to light: everything before it has arrived or been lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Finding {
    /// Packets that did not arrive, with the samples in them.
    pub packets: u64,
    pub lost: Lost,
    /// The numbers are exact, whatever samples and answers were lost; only where several commands
    /// of one audit were lost too may they not be. Otherwise they are likely.
    pub certain: bool,
}

/// The audits of one stream.
#[derive(Debug)]
pub(super) struct Audits {
    command_bytes: u64,
    mix: Mix,
    open: VecDeque<Open>,
    /// The last two statuses.
    last: Seen,
    second_last: Option<Seen>,
}

impl Audits {
    /// The audits of a stream whose handshake ended with the status of this number.
    pub fn new(command_bytes: u64, status_seq: u16) -> Self {
        Self {
            command_bytes,
            mix: Mix::default(),
            open: VecDeque::with_capacity(OPEN_MAX),
            last: Seen { seq: status_seq, totals: Totals::default(), may_be_ping: false },
            second_last: None,
        }
    }

    /// Packets leave; commands have no samples.
    pub fn push(&mut self, packets: u64, flow_bytes: u64, samples: u64) {
        self.mix.push(packets, flow_bytes, samples);
    }

    /// The RESYNC of an audit leaves; our totals before it. It has been pushed.
    pub fn resync(&mut self, before: Totals) {
        if self.open.len() == OPEN_MAX {
            self.join_next(1);
        }
        let mix = std::mem::take(&mut self.mix);
        let after = before.plus(1, self.command_bytes);
        self.open.push_back(Open { before, after, mix });
    }

    /// Whether anything was sent since the last audit.
    pub fn is_due(&self) -> bool {
        !self.mix.is_empty()
    }

    /// Whether an audit waits for its answer.
    pub fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Whether this status is older than one before.
    pub fn is_stale(&self, seq: u16) -> bool {
        seq.wrapping_sub(self.last.seq) as i16 <= 0
    }

    /// A status that is not stale.
    pub fn take(&mut self, seq: u16, totals: Totals) -> Option<Finding> {
        let may_be_ping = self.open.iter().all(|open| open.after != totals);
        let finding = self.judge(seq, totals);
        self.second_last = Some(self.last);
        self.last = Seen { seq, totals, may_be_ping };
        finding
    }

    fn judge(&mut self, seq: u16, totals: Totals) -> Option<Finding> {
        if let Some(index) = self.open.iter().rposition(|open| open.after == totals) {
            let at = self.open[index].before;
            let (missing, certain) = self.missing(seq, at);
            // With audits unanswered before this one the pings may be theirs.
            let certain = certain && (index == 0 || missing == Totals::default());
            return Some(self.close(index, missing, certain));
        }
        let passed = |open: &Open| (totals.bytes.wrapping_sub(open.after.bytes) as i64) > 0;
        let index = self.open.iter().rposition(passed)?;
        let last = self.last;
        let before = self.open[index].before;
        if [last.totals, last.totals.plus(1, self.command_bytes)].contains(&before) {
            // All had come when the audit was asked; whether its RESYNC came does not matter.
            return Some(self.close(index, Totals::default(), true));
        }
        if seq.wrapping_sub(last.seq) == 1 {
            // The audit's own answer would have been between: its RESYNC is lost.
            self.join_next(index + 1);
            return None;
        }
        // The answer is lost. What the pings counted is known if they were answered; they were
        // those of the oldest audit, whose own answer would be here otherwise.
        let missing = self.open[0].before.since(last.totals);
        let counted = self.saw_pings() && missing.bytes < u64::MAX / 2;
        let missing = if counted { missing } else { Totals::default() };
        Some(self.close(index, missing, false))
    }

    /// What had not arrived when the audit with these totals was asked.
    fn missing(&self, seq: u16, before: Totals) -> (Totals, bool) {
        let missing = before.since(self.last.totals);
        if missing == Totals::default() {
            return (missing, true);
        }
        if missing.bytes > u64::MAX / 2 || missing.packets > u64::MAX / 2 {
            // More came than was sent: the network doubled packets.
            return (Totals::default(), false);
        }
        let gap = seq.wrapping_sub(self.last.seq);
        if gap == 1 {
            return (missing, self.saw_pings());
        }
        // The answer to the second ping is lost: it would have counted one command more.
        let one = Totals::default().plus(1, self.command_bytes);
        if missing.bytes >= one.bytes && missing.packets >= 1 {
            let missing = missing.since(one);
            let clean = missing == Totals::default();
            return (if gap == 2 || clean { missing } else { Totals::default() }, clean);
        }
        (missing, false)
    }

    /// The last two statuses answered two commands that came together.
    fn saw_pings(&self) -> bool {
        let (Some(first), second) = (self.second_last, self.last) else { return false };
        second.may_be_ping
            && second.seq.wrapping_sub(first.seq) == 1
            && second.totals == first.totals.plus(1, self.command_bytes)
    }

    /// Ends the audits up to `index`.
    fn close(&mut self, index: usize, missing: Totals, certain: bool) -> Finding {
        let mut mix = Mix::default();
        for open in self.open.drain(..=index) {
            mix.merge(&open.mix);
        }
        let lost = mix.lost(missing);
        let certain = certain && lost.samples_min == lost.samples_max;
        Finding { packets: missing.packets, lost, certain }
    }

    /// Joins the first `count` audits, which had no effect, to what comes behind them.
    fn join_next(&mut self, count: usize) {
        let mut mix = Mix::default();
        for open in self.open.drain(..count) {
            mix.merge(&open.mix);
        }
        let next = self.open.front_mut().map_or(&mut self.mix, |open| &mut open.mix);
        next.merge(&mix);
    }
}

#[cfg(test)]
#[path = "audit_tests.rs"]
mod tests;
