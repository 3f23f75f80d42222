//! Finds which messages of a block are new, and counts those that never came.
//!
//! A block counts its messages in six bits, and in eight in protocol 2.0. The network may repeat
//! one; counted twice, a late packet would be two losses, and acknowledged twice, it would silence
//! the block. Packets have numbers of 16 bits: these tell an old message from one behind a long
//! outage.

use millstream_wire::ctrl::CtrlRepr;

use super::numbers::SequenceNumbers;

/// The latest messages that are searched for a repetition: fewer than there are sequence numbers.
const REMEMBERED: usize = 16;

/// How many packets a message may come late. What is farther back is ahead: the numbers of packets
/// went round, or began anew with the device.
const LATE_MAX: i16 = 1024;

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
    due: Option<u16>,
    /// The number of the packet with the newest message.
    newest: u16,
    /// The message numbers that were counted as missed.
    missing: SequenceNumbers,
    recent: [Option<Identity>; REMEMBERED],
    count: usize,
}

impl Sequence {
    /// Takes a message of a block that counts modulo `modulus`, at most 256.
    pub fn take(&mut self, repr: &CtrlRepr, modulus: u16) -> SequencePosition {
        let identity = (repr.seq, repr.ctrl_seq, repr.timestamp, repr.address, repr.data.first());
        if self.recent.contains(&Some(identity)) {
            return SequencePosition::Repeated;
        }
        self.recent[self.count % REMEMBERED] = Some(identity);
        self.count = self.count.wrapping_add(1);
        let number = u16::from(repr.ctrl_seq) % modulus;
        let was_missing = self.missing.remove(number as u8);
        let ahead = repr.seq.wrapping_sub(self.newest) as i16;
        if self.due.is_some() && (-LATE_MAX..=0).contains(&ahead) {
            // One from before the first was not counted as missed.
            let new = SequencePosition::New { missed: 0 };
            return if was_missing { SequencePosition::Overtaken } else { new };
        }
        let due = self.due.unwrap_or(number);
        let missed = (number + modulus - due) % modulus;
        for later in 0..missed {
            self.missing.insert(((due + later) % modulus) as u8);
        }
        (self.due, self.newest) = (Some((number + 1) % modulus), repr.seq);
        SequencePosition::New { missed: missed as u8 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIX_BITS: u16 = 64;

    fn message(number: u64) -> CtrlRepr {
        CtrlRepr {
            seq: number as u16,
            ctrl_seq: (number % u64::from(SIX_BITS)) as u8,
            timestamp: Some(4711),
            ..CtrlRepr::default()
        }
    }

    #[test]
    fn messages_in_order_are_all_new_round_the_end_of_the_numbers() {
        let mut sequence = Sequence::default();
        for number in 60..70_000 {
            assert_eq!(
                sequence.take(&message(number), SIX_BITS),
                SequencePosition::New { missed: 0 }
            );
        }
    }

    #[test]
    fn what_did_not_come_is_counted_and_what_comes_twice_is_not_new() {
        let mut sequence = Sequence::default();
        sequence.take(&message(61), SIX_BITS);
        assert_eq!(sequence.take(&message(66), SIX_BITS), SequencePosition::New { missed: 4 });
        assert_eq!(sequence.take(&message(61), SIX_BITS), SequencePosition::Repeated);
        assert_eq!(sequence.take(&message(66), SIX_BITS), SequencePosition::Repeated);
        assert_eq!(sequence.take(&message(64), SIX_BITS), SequencePosition::Overtaken);
        assert_eq!(sequence.take(&message(67), SIX_BITS), SequencePosition::New { missed: 0 });
    }

    #[test]
    fn an_outage_of_any_length_is_counted_and_takes_back_nothing() {
        for lost in 0..64 {
            let mut sequence = Sequence::default();
            sequence.take(&message(100), SIX_BITS);
            assert_eq!(sequence.take(&message(103), SIX_BITS), SequencePosition::New { missed: 2 });
            let next = 104 + lost;
            let missed = lost as u8;
            assert_eq!(sequence.take(&message(next), SIX_BITS), SequencePosition::New { missed });
            for later in 1..70 {
                let position = sequence.take(&message(next + later), SIX_BITS);
                assert_eq!(position, SequencePosition::New { missed: 0 }, "{lost} {later}");
            }
        }
    }

    #[test]
    fn only_what_was_counted_as_missed_is_taken_back_and_only_once() {
        let mut sequence = Sequence::default();
        sequence.take(&message(10), SIX_BITS);
        // From before the first: it was never counted.
        assert_eq!(sequence.take(&message(9), SIX_BITS), SequencePosition::New { missed: 0 });
        assert_eq!(sequence.take(&message(13), SIX_BITS), SequencePosition::New { missed: 2 });
        assert_eq!(sequence.take(&message(11), SIX_BITS), SequencePosition::Overtaken);
        let again = CtrlRepr { address: 4, ..message(11) };
        assert_eq!(sequence.take(&again, SIX_BITS), SequencePosition::New { missed: 0 });
    }
}
