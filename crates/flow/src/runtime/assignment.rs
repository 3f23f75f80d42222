//! Assignment of partitions to threads when the plan of a running graph changes.

use super::placement::Placement;

/// The assignment of partitions to threads. A seat is the place of one thread in a run.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct Assignment {
    /// Seat of each partition that has blocks to run.
    pub(super) seat_of: Vec<Option<usize>>,
    /// Partitions that need a new thread.
    pub(super) recruits: Vec<usize>,
    /// Seats whose threads have no partition.
    pub(super) dismissed: Vec<usize>,
}

impl Assignment {
    /// Assigns `partitions` (names, and whether a partition has blocks) to seats. `present`: seats
    /// with a thread, and the current name of that thread. `seats`: the number of seats, enough for
    /// every partition with a block.
    ///
    /// A thread keeps its name where possible; the others take the remaining partitions in order.
    pub(super) fn new<'a>(
        partitions: impl Iterator<Item = (&'a str, bool)>,
        present: impl Iterator<Item = (usize, String)>,
        seats: usize,
    ) -> Self {
        let partitions: Vec<(&str, bool)> = partitions.collect();
        let mut present: Vec<(usize, String)> = present.collect();
        let mut vacant: Vec<usize> =
            (0..seats).filter(|seat| present.iter().all(|(taken, _)| taken != seat)).collect();
        vacant.reverse();
        let mut seat_of: Vec<Option<usize>> = vec![None; partitions.len()];
        let alive = || (0..partitions.len()).filter(|partition| partitions[*partition].1);
        for partition in alive() {
            let named = present.iter().position(|(_, name)| name == partitions[partition].0);
            seat_of[partition] = named.map(|index| present.remove(index).0);
        }
        let mut recruits = Vec::new();
        for partition in alive() {
            if seat_of[partition].is_some() {
                continue;
            }
            if present.is_empty() {
                seat_of[partition] = Some(vacant.pop().expect("a seat for every block"));
                recruits.push(partition);
            } else {
                seat_of[partition] = Some(present.remove(0).0);
            }
        }
        let dismissed = present.into_iter().map(|(seat, _)| seat).collect();
        Self { seat_of, recruits, dismissed }
    }

    /// Returns the seat of every node; nodes of partitions without runnable blocks keep their
    /// seats.
    pub(super) fn of_nodes(&self, placement: &Placement, before: &[usize]) -> Vec<usize> {
        let seat =
            |(node, partition): (usize, &usize)| self.seat_of[*partition].unwrap_or(before[node]);
        placement.of_node.iter().enumerate().map(seat).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seating(partitions: &[(&str, bool)], present: &[(usize, &str)], seats: usize) -> Assignment {
        let present = present.iter().map(|(seat, name)| (*seat, (*name).to_owned()));
        Assignment::new(partitions.iter().copied(), present, seats)
    }

    #[test]
    fn threads_keep_their_names() {
        let seating = seating(&[("b", true), ("a", true)], &[(0, "a"), (1, "b")], 4);
        assert_eq!(seating.seat_of, [Some(1), Some(0)]);
        assert!(seating.recruits.is_empty() && seating.dismissed.is_empty());
    }

    #[test]
    fn nobody_is_started_while_another_is_free() {
        let seating = seating(&[("x", true), ("y", true)], &[(2, "a"), (0, "y"), (1, "c")], 3);
        assert_eq!(seating.seat_of, [Some(2), Some(0)]);
        assert_eq!((seating.recruits, seating.dismissed), (vec![], vec![1]));
    }

    #[test]
    fn threads_are_started_only_where_there_are_too_few() {
        let partitions = [("a", true), ("empty", false), ("b", true), ("c", true)];
        let seating = seating(&partitions, &[(1, "c")], 3);
        assert_eq!(seating.seat_of, [Some(0), None, Some(2), Some(1)]);
        assert_eq!((seating.recruits, seating.dismissed), (vec![0, 2], vec![]));
    }
}
