//! Blocks of symbols to segments.

use super::symbol_block::{BLOCK_SYMBOLS, Places, SymbolBlock};
use crate::params::{SEGMENT_SYMBOLS, SYNC_SYMBOLS};
use crate::segment::WholeSegment;
use bytemuck::Zeroable;

/// Joins blocks and cuts them into segments.
#[derive(Clone, Debug)]
pub struct SegmentSplitter {
    segment: Box<WholeSegment>,
    /// Symbols of the segment so far.
    filled: usize,
    /// The last block; from `rest_from` on it belongs to the next segment.
    rest: SymbolBlock,
    rest_from: usize,
    /// Symbols to drop before the first segment.
    skip: usize,
}

impl SegmentSplitter {
    /// Creates a splitter whose first segment begins `skip` symbols from here.
    #[must_use]
    pub fn new(skip: usize) -> Self {
        Self {
            segment: Box::new(WholeSegment::zeroed()),
            filled: 0,
            rest: SymbolBlock::default(),
            rest_from: BLOCK_SYMBOLS,
            skip,
        }
    }

    /// Restarts: the next segment begins `skip` symbols from here.
    pub fn restart(&mut self, skip: usize) {
        (self.filled, self.rest_from, self.skip) = (0, BLOCK_SYMBOLS, skip);
    }

    /// Takes a block; returns whether it completes a segment.
    pub fn push(&mut self, block: &SymbolBlock) -> bool {
        if self.filled == SEGMENT_SYMBOLS {
            self.filled = 0;
            let (rest, from) = (self.rest, self.rest_from);
            self.fill(&rest, from);
        }
        let dropped = self.skip.min(BLOCK_SYMBOLS);
        self.skip -= dropped;
        self.rest_from = self.fill(block, dropped);
        if self.filled == SEGMENT_SYMBOLS {
            self.rest = *block;
        }
        self.filled == SEGMENT_SYMBOLS
    }

    /// Copies the block from `from` on as far as there is room; returns the end of the copied part.
    fn fill(&mut self, block: &SymbolBlock, from: usize) -> usize {
        let count = (SEGMENT_SYMBOLS - self.filled).min(BLOCK_SYMBOLS - from);
        let (to, from) = (self.filled..self.filled + count, from..from + count);
        self.segment.segment.symbols[to.clone()].copy_from_slice(&block.re[from.clone()]);
        self.segment.quadrature[to].copy_from_slice(&block.im[from.clone()]);
        self.filled += count;
        from.end
    }

    /// Returns the last completed segment; it is valid until the next block.
    pub fn segment(&mut self) -> &mut WholeSegment {
        &mut self.segment
    }

    /// Returns the number of symbols from here to the start of the next segment.
    #[must_use]
    pub fn ahead(&self) -> usize {
        let begun = match self.filled {
            SEGMENT_SYMBOLS => BLOCK_SYMBOLS - self.rest_from,
            filled => filled,
        };
        self.skip + SEGMENT_SYMBOLS - begun
    }

    /// Returns the symbols of a segment sync in the next block.
    #[must_use]
    pub fn sync(&self) -> Places {
        match self.ahead() % SEGMENT_SYMBOLS {
            ahead if ahead < BLOCK_SYMBOLS => Places::around(ahead, ahead + SYNC_SYMBOLS),
            // The sync symbols that are still to come.
            ahead => Places::around(0, (ahead + SYNC_SYMBOLS).saturating_sub(SEGMENT_SYMBOLS)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_follow_each_other_without_loss_from_any_place() {
        for skip in [0, 1, 103, 104, 500, 831] {
            let mut cutter = SegmentSplitter::new(skip);
            let mut next = skip;
            for n in 0..50 {
                let re = std::array::from_fn(|k| (n * BLOCK_SYMBOLS + k) as f32);
                // Symbols of the next sync: in this block, or not.
                let Places { from, to } = cutter.sync();
                for k in 0..BLOCK_SYMBOLS {
                    let at = (n * BLOCK_SYMBOLS + k) as isize - skip as isize;
                    let in_sync = at.rem_euclid(SEGMENT_SYMBOLS as isize) < 4;
                    assert!(!in_sync || (from..to).contains(&k), "{skip} {n} {k}");
                }
                assert!(to - from <= 16, "{skip} {n}");
                let whole = cutter.push(&SymbolBlock { re, im: re.map(|x| -x) });
                let end = (n + 1) * BLOCK_SYMBOLS;
                if whole {
                    let segment = cutter.segment();
                    let exact: [f32; SEGMENT_SYMBOLS] = std::array::from_fn(|k| (next + k) as f32);
                    assert_eq!(segment.segment.symbols, exact);
                    assert_eq!(segment.quadrature, exact.map(|x| -x));
                    next += SEGMENT_SYMBOLS;
                    assert_eq!((end + cutter.ahead()) % SEGMENT_SYMBOLS, next % SEGMENT_SYMBOLS);
                } else if end > skip {
                    assert_eq!(end + cutter.ahead(), next + SEGMENT_SYMBOLS, "{skip} {n}");
                }
            }
            assert!(next > 4000);
        }
    }
}
