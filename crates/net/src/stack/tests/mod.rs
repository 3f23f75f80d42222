//! Tests of the whole stack, on a wire that is a vector and a clock that is a number.

mod between;
mod claims;
mod echo;
mod inbound;
mod neighbours;
mod outbound;

use std::net::{Ipv4Addr, SocketAddrV4};

use millstream_wire::arp::{ArpRepr, Op};

use super::*;

/// Milliseconds in nanoseconds.
pub(super) const MS: u64 = 1_000_000;

pub(super) fn ip(text: &str) -> Ipv4Addr {
    text.parse().unwrap()
}

pub(super) fn at(text: &str) -> SocketAddrV4 {
    text.parse().unwrap()
}

/// Returns the configuration of station `last`: own address 10.0.0.`last`/24, in use at once.
pub(super) fn config(last: u8) -> StackConfig {
    let mut config = StackConfig::new([2, 0, 0, 0, 0, last], 1500);
    config.addresses.push(Subnet { address: Ipv4Addr::new(10, 0, 0, last), prefix: 24 });
    config.own_addresses = true;
    config.claim = AddressClaim::Announce;
    config.seed = u64::from(last);
    config
}

pub(super) fn stack(last: u8) -> Stack {
    Stack::new(config(last)).unwrap()
}

/// Returns a frame of station 7 for station 1, port 6000, which each test changes.
pub(super) fn datagram() -> Vec<u8> {
    let (mut sender, to) = (stack(7), at("10.0.0.1:6000"));
    sender.neighbours.heard(*to.ip(), Mac([2, 0, 0, 0, 0, 1]), ArpSource::Asked, 0);
    let mut frame = vec![0; 42];
    frame.extend(b"payload");
    sender.emit(at("10.0.0.7:5000"), to, &mut frame, &[], 0).unwrap();
    frame
}

/// Corrects the checksum of the IP header.
pub(super) fn reseal(frame: &mut [u8]) {
    frame[24..26].fill(0);
    let end = 14 + usize::from(frame[14] & 0xF) * 4;
    let checksum = millstream_wire::checksum::Sum::new().bytes(&frame[14..end]).checksum();
    frame[24..26].copy_from_slice(&checksum.to_be_bytes());
}

/// Returns a frame with an ARP packet from station `sender`.
pub(super) fn arp(op: Op, sender: u8, says: &str, target: &str) -> Vec<u8> {
    let mac = Mac([2, 0, 0, 0, 0, sender]);
    let target_mac = Mac::default();
    let repr = ArpRepr { op, sender_mac: mac, sender: ip(says), target_mac, target: ip(target) };
    let mut stack = stack(sender);
    written(&mut stack, &DueFrame::arp(Mac::BROADCAST, repr), &[])
}

/// Parses an ARP frame.
pub(super) fn arp_of(frame: &[u8]) -> (Mac, ArpRepr) {
    (Mac(frame[..6].try_into().unwrap()), ArpRepr::parse(&frame[14..]).unwrap())
}

/// Returns every frame that is due, written.
pub(super) fn due(stack: &mut Stack, now_ns: u64) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    while let Some(due) = stack.poll(now_ns) {
        if let DueAction::Write(message) = due {
            frames.push(written(stack, &message, &[]));
        }
    }
    frames
}

pub(super) fn written(stack: &mut Stack, message: &DueFrame, request: &[&[u8]]) -> Vec<u8> {
    let mut frame = vec![0xAA; stack.config().mtu + 18];
    let len = stack.write(message, request, &mut frame);
    frame.truncate(len);
    frame
}

/// Passes a frame with unverified checksums to a stack.
pub(super) fn receive(stack: &mut Stack, frame: &[u8], now_ns: u64) -> Inbound {
    stack.receive(ReceivedFrame { parts: &[frame], vlan: None, checksum_trusted: false }, now_ns)
}

/// Returns the answer of a stack to a frame, if it has one.
pub(super) fn answer(stack: &mut Stack, frame: &[u8], now_ns: u64) -> Option<Vec<u8>> {
    match receive(stack, frame, now_ns) {
        Inbound::Answer(message) => Some(written(stack, &message, &[frame])),
        _ => None,
    }
}

/// Stations on one wire.
pub(super) struct Wire {
    pub(super) stacks: Vec<Stack>,
    pub(super) now_ns: u64,
}

impl Wire {
    pub(super) fn new(stacks: Vec<Stack>) -> Wire {
        Wire { stacks, now_ns: 1_000_000 * MS }
    }

    /// Lets frames pass for a time; returns all frames that crossed the wire.
    pub(super) fn run(&mut self, for_ns: u64) -> Vec<Vec<u8>> {
        let end_ns = self.now_ns + for_ns;
        let mut seen = Vec::new();
        loop {
            for sender in 0..self.stacks.len() {
                for frame in due(&mut self.stacks[sender], self.now_ns) {
                    self.send(sender, frame, &mut seen);
                }
            }
            let next_ns = self.stacks.iter().map(Stack::due_ns).min().unwrap();
            if next_ns > end_ns {
                self.now_ns = end_ns;
                return seen;
            }
            assert!(next_ns > self.now_ns, "everything that was due is done");
            self.now_ns = next_ns;
        }
    }

    fn send(&mut self, sender: usize, frame: Vec<u8>, seen: &mut Vec<Vec<u8>>) {
        for receiver in (0..self.stacks.len()).filter(|other| *other != sender) {
            if let Some(reply) = answer(&mut self.stacks[receiver], &frame, self.now_ns) {
                self.send(receiver, reply, seen);
            }
        }
        seen.push(frame);
    }

    /// Emits a datagram of station `from`.
    pub(super) fn emit(
        &mut self,
        from: usize,
        ports: (&str, &str),
        payload: &[u8],
    ) -> Result<Vec<u8>, EmitError> {
        let stack = &mut self.stacks[from];
        let mut frame = vec![0; stack.header_len()];
        frame.extend(payload);
        stack.emit(at(ports.0), at(ports.1), &mut frame, &[], self.now_ns).map(|()| frame)
    }
}
