//! Management transactions: one request, one reply, repeated when a packet is lost.

use std::net::SocketAddrV4;
use std::time::{Duration, Instant};

use millstream_link::port::Port;
use millstream_wire::mgmt::{MgmtRepr, Op};
use millstream_wire::stream::{CommandOp, CommandRepr};
use millstream_wire::{Epid, Width, chdr};

use crate::deadline::OpenDeadline;
use crate::error::io_error;
use crate::{Clock, RadioError};

/// The time limit for the reply to one attempt.
pub const TRANSACTION_TIMEOUT: Duration = Duration::from_millis(100);

/// The attempts of a transaction that must succeed. A software radio on a busy machine was silent
/// for half a second.
const TRIES: u32 = 10;

/// The attempts of a question for which silence is a valid answer.
const TRIES_PROBE: u32 = 3;

/// The longest request, bytes: a dozen items at the largest width.
const REQUEST_BYTES: usize = 4096;

/// Management transactions from one port of this host.
///
/// Every request here may be repeated without harm, so a lost packet costs one time-out.
pub struct Management<'a> {
    port: &'a mut Port,
    device: SocketAddrV4,
    width: Width,
    epid: Epid,
    seq: u16,
    /// A stream command that came during another wait.
    command: Option<CommandRepr>,
    passed_over: SkippedPackets,
    /// No request is sent after this.
    deadline: Option<OpenDeadline>,
    clock: Clock,
}

/// The latest data packets that are searched for a second copy.
const REMEMBERED: usize = 64;

/// Packets of a stream that came during another wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SkippedPackets {
    /// The number of packets.
    pub packets: u64,
    /// Their length in flow control, bytes.
    pub flow_bytes: u64,
    /// Samples in them, without second copies.
    pub samples: u64,
    /// Number and time of the newest packets, and their count.
    recent: [Option<(u16, Option<u64>)>; REMEMBERED],
    data: usize,
}

impl Default for SkippedPackets {
    fn default() -> Self {
        let recent = [None; REMEMBERED];
        Self { packets: 0, flow_bytes: 0, samples: 0, recent, data: 0 }
    }
}

impl SkippedPackets {
    fn note(&mut self, packet: &chdr::Packet<'_>) {
        self.packets += 1;
        self.flow_bytes += packet.flow_len() as u64;
        if let Ok(data) = chdr::DataRepr::parse(packet) {
            let identity = Some((data.seq, data.timestamp));
            if !self.recent.contains(&identity) {
                self.recent[self.data % REMEMBERED] = identity;
                self.data += 1;
                self.samples += (data.payload_len / chdr::SC16_LEN) as u64;
            }
        }
    }
}

impl<'a> Management<'a> {
    /// Returns transactions from `port`, whose endpoint is `epid`, with the device's CHDR port.
    pub fn new(port: &'a mut Port, device: SocketAddrV4, width: Width, epid: Epid) -> Self {
        let passed_over = SkippedPackets::default();
        Self {
            port,
            device,
            width,
            epid,
            seq: 0,
            command: None,
            passed_over,
            deadline: None,
            clock: Clock::MACHINE,
        }
    }

    /// Sets a deadline after which no request is sent.
    #[must_use]
    pub fn until(self, deadline: OpenDeadline) -> Self {
        Self { deadline: Some(deadline), ..self }
    }

    /// Measures time-outs by `clock`.
    #[must_use]
    pub fn on(self, clock: Clock) -> Self {
        Self { clock, ..self }
    }

    /// Returns this host's endpoint.
    pub fn epid(&self) -> Epid {
        self.epid
    }

    /// Returns the newest stream command for this port, waiting for one until the deadline.
    ///
    /// # Errors
    /// [`RadioError::Io`].
    pub fn stream_command(&mut self, until: Instant) -> Result<Option<CommandRepr>, RadioError> {
        if self.command.is_none() {
            self.receive(until, |_| None::<()>, true)?;
        }
        Ok(self.command.take())
    }

    /// Returns the skipped packets of a stream to this port since the last call.
    pub fn take_passed_over(&mut self) -> SkippedPackets {
        std::mem::take(&mut self.passed_over)
    }

    /// Sends a packet that has no reply.
    pub(crate) fn send_raw(&mut self, packet: &[u8]) -> std::io::Result<()> {
        self.port.tx.send(packet, self.device)
    }

    /// Returns the error for a device that cannot be used, with the reason.
    pub(crate) fn unusable(&self, reason: impl Into<String>) -> RadioError {
        RadioError::Unusable { address: *self.device.ip(), reason: reason.into() }
    }

    /// Sends `hops` and a closing hop for the answers, and returns the answers.
    ///
    /// # Errors
    /// [`RadioError::Silent`] after the last attempt.
    pub fn transact(&mut self, what: &'static str, hops: &[&[Op]]) -> Result<Vec<Op>, RadioError> {
        self.tries(hops, TRIES)?.ok_or(RadioError::Silent {
            address: self.device,
            what,
            attempts: TRIES,
            wait_ms: TRANSACTION_TIMEOUT.as_millis() as u64,
        })
    }

    /// Does the same where silence means that no device is there.
    ///
    /// # Errors
    /// [`RadioError::Io`].
    pub fn probe(&mut self, hops: &[&[Op]]) -> Result<Option<Vec<Op>>, RadioError> {
        self.tries(hops, TRIES_PROBE)
    }

