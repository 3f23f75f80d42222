//! The convolutional byte interleaver (A/53 Part 2, clause 5.4.1).
//!
//! A commutator assigns the bytes to 52 branches in rotation; branch `b` delays by `4 * b`
//! rotations, so by `208 * b` bytes. The first data byte of every field goes through branch 0; a
//! field is a whole number of rotations.

/// Branches.
pub const BRANCHES: usize = 52;

/// Rotations of delay that each branch adds to the one before.
const STEP: usize = 4;

/// The delay of interleaver and deinterleaver together, bytes.
pub const TOTAL_DELAY_BYTES: usize = BRANCHES * STEP * (BRANCHES - 1);

/// Additional delay of each branch, bytes.
const BRANCH_DELAY: usize = BRANCHES * STEP;

/// Bytes of history: a power of two that holds the longest delay and one [`PIECE`].
const HISTORY: usize = 1 << 14;

/// The most bytes processed at a time.
const PIECE: usize = 4096;

/// The last bytes of the stream, in a circular buffer.
#[derive(Clone, Debug)]
struct Delays {
    history: Box<[u8; HISTORY]>,
    /// Position of the next byte in the buffer.
    at: usize,
    branch: usize,
}

const _: () = assert!(BRANCH_DELAY * (BRANCHES - 1) + PIECE <= HISTORY, "the history is too short");

impl Delays {
    fn new() -> Self {
        Self { history: Box::new([0; HISTORY]), at: 0, branch: 0 }
    }

    /// Delays bytes; `delay` is that of branch 0, and every further branch adds `step`.
    #[inline(always)]
    fn process(&mut self, bytes: &mut [u8], delay: usize, step: isize) {
        for piece in bytes.chunks_mut(PIECE) {
            let to_end = (HISTORY - self.at).min(piece.len());
            let (now, wrapped) = piece.split_at(to_end);
            self.history[self.at..self.at + now.len()].copy_from_slice(now);
            self.history[..wrapped.len()].copy_from_slice(wrapped);
            self.gather(piece, delay, step);
        }
    }

    /// Copies every byte of a piece from its delayed position: each is `step` further back than the
    /// one before it, relative to its own position.
    #[inline(always)]
    fn gather(&mut self, piece: &mut [u8], delay: usize, step: isize) {
        let mut rest = piece;
        while !rest.is_empty() {
            let (turn, later) = rest.split_at_mut((BRANCHES - self.branch).min(rest.len()));
            let back = delay as isize + step * self.branch as isize;
            let mut from = self.at.wrapping_add_signed(-back);
            for byte in turn.iter_mut() {
                *byte = self.history[from % HISTORY];
                from = from.wrapping_add_signed(1 - step);
            }
            self.at = (self.at + turn.len()) % HISTORY;
            self.branch = (self.branch + turn.len()) % BRANCHES;
            rest = later;
        }
    }
}

/// The interleaver of the transmitter.
#[derive(Clone, Debug)]
pub struct Interleaver(Delays);

impl Interleaver {
    /// Creates an interleaver full of zeros, at the first byte of a field.
    #[must_use]
    pub fn new() -> Self {
        Self(Delays::new())
    }

    /// Replaces `bytes` by as many interleaved bytes.
    pub fn process(&mut self, bytes: &mut [u8]) {
        self.0.process(bytes, 0, BRANCH_DELAY as isize);
    }
}

impl Default for Interleaver {
    fn default() -> Self {
        Self::new()
    }
}

/// The deinterleaver of the receiver.
#[derive(Clone, Debug)]
pub struct Deinterleaver(Delays);

impl Deinterleaver {
    /// Creates a deinterleaver full of zeros, at the first byte of a field.
    #[must_use]
    pub fn new() -> Self {
        Self(Delays::new())
    }

    /// Replaces `bytes` by as many bytes of the original stream, [`TOTAL_DELAY_BYTES`] late.
    pub fn process(&mut self, bytes: &mut [u8]) {
        self.0.process(bytes, BRANCH_DELAY * (BRANCHES - 1), -(BRANCH_DELAY as isize));
    }
}

impl Default for Deinterleaver {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(len: usize) -> Vec<u8> {
        (0..len as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
    }

    #[test]
    fn branch_zero_passes_and_branch_one_waits_four_turns() {
        let sent = stream(BRANCHES * 10);
        let mut out = sent.clone();
        Interleaver::new().process(&mut out);
        assert_eq!(out[0], sent[0]);
        assert_eq!(out[BRANCHES * 7], sent[BRANCHES * 7]);
        assert_eq!(out[1], 0);
        assert_eq!(out[BRANCHES * 4 + 1], sent[1]);
        assert_eq!(out[BRANCHES * 9 + 2], sent[BRANCHES + 2]);
    }

    #[test]
    fn pieces_of_any_length_are_delayed_as_byte_by_byte() {
        let sent = stream(60_000);
        let mut whole = sent.clone();
        Interleaver::new().process(&mut whole);
        for (n, byte) in whole.iter().enumerate() {
            let delay = n % BRANCHES * BRANCH_DELAY;
            assert_eq!(*byte, if n < delay { 0 } else { sent[n - delay] }, "byte {n}");
        }
        for len in [1, 51, 207, 5000] {
            let mut pieces = sent.clone();
            let mut interleaver = Interleaver::new();
            pieces.chunks_mut(len).for_each(|piece| interleaver.process(piece));
            assert!(pieces == whole, "pieces of {len}");
        }
    }

    #[test]
    fn deinterleaving_restores_the_stream_after_the_stated_delay() {
        let sent = stream(64_584);
        let mut out = sent.clone();
        let (mut tx, mut rx) = (Interleaver::new(), Deinterleaver::new());
        for chunk in out.chunks_mut(207) {
            tx.process(chunk);
            rx.process(chunk);
        }
        assert_eq!(out[TOTAL_DELAY_BYTES..], sent[..sent.len() - TOTAL_DELAY_BYTES]);
    }
}
