//! The latest samples of a stream, contiguous, for filters that work on windows of them.

/// Samples that are taken in at most before they are worked on: 32 KiB of complex ones, which a
/// first-level cache holds.
const CHUNK: usize = 4096;

/// Keeps what windows still need. Before the first sample a stream was silent.
#[derive(Clone, Debug)]
pub(crate) struct History<X> {
    items: Box<[X]>,
    held: usize,
    /// Where the next window begins; beyond what is held when samples are skipped.
    start: usize,
}

impl<X: Copy + Default> History<X> {
    /// A history for windows of `window` samples: the first ends with the first sample.
    pub(crate) fn new(window: usize) -> Self {
        let items = vec![X::default(); window + CHUNK].into_boxed_slice();
        Self { items, held: window - 1, start: 0 }
    }

    /// Takes samples in until `wanted` are there from the next window's beginning, as far as
    /// there are any and they fit; returns how many it took.
    pub(crate) fn fill(&mut self, input: &[X], wanted: usize) -> usize {
        let missing = self.start.saturating_add(wanted).saturating_sub(self.held);
        let count = missing.min(input.len()).min(self.items.len() - self.held);
        self.items[self.held..self.held + count].copy_from_slice(&input[..count]);
        self.held += count;
        count
    }

    /// What is there from the next window's beginning.
    pub(crate) fn slice(&self) -> &[X] {
        self.items.get(self.start..self.held).unwrap_or(&[])
    }

    /// The next window begins `count` samples later.
    pub(crate) fn advance(&mut self, count: usize) {
        self.start += count;
        let gone = self.start.min(self.held);
        self.items.copy_within(gone..self.held, 0);
        self.held -= gone;
        self.start -= gone;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_move_over_the_stream() {
        let mut history = History::<i32>::new(3);
        assert_eq!(history.fill(&[1, 2, 3, 4], 4), 2);
        assert_eq!(history.slice(), [0, 0, 1, 2]);
        history.advance(10);
        assert_eq!(history.slice(), []);
        assert_eq!(history.fill(&[3, 4, 5, 6, 7, 8, 9, 10, 11], 2), 8);
        assert_eq!(history.slice(), [9, 10]);
    }
}
