//! The text of the result.

use super::Args;
use crate::table::Table;
use millstream_lab::buffer;
use millstream_lab::turnaround::LeadResult;
use millstream_measure::picture::{draw, short_time};
use millstream_stats::Histogram;
use std::fmt::Write;

/// Formats turnarounds, and the tries of each lead.
pub fn of(args: &Args, histogram: &Histogram, leads: &[LeadResult], safe: Option<f64>) -> String {
    let (rate_mhz, wait) = (args.rate / 1e6, if args.spin { "spinning" } else { "sleeping" });
    let mut text = format!(
        "turnaround at {rate_mhz} MS/s, {wait} host, {} tries\n{}",
        histogram.count(),
        draw(histogram)
    );
    let quantiles = [("median", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];
    let quantiles = quantiles
        .map(|(name, share)| format!("{name} {}", short_time(histogram.quantile_ns(share))));
    let (min, max) = (short_time(histogram.min_ns()), short_time(histogram.max_ns()));
    let _ = writeln!(text, "min {min}  {}  max {max}", quantiles.join("  "));
    if !leads.is_empty() {
        let late = |lead: &LeadResult| lead.late as f64 / lead.tries.max(1) as f64;
        let table = Table::of(leads)
            .right("        lead", |lead| short_time((lead.lead_s * 1e9) as u64))
            .right("late", |lead| format!("{:.1} %", late(lead) * 100.0))
            .right("predicted", |lead| format!("{:.1} %", lead.predicted * 100.0));
        text += &format!("\n{}", table.text());
    }
    if let Some(safe_s) = safe {
        let _ = writeln!(
            text,
            "smallest lead that was never late in {} tries: {} ({} samples)",
            leads.first().map_or(0, |lead| lead.tries),
            short_time((safe_s * 1e9) as u64),
            buffer::samples_for(safe_s, args.rate)
        );
    }
    text
}
