//! The command FIFO of a block: requests in order, timed ones at their time.

use super::client_zero::FIFO_WORDS;
use millstream_wire::ctrl::{CtrlRepr, DataWords, Protocol};
use std::collections::VecDeque;

/// Requests that wait for their time, or behind one that does.
#[derive(Debug, Default)]
pub(crate) struct CommandFifo {
    /// The protocol of the image: requests of each take other numbers of words.
    pub protocol: Protocol,
    requests: VecDeque<CtrlRepr>,
    words: usize,
}

impl CommandFifo {
    /// Queues a request; returns false when the FIFO has no space for it.
    pub fn push(&mut self, request: CtrlRepr) -> bool {
        let fits = self.fits(&request);
        if fits {
            self.words += self.protocol.credit_words(&request);
            self.requests.push_back(request);
        }
        fits
    }

    /// Returns whether there is space for a request.
    pub fn fits(&self, request: &CtrlRepr) -> bool {
        self.words + self.protocol.credit_words(request) <= FIFO_WORDS
    }

    /// Returns whether there is space for each word of a request in a request of its own.
    pub fn fits_words_of(&self, request: &CtrlRepr) -> bool {
        let one = CtrlRepr { data: DataWords::one(0), ..*request };
        let words = request.data.len().max(1) * self.protocol.credit_words(&one);
        self.words + words <= FIFO_WORDS
    }

    /// Returns the next request.
    pub fn front(&self) -> Option<&CtrlRepr> {
        self.requests.front()
    }

    /// Takes the next request, if `condition` holds for it.
    pub fn pop_if(&mut self, condition: impl FnOnce(&CtrlRepr) -> bool) -> Option<CtrlRepr> {
        let request = self.requests.front().filter(|request| condition(request))?;
        self.words -= self.protocol.credit_words(request);
        self.requests.pop_front()
    }

    /// Takes the next request, if it is not timed or its time is not after `timestamp`.
    pub fn pop_due(&mut self, timestamp: u64) -> Option<CtrlRepr> {
        self.pop_if(|request| request.timestamp.is_none_or(|due| due <= timestamp))
    }

    /// Returns the time of the first request, if it waits for one.
    pub fn waits_for(&self) -> Option<u64> {
        self.front()?.timestamp
    }

    /// Drops all requests.
    pub fn clear(&mut self) {
        self.requests.clear();
        self.words = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(ctrl_seq: u8, timestamp: Option<u64>) -> CtrlRepr {
        CtrlRepr { ctrl_seq, timestamp, ..CtrlRepr::default() }
    }

    #[test]
    fn requests_leave_in_order_and_timed_ones_hold_up_the_rest() {
        let mut fifo = CommandFifo::default();
        for (seq, timestamp) in [(0, None), (1, Some(100)), (2, None), (3, Some(50))] {
            assert!(fifo.push(request(seq, timestamp)));
        }
        let mut pop = |now| fifo.pop_due(now).map(|request| request.ctrl_seq);
        assert_eq!((pop(10), pop(10)), (Some(0), None));
        assert_eq!((pop(99), pop(100), pop(100)), (None, Some(1), Some(2)));
        assert_eq!(pop(100), Some(3), "a time that has passed executes at once");
        assert_eq!(fifo.waits_for(), None);
    }

    #[test]
    fn the_fifo_is_bounded_in_words() {
        let mut fifo = CommandFifo::default();
        let accepted = (0..1000).filter(|_| fifo.push(request(0, Some(9)))).count();
        assert_eq!(accepted, FIFO_WORDS / 5);
        fifo.clear();
        assert!(fifo.push(request(0, None)));
    }
}
