//! Audits: queries of the device's count.
//!
//! A query is two PINGs in one GSO batch. Their answers are two consecutive reports whose counts
//! differ by at most one command; no other reports do, except one right before them. A query that
//! is sent while another one has no answer, or after one with an impossible count, ends with a
//! RESYNC, and the device's count is right from there on. Until the RESYNC is answered, answers to
//! PINGs cannot be assigned to a query, and are not used: with the late answer to the older query,
//! the newer one would seem to miss too much, and the host would send more than fits the device's
//! buffer. The bytes of a RESYNC are our total with a *tag* in the lowest bits, which are 0 in all
//! other counts: so every report shows which RESYNC came before it.

use std::collections::VecDeque;

use super::window::{CommandCounts, Totals};

/// The commands of the longest query.
pub(super) const AUDIT_COMMANDS: u64 = 3;

/// The bits of a tag. Packets are whole words of samples, so these bits of a length are 0.
const TAG: u64 = 3;

/// The most stored queries without answer, more than are ever in flight.
const OPEN_MAX: usize = 64;

/// A sent query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Audit {
    number: u64,
    /// Our totals behind its PINGs.
    pings: Totals,
    /// Our totals behind its RESYNC, if it has one, and the tag.
    resync: Option<(Totals, u64)>,
    /// Packets of samples sent before it.
    pub sent: u64,
    /// The query before it was sent behind the same packets.
    pub repeats: bool,
    answered: bool,
    /// Two reports came that may have been the answers to its PINGs.
    seen: bool,
    /// Everything before it has been counted.
    pub accepted: bool,
}

/// The query that a report answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    Nothing,
    /// Perhaps the PINGs of the only open query, with the difference between the packets sent
    /// before them and the count.
    Pings(Audit, Totals),
    /// A RESYNC, or a later command; with the result of its PINGs, if they were answered.
    Resync(Audit, Option<Totals>),
}

/// The queries of one stream.
#[derive(Debug)]
pub(super) struct Audits {
    counts: CommandCounts,
    open: VecDeque<Audit>,
    number: u64,
    sent: u64,
    /// The count of the last report, if that was a plain one.
    last: Option<Totals>,
    /// The last two reports may have been the answers to PINGs.
    pair: bool,
    /// The count of the last report, if that was about the number of a command.
    at_gap: Option<Totals>,
    /// The last RESYNC was answered right behind such a pair.
    direct: bool,
    /// A query was sent since the last report.
    fresh: bool,
    /// The next report may be the second answer to the PINGs of a query that was given up.
    tail: bool,
    /// The number of a query that was sent while an older one had no answer. Before a RESYNC at
    /// least as new, answers cannot be assigned.
    ambiguous: Option<u64>,
    /// The packets of samples sent before the last answer, if it was not a certain one.
    doubtful: Option<u64>,
    /// The next query must correct the device's count.
    broken: bool,
    /// The tag of the device's count; below, that of the last RESYNC sent.
    tag: u64,
    last_tag: u64,
}

/// Splits a count into the count without its tag, and the tag.
pub(super) fn untagged(counted: Totals) -> (Totals, u64) {
    (Totals { bytes: counted.bytes & !TAG, ..counted }, counted.bytes & TAG)
}

impl Audits {
    /// Returns the queries of a device that counts stream commands in this way.
    pub fn new(counts: CommandCounts) -> Self {
        Self {
            counts,
            open: VecDeque::with_capacity(OPEN_MAX),
            number: 0,
            sent: 0,
            last: None,
            pair: false,
            at_gap: None,
            direct: false,
            fresh: false,
            tail: false,
            ambiguous: None,
            doubtful: None,
            broken: false,
            tag: 0,
            last_tag: 0,
        }
    }

    /// Returns whether a query waits for its answer.
    pub fn is_open(&self) -> bool {
        self.open.iter().any(|audit| !audit.answered)
    }

    /// Returns whether no query is stored: none has a command on its way.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Returns whether nothing was counted between the PINGs of the last answered RESYNC.
    pub fn was_direct(&self) -> bool {
        self.direct
    }

    /// Returns whether the next query should correct the device's count, after `sent` packets of
    /// samples.
    pub fn wants_resync(&self, sent: u64) -> bool {
        self.broken || self.doubtful == Some(sent) || self.is_open()
    }

    /// Returns the tag of the device's count, by the reports taken.
    pub fn tag(&self) -> u64 {
        self.tag
    }

    /// Returns whether a RESYNC was sent.
    pub fn has_resynced(&self) -> bool {
        self.last_tag != 0
    }

