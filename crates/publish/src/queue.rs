//! The queue between the block and the courier: messages, each behind its length, in a ring of
//! bytes.

use millstream_ring::{Reader, RingError, RingOptions, Writer, ring};

/// The bytes of a message's length.
const LENGTH_BYTES: usize = 4;

/// Makes a queue for `bytes` bytes.
pub(crate) fn queue(bytes: usize) -> Result<(QueueEntry, QueueExit), RingError> {
    let (writer, mut readers) = ring::<u8>(&RingOptions::items(bytes))?;
    let reader = readers.pop().expect("a ring for one reader has one reader");
    Ok((QueueEntry(writer), QueueExit { reader, sent_bytes: 0, sent: 0 }))
}

/// The block's end.
pub(crate) struct QueueEntry(Writer<u8>);

impl QueueEntry {
    /// Adds a message; returns false if there is no room.
    pub fn push(&mut self, message: &[u8]) -> bool {
        let Ok(length) = u32::try_from(message.len()) else { return false };
        let room = self.0.slice_mut();
        let whole = LENGTH_BYTES + message.len();
        if room.len() < whole {
            return false;
        }
        room[..LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
        room[LENGTH_BYTES..whole].copy_from_slice(message);
        self.0.produce(whole);
        true
    }

    /// Returns the longest message that the queue takes.
    pub fn message_bytes_max(&self) -> usize {
        (self.0.capacity() - LENGTH_BYTES).min(u32::MAX as usize)
    }
}

/// The courier's end. A message stays in the queue until it is acknowledged.
pub(crate) struct QueueExit {
    reader: Reader<u8>,
    /// Bytes and messages at the front that were sent and are not acknowledged.
    sent_bytes: usize,
    sent: u64,
}

impl QueueExit {
    /// Returns the first message of `bytes`, if there is one.
    fn first(bytes: &[u8]) -> Option<&[u8]> {
        let (length, rest) = bytes.split_first_chunk::<LENGTH_BYTES>()?;
        rest.get(..u32::from_le_bytes(*length) as usize)
    }

    /// Returns the next message that was not sent.
    pub fn next(&self) -> Option<&[u8]> {
        Self::first(&self.reader.slice()[self.sent_bytes..])
    }

    /// Whether there is a message that was not sent.
    pub fn has_next(&self) -> bool {
        self.reader.available() > self.sent_bytes
    }

    /// Counts the next message as sent.
    pub fn mark_sent(&mut self) {
        if let Some(message) = self.next() {
            self.sent_bytes += LENGTH_BYTES + message.len();
            self.sent += 1;
        }
    }

    /// Returns the number of messages that are sent and not acknowledged.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Takes the `messages` oldest messages out.
    pub fn remove(&mut self, messages: u64) {
        let slice = self.reader.slice();
        let mut bytes = 0;
        for _ in 0..messages {
            let Some(message) = Self::first(&slice[bytes..]) else { break };
            bytes += LENGTH_BYTES + message.len();
        }
        self.reader.consume(bytes);
        self.sent_bytes = self.sent_bytes.saturating_sub(bytes);
        self.sent = self.sent.saturating_sub(messages);
    }

    /// Forgets what was sent: it has to be sent again.
    pub fn rewind(&mut self) {
        (self.sent_bytes, self.sent) = (0, 0);
    }

    /// Takes every message out; returns how many they were.
    pub fn clear(&mut self) -> u64 {
        let slice = self.reader.slice();
        let (mut bytes, mut messages) = (0, 0);
        while let Some(message) = Self::first(&slice[bytes..]) {
            bytes += LENGTH_BYTES + message.len();
            messages += 1;
        }
        self.reader.consume(bytes);
        self.rewind();
        messages
    }

    /// Whether no message will come any more, and none is there.
    pub fn is_done(&self) -> bool {
        self.reader.slice().is_empty() && self.reader.is_ended()
    }

    /// Whether no further message will come.
    pub fn is_ended(&self) -> bool {
        // `is_ended` does not poll; `slice` does.
        let _ = self.reader.slice();
        self.reader.is_ended()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_stay_until_they_are_removed() {
        let (mut entry, mut exit) = queue(4096).unwrap();
        assert!(entry.push(b"one") && entry.push(b"") && entry.push(b"three"));
        assert_eq!(exit.next(), Some(&b"one"[..]));
        exit.mark_sent();
        assert_eq!(exit.next(), Some(&b""[..]));
        exit.mark_sent();
        exit.rewind();
        assert_eq!((exit.next(), exit.sent()), (Some(&b"one"[..]), 0));
        exit.mark_sent();
        exit.remove(1);
        assert_eq!((exit.next(), exit.sent()), (Some(&b""[..]), 0));
        drop(entry);
        assert!(exit.is_ended() && !exit.is_done());
        assert_eq!(exit.clear(), 2);
        assert!(exit.is_done() && !exit.has_next());
    }

    #[test]
    fn a_full_queue_refuses_and_takes_again() {
        let (mut entry, mut exit) = queue(4096).unwrap();
        let message = vec![7; 1000];
        let taken = (0..).take_while(|_| entry.push(&message)).count();
        assert_eq!(taken, 4096 / 1004);
        exit.mark_sent();
        exit.remove(1);
        assert!(entry.push(&message) && !entry.push(&message));
        // Around the end of the ring, and long enough to come by every offset.
        for round in 0..5000u32 {
            let last = round.to_le_bytes();
            assert_eq!(exit.clear(), if round == 0 { 4 } else { 1 });
            assert!(entry.push(&[&message[..], &last].concat()));
            assert_eq!(&exit.next().unwrap()[1000..], last);
        }
        assert!(!entry.push(&vec![0; entry.message_bytes_max() + 1]));
    }
}
