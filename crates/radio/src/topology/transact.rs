//! Management transactions: one request, one reply, repeated when a packet is lost.

use std::net::SocketAddrV4;
use std::time::Duration;

use millstream_link::port::Port;
use millstream_wire::mgmt::{MgmtRepr, Op};
use millstream_wire::{Epid, Width, chdr};

use super::question::{Asker, AskerStep, Question, REQUEST_BYTES_MAX};
use crate::deadline::OpenDeadline;
use crate::error::io_error;
use crate::opening::silent;
use crate::{Clock, RadioError};

/// The time limit for the reply to one attempt.
pub const TRANSACTION_TIMEOUT: Duration = Duration::from_millis(100);

/// The attempts of a transaction that must succeed. A software radio on a busy machine was silent
/// for half a second.
pub(super) const TRIES: u32 = 10;

/// The attempts of a question for which silence is a valid answer.
const TRIES_PROBE: u32 = 3;

/// Management transactions from one port of this host.
///
/// Every request here may be repeated without harm, so a lost packet costs one time-out.
pub struct Management<'a> {
    port: &'a mut Port,
    device: SocketAddrV4,
    width: Width,
    epid: Epid,
    asker: Asker,
    /// No request is sent after this.
    deadline: Option<OpenDeadline>,
    clock: Clock,
}

impl<'a> Management<'a> {
    /// Returns transactions from `port`, whose endpoint is `epid`, with the device's CHDR port.
    pub fn new(port: &'a mut Port, device: SocketAddrV4, width: Width, epid: Epid) -> Self {
        let (asker, clock) = (Asker::new(epid, width), Clock::MACHINE);
        Self { port, device, width, epid, asker, deadline: None, clock }
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

    /// Returns the error for a device that cannot be used, with the reason.
    pub(crate) fn unusable(&self, reason: impl Into<String>) -> RadioError {
        RadioError::Unusable { address: *self.device.ip(), reason: reason.into() }
    }

    /// Sends `hops` and a closing hop for the answers, and returns the answers.
    ///
    /// # Errors
    /// [`RadioError::Silent`] after the last attempt.
    pub fn transact(&mut self, what: &'static str, hops: &[&[Op]]) -> Result<Vec<Op>, RadioError> {
        self.ask(Question::new(what, hops))
    }

    /// Asks a question that must be answered.
    pub(super) fn ask(&mut self, question: Question) -> Result<Vec<Op>, RadioError> {
        let what = question.what();
        self.asker.ask(question);
        self.answers()?.ok_or_else(|| silent(self.device, what, TRIES, TRANSACTION_TIMEOUT))
    }

    /// Does the same where silence means that no device is there.
    ///
    /// # Errors
    /// [`RadioError::Io`].
    pub fn probe(&mut self, hops: &[&[Op]]) -> Result<Option<Vec<Op>>, RadioError> {
        self.asker.ask(Question::new("a probe", hops).with_tries(TRIES_PROBE));
        self.answers()
    }

    /// Returns the answers to the question, or `None` after its last attempt.
    fn answers(&mut self) -> Result<Option<Vec<Op>>, RadioError> {
        let mut bytes = [0; REQUEST_BYTES_MAX];
        // The time of the last look at the port: nothing is late before that.
        let mut now = self.clock.now();
        loop {
            match self.asker.step(now, &mut bytes) {
                AskerStep::Send(length) => {
                    self.deadline.map_or(Ok(()), |deadline| deadline.check(*self.device.ip()))?;
                    let sent = self.port.tx.send(&bytes[..length], self.device);
                    sent.map_err(io_error("send to", self.device))?;
                }
                AskerStep::Wait(until) => {
                    let count = self.receive(self.clock.left(until))?;
                    now = self.clock.now();
                    if count == 0 {
                        now = now.max(until);
                    }
                }
                AskerStep::Silent { .. } => return Ok(None),
                AskerStep::Answered(answers) => return Ok(Some(answers)),
            }
        }
    }

    /// Waits for packets, and passes over those that are no replies. Returns the number of
    /// datagrams.
    fn receive(&mut self, wait: Duration) -> Result<usize, RadioError> {
        let received = self.port.rx.recv_batch(wait);
        let count = received.map_err(io_error("receive from", self.device))?;
        for index in 0..count {
            let datagram = self.port.rx.datagram(index);
            if datagram.source != self.device {
                continue;
            }
            let Ok(packet) = chdr::Packet::parse(datagram.payload, self.width) else { continue };
            let Ok(reply) = MgmtRepr::parse(&packet) else { continue };
            if packet.header().dst_epid == self.epid {
                self.asker.take(&reply);
            }
        }
        Ok(count)
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