    /// Returns the tag of the next RESYNC: never that of the device's count, which would not show
    /// that it was executed.
    pub fn next_tag(&self) -> u64 {
        let next = self.last_tag % TAG + 1;
        if next == self.tag { next % TAG + 1 } else { next }
    }

    /// Returns whether packets of samples were sent since the last query; `sent` is their total.
    pub fn is_due(&self, sent: u64) -> bool {
        sent > self.sent
    }

    /// Records a sent query: our totals behind it, and the packets of samples sent before it.
    pub fn push(&mut self, after: Totals, resync: bool, sent: u64) {
        // A query without answer by now is given up, but a RESYNC has its effect whenever it comes.
        let plain = |seen| move |audit: &Audit| audit.resync.is_none() && audit.seen == seen;
        let ambiguous = self.open.iter().any(plain(false));
        self.tail = self.pair && self.open.iter().any(plain(true));
        self.open.retain(|audit| audit.resync.is_some());
        if self.open.len() == OPEN_MAX {
            self.open.pop_front();
        }
        self.number += 1;
        if ambiguous {
            self.ambiguous = Some(self.number);
        }
        let repeats = std::mem::replace(&mut self.sent, sent) == sent;
        let pings = if resync { after.since(self.counts.resync) } else { after };
        if resync {
            self.last_tag = self.next_tag();
        }
        let resync = resync.then_some((after, self.last_tag));
        let number = self.number;
        // The answers to the query before do not belong to this one.
        self.fresh = true;
        self.open.push_back(Audit {
            number,
            pings,
            resync,
            sent,
            repeats,
            answered: false,
            seen: false,
            accepted: false,
        });
    }

    /// Takes a report with a tag. Returns the query that ended with it, if the tag is a new one.
    pub fn step(&mut self, counted: Totals, tag: u64) -> Option<Answer> {
        // Where those with the tags between were lost, the count alone shows a RESYNC.
        let is_answer = |audit: &Audit| audit.resync == Some((counted, tag));
        if tag == self.tag && !self.open.iter().any(is_answer) {
            return None;
        }
        self.tag = tag;
        // Nothing was counted between the second PING and this: the last count, if known, is that
        // of the PING or a later one.
        let last = self.last.take().or(self.at_gap.take());
        self.direct = std::mem::take(&mut self.pair);
        // Tags repeat; a RESYNC sent later cannot have been counted yet.
        let is_it = |audit: &Audit| {
            audit.resync.is_some_and(|(after, its)| {
                its == tag && after.packets.wrapping_sub(counted.packets) as i64 <= 0
            })
        };
        let Some(index) = self.open.iter().rposition(is_it) else {
            // The tag is unknown, or no longer stored.
            self.broken = true;
            return None;
        };
        let audit = self.open[index];
        self.open.drain(..=index);
        self.ambiguous = self.ambiguous.filter(|&number| number > audit.number);
        (self.broken, self.doubtful) = (false, None);
        let answers = audit.resync.is_some_and(|(after, _)| after == counted);
        let last = last.filter(|_| answers);
        Some(Answer::Resync(audit, last.map(|counted| audit.pings.since(counted))))
    }

    /// Takes a plain report.
    pub fn take(&mut self, counted: Totals) -> Answer {
        let last = self.last.replace(counted);
        (self.pair, self.at_gap) = (false, None);
        let step = last.map(|last| counted.since(last));
        let fresh = std::mem::take(&mut self.fresh);
        let ping = self.counts.ping;
        self.pair =
            step.is_some_and(|step| step.packets <= ping.packets && step.bytes <= ping.bytes);
        self.tail &= self.pair;
        let unclear = fresh || self.tail || self.ambiguous.is_some();
        match self.open.make_contiguous() {
            [audit] if self.pair && !unclear => {
                audit.seen = true;
                Answer::Pings(*audit, audit.pings.since(counted))
            }
            _ => Answer::Nothing,
        }
    }

    /// Records that the next report is missing, or not a plain one.
    pub fn interrupt(&mut self) {
        (self.last, self.pair, self.at_gap) = (None, false, None);
        self.open.iter_mut().for_each(|audit| audit.accepted = false);
    }

    /// Records the count before a command with a wrong number, which may be a RESYNC.
    pub fn note_gap(&mut self, counted: Totals) {
        self.at_gap = Some(counted);
    }

    /// Records a possible answer to the open query; the next query makes it certain, unless it has
    /// another purpose.
    pub fn answered(&mut self, doubtful: Option<u64>) {
        self.doubtful = doubtful;
        self.open.iter_mut().for_each(|audit| audit.answered = true);
    }

