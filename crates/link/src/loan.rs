//! The memory in which ports with GSO lend datagrams: they are written where they are sent from.

use std::net::SocketAddrV4;

/// Complete datagrams back to back, followed by the one that is being written.
///
/// An incomplete datagram stays in place while those before it leave.
#[derive(Debug, Default)]
pub struct FrameLoan {
    buffer: Vec<u8>,
    /// The start of the first datagram that has not left, and the end of the complete ones.
    first: usize,
    end: usize,
    /// Bytes lent behind the complete datagrams.
    lent: usize,
    count: usize,
    segment_bytes: usize,
    to: Option<SocketAddrV4>,
}

impl FrameLoan {
    /// The largest train, bytes: one UDP payload over IPv4, which is what the kernel segments
    /// at a time.
    pub const BYTES_MAX: usize = 65_507;

    /// The most datagrams in a train: what every kernel with `UDP_SEGMENT` takes.
    pub const DATAGRAMS_MAX: usize = 64;

    /// Whether there is no complete datagram.
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether there is room for a datagram of `bytes` bytes behind the complete ones.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        self.is_empty() || self.end + bytes <= Self::BYTES_MAX && self.count < Self::DATAGRAMS_MAX
    }

    /// Begins a datagram of up to `bytes` bytes.
    pub(crate) fn begin(&mut self, bytes: usize) {
        if self.is_empty() {
            (self.first, self.end) = (0, 0);
        }
        let wanted = self.end + bytes;
        if self.buffer.len() < wanted {
            self.buffer.resize(wanted.max(Self::BYTES_MAX), 0);
        }
        self.lent = bytes;
    }

    /// The lent bytes from byte `at` on.
    pub fn lent(&mut self, at: usize) -> &mut [u8] {
        &mut self.buffer[self.end..self.end + self.lent][at..]
    }

    /// Whether a datagram can join the train of the complete ones.
    pub(crate) fn joins(&self, bytes: usize, to: SocketAddrV4) -> bool {
        self.is_empty() || self.to == Some(to) && bytes <= self.segment_bytes
    }

    /// Completes the lent datagram. Returns whether no other can follow it in the batch.
    ///
    /// # Panics
    /// If it is longer than what was lent.
    pub(crate) fn complete(&mut self, bytes: usize, to: SocketAddrV4) -> bool {
        assert!(bytes <= self.lent, "{bytes} bytes where {} were lent", self.lent);
        if self.is_empty() {
            (self.first, self.segment_bytes, self.to) = (self.end, bytes, Some(to));
        }
        (self.end, self.lent) = (self.end + bytes, 0);
        self.count += 1;
        bytes < self.segment_bytes
    }

    /// Returns the complete datagrams, their length and destination.
    pub(crate) fn train(&self) -> Option<(&[u8], usize, SocketAddrV4)> {
        let to = self.to.filter(|_| !self.is_empty())?;
        Some((&self.buffer[self.first..self.end], self.segment_bytes, to))
    }

    /// Removes the complete datagrams, which have left.
    pub(crate) fn clear(&mut self) {
        (self.first, self.count) = (self.end, 0);
    }
}
