//! Audits: queries of the device's place.
//!
//! A query is a PING. Its answer says the number of the command and that of the data packet that
//! the device expects next, as of the PING's turn: so each packet before it was taken or skipped.
//! The counts of the answer are later ones, of packets that came behind. They are exact where
//! nothing was sent behind the query.

use std::collections::VecDeque;

use super::window::Totals;

/// The most stored queries without answer, more than are ever in flight.
const OPEN_MAX: usize = 64;

/// A sent query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Audit {
    /// The number of its command.
    pub number: u16,
    /// Our totals behind it.
    pub after: Totals,
    /// Packets of samples sent before it.
    pub sent: u64,
}

impl Audit {
    /// Returns a query behind all that was sent.
    pub fn behind_all(after: Totals, sent: u64) -> Self {
        Self { number: 0, after, sent }
    }
}

/// The queries of one stream.
#[derive(Debug)]
pub(super) struct Audits {
    open: VecDeque<Audit>,
    sent: u64,
}

impl Audits {
    /// Returns the queries of a new stream.
    pub fn new() -> Self {
        Self { open: VecDeque::with_capacity(OPEN_MAX), sent: 0 }
    }

    /// Returns whether a query waits for its answer.
    pub fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Returns whether packets of samples were sent since the last query; `sent` is their total.
    pub fn is_due(&self, sent: u64) -> bool {
        sent > self.sent
    }

    /// Records a sent query: the number of its command, our totals behind it, and the packets of
    /// samples sent before it.
    pub fn push(&mut self, number: u16, after: Totals, sent: u64) {
        if self.open.len() == OPEN_MAX {
            self.open.pop_front();
        }
        self.sent = sent;
        self.open.push_back(Audit { number, after, sent });
    }

    /// Takes the number of the device's last command. Returns the newest query that it has come
    /// to, once.
    pub fn answer(&mut self, command: u16) -> Option<Audit> {
        let index = self.open.iter().rposition(|audit| audit.number == command)?;
        self.open.drain(..=index).next_back()
    }

    /// Gives up all queries, because the counts say all that they would.
    pub fn clear(&mut self) {
        self.open.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_belongs_to_the_query_with_its_number_and_ends_those_before_it() {
        let mut audits = Audits::new();
        assert!(audits.is_due(10) && !audits.is_open());
        for number in [u16::MAX, 0, 1] {
            audits.push(number, Totals::default(), 10 + u64::from(number % 2));
        }
        assert!(!audits.is_due(11) && audits.is_due(12));
        assert_eq!(audits.answer(7), None);
        assert_eq!(audits.answer(0).map(|audit| audit.sent), Some(10));
        assert_eq!(
            (audits.answer(0), audits.answer(u16::MAX), audits.is_open()),
            (None, None, true)
        );
        assert_eq!(audits.answer(1).map(|audit| audit.sent), Some(11));
        assert!(!audits.is_open());
    }

    #[test]
    fn queries_without_answer_do_not_pile_up() {
        let mut audits = Audits::new();
        for number in 0..2 * OPEN_MAX as u16 {
            audits.push(number, Totals::default(), 0);
        }
        assert_eq!((audits.open.len(), audits.open.capacity()), (OPEN_MAX, OPEN_MAX));
    }
}