    fn tries(&mut self, hops: &[&[Op]], tries: u32) -> Result<Option<Vec<Op>>, RadioError> {
        let first_seq = self.seq;
        for _ in 0..tries {
            self.deadline.map_or(Ok(()), |deadline| deadline.check(*self.device.ip()))?;
            self.send(hops)?;
            let until = self.clock.now() + TRANSACTION_TIMEOUT;
            if let Some(answers) = self.reply(first_seq, until)? {
                return Ok(Some(answers));
            }
        }
        Ok(None)
    }

    fn send(&mut self, hops: &[&[Op]]) -> Result<(), RadioError> {
        let mut repr = MgmtRepr::request(self.epid, self.seq);
        self.seq = self.seq.wrapping_add(1);
        let mut bytes = [0; REQUEST_BYTES];
        let closing: &[Op] = &[Op::Nop];
        let length = hops
            .iter()
            .chain([&closing])
            .try_for_each(|hop| repr.push_hop(hop))
            .and_then(|()| repr.emit(self.width, &mut bytes))
            .expect("requests are a handful of known operations");
        let sent = self.port.tx.send(&bytes[..length], self.device);
        sent.map_err(io_error("send to", self.device))
    }

    /// Returns the answers to any request sent since `first_seq`, or `None` at the deadline.
    fn reply(&mut self, first_seq: u16, until: Instant) -> Result<Option<Vec<Op>>, RadioError> {
        let sent = self.seq.wrapping_sub(first_seq);
        let answers = |reply: &MgmtRepr| {
            let answers = reply.hops().next().unwrap_or(&[]);
            (reply.seq.wrapping_sub(first_seq) < sent)
                .then(|| answers.iter().copied().filter(Op::is_response).collect())
        };
        self.receive(until, answers, false)
    }

    /// Receives until `wanted` accepts a reply, or an awaited stream command comes, or the deadline
    /// passes. Other packets are skipped.
    fn receive<T>(
        &mut self,
        until: Instant,
        wanted: impl Fn(&MgmtRepr) -> Option<T>,
        stop_at_command: bool,
    ) -> Result<Option<T>, RadioError> {
        loop {
            let left = self.clock.left(until);
            let received = self.port.rx.recv_batch(left);
            let count = received.map_err(io_error("receive from", self.device))?;
            if count == 0 {
                return Ok(None);
            }
            let mut found = None;
            for index in 0..count {
                let datagram = self.port.rx.datagram(index);
                if datagram.source != self.device {
                    continue;
                }
                let Ok(packet) = chdr::Packet::parse(datagram.payload, self.width) else {
                    continue;
                };
                if packet.header().dst_epid != self.epid {
                    continue;
                }
                if let Ok(reply) = MgmtRepr::parse(&packet) {
                    found = found.or(wanted(&reply));
                    continue;
                }
                let command = CommandRepr::parse(&packet).ok();
                // An INIT precedes all counting.
                if command.is_none_or(|command| command.op != CommandOp::Init) {
                    self.passed_over.note(&packet);
                }
                self.command = command.or(self.command);
            }
            let command = stop_at_command && self.command.is_some();
            // The deadline is checked here too, because a flood of other packets must not delay the
            // return.
            if found.is_some() || command || self.clock.now() >= until {
                return Ok(found);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{FakeSocket, fake_pair};

    /// Answers every request after swallowing the first `lose`.
    fn answer(device: &mut FakeSocket, lose: usize, requests: usize) {
        for turn in 0..requests {
            let (bytes, from) = device.receive();
            let packet = chdr::Packet::parse(&bytes, Width::W64).unwrap();
            let mut request = MgmtRepr::parse(&packet).unwrap();
            request
                .execute(|op| match op {
                    Op::CfgRead { address } => Some(Op::CfgReadResp { address, value: 7 }),
                    _ => None,
                })
                .unwrap();
            let mut reply = [0; 256];
            let length = request.emit(Width::W64, &mut reply).unwrap();
            if turn >= lose {
                device.send(b"not chdr at all", from);
                device.send(&reply[..length], from);
            }
        }
    }

    fn transact(lose: usize, requests: usize) -> Result<Vec<Op>, RadioError> {
        let (mut port, mut device) = fake_pair();
        let address = device.address();
        let thread = std::thread::spawn(move || answer(&mut device, lose, requests));
        let mut management = Management::new(&mut port, address, Width::W64, Epid(1));
        let result =
            management.transact("a question", &[&[Op::CfgRead { address: 8 }, Op::Return]]);
        thread.join().unwrap();
        result
    }

    #[test]
    fn answers_come_back_and_noise_is_passed_over() {
        let want = vec![Op::CfgReadResp { address: 8, value: 7 }];
        assert_eq!(transact(0, 1).unwrap(), want);
    }

    #[test]
    fn a_lost_packet_is_sent_again() {
        assert_eq!(transact(4, 5).unwrap().len(), 1);
    }

    #[test]
    fn silence_ends_with_the_address_and_the_question() {
        let text = transact(10, 10).unwrap_err().to_string();
        assert!(text.contains("did not answer a question (10 attempts of 100 ms)"), "{text}");
    }
}
