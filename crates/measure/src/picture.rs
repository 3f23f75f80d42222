//! A histogram for the terminal.

use crate::{Histogram, Summary};
use std::fmt::Write;

/// The largest number of rows of a picture.
const ROWS: usize = 20;
/// The least factor between the latencies of two rows.
const STEP_MIN: f64 = 1.1;
/// Characters of the longest bar.
const BAR_CHARS: usize = 50;

/// Draws a histogram: a row per class of latencies, with the share of values and a bar. Classes
/// grow by a constant factor, so that a long tail stays visible; a non-empty row shows at least a
/// dot.
///
/// ```text
///      12 µs    3.1 %  ██▌
///      15 µs   90.2 %  ██████████████████████████████████████████████████
///     120 µs   0.01 %  ·
/// ```
pub fn draw(histogram: &Histogram) -> String {
    let mut text = String::new();
    if histogram.count() == 0 {
        return text;
    }
    let rows = rows(histogram);
    let most = rows.iter().map(|row| row.1).max().unwrap_or(1).max(1);
    for (upper_ns, count) in rows {
        let share = count as f64 / histogram.count() as f64 * 100.0;
        let (time, bar) = (short_time(upper_ns), bar(count, most));
        let _ = writeln!(text, "  {time:>10}  {:>8} %  {bar}", short_share(share));
    }
    text
}

/// Formats a time with the unit that fits it.
pub fn short_time(ns: u64) -> String {
    let ns = ns as f64;
    let (value, unit) = match ns {
        _ if ns < 1e3 => (ns, "ns"),
        _ if ns < 1e6 => (ns / 1e3, "µs"),
        _ if ns < 1e9 => (ns / 1e6, "ms"),
        _ => (ns / 1e9, "s"),
    };
    let digits = if unit == "ns" || value >= 100.0 { 0 } else { 1 };
    format!("{value:.digits$} {unit}")
}

/// Formats a ratio with three significant digits, also far from 1.
pub fn short_ratio(ratio: f64) -> String {
    // The exponent after rounding: 0.9996 has that of 1.00.
    let rounded = format!("{ratio:.2e}");
    let exponent = rounded.split_once('e').and_then(|(_, digits)| digits.parse::<i32>().ok());
    match exponent {
        Some(exponent @ -5..=5) => format!("{ratio:.*}", (2 - exponent).max(0) as usize),
        _ => rounded,
    }
}

/// Formats a ratio with the smallest and the largest: `1.02 (0.98-1.10)`.
pub fn short_spread(ratio: &Summary) -> String {
    let [median, min, max] = [ratio.median, ratio.min, ratio.max].map(short_ratio);
    format!("{median} ({min}-{max})")
}

fn short_share(percent: f64) -> String {
    match percent {
        0.0 => "0".to_owned(),
        _ if percent < 0.001 => format!("{percent:.0e}"),
        _ if percent < 1.0 => format!("{percent:.3}"),
        _ => format!("{percent:.1}"),
    }
}

/// Returns the upper edge and count of each row: equal steps of the logarithm from the smallest to
/// the largest.
fn rows(histogram: &Histogram) -> Vec<(u64, u64)> {
    let (low, high) = (histogram.min_ns().max(1) as f64, histogram.max_ns().max(1) as f64);
    let span = (high / low).ln();
    let count = (span / STEP_MIN.ln()).ceil().clamp(1.0, ROWS as f64);
    let edge = |row: f64| (low * (span * row / count).exp()).round() as u64;
    let mut rows: Vec<_> = (1..=count as u32).map(|row| (edge(row.into()), 0)).collect();
    for (upper_ns, values) in histogram.classes() {
        let row = rows.partition_point(|row| row.0 < upper_ns).min(rows.len() - 1);
        rows[row].1 += values;
    }
    rows
}

fn bar(count: u64, most: u64) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (count as f64 / most as f64 * (BAR_CHARS * 8) as f64).round() as usize;
    match (count, eighths) {
        (0, _) => String::new(),
        (_, 0) => "·".to_owned(),
        _ => format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_is_in_a_row_and_rare_ones_show() {
        let mut histogram = Histogram::default();
        histogram.record_many(10_000, 10_000);
        histogram.record(9_000_000);
        let picture = draw(&histogram);
        let lines: Vec<_> = picture.lines().collect();
        assert_eq!(lines.len(), ROWS);
        assert!(lines[0].ends_with(&"█".repeat(BAR_CHARS)), "{picture}");
        assert!(lines[ROWS - 1].contains("9.0 ms") && lines[ROWS - 1].ends_with('·'), "{picture}");
        assert_eq!(rows(&histogram).iter().map(|row| row.1).sum::<u64>(), 10_001);
    }

    #[test]
    fn a_ratio_keeps_three_digits_whatever_its_size() {
        for (ratio, text) in [
            (0.0024, "0.00240"),
            (0.9996, "1.00"),
            (0.07, "0.0700"),
            (1.234, "1.23"),
            (12.345, "12.3"),
            (417.4, "417"),
            (4170.4, "4170"),
            (0.0, "0.00"),
            (2.5e-9, "2.50e-9"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(short_ratio(ratio), text);
        }
        let quick = Summary { min: 0.0021, median: 0.0024, max: 0.0031, count: 3 };
        assert_eq!(short_spread(&quick), "0.00240 (0.00210-0.00310)");
    }

    #[test]
    fn equal_values_make_one_row_and_no_values_none() {
        let mut histogram = Histogram::default();
        assert_eq!(draw(&histogram), "");
        histogram.record(0);
        assert_eq!(draw(&histogram).lines().count(), 1);
    }

    #[test]
    fn times_have_the_unit_that_fits() {
        let times = [7, 1_500, 262_144, 80_000_000, 3_000_000_000].map(short_time);
        assert_eq!(times, ["7 ns", "1.5 µs", "262 µs", "80.0 ms", "3.0 s"]);
    }
}
