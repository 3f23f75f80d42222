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

    /// Sends packets of `packet_bytes` that lie back to back; the last may be shorter.
    pub fn send_train(&mut self, train: &[u8], packet_bytes: usize, to: SocketAddrV4) {
        if self.tx.send_train(train, packet_bytes, to).is_err() {
            self.counters.send_errors.inc();
        }
    }
}
