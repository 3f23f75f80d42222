//! Finds which messages of a block are new, and counts those that never came.
//!
//! A block counts its messages in six bits. The network may repeat one, and so may a device whose
//! message was not acknowledged; counted twice, a late packet would be two losses.

use millstream_wire::ctrl::{CtrlRepr, SEQ_MODULUS};

/// The latest messages that are searched for a repetition: fewer than there are sequence numbers.
const REMEMBERED: usize = 16;

/// The fields by which two messages are the same.
type Identity = (u16, u8, Option<u64>, u32, u32);

/// The position of a message in its sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SequencePosition {
    /// The message is new, and `missed` before it have not come.
    New { missed: u8 },
    /// The message is new, and already counted as missed.
    Overtaken,
    /// The message has come before.
    Repeated,
}

/// The messages of one block.
#[derive(Debug, Default)]
pub(super) struct Sequence {
    due: Option<u8>,
    recent: [Option<Identity>; REMEMBERED],
    count: usize,
}

impl Sequence {
    /// Takes a message.
    pub fn take(&mut self, repr: &CtrlRepr) -> SequencePosition {
        let identity = (repr.seq, repr.ctrl_seq, repr.timestamp, repr.address, repr.data.first());
        if self.recent.contains(&Some(identity)) {
            return SequencePosition::Repeated;
        }
        self.recent[self.count % REMEMBERED] = Some(identity);
        self.count = self.count.wrapping_add(1);
        let due = self.due.unwrap_or(repr.ctrl_seq);
        let missed = (repr.ctrl_seq + SEQ_MODULUS - due) % SEQ_MODULUS;
        if missed >= SEQ_MODULUS / 2 {
            return SequencePosition::Overtaken;
        }
        self.due = Some((repr.ctrl_seq + 1) % SEQ_MODULUS);
        SequencePosition::New { missed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(number: u64) -> CtrlRepr {
        CtrlRepr {
            seq: number as u16,
            ctrl_seq: (number % u64::from(SEQ_MODULUS)) as u8,
            timestamp: Some(4711),
            ..CtrlRepr::default()
        }
    }

    #[test]
    fn messages_in_order_are_all_new_round_the_end_of_the_numbers() {
        let mut sequence = Sequence::default();
        for number in 60..70_000 {
            assert_eq!(sequence.take(&message(number)), SequencePosition::New { missed: 0 });
        }
    }

    #[test]
    fn what_did_not_come_is_counted_and_what_comes_twice_is_not_new() {
        let mut sequence = Sequence::default();
        sequence.take(&message(61));
        assert_eq!(sequence.take(&message(66)), SequencePosition::New { missed: 4 });
        assert_eq!(sequence.take(&message(61)), SequencePosition::Repeated);
        assert_eq!(sequence.take(&message(66)), SequencePosition::Repeated);
        assert_eq!(sequence.take(&message(64)), SequencePosition::Overtaken);
        assert_eq!(sequence.take(&message(67)), SequencePosition::New { missed: 0 });
    }
}
