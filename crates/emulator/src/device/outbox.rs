//! What leaves by the CHDR port.

use crate::counters::Counters;
use millstream_link::port::PortTx;
use std::net::SocketAddrV4;
use std::sync::Arc;
use std::time::Duration;

/// Larger than any packet but data packets, bytes.
const BUFFER_BYTES: usize = 1024;

/// The transmit half of the port. Failures are counted: to a host they look like packet loss,
/// which its protocol knows how to handle.
pub(crate) struct Outbox {
    tx: Box<dyn PortTx>,
    counters: Arc<Counters>,
    buffer: [u8; BUFFER_BYTES],
}

impl Outbox {
    pub fn new(tx: Box<dyn PortTx>, counters: Arc<Counters>) -> Self {
        Self { tx, counters, buffer: [0; BUFFER_BYTES] }
    }

    /// Where this radio counts.
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

    /// Sends what the port kept back and is due; the time until more is.
    pub fn release(&mut self) -> Option<Duration> {
        self.tx.release()
    }

    /// Begins a packet of so many bytes where it leaves from; false where that cannot be had, and
    /// it is lost.
    pub fn lend(&mut self, bytes: usize) -> bool {
        let lent = self.tx.lend(bytes).is_ok();
        self.counters.send_errors.add(u64::from(!lent));
        lent
    }

    /// Its room from byte `at` on, as far as it lies in one piece.
    pub fn lent(&mut self, at: usize) -> &mut [u8] {
        self.tx.lent(at)
    }

    /// The packet is complete, and leaves with [`Outbox::depart`] at the latest.
    pub fn commit(&mut self, bytes: usize, to: SocketAddrV4) {
        self.counters.send_errors.add(u64::from(self.tx.commit(bytes, to).is_err()));
    }

    /// What is complete leaves.
    pub fn depart(&mut self) {
        self.counters.send_errors.add(u64::from(self.tx.depart().is_err()));
    }
}
