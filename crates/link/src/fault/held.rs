//! What is kept back: bounded queues, released by time or by what overtook them.

use std::collections::VecDeque;

use super::switch::{FaultSwitch, RuleId};

/// Datagrams or frames that one half keeps back at most; one more is lost, and counted.
pub const HELD_MAX: usize = 4096;

/// What is reordered comes after this long even if nothing overtakes it, nanoseconds.
pub const REORDER_NS_MAX: u64 = 100_000_000;

/// When a datagram may go: at a time, or when its rule has taken so many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ReleaseTime {
    pub ns: u64,
    pub matched: u64,
}

impl ReleaseTime {
    /// Directly behind the datagram that is looked at.
    pub const NEXT: Self = Self { ns: 0, matched: u64::MAX };
}

/// What one half keeps back: datagrams of a port, or frames of a link.
#[derive(Debug)]
pub(super) struct DelayQueue<T> {
    /// A queue for each rule: what one rule keeps comes out in the order it went in.
    queues: Vec<(RuleId, VecDeque<(ReleaseTime, T)>)>,
    count: usize,
    most: usize,
}

impl<T> DelayQueue<T> {
    /// Room for so many, or [`HELD_MAX`] if that is less.
    pub fn new(most: usize) -> Self {
        Self { queues: Vec::new(), count: 0, most: most.min(HELD_MAX) }
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Keeps `item` back for `rule`.
    ///
    /// # Errors
    /// The item, where there is no room: it is lost, and the rule has counted it.
    pub fn keep(
        &mut self,
        switch: &FaultSwitch,
        rule: RuleId,
        due: ReleaseTime,
        item: T,
    ) -> Result<(), T> {
        if self.count >= self.most {
            switch.note_overflow(rule);
            return Err(item);
        }
        self.count += 1;
        switch.note_held(rule);
        let entry = (due, item);
        match self.queues.iter_mut().find(|(id, _)| *id == rule) {
            Some((_, queue)) => queue.push_back(entry),
            None => self.queues.push((rule, VecDeque::from([entry]))),
        }
        Ok(())
    }

    /// What is due, and the rule that kept it.
    pub fn pop_due(&mut self, switch: &FaultSwitch, now_ns: u64) -> Option<(T, RuleId)> {
        if self.count == 0 {
            return None;
        }
        for index in 0..self.queues.len() {
            let (rule, queue) = &mut self.queues[index];
            let rule = *rule;
            let is_due =
                |due: &ReleaseTime| due.ns <= now_ns || switch.has_taken(rule, due.matched);
            if queue.front().is_some_and(|(due, _)| is_due(due)) {
                let (_, item) = queue.pop_front()?;
                if queue.is_empty() {
                    self.queues.swap_remove(index);
                }
                self.count -= 1;
                switch.note_released(rule);
                return Some((item, rule));
            }
        }
        None
    }

    /// When the next one is due by time.
    pub fn next_ns(&self) -> Option<u64> {
        let fronts = self.queues.iter().filter_map(|(_, queue)| queue.front());
        fronts.map(|(due, _)| due.ns).min()
    }
}
