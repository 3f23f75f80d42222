//! The packets sent by the CHDR port.

use super::fabric::HostAddress;
use super::out_stream::OutStream;
use crate::antenna::Sc16;
use crate::counters::Counters;
use millstream_dsp::chunks::Chunks;
use millstream_link::port::PortTx;
use millstream_wire::Epid;
use millstream_wire::chdr::{DataRepr, Packet, SC16_LEN, Width};
use std::sync::Arc;
use std::time::Duration;

/// Larger than any packet except data packets, bytes.
const BUFFER_BYTES: usize = 1024;

/// The place of the length in a packet's header.
const LENGTH_AT: usize = 2;

/// The transmit halves of the ports, one for each link. Failures are counted: for a host they are
/// packet loss, which its protocol handles.
pub(crate) struct Outbox {
    links: Vec<Box<dyn PortTx>>,
    width: Width,
    counters: Arc<Counters>,
    buffer: [u8; BUFFER_BYTES],
}

impl Outbox {
    pub fn new(links: Vec<Box<dyn PortTx>>, width: Width, counters: Arc<Counters>) -> Self {
        Self { links, width, counters, buffer: [0; BUFFER_BYTES] }
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

    /// Sends the command that resynchronises a stream, if one is due; returns false without credit
    /// for it.
    pub fn keep_in_step(&mut self, out: &mut OutStream, src_epid: Epid, to: HostAddress) -> bool {
        if out.resync_due() {
            let Some(command) = out.resync(src_epid) else { return false };
            self.send(to, |width, buffer| command.emit(width, buffer));
        }
        true
    }

    /// Writes a packet of samples into the send buffer of a link, from which [`Outbox::depart`]
    /// sends it at the latest. `fill` writes samples, the first of which has the given place in the
    /// packet. A header that is to announce another number of bytes has `announced`. Returns false
    /// when the port has no space, and the packet is lost.
    pub fn write_data(
        &mut self,
        to: HostAddress,
        repr: &DataRepr,
        announced: Option<usize>,
        mut fill: impl FnMut(usize, &mut [Sc16]),
    ) -> bool {
        let header = if to.raw { 0 } else { repr.header_len(self.width) };
        let bytes = header + repr.payload_len;
        let link = &mut self.links[to.link];
        if link.lend(bytes).is_err() {
            self.counters.send_errors.inc();
            return false;
        }
        if !to.raw {
            let written = repr.emit(self.width, link.lent(0));
            written.expect("the packet was sized by this header");
            if let Some(announced) = announced {
                let length = (header + announced) as u16;
                link.lent(LENGTH_AT)[..2].copy_from_slice(&length.to_le_bytes());
            }
        }
        let mut at = header;
        while at < bytes {
            let piece = link.lent(at);
            let room = piece.len().min(bytes - at);
            fill((at - header) / SC16_LEN, piece[..room].in_chunks_mut().0);
            at += room;
        }
        let committed = link.commit(bytes, to.socket);
        self.counters.send_errors.add(u64::from(committed.is_err()));
        true
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
