//! The scale of an axis.

/// The scale of an axis: its range, its label and its lines.
#[derive(Clone, Debug)]
pub struct Scale {
    low: f64,
    high: f64,
    lines: Lines,
    label: String,
}

/// The positions of an axis's lines.
#[derive(Clone, Debug)]
enum Lines {
    /// At multiples of a step.
    Every(f64),
    /// At powers of ten, and equal factors are equal distances.
    Decades,
    /// At powers of two, and equal factors are equal distances; the values are bytes.
    Doublings,
}

impl Scale {
    /// Returns a linear scale from `low` to `high`, with about so many lines; an empty range is
    /// widened.
    #[must_use]
    pub fn new(low: f64, high: f64, lines: f64, label: &str) -> Self {
        let (low, high) = if high - low > 1e-12 { (low, high) } else { (low - 0.5, low + 0.5) };
        let lines = Lines::Every(step((high - low) / lines));
        Self { low, high, lines, label: label.to_owned() }
    }

    /// Returns a logarithmic scale from `low` to `high`, both above 0, with lines at the powers of
    /// ten or, where these are few, at 1, 2 and 5 times each.
    #[must_use]
    pub fn logarithmic(low: f64, high: f64, label: &str) -> Self {
        let low = low.max(f64::MIN_POSITIVE);
        let high = high.max(low * 1.001);
        Self { low, high, lines: Lines::Decades, label: label.to_owned() }
    }

    /// Returns a logarithmic scale of sizes in bytes, with lines at the powers of two.
    #[must_use]
    pub fn bytes(low: f64, high: f64, label: &str) -> Self {
        Self { lines: Lines::Doublings, ..Self::logarithmic(low, high, label) }
    }

    /// Returns the axis's label.
    pub(super) fn label(&self) -> &str {
        &self.label
    }

    /// Returns the value on the axis that is nearest to `value`.
    pub(super) fn nearest(&self, value: f64) -> f64 {
        value.clamp(self.low, self.high)
    }

    /// Returns the share of the way from low to high.
    pub(super) fn share(&self, value: f64) -> f64 {
        match self.lines {
            Lines::Every(_) => (value - self.low) / (self.high - self.low),
            _ => (value.max(self.low) / self.low).ln() / (self.high / self.low).ln(),
        }
    }

    /// Returns the values that have a line.
    pub(super) fn lines(&self) -> Vec<f64> {
        match self.lines {
            Lines::Every(step) => {
                let first = (self.low / step - 1e-9).ceil();
                let count = ((self.high / step + 1e-9).floor() - first).max(0.0) as u32;
                (0..=count).map(|n| (first + f64::from(n)) * step).collect()
            }
            Lines::Doublings => {
                let powers = self.low.log2().ceil() as i32..=self.high.log2().floor() as i32;
                powers.map(|power| f64::from(power).exp2()).collect()
            }
            Lines::Decades => {
                let first = (self.low.log10() - 1e-9).ceil() as i32;
                let last = (self.high.log10() + 1e-9).floor() as i32;
                let powers = |power| 10f64.powi(power);
                if last - first >= 2 {
                    return (first..=last).map(powers).collect();
                }
                // Few powers of ten: also the steps between them.
                let steps = (first - 1..=last).flat_map(|n| [1.0, 2.0, 5.0].map(|k| k * powers(n)));
                steps.filter(|value| (self.low..=self.high).contains(value)).collect()
            }
        }
    }

    /// Returns the text at the line of a value.
    pub(super) fn word(&self, value: f64) -> String {
        let step = match self.lines {
            Lines::Every(step) => step,
            Lines::Decades => return decade(value),
            Lines::Doublings if value >= 1_048_576.0 => {
                return format!("{} MiB", value / 1_048_576.0);
            }
            Lines::Doublings => return format!("{} KiB", value / 1024.0),
        };
        let digits = (-step.log10().floor()).clamp(0.0, 6.0) as usize;
        // Not -0.
        let value = if value.abs() < step / 2.0 { 0.0 } else { value };
        format!("{value:.digits$}")
    }
}

/// Returns the largest of 1, 2 or 5 times a power of ten that is not above `about`.
fn step(about: f64) -> f64 {
    let power = 10f64.powf(about.log10().floor());
    let lead = about / power;
    power * [5.0, 2.0].into_iter().find(|step| lead >= *step).unwrap_or(1.0)
}

/// Formats a small multiple of a power of ten in usual notation.
fn decade(value: f64) -> String {
    match value {
        _ if value >= 0.99e9 => format!("{value:.0e}"),
        _ if value >= 0.99e6 => format!("{:.0} M", value / 1e6),
        _ if value >= 0.99e3 => format!("{:.0} k", value / 1e3),
        _ if value >= 0.99 => format!("{value:.0}"),
        // The digits that a power of ten, or a multiple, needs.
        _ => format!("{value:.*}", (-value.log10()).ceil().clamp(0.0, 12.0) as usize),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_at_round_numbers_within_the_axis() {
        let scale = Scale::new(-3.1, 3.1, 6.0, "MHz");
        let lines = scale.lines();
        assert_eq!(lines, [-3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0]);
        assert_eq!(scale.word(-0.0), "0");
        let scale = Scale::new(0.0, 0.06, 6.0, "");
        assert_eq!((scale.lines().len(), scale.word(0.01)), (7, "0.01".to_owned()));
        let first = Scale::new(5.0, 5.0, 4.0, "").lines()[0];
        assert!((first - 4.6).abs() < 1e-9, "{first}");
    }

    #[test]
    fn equal_factors_are_equal_distances() {
        let scale = Scale::logarithmic(0.5, 5e4, "");
        assert_eq!(scale.lines(), [1.0, 10.0, 100.0, 1e3, 1e4]);
        let words: Vec<_> = scale.lines().into_iter().map(|value| scale.word(value)).collect();
        assert_eq!(words, ["1", "10", "100", "1 k", "10 k"]);
        let step = scale.share(10.0) - scale.share(1.0);
        assert!((scale.share(1e4) - scale.share(1e3) - step).abs() < 1e-12);
        assert_eq!((scale.share(0.0), scale.share(5e4)), (0.0, 1.0));
        let sizes = Scale::bytes(300_000.0, 4_194_304.0, "");
        let words: Vec<_> = sizes.lines().into_iter().map(|value| sizes.word(value)).collect();
        assert_eq!(words, ["512 KiB", "1 MiB", "2 MiB", "4 MiB"]);
        assert_eq!(Scale::logarithmic(30.0, 600.0, "").lines(), [50.0, 100.0, 200.0, 500.0]);
    }
}
