//! The packets sent by the CHDR port.

use super::fabric::HostAddress;
use crate::counters::Counters;
use millstream_link::port::PortTx;
use millstream_wire::chdr::{Packet, Width};
use std::sync::Arc;
use std::time::Duration;

/// Larger than any packet except data packets, bytes.
const BUFFER_BYTES: usize = 1024;

/// The transmit halves of the ports, one for each link. Failures are counted: for a host they are
/// packet loss, which its protocol handles.
pub(crate) struct Outbox {
    links: Vec<Box<dyn PortTx>>,
    /// The link of the packet that is being written.
    link: usize,
    width: Width,
    counters: Arc<Counters>,
    buffer: [u8; BUFFER_BYTES],
}

impl Outbox {
    pub fn new(links: Vec<Box<dyn PortTx>>, width: Width, counters: Arc<Counters>) -> Self {
        Self { links, link: 0, width, counters, buffer: [0; BUFFER_BYTES] }
    }

    /// Returns the counters of this radio.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Sends the packet that `emit` writes, at the CHDR width of the device.
    pub fn send(
        &mut self,
        to: HostAddress,
        emit: impl FnOnce(Width, &mut [u8]) -> millstream_wire::Result<usize>,
    ) {
        let sent = match emit(self.width, &mut self.buffer) {
            Ok(length) => {
                let packet = &self.buffer[..length];
                let packet = if to.raw { payload_of(packet, self.width) } else { packet };
                self.links[to.link].send(packet, to.socket).is_ok()
            }
            Err(_) => false,
        };
        self.counters.send_errors.add(u64::from(!sent));
    }

    /// Sends delayed packets that are due; returns the time until the next.
    pub fn release(&mut self) -> Option<Duration> {
        self.links.iter_mut().filter_map(|link| link.release()).min()
    }

    /// Begins a packet of `bytes` bytes in the send buffer of a link; returns false when the buffer
    /// is not available, and the packet is lost.
    pub fn lend(&mut self, link: usize, bytes: usize) -> bool {
        self.link = link;
        let lent = self.links[link].lend(bytes).is_ok();
        self.counters.send_errors.add(u64::from(!lent));
        lent
    }

    /// Returns its contiguous space from byte `at` on.
    pub fn lent(&mut self, at: usize) -> &mut [u8] {
        self.links[self.link].lent(at)
    }

    /// Completes the packet, which is sent by [`Outbox::depart`] at the latest.
    pub fn commit(&mut self, bytes: usize, to: HostAddress) {
        let committed = self.links[to.link].commit(bytes, to.socket);
        self.counters.send_errors.add(u64::from(committed.is_err()));
    }

    /// Sends the complete packets of a link.
    pub fn depart(&mut self, link: usize) {
        self.counters.send_errors.add(u64::from(self.links[link].depart().is_err()));
    }
}

/// Returns what a transport leaves of a packet whose header it removes.
fn payload_of(packet: &[u8], width: Width) -> &[u8] {
    Packet::parse(packet, width).map_or(packet, |parsed| parsed.payload())
}

#[cfg(test)]
#[path = "remote_tests.rs"]
mod tests;
