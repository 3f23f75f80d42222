//! The latest samples of a stream, contiguous, for filters that work on windows of them.

/// The most samples taken in before they are processed: 32 KiB of complex ones, which fit into a
/// first-level cache.
const CHUNK: usize = 4096;

/// The samples that later windows need. Samples before the first are zero.
#[derive(Clone, Debug)]
pub(crate) struct History<X> {
    items: Box<[X]>,
    held: usize,
    /// The start of the next window; beyond the stored samples when samples are skipped.
    start: usize,
}

impl<X: Copy + Default> History<X> {
    /// Creates a history for windows of `window` samples; the first window ends with the first
    /// sample.
    pub(crate) fn new(window: usize) -> Self {
        let items = vec![X::default(); window + CHUNK].into_boxed_slice();
        Self { items, held: window - 1, start: 0 }
    }

    /// Changes the length of windows from `before` to `window`; the next one ends with the same
    /// sample. Samples that are not stored any more are zero.
    pub(crate) fn set_window(&mut self, before: usize, window: usize) {
        let mut next = Self { held: 0, ..Self::new(window) };
        // The sample that ends the next window, seen from the first that is stored.
        let end = self.start + before;
        let first = end.saturating_sub(window);
        let pad = window.saturating_sub(end);
        let kept = self.items.get(first..self.held).unwrap_or(&[]);
        next.items[pad..pad + kept.len()].copy_from_slice(kept);
        next.held = pad + kept.len();
        // The next window begins with a sample that has not come.
        next.start = first.saturating_sub(self.held);
        *self = next;
    }

    /// Takes samples until there are `wanted` from the start of the next window, or no more or no
    /// room; returns how many it took.
    pub(crate) fn fill(&mut self, input: &[X], wanted: usize) -> usize {
        let missing = self.start.saturating_add(wanted).saturating_sub(self.held);
        let count = missing.min(input.len()).min(self.items.len() - self.held);
        self.items[self.held..self.held + count].copy_from_slice(&input[..count]);
        self.held += count;
        count
    }

    /// Returns the stored samples from the start of the next window.
    pub(crate) fn slice(&self) -> &[X] {
        self.items.get(self.start..self.held).unwrap_or(&[])
    }

    /// Moves the start of the next window by `count` samples.
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
