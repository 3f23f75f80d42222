//! Opening a stream without a port or a clock, and the loop that does it with them.
//!
//! ```text
//! datagrams ─▶ ┌─────────┐ ─▶ packets to send
//! time ──────▶ │ Opening │ ─▶ how long to wait
//!              └─────────┘ ─▶ open, or the error
//! ```

use std::net::SocketAddrV4;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use millstream_link::port::Port;
use millstream_wire::chdr::Packet;
use millstream_wire::mgmt::Op;

use crate::RadioError;
use crate::error::io_error;
use crate::stream::StreamPath;
use crate::topology::{Asker, AskerStep, REQUEST_BYTES_MAX, TRANSACTION_TIMEOUT};

/// The most batches that are dropped at once: other programs may send to the port without end.
const DROPPED_BATCHES_MAX: u32 = 16;

/// What an opening needs next.
#[derive(Debug)]
pub(crate) enum OpeningStep<T> {
    /// Send the first bytes of the buffer to the device.
    Send(usize),
    /// Drop all datagrams that have come.
    Drop,
    /// Wait for datagrams, no longer than until then.
    Wait(Instant),
    /// The stream is open.
    Open(T),
}

/// A handshake.
pub(crate) trait Opening {
    /// What is known of the open stream.
    type Opened;

    /// Notes a packet of the device to the stream's endpoint.
    fn note_packet(&mut self, packet: &Packet<'_>);

    /// Notes a datagram of the device that is no packet.
    fn note_damaged(&mut self, _payload: &[u8]) {}

    /// Returns what is to be done at `now`.
    ///
    /// # Errors
    /// [`RadioError::Silent`], [`RadioError::Unusable`].
    fn step(
        &mut self,
        now: Instant,
        out: &mut [u8],
    ) -> Result<OpeningStep<Self::Opened>, RadioError>;

    /// Notes a datagram; those that are no packets of the device to `path` are passed over.
    fn note_datagram(&mut self, payload: &[u8], source: SocketAddrV4, path: &StreamPath) {
        if source != path.device {
            return;
        }
        match Packet::parse(payload, path.width) {
            Ok(packet) if packet.header().dst_epid == path.epid => self.note_packet(&packet),
            Ok(_) => {}
            Err(_) => self.note_damaged(payload),
        }
    }
}

/// Returns the error of a device that did not answer so many attempts.
pub(crate) fn silent(
    address: SocketAddrV4,
    what: &'static str,
    attempts: u32,
    wait: Duration,
) -> RadioError {
    let wait_ms = wait.as_millis() as u64;
    RadioError::Silent { address, what, attempts, wait_ms, claim_lost: None }
}

/// Returns the answers to the request of an opening, or its next step towards them.
///
/// # Errors
/// [`RadioError::Silent`].
pub(crate) fn answers<T>(
    asker: &mut Asker,
    path: &StreamPath,
    now: Instant,
    out: &mut [u8],
) -> Result<ControlFlow<OpeningStep<T>, Vec<Op>>, RadioError> {
    Ok(match asker.step(now, out) {
        AskerStep::Send(length) => ControlFlow::Break(OpeningStep::Send(length)),
        AskerStep::Wait(until) => ControlFlow::Break(OpeningStep::Wait(until)),
        AskerStep::Silent { what, attempts } => {
            return Err(silent(path.device, what, attempts, TRANSACTION_TIMEOUT));
        }
        AskerStep::Answered(answers) => ControlFlow::Continue(answers),
    })
}

/// Does what an opening asks for, on the port of its stream, until the stream is open.
pub(crate) fn run<O: Opening>(
    port: &mut Port,
    path: &StreamPath,
    opening: O,
) -> Result<O::Opened, RadioError> {
    let mut looked = path.clock.now();
    let mut opening = opening;
    loop {
        if let Some(opened) = advance(port, path, &mut opening, &mut looked, None)? {
            return Ok(opened);
        }
    }
}

/// Does the same until `until` at the most, or shortly; then it returns `None`, and can go on
/// later. `looked` is the time of the last look at the port: nothing is late before that.
pub(crate) fn advance<O: Opening>(
    port: &mut Port,
    path: &StreamPath,
    opening: &mut O,
    looked: &mut Instant,
    until: Option<Instant>,
) -> Result<Option<O::Opened>, RadioError> {
    let mut out = [0; REQUEST_BYTES_MAX];
    let receive = |port: &mut Port, wait| {
        port.rx.recv_batch(wait).map_err(io_error("receive from", path.device))
    };
    loop {
        match opening.step(*looked, &mut out)? {
            OpeningStep::Open(opened) => return Ok(Some(opened)),
            OpeningStep::Send(length) => {
                let sent = port.tx.send(&out[..length], path.device);
                sent.map_err(io_error("send to", path.device))?;
            }
            OpeningStep::Drop => {
                for _ in 0..DROPPED_BATCHES_MAX {
                    if receive(port, Duration::ZERO)? == 0 {
                        break;
                    }
                }
                *looked = path.clock.now();
            }
            OpeningStep::Wait(deadline) => {
                let most = until.map_or(deadline, |until| until.min(deadline));
                let count = receive(port, path.clock.left(most))?;
                for index in 0..count {
                    let datagram = port.rx.datagram(index);
                    opening.note_datagram(datagram.payload, datagram.source, path);
                }
                *looked = path.clock.now();
                if count == 0 && most == deadline {
                    *looked = (*looked).max(deadline);
                }
                if until.is_some_and(|until| until <= *looked) {
                    return Ok(None);
                }
            }
        }
    }
}

#[cfg(test)]
#[path = "opening_bench.rs"]
pub(crate) mod bench;
