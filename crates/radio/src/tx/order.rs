//! Sorts reports by their numbers, and counts missing ones between them.
//!
//! Some devices give all reports one number, or do not say their place, as UHD's simulator. Those
//! are taken as they come.

use millstream_wire::stream::{SequenceGap, StreamPlace};

/// The most reports that wait for an earlier one: more than a network usually reorders.
const HELD: usize = 4;

/// The content of a report besides its counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReportKind {
    /// No fault: credit reports and answers to commands.
    Ok(StreamPlace),
    /// A packet with a wrong number came.
    Gap(SequenceGap),
    /// A fault without packet numbers.
    Trouble,
}

/// The parts of a status from which the accounting follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Report {
    pub seq: u16,
    /// The packets that the device has counted.
    pub counted_packets: u64,
    pub says: ReportKind,
}

/// Reports that are being sorted.
#[derive(Debug)]
pub(super) struct ReportOrder {
    next: u16,
    held: [Option<Report>; HELD],
    /// Whether the device numbers them, once a report was taken.
    numbered: Option<bool>,
}

impl ReportOrder {
    /// Returns an order in which the report behind number `last` is next. `tells_place`: the device
    /// says its place; the numbers of others are of no use.
    pub fn new(last: u16, tells_place: bool) -> Self {
        let numbered = if tells_place { None } else { Some(false) };
        Self { next: last.wrapping_add(1), held: [None; HELD], numbered }
    }

    /// Returns whether a missing report can be detected.
    pub fn is_numbered(&self) -> bool {
        self.numbered != Some(false)
    }

    /// Takes a report. Returns false for one that came before, or was given up.
    pub fn put(&mut self, report: Report) -> bool {
        // Only the answer to the opening has the last number, and its counts are zero.
        let again = report.seq == self.next.wrapping_sub(1) && report.counted_packets > 0;
        let numbered = self.numbered.unwrap_or(!again);
        let behind = numbered && (report.seq.wrapping_sub(self.next) as i16) < 0;
        let twice = self.held.iter().flatten().any(|held| held.seq == report.seq);
        let place = self.held.iter_mut().find(|held| held.is_none());
        let Some(place) = place.filter(|_| !behind && !twice) else { return false };
        *place = Some(report);
        self.numbered = Some(numbered);
        true
    }

    /// Returns the next report, and how many before it are missing. Call until it returns `None`.
    pub fn pop(&mut self) -> Option<(u16, Report)> {
        if !self.is_numbered() {
            return Some((0, self.held.iter_mut().find_map(Option::take)?));
        }
        let full = self.held.iter().all(Option::is_some);
        let ahead = |held: &Report| held.seq.wrapping_sub(self.next);
        let first = self.held.iter_mut().filter(|held| held.is_some());
        let first = first.min_by_key(|held| held.as_ref().map_or(0, ahead))?;
        let missing = first.as_ref().map_or(0, ahead);
        if missing > 0 && !full {
            return None;
        }
        let report = first.take()?;
        self.next = report.seq.wrapping_add(1);
        Some((missing, report))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OK: ReportKind = ReportKind::Ok(StreamPlace { period: false, expected: 0, command: 0 });

    fn take(order: &mut ReportOrder, seq: u16) -> Vec<(u16, u16)> {
        order.put(Report { seq, counted_packets: 0, says: OK });
        std::iter::from_fn(|| order.pop()).map(|(missing, one)| (missing, one.seq)).collect()
    }

    #[test]
    fn reports_out_of_order_wait_for_those_before_them() {
        let mut order = ReportOrder::new(u16::MAX - 1, true);
        assert_eq!(take(&mut order, u16::MAX), [(0, u16::MAX)]);
        assert_eq!(take(&mut order, 2), []);
        assert_eq!(take(&mut order, 1), []);
        assert_eq!(take(&mut order, 1), [], "it is here already");
        assert_eq!(take(&mut order, 0), [(0, 0), (0, 1), (0, 2)]);
        assert_eq!(take(&mut order, 0), [], "it is old");
        assert_eq!(take(&mut order, 3), [(0, 3)]);
    }

    #[test]
    fn reports_with_one_number_are_taken_as_they_come() {
        let mut order = ReportOrder::new(0, true);
        let report = |packets| Report { seq: 0, counted_packets: packets, says: OK };
        assert!(!order.put(report(0)), "the answer to the opening, once more");
        assert!(order.is_numbered());
        for packets in [1, 2, 2, 9] {
            assert!(order.put(report(packets)));
            assert_eq!(order.pop(), Some((0, report(packets))));
            assert_eq!((order.pop(), order.is_numbered()), (None, false));
        }
        let mut order = ReportOrder::new(0, true);
        take(&mut order, 1);
        assert!(!order.put(report(7)) && order.is_numbered(), "others have numbers");
    }

    #[test]
    fn a_report_that_does_not_come_is_given_up() {
        let mut order = ReportOrder::new(9, true);
        for seq in [12, 11, 13] {
            assert_eq!(take(&mut order, seq), []);
        }
        assert_eq!(take(&mut order, 20), [(1, 11), (0, 12), (0, 13)]);
        for seq in [21, 22] {
            assert_eq!(take(&mut order, seq), []);
        }
        assert_eq!(take(&mut order, 25), [(6, 20), (0, 21), (0, 22)]);
        assert_eq!(take(&mut order, 10), [], "too late");
    }
}
