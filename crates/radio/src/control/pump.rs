//! The packets on the control port: acknowledgements and asynchronous messages.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use millstream_link::port::{Datagram, PortRx};
use millstream_wire::chdr;
use millstream_wire::ctrl::{ControlStatus, CtrlRepr, DataWords, Op, Protocol};
use millstream_wire::regs::radio::async_msg::Event;

use super::client::{ControlState, lock};
use super::sequence::{Sequence, SequencePosition};

/// The longest time until the thread notices that it should end.
const END_LOOK: Duration = Duration::from_millis(50);

/// The messages of each block whose channels are watched, by its port.
type Sequences = Vec<(u16, Sequence)>;

/// The receiving half of a [`Control`](super::Control): takes datagrams and never waits.
pub struct ControlReceiver {
    shared: Arc<ControlState>,
    sequences: Sequences,
}

impl ControlReceiver {
    pub(super) fn new(shared: Arc<ControlState>) -> Self {
        Self { shared, sequences: Sequences::new() }
    }

    /// Handles a datagram from the control port.
    pub fn hear(&mut self, datagram: &Datagram<'_>) {
        let shared = &self.shared;
        if datagram.source != shared.device {
            shared.counters.foreign.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let packet = chdr::Packet::parse(datagram.payload, shared.width);
        match packet.and_then(|packet| shared.protocol.parse(&packet)) {
            Ok(repr) if repr.dst_epid != shared.epid => count_malformed(shared),
            Ok(repr) if repr.is_ack => acknowledge(shared, repr),
            Ok(repr) => message(shared, &mut self.sequences, &repr),
            Err(_) => count_malformed(shared),
        }
    }

    /// Receives until the client is dropped.
    pub(super) fn run(mut self, mut rx: Box<dyn PortRx>) {
        while !self.shared.stop.load(Ordering::Relaxed) {
            // When the port fails, accesses get no answers, and report that.
            let Ok(count) = rx.recv_batch(END_LOOK) else { return };
            (0..count).for_each(|index| self.hear(&rx.datagram(index)));
        }
    }
}

fn count_malformed(shared: &ControlState) {
    shared.counters.malformed.fetch_add(1, Ordering::Relaxed);
}

/// Hands an acknowledgement to the access that waits for it.
fn acknowledge(shared: &ControlState, repr: CtrlRepr) {
    if lock(&shared.outstanding).acknowledge(&repr) {
        shared.answered.notify_all();
    } else {
        shared.counters.stray_acks.fetch_add(1, Ordering::Relaxed);
    }
}

/// Records an asynchronous message, and acknowledges it: each message once.
///
/// A block waits for the acknowledgement of its message for ever. Until then it sends no other one,
/// and its receive channels execute nothing; it never repeats the message. An acknowledgement that
/// it does not wait for is as bad: it stays in the block, whose registers then answer nothing until
/// the block is reset. So a copy that the network made gets none, and neither does a message from
/// before the reset that opens a device: no channel of the block is watched then. What an
/// acknowledgement that is lost has stopped ends by the time limits of the streams.
fn message(shared: &ControlState, sequences: &mut Sequences, repr: &CtrlRepr) {
    let channels = lock(&shared.channels);
    let watched = channels.iter().filter(|(port, _, _)| *port == repr.dst_port);
    let block = || watched.clone().map(|(_, channel, events)| (*channel, &**events));
    let counters = &shared.counters;
    if block().next().is_none() {
        counters.unknown_messages.fetch_add(1, Ordering::Relaxed);
        return;
    }
    let modulus = shared.protocol.sequence_modulus();
    match sequence_of(sequences, repr.dst_port).take(repr, modulus) {
        SequencePosition::Repeated => {
            counters.repeated_messages.fetch_add(1, Ordering::Relaxed);
            return;
        }
        SequencePosition::New { missed: 0 } => {}
        SequencePosition::New { missed } => {
            counters.missed_messages.fetch_add(missed.into(), Ordering::Relaxed);
            // The channels of missed messages are unknown.
            block().for_each(|(_, events)| events.miss(missed.into()));
        }
        SequencePosition::Overtaken => {
            // A device may restart with any number, so the count stops at 0.
            let less = |missed: u64| missed.checked_sub(1);
            let missed = &counters.missed_messages;
            let _ = missed.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
            block().for_each(|(_, events)| events.found());
        }
    }
    let known = (repr.op == Op::Write)
        .then(|| Event::from_message(repr.address, repr.data.first()))
        .flatten();
    let mut heard = false;
    if let Some((event, channel)) = known {
        for (_, events) in block().filter(|(of, _)| *of == channel) {
            events.note(event, repr.timestamp.unwrap_or(0));
            heard = true;
        }
    }
    if !heard {
        counters.unknown_messages.fetch_add(1, Ordering::Relaxed);
    }
    drop(channels);
    let status = if known.is_some() { ControlStatus::Ok } else { ControlStatus::CommandError };
    let data = match shared.protocol {
        Protocol::V1 => repr.data,
        Protocol::V2 => DataWords::NONE,
    };
    // Where it cannot be sent, the port has failed, and the next access says so.
    let _ = shared.send(repr.ack(0, status, data));
}

/// Returns the sequence of a block; there are no more than watched blocks.
fn sequence_of(sequences: &mut Sequences, port: u16) -> &mut Sequence {
    let index = sequences.iter().position(|(of, _)| *of == port).unwrap_or_else(|| {
        sequences.push((port, Sequence::default()));
        sequences.len() - 1
    });
    &mut sequences[index].1
}
