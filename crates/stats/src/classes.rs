//! Classes of equal relative width, for histograms.

/// Whole numbers in 2^`BITS` classes from a power of two to the next; a class is at most 2^-`BITS`
/// times as wide as its values are large. Values below 2^`BITS` have a class each.
#[derive(Debug)]
pub struct Classes<const BITS: u32>;

impl<const BITS: u32> Classes<BITS> {
    /// Classes of all 64-bit values.
    pub const COUNT: usize = (64 - BITS as usize + 1) << BITS;

    /// Returns the class of a value.
    #[must_use]
    pub fn of(value: u64) -> usize {
        let shift = (u64::BITS - value.leading_zeros()).saturating_sub(BITS + 1);
        // From the second power of two on, the top bit counts for one power.
        ((shift as usize) << BITS) + (value >> shift) as usize
    }

    /// Returns the largest value of a class.
    #[must_use]
    pub fn last(class: usize) -> u64 {
        let shift = (class >> BITS).saturating_sub(1);
        let first = ((class - (shift << BITS)) as u64) << shift;
        first + ((1 << shift) - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<const BITS: u32>() {
        let around = |bit: u32| [(1u64 << bit) - 1, 1 << bit, (1 << bit) + 1, (1 << bit) + 3];
        let values = (0..64).flat_map(around);
        for value in values.chain([1000, 999_999, 12_345_678, u64::MAX, u64::MAX - 1]) {
            let class = Classes::<BITS>::of(value);
            assert!(value <= Classes::<BITS>::last(class), "{value}");
            assert!(class == 0 || value > Classes::<BITS>::last(class - 1), "{value}");
            let width = Classes::<BITS>::last(class) - value;
            assert!(width as f64 <= value as f64 / f64::from(1 << BITS), "{value}: {width}");
        }
        assert_eq!(Classes::<BITS>::of(u64::MAX), Classes::<BITS>::COUNT - 1);
    }

    #[test]
    fn every_value_lies_in_its_class_and_classes_are_narrow() {
        check::<4>();
        check::<6>();
    }
}
