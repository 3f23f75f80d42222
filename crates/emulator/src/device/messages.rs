//! The messages of a radio block to its host.

use crate::personality::Block;
use millstream_wire::ctrl::Protocol;
use millstream_wire::regs::radio::async_msg::Event;
use std::collections::VecDeque;

/// The messages of a transmitter that wait; further ones are lost. A receiver waits with its own.
const WAITING_MAX: usize = 32;

/// A message that a block sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Message {
    /// The port of the block.
    pub port: usize,
    pub event: Event,
    pub tick: u64,
}

/// The messages of a block, one at a time: the next one waits until the host has acknowledged the
/// one before, however long that takes.
#[derive(Debug)]
pub(crate) struct Messages {
    waiting: VecDeque<Message>,
    /// What the host has not acknowledged.
    in_flight: Option<Message>,
    next_seq: u8,
}

impl Messages {
    /// Returns the state of a block after power-on.
    pub fn of(block: &Block) -> Self {
        let waiting = VecDeque::with_capacity(usize::from(block.inputs) * (WAITING_MAX + 1));
        Self { waiting, in_flight: None, next_seq: 0 }
    }

    /// Restores the state after power-on.
    pub fn reset(&mut self) {
        self.waiting.clear();
        (self.in_flight, self.next_seq) = (None, 0);
    }

    /// Takes a message.
    pub fn offer(&mut self, message: Message) {
        let of_same = |other: &&Message| core_of(other) == core_of(&message);
        if self.waiting.iter().filter(of_same).count() < WAITING_MAX {
            self.waiting.push_back(message);
        }
    }

    /// Returns the message that must be sent now, with its number, if there is one.
    pub fn next(&mut self, protocol: Protocol) -> Option<(Message, u8)> {
        if self.in_flight.is_some() {
            return None;
        }
        self.in_flight = Some(self.waiting.pop_front()?);
        let seq = self.next_seq;
        self.next_seq = ((u16::from(seq) + 1) % protocol.sequence_modulus()) as u8;
        Some((self.in_flight?, seq))
    }

    /// Takes an acknowledgement. Returns the port whose receiver goes on, if its message was the
    /// acknowledged one.
    ///
    /// # Errors
    /// [`Unsolicited`] when no message waits for it.
    pub fn acknowledge(&mut self) -> Result<Option<usize>, Unsolicited> {
        let message = self.in_flight.take().ok_or(Unsolicited)?;
        let (port, transmits) = core_of(&message);
        Ok((!transmits).then_some(port))
    }
}

/// An acknowledgement that nothing waits for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unsolicited;

/// Returns the part of a block that sends a message: port, and whether its transmitter.
fn core_of(message: &Message) -> (usize, bool) {
    let transmits = match message.event {
        Event::RxLateCommand | Event::RxOverrun => false,
        Event::TxUnderrun | Event::TxLate | Event::TxBurstAck => true,
    };
    (message.port, transmits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::personality::BlockKind;

    fn messages() -> Messages {
        let (inputs, outputs, fifo_log2) = (2, 2, 9);
        let kind = BlockKind::Radio;
        Messages::of(&Block { kind, first: 0, inputs, outputs, fifo_log2 })
    }

    fn message(port: usize, event: Event, tick: u64) -> Message {
        Message { port, event, tick }
    }

    #[test]
    fn a_message_waits_for_the_acknowledgement_of_the_one_before() {
        let mut messages = messages();
        let (late, ack) = (message(0, Event::RxLateCommand, 5), message(1, Event::TxBurstAck, 6));
        messages.offer(late);
        messages.offer(ack);
        assert_eq!(messages.next(Protocol::V1), Some((late, 0)));
        assert_eq!(messages.next(Protocol::V1), None);
        assert_eq!(messages.acknowledge(), Ok(Some(0)), "the receiver of port 0 goes on");
        assert_eq!(messages.next(Protocol::V1), Some((ack, 1)));
        assert_eq!(messages.acknowledge(), Ok(None), "a transmitter does not wait");
        assert_eq!(messages.acknowledge(), Err(Unsolicited));
    }

    #[test]
    fn a_transmitter_keeps_a_number_of_messages_and_loses_the_others() {
        let mut messages = messages();
        let ack = |port, tick| message(port, Event::TxBurstAck, tick);
        (0..100).for_each(|tick| messages.offer(ack(0, tick)));
        messages.offer(ack(1, 100));
        let sent = std::iter::from_fn(|| {
            let (message, _) = messages.next(Protocol::V1)?;
            messages.acknowledge().unwrap();
            Some((message.port, message.tick))
        });
        let want = (0..WAITING_MAX as u64).map(|tick| (0, tick)).chain([(1, 100)]);
        assert_eq!(sent.collect::<Vec<_>>(), want.collect::<Vec<_>>());
        messages.offer(ack(0, 200));
        messages.next(Protocol::V1);
        messages.offer(ack(0, 201));
        messages.reset();
        assert_eq!((messages.next(Protocol::V1), messages.acknowledge()), (None, Err(Unsolicited)));
    }
}
