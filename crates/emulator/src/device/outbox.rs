//! The packets sent by the CHDR port.

use crate::counters::Counters;
use millstream_link::port::PortTx;
use std::net::SocketAddrV4;
use std::sync::Arc;
use std::time::Duration;

/// Larger than any packet except data packets, bytes.
const BUFFER_BYTES: usize = 1024;

/// The transmit half of the port. Failures are counted: for a host they are packet loss, which its
/// protocol handles.
pub(crate) struct Outbox {
    tx: Box<dyn PortTx>,
    counters: Arc<Counters>,
    buffer: [u8; BUFFER_BYTES],
}

impl Outbox {
    pub fn new(tx: Box<dyn PortTx>, counters: Arc<Counters>) -> Self {
        Self { tx, counters, buffer: [0; BUFFER_BYTES] }
    }

    /// Returns the counters of this radio.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Sends the packet that `emit` writes.
    pub fn send(
        &mut self,
        to: SocketAddrV4,
        emit: impl FnOnce(&mut [u8]) -> millstream_wire::Result<usize>,
    ) {
        let sent = match emit(&mut self.buffer) {
            Ok(length) => self.tx.send(&self.buffer[..length], to).is_ok(),
            Err(_) => false,
        };
        self.counters.send_errors.add(u64::from(!sent));
    }

    /// Sends delayed packets that are due; returns the time until the next.
    pub fn release(&mut self) -> Option<Duration> {
        self.tx.release()
    }

    /// Begins a packet of `bytes` bytes in the send buffer; returns false when the buffer is not
    /// available, and the packet is lost.
    pub fn lend(&mut self, bytes: usize) -> bool {
        let lent = self.tx.lend(bytes).is_ok();
        self.counters.send_errors.add(u64::from(!lent));
        lent
    }

    /// Returns its contiguous space from byte `at` on.
    pub fn lent(&mut self, at: usize) -> &mut [u8] {
        self.tx.lent(at)
    }

    /// Completes the packet, which is sent by [`Outbox::depart`] at the latest.
    pub fn commit(&mut self, bytes: usize, to: SocketAddrV4) {
        self.counters.send_errors.add(u64::from(self.tx.commit(bytes, to).is_err()));
    }

    /// Sends the complete packets.
    pub fn depart(&mut self) {
        self.counters.send_errors.add(u64::from(self.tx.depart().is_err()));
    }
}
