//! Delayed datagrams and frames: bounded queues, released by time or by what overtook them; copies
//! of a port's datagrams, in buffers that are reused.

use std::collections::VecDeque;
use std::net::SocketAddrV4;

use super::switch::{FaultSwitch, RuleId};

/// The most datagrams or frames that one half delays; one more is lost, and counted.
pub const HELD_MAX: usize = 4096;

/// The longest delay of a reordered datagram that nothing overtakes, nanoseconds.
pub const REORDER_NS_MAX: u64 = 100_000_000;

/// The release condition of a datagram: a time, or a number of datagrams that its rule has taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ReleaseTime {
    pub ns: u64,
    pub matched: u64,
}

impl ReleaseTime {
    /// Release directly behind the current datagram.
    pub const NEXT: Self = Self { ns: 0, matched: u64::MAX };
}

/// The delayed items of one half: datagrams of a port, or frames of a link.
#[derive(Debug)]
pub(super) struct DelayQueue<T> {
    /// A queue for each rule: the items of one rule are released in order.
    queues: Vec<(RuleId, VecDeque<(ReleaseTime, T)>)>,
    count: usize,
    most: usize,
}

impl<T> DelayQueue<T> {
    /// Creates queues with room for `most` items, or [`HELD_MAX`] if that is less.
    pub fn new(most: usize) -> Self {
        Self { queues: Vec::new(), count: 0, most: most.min(HELD_MAX) }
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Delays `item` for `rule`.
    ///
    /// # Errors
    /// The item, where there is no room: it is lost, and counted by the rule.
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

    /// Returns an item that is due, and the rule that delayed it.
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

    /// Returns when the next item is due by time.
    pub fn next_ns(&self) -> Option<u64> {
        let fronts = self.queues.iter().filter_map(|(_, queue)| queue.front());
        fronts.map(|(due, _)| due.ns).min()
    }
}

/// The most buffers kept for reuse.
const SPARE_MAX: usize = 64;

/// A copy of a datagram.
#[derive(Debug)]
pub(super) struct DelayedDatagram {
    pub bytes: Vec<u8>,
    pub peer: SocketAddrV4,
}

/// The delayed datagrams of one half of a port, and buffers for more.
#[derive(Debug)]
pub(super) struct Datagrams {
    pub held: DelayQueue<DelayedDatagram>,
    spare: Vec<Vec<u8>>,
}

impl Default for Datagrams {
    fn default() -> Self {
        Self { held: DelayQueue::new(HELD_MAX), spare: Vec::new() }
    }
}

impl Datagrams {
    /// Delays a copy of a datagram for `rule`.
    pub fn keep(
        &mut self,
        switch: &FaultSwitch,
        rule: RuleId,
        due: ReleaseTime,
        (bytes, peer): (&[u8], SocketAddrV4),
    ) {
        let copy = self.copy(bytes, peer);
        if let Err(kept) = self.held.keep(switch, rule, due, copy) {
            self.give_back(kept);
        }
    }

    /// Copies a datagram to a buffer.
    pub fn copy(&mut self, bytes: &[u8], peer: SocketAddrV4) -> DelayedDatagram {
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.clear();
        buffer.extend_from_slice(bytes);
        DelayedDatagram { bytes: buffer, peer }
    }

    /// Takes a buffer back.
    pub fn give_back(&mut self, kept: DelayedDatagram) {
        if self.spare.len() < SPARE_MAX {
            self.spare.push(kept.bytes);
        }
    }
}
