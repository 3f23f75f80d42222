//! A list that grows for days: its entries have numbers for ever, and it keeps the newest.

use std::collections::VecDeque;

/// The newest entries of a list, by their numbers from its beginning.
#[derive(Debug)]
pub(crate) struct Numbered<T> {
    first: u64,
    kept: VecDeque<T>,
    most: usize,
}

impl<T> Numbered<T> {
    /// Returns an empty list that keeps so many entries.
    pub fn new(most: usize) -> Self {
        Self { first: 0, kept: VecDeque::new(), most }
    }

    /// Returns the number of the next entry.
    pub fn next(&self) -> u64 {
        self.first + self.kept.len() as u64
    }

    /// Adds an entry; returns its number.
    pub fn push(&mut self, entry: T) -> u64 {
        if self.kept.len() == self.most {
            self.kept.pop_front();
            self.first += 1;
        }
        self.kept.push_back(entry);
        self.next() - 1
    }

    /// Returns an entry, if it is kept.
    pub fn get(&self, number: u64) -> Option<&T> {
        self.kept.get(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    /// Returns an entry, if it is kept.
    pub fn get_mut(&mut self, number: u64) -> Option<&mut T> {
        self.kept.get_mut(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    /// Returns the kept entries from a number on, each with its number.
    pub fn from(&self, number: u64) -> impl DoubleEndedIterator<Item = (u64, &T)> {
        let skipped = number.saturating_sub(self.first).min(self.kept.len() as u64);
        let first = self.first + skipped;
        let entries = self.kept.range(skipped as usize..);
        entries.enumerate().map(move |(n, entry)| (first + n as u64, entry))
    }

    /// Returns how many entries are no longer kept.
    pub fn forgotten(&self) -> u64 {
        self.first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_keep_their_numbers_when_older_ones_go() {
        let mut list = Numbered::new(3);
        let numbers: Vec<_> = (0..5).map(|n| list.push(n * 10)).collect();
        assert_eq!((numbers, list.next(), list.forgotten()), (vec![0, 1, 2, 3, 4], 5, 2));
        assert_eq!((list.get(1), list.get(2), list.get(5)), (None, Some(&20), None));
        let from = |number| list.from(number).map(|(n, entry)| (n, *entry)).collect::<Vec<_>>();
        assert_eq!(from(0), [(2, 20), (3, 30), (4, 40)]);
        assert_eq!(from(4), [(4, 40)]);
        assert_eq!(from(9), []);
        *list.get_mut(4).unwrap() = 1;
        assert_eq!(list.get(4), Some(&1));
    }
}
