//! Assignment of partitions to threads when the plan of a running graph changes.

use super::placement::Placement;

/// The assignment of partitions to threads. A slot is the place of one thread in a run.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct Assignment {
    /// Seat of each partition that has blocks to run.
    pub(super) slot_of: Vec<Option<usize>>,
    /// Partitions that need a new thread.
    pub(super) recruits: Vec<usize>,
    /// Seats whose threads have no partition.
    pub(super) dismissed: Vec<usize>,
}

impl Assignment {
    /// Assigns `partitions` (names, and whether a partition has blocks) to slots. `present`: slots
    /// with a thread, and the current name of that thread. `slots`: the number of slots, enough for
    /// every partition with a block.
    ///
    /// A thread keeps its name where possible; the others take the remaining partitions in order.
    pub(super) fn new<'a>(
        partitions: impl Iterator<Item = (&'a str, bool)>,
        present: impl Iterator<Item = (usize, String)>,
        slots: usize,
    ) -> Self {
        let partitions: Vec<(&str, bool)> = partitions.collect();
        let mut present: Vec<(usize, String)> = present.collect();
        let mut vacant: Vec<usize> =
            (0..slots).filter(|slot| present.iter().all(|(taken, _)| taken != slot)).collect();
        vacant.reverse();
        let mut slot_of: Vec<Option<usize>> = vec![None; partitions.len()];
        let alive = || (0..partitions.len()).filter(|partition| partitions[*partition].1);
        for partition in alive() {
            let named = present.iter().position(|(_, name)| name == partitions[partition].0);
            slot_of[partition] = named.map(|index| present.remove(index).0);
        }
        let mut recruits = Vec::new();
        for partition in alive() {
            if slot_of[partition].is_some() {
                continue;
            }
            if present.is_empty() {
                slot_of[partition] = Some(vacant.pop().expect("a slot for every block"));
                recruits.push(partition);
            } else {
                slot_of[partition] = Some(present.remove(0).0);
            }
        }
        let dismissed = present.into_iter().map(|(slot, _)| slot).collect();
        Self { slot_of, recruits, dismissed }
    }

    /// Returns the slot of every node; nodes of partitions without runnable blocks keep their
    /// slots.
    pub(super) fn of_nodes(&self, placement: &Placement, before: &[usize]) -> Vec<usize> {
        let slot =
            |(node, partition): (usize, &usize)| self.slot_of[*partition].unwrap_or(before[node]);
        placement.of_node.iter().enumerate().map(slot).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assigned_slots(
        partitions: &[(&str, bool)],
        present: &[(usize, &str)],
        slots: usize,
    ) -> Assignment {
        let present = present.iter().map(|(slot, name)| (*slot, (*name).to_owned()));
        Assignment::new(partitions.iter().copied(), present, slots)
    }

    #[test]
    fn threads_keep_their_names() {
        let assigned_slots = assigned_slots(&[("b", true), ("a", true)], &[(0, "a"), (1, "b")], 4);
        assert_eq!(assigned_slots.slot_of, [Some(1), Some(0)]);
        assert!(assigned_slots.recruits.is_empty() && assigned_slots.dismissed.is_empty());
    }

    #[test]
    fn nobody_is_started_while_another_is_free() {
        let assigned_slots =
            assigned_slots(&[("x", true), ("y", true)], &[(2, "a"), (0, "y"), (1, "c")], 3);
        assert_eq!(assigned_slots.slot_of, [Some(2), Some(0)]);
        assert_eq!((assigned_slots.recruits, assigned_slots.dismissed), (vec![], vec![1]));
    }

    #[test]
    fn threads_are_started_only_where_there_are_too_few() {
        let partitions = [("a", true), ("empty", false), ("b", true), ("c", true)];
        let assigned_slots = assigned_slots(&partitions, &[(1, "c")], 3);
        assert_eq!(assigned_slots.slot_of, [Some(0), None, Some(2), Some(1)]);
        assert_eq!((assigned_slots.recruits, assigned_slots.dismissed), (vec![0, 2], vec![]));
    }
}
