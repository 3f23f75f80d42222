//! Items out for items in.

use std::fmt;

/// The ratio of the items that a block produces to those that it consumes: `interpolation` out for
/// every `decimation` in, on every pair of an input and an output.
///
/// Tags move by it; the latency bound and the partitioner use it. A block whose rate is not a
/// fraction (an arbitrary resampler) gives the nearest one and moves its tags itself
/// ([`TagRule::Own`](crate::TagRule::Own)).
///
/// ```
/// use millstream_flow::ItemRatio;
///
/// let rate = ItemRatio::new(3, 2); // a resampler
/// assert_eq!([0, 1, 2, 3].map(|item| rate.map(item)), [0, 1, 3, 4]);
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct ItemRatio {
    interpolation: u32,
    decimation: u32,
}

impl ItemRatio {
    /// As many items out as in.
    pub const ONE: Self = Self { interpolation: 1, decimation: 1 };

    /// Makes the ratio of `interpolation` items out for `decimation` items in, in lowest terms.
    ///
    /// # Panics
    /// If either is zero.
    #[must_use]
    pub const fn new(interpolation: u32, decimation: u32) -> Self {
        assert!(interpolation > 0 && decimation > 0, "a rate of zero or without end");
        let (mut divisor, mut rest) = (interpolation, decimation);
        while rest > 0 {
            (divisor, rest) = (rest, divisor % rest);
        }
        Self { interpolation: interpolation / divisor, decimation: decimation / divisor }
    }

    /// Makes the ratio of one item out for `decimation` in.
    ///
    /// # Panics
    /// If it is zero.
    #[must_use]
    pub const fn decimate(decimation: u32) -> Self {
        Self::new(1, decimation)
    }

    /// Makes the ratio of `interpolation` items out for one in.
    ///
    /// # Panics
    /// If it is zero.
    #[must_use]
    pub const fn interpolate(interpolation: u32) -> Self {
        Self::new(interpolation, 1)
    }

    /// Returns the items out of the fraction.
    #[must_use]
    pub const fn interpolation(self) -> u32 {
        self.interpolation
    }

    /// Returns the items in of the fraction.
    #[must_use]
    pub const fn decimation(self) -> u32 {
        self.decimation
    }

    /// Returns the items out for one in.
    #[must_use]
    pub fn ratio(self) -> f64 {
        f64::from(self.interpolation) / f64::from(self.decimation)
    }

    /// Returns the output item that begins where input item `item` does, or contains that point:
    /// `⌊item × interpolation ÷ decimation⌋`, exactly. Saturates at the largest number.
    #[must_use]
    pub const fn map(self, item: u64) -> u64 {
        let place = item as u128 * self.interpolation as u128 / self.decimation as u128;
        if place > u64::MAX as u128 { u64::MAX } else { place as u64 }
    }

    /// Returns the output item of an input item that comes out `delay` items of the input late, as
    /// [`map`](Self::map) does, to 2⁻¹⁶ of an item. A negative delay counts as none.
    #[must_use]
    pub fn map_late(self, item: u64, delay: f64) -> u64 {
        const ONE: f64 = 65_536.0;
        // Rounded up, so that a third of an item three times is a whole one.
        let late = u128::from((delay.max(0.0) * ONE).ceil() as u64);
        let item = (u128::from(item) << 16).saturating_add(late);
        let place = item.checked_mul(u128::from(self.interpolation));
        let place = place.map(|place| (place / u128::from(self.decimation)) >> 16);
        place.and_then(|place| u64::try_from(place).ok()).unwrap_or(u64::MAX)
    }
}

impl Default for ItemRatio {
    fn default() -> Self {
        Self::ONE
    }
}

impl fmt::Display for ItemRatio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.interpolation, self.decimation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_in_lowest_terms() {
        assert_eq!(ItemRatio::new(160, 147), ItemRatio { interpolation: 160, decimation: 147 });
        assert_eq!(ItemRatio::new(6, 4).to_string(), "3/2");
        assert_eq!(ItemRatio::new(u32::MAX, u32::MAX), ItemRatio::ONE);
    }

    #[test]
    fn offsets_stay_exact_where_floats_would_not() {
        let late = (1u64 << 53) + 1;
        assert_eq!(ItemRatio::ONE.map(late), late);
        assert_eq!(ItemRatio::new(3, 2).map(late), (late / 2) * 3 + 1);
        assert_eq!(ItemRatio::decimate(10).map(u64::MAX), u64::MAX / 10);
        assert_eq!(ItemRatio::interpolate(2).map(u64::MAX), u64::MAX);
    }

    #[test]
    fn a_delay_moves_an_item_before_the_rate_does() {
        let rate = ItemRatio::new(3, 2);
        assert_eq!([0.0, 0.5, 4.0 / 3.0, -7.0].map(|late| rate.map_late(4, late)), [6, 6, 8, 6]);
        assert_eq!(ItemRatio::ONE.map_late((1 << 53) + 1, 63.0), (1 << 53) + 64);
        assert_eq!(ItemRatio::interpolate(2).map_late(u64::MAX, 1.0), u64::MAX);
    }
}
