//! Copies of a port's received or sent datagrams, in buffers that are reused.

use std::net::SocketAddrV4;

use super::held::{DelayQueue, HELD_MAX, ReleaseTime};
use super::switch::{FaultSwitch, RuleId};

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
