//! A histogram for the terminal.

use millstream_stats::{Histogram, SharedHistogram, Summary, short_ratio};
use std::fmt::Write;

/// The largest number of rows of a picture.
const ROWS: usize = 20;
/// The least factor between the latencies of two rows.
const STEP_MIN: f64 = 1.1;
/// Characters of the longest bar.
const BAR_CHARS: usize = 50;
/// Heights of a bar, from the lowest that is not nothing.
const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

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

/// Describes a distribution of latencies in one line: a bar for each factor of two, from the first
/// class with a value to the last. A bar is one step higher for ten times as many values, so that a
/// single late one shows.
#[must_use]
pub fn line(histogram: &SharedHistogram<0>) -> String {
    let counts: Vec<(u64, u64)> = histogram.counts().collect();
    let held = |(_, count): &(u64, u64)| *count > 0;
    let (Some(first), Some(last)) = (counts.iter().position(held), counts.iter().rposition(held))
    else {
        return "nothing yet".to_owned();
    };
    let bar = |(_, count): &(u64, u64)| match count.checked_ilog10() {
        None => ' ',
        Some(tens) => HEIGHTS[(tens as usize).min(HEIGHTS.len() - 1)],
    };
    let bars: String = counts[first..=last].iter().map(bar).collect();
    let from_ns = first.checked_sub(1).map_or(0, |below| counts[below].0 + 1);
    let [from, to] = [from_ns, histogram.max()].map(short_time);
    format!("{from} {bars} {to}, {} in all", histogram.count())
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
    fn a_spread_has_the_middle_first() {
        let quick = Summary { min: 0.0021, median: 0.0024, max: 0.0031, count: 3 };
        assert_eq!(short_spread(&quick), "0.00240 (0.00210-0.00310)");
    }

    #[test]
    fn a_lone_late_value_shows_in_a_line() {
        let live = SharedHistogram::default();
        assert_eq!(line(&live), "nothing yet");
        (0..1000).for_each(|_| live.record(300));
        (0..20).for_each(|_| live.record(600));
        live.record(9_000);
        assert_eq!(line(&live), "256 ns ▄▂   ▁ 9.0 µs, 1021 in all");
        live.record(0);
        assert!(line(&live).starts_with("0 ns ▁"), "{}", line(&live));
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
