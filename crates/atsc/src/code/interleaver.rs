//! The convolutional byte interleaver (A/53 Part 2, clause 5.4.1).
//!
//! 52 branches take turns byte by byte; branch `b` delays by `4 * b` turns, so by `208 * b` bytes.
//! The first data byte of every field goes through branch 0; a field is a whole number of turns.

/// Branches.
pub const BRANCHES: usize = 52;

/// Turns of delay that each branch has more than the one before.
const STEP: usize = 4;

/// Rows of history: a power of two above the longest delay.
const ROWS: usize = 256;

/// Bytes by which interleaver and deinterleaver together delay the stream.
pub const TOTAL_DELAY_BYTES: usize = BRANCHES * STEP * (BRANCHES - 1);

/// History of the stream, in rows of one turn each.
#[derive(Clone, Debug)]
struct Delays {
    rows: Box<[[u8; BRANCHES]; ROWS]>,
    row: usize,
    branch: usize,
}

impl Delays {
    fn new() -> Self {
        Self { rows: Box::new([[0; BRANCHES]; ROWS]), row: 0, branch: 0 }
    }

    #[inline(always)]
    fn push(&mut self, byte: u8, delay_turns: impl Fn(usize) -> usize) -> u8 {
        let branch = self.branch;
        self.rows[self.row][branch] = byte;
        let out = self.rows[(self.row + ROWS - delay_turns(branch)) % ROWS][branch];
        self.branch += 1;
        if self.branch == BRANCHES {
            self.branch = 0;
            self.row = (self.row + 1) % ROWS;
        }
        out
    }
}

/// The sending side.
#[derive(Clone, Debug)]
pub struct Interleaver(Delays);

impl Interleaver {
    /// An interleaver full of zeros, at the first byte of a field.
    #[must_use]
    pub fn new() -> Self {
        Self(Delays::new())
    }

    /// Replaces `bytes` by as many interleaved bytes.
    pub fn process(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            *byte = self.0.push(*byte, |branch| branch * STEP);
        }
    }
}

impl Default for Interleaver {
    fn default() -> Self {
        Self::new()
    }
}

/// The receiving side.
#[derive(Clone, Debug)]
pub struct Deinterleaver(Delays);

impl Deinterleaver {
    /// A deinterleaver full of zeros, at the first byte of a field.
    #[must_use]
    pub fn new() -> Self {
        Self(Delays::new())
    }

    /// Replaces `bytes` by as many bytes of the original stream, [`TOTAL_DELAY_BYTES`] late.
    pub fn process(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            *byte = self.0.push(*byte, |branch| (BRANCHES - 1 - branch) * STEP);
        }
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
