//! Sets of control sequence numbers.

/// The numbers that fit: a control packet has 6 bits for one in protocol 1.0, and 8 in 2.0.
const WORDS: usize = 256 / 64;

/// A set of control sequence numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct SequenceNumbers([u64; WORDS]);

impl SequenceNumbers {
    pub fn insert(&mut self, number: u8) {
        self.0[usize::from(number / 64)] |= 1 << (number % 64);
    }

    pub fn contains(&self, number: u8) -> bool {
        self.0[usize::from(number / 64)] >> (number % 64) & 1 == 1
    }

    /// Removes a number; returns whether it was there.
    pub fn remove(&mut self, number: u8) -> bool {
        let was = self.contains(number);
        self.0[usize::from(number / 64)] &= !(1 << (number % 64));
        was
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_goes_in_and_comes_out_once_and_alone() {
        for number in 0..=u8::MAX {
            let mut set = SequenceNumbers::default();
            set.insert(number);
            assert_eq!((0..=u8::MAX).filter(|one| set.contains(*one)).count(), 1);
            assert!(set.remove(number) && !set.remove(number));
            assert_eq!(set, SequenceNumbers::default());
        }
    }
}
