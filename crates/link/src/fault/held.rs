//! Datagrams that are kept back: bounded queues, released by time or by what overtook them.

use std::collections::VecDeque;
use std::net::SocketAddrV4;

use super::switch::{RuleId, Switch};

/// Datagrams that one half keeps back at most; one more is lost, and counted.
pub const HELD_MAX: usize = 4096;

/// A reordered datagram comes after this long even if nothing overtakes it, nanoseconds.
pub const REORDER_NS_MAX: u64 = 100_000_000;

/// Buffers kept for reuse.
const SPARE_MAX: usize = 64;

/// A datagram of ours.
#[derive(Debug)]
pub(super) struct Kept {
    pub bytes: Vec<u8>,
    pub peer: SocketAddrV4,
}

/// When a datagram may go: at a time, or when its rule has taken so many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Due {
    pub ns: u64,
    pub matched: u64,
}

impl Due {
    /// Directly behind the datagram that is looked at.
    pub const NEXT: Self = Self { ns: 0, matched: u64::MAX };
}

/// The datagrams that one half keeps back, and buffers for more.
#[derive(Debug, Default)]
pub(super) struct Held {
    /// A queue for each rule: what one rule keeps comes out in the order it went in.
    queues: Vec<(RuleId, VecDeque<(Due, Kept)>)>,
    count: usize,
    spare: Vec<Vec<u8>>,
}

impl Held {
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Keeps a copy of a datagram back for `rule`.
    pub fn keep(
        &mut self,
        switch: &Switch,
        rule: RuleId,
        due: Due,
        (bytes, peer): (&[u8], SocketAddrV4),
    ) {
        if self.count == HELD_MAX {
            return switch.note_overflow(rule);
        }
        self.count += 1;
        switch.note_held(rule);
        let entry = (due, self.copy(bytes, peer));
        match self.queues.iter_mut().find(|(id, _)| *id == rule) {
            Some((_, queue)) => queue.push_back(entry),
            None => self.queues.push((rule, VecDeque::from([entry]))),
        }
    }

    /// A datagram that is due, and the rule that kept it.
    pub fn pop_due(&mut self, switch: &Switch, now_ns: u64) -> Option<(Kept, RuleId)> {
        if self.count == 0 {
            return None;
        }
        for index in 0..self.queues.len() {
            let (rule, queue) = &mut self.queues[index];
            let rule = *rule;
            let is_due = |due: &Due| due.ns <= now_ns || switch.has_taken(rule, due.matched);
            if queue.front().is_some_and(|(due, _)| is_due(due)) {
                let (_, kept) = queue.pop_front()?;
                if queue.is_empty() {
                    self.queues.swap_remove(index);
                }
                self.count -= 1;
                switch.note_released(rule);
                return Some((kept, rule));
            }
        }
        None
    }

    /// When the next datagram is due by time.
    pub fn next_ns(&self) -> Option<u64> {
        let fronts = self.queues.iter().filter_map(|(_, queue)| queue.front());
        fronts.map(|(due, _)| due.ns).min()
    }

    /// A copy in a buffer of ours.
    pub fn copy(&mut self, bytes: &[u8], peer: SocketAddrV4) -> Kept {
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.clear();
        buffer.extend_from_slice(bytes);
        Kept { bytes: buffer, peer }
    }

    /// Takes a buffer back.
    pub fn give_back(&mut self, kept: Kept) {
        if self.spare.len() < SPARE_MAX {
            self.spare.push(kept.bytes);
        }
    }
}
