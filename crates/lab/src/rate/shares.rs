//! Fill levels, as a distribution in thousandths.

/// Counts shares from 0 to 1 in classes of a thousandth.
#[derive(Debug, Clone)]
pub(super) struct Shares {
    classes: Box<[u64; 1001]>,
    count: u64,
}

impl Shares {
    pub fn new() -> Self {
        Self { classes: Box::new([0; 1001]), count: 0 }
    }

    /// Counts `part` of `whole`.
    pub fn note(&mut self, part: u64, whole: u64) {
        let class = (u128::from(part) * 1000 / u128::from(whole.max(1))).min(1000);
        self.classes[class as usize] += 1;
        self.count += 1;
    }

    /// The share that a share `quantile` of those counted does not exceed, to a thousandth.
    pub fn quantile(&self, quantile: f64) -> f64 {
        let wanted = (self.count as f64 * quantile).ceil().max(1.0) as u64;
        let mut below = 0;
        let reached = self.classes.iter().position(|count| {
            below += count;
            below >= wanted
        });
        reached.unwrap_or(0) as f64 / 1000.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_known_to_a_thousandth() {
        let mut shares = Shares::new();
        assert_eq!(shares.quantile(0.5), 0.0);
        (0..=100).for_each(|part| shares.note(part, 100));
        assert_eq!((shares.quantile(0.5), shares.quantile(0.99)), (0.5, 0.99));
        shares.note(7, 0);
        assert_eq!(shares.quantile(1.0), 1.0);
    }
}