    /// Records a certain answer to the open query.
    pub fn accept(&mut self) {
        self.doubtful = None;
        let open = self.open.iter_mut();
        open.for_each(|audit| (audit.answered, audit.accepted) = (true, true));
        self.open.retain(|audit| audit.resync.is_some());
    }

    /// Rejects the answer to the open query as impossible.
    pub fn distrust(&mut self) {
        self.answered(None);
        self.broken = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMAND: u64 = 24;

    fn totals(packets: u64) -> Totals {
        Totals::default().plus(packets, COMMAND)
    }

    #[test]
    fn the_answers_to_pings_are_known_by_their_distance() {
        let mut audits = Audits::new(CommandCounts::each(COMMAND));
        assert!(audits.is_due(10) && !audits.is_open());
        audits.push(totals(12), false, 10);
        assert!(!audits.is_due(10) && audits.wants_resync(9), "there is no answer yet");
        assert_eq!(audits.take(totals(8)), Answer::Nothing);
        assert!(
            matches!(audits.take(totals(9)), Answer::Pings(_, missing) if missing == totals(3))
        );
        assert_eq!(audits.take(totals(11)), Answer::Nothing);
        let Answer::Pings(audit, missing) = audits.take(totals(12)) else { panic!() };
        assert_eq!((audit.sent, missing), (10, totals(0)));
        audits.accept();
        assert!(!audits.wants_resync(9));
        audits.push(totals(14), false, 10);
        assert_eq!(audits.take(totals(13)), Answer::Nothing, "the last two are the first one's");
        assert!(matches!(audits.take(totals(14)), Answer::Pings(..)));
        audits.distrust();
        assert!(audits.wants_resync(9));
    }

    #[test]
    fn an_audit_without_answer_is_followed_by_one_that_is_known_by_its_tag() {
        let mut audits = Audits::new(CommandCounts::each(COMMAND));
        audits.push(totals(12), false, 10);
        assert_eq!(audits.next_tag(), 1);
        audits.push(totals(15), true, 11);
        audits.take(totals(9));
        assert_eq!(audits.take(totals(10)), Answer::Nothing, "of the first or of the second");
        assert_eq!(audits.step(totals(15), 0), None);
        let Some(Answer::Resync(audit, missing)) = audits.step(totals(15), 1) else { panic!() };
        assert_eq!((audit.sent, missing, audits.is_open()), (11, Some(totals(4)), false));
        audits.push(totals(18), true, 12);
        audits.accept();
        audits.take(totals(16));
        audits.take(totals(17));
        // Its answer is lost.
        let Some(Answer::Resync(audit, missing)) = audits.step(totals(20), 2) else { panic!() };
        assert_eq!((audit.sent, missing, audits.step(totals(21), 2)), (12, None, None));
        assert_eq!((audits.step(totals(21), 3), audits.wants_resync(9)), (None, true));
        assert_eq!(untagged(totals(1).and(Totals { packets: 0, bytes: 3 })), (totals(1), 3));
    }

    #[test]
    fn a_resync_shows_although_those_before_it_were_lost() {
        let mut audits = Audits::new(CommandCounts::each(COMMAND));
        audits.push(totals(3), true, 0);
        assert!(matches!(audits.step(totals(3), 1), Some(Answer::Resync(..))));
        // The tags 2, 3 and 2; that of the device's count is not among them.
        for turn in 2..5 {
            audits.push(totals(3 * turn), true, turn);
            assert_ne!(audits.last_tag, 1);
        }
        let Some(Answer::Resync(audit, _)) = audits.step(totals(12), 2) else { panic!() };
        assert_eq!((audit.sent, audits.next_tag()), (4, 3));
        // Sent before the device's count had a tag of 2.
        audits.push(totals(20), true, 5);
        audits.open[0].resync = Some((totals(20), 2));
        assert_eq!(audits.step(totals(19), 2), None);
        assert!(
            matches!(audits.step(totals(20), 2), Some(Answer::Resync(audit, _)) if audit.sent == 5)
        );
    }

    #[test]
    fn audits_without_answer_do_not_pile_up() {
        let mut audits = Audits::new(CommandCounts::each(COMMAND));
        for turn in 0..2 * OPEN_MAX as u64 {
            audits.push(totals(3 * turn), true, 0);
        }
        assert_eq!((audits.open.len(), audits.open.capacity()), (OPEN_MAX, OPEN_MAX));
    }
}
