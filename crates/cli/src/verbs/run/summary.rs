//! The text after a run.

use crate::crossings;
use crate::graph_report::{GraphReport, LedgerReport};
use crate::graph_run;
use crate::output::short;
use crate::signal::SignalReport;
use millstream_flow::{BlockStats, LatencyStats};
use millstream_publish::PublishLedger;
use std::fmt::Write;

/// A line for each block and for each other result.
pub fn text(
    run: &GraphReport,
    ledgers: &[LedgerReport],
    published: &[PublishLedger],
    signals: &[SignalReport],
) -> String {
    let mut text = String::new();
    for block in &run.snapshot.blocks {
        let _ = writeln!(text, "{}", describe(block));
    }
    for latency in &run.snapshot.latency {
        let _ = writeln!(text, "{}", under_way(latency));
    }
    for line in crossings::lines(None, &run.snapshot, run.elapsed_s) {
        let _ = writeln!(text, "{line}");
    }
    for ledger in ledgers {
        let _ = writeln!(text, "ledger: {}", ledger.summary());
    }
    for ledger in published {
        let _ = writeln!(text, "published to {}: {}", ledger.to, ledger.summary());
    }
    for signal in signals {
        let _ = writeln!(text, "{}: {}", signal.receiver, signal.summary());
    }
    let _ = writeln!(text, "{:.2} s, {:.2} s of CPU", run.elapsed_s, run.cpu_s);
    text
}

fn describe(block: &BlockStats) -> String {
    let per_item = block.busy_ns as f64 / block.items_in.max(block.items_out).max(1) as f64;
    let mut text = format!(
        "{:<14} {:>10} calls {:>12} in {:>12} out {:>8.1} ns/item",
        block.name, block.calls, block.items_in, block.items_out, per_item
    );
    for metric in graph_run::metrics(block) {
        let _ = write!(text, "  {metric}");
    }
    let Some(messages) = block.messages.as_ref().filter(|messages| messages.taken > 0) else {
        return text;
    };
    let _ = write!(text, "  messages {}", messages.taken);
    if let Some(refusal) = &messages.refusal {
        let _ = write!(text, " ({} refused, the last: {refusal})", messages.refused);
    }
    text
}

/// A source's items in flight, beside its bound.
fn under_way(latency: &LatencyStats) -> String {
    let amount = |items: u64| match latency.ms(items) {
        Some(ms) => format!("{items} items ({} ms)", short(ms)),
        None => format!("{items} items"),
    };
    let LatencyStats { source, p50_items, p99_items, max_items, held_back, .. } = latency;
    let mut text = format!(
        "latency from {source}: median {}, 99 of 100 within {}, most {}",
        amount(*p50_items),
        amount(*p99_items),
        amount(*max_items)
    );
    let _ = match latency.bound_items {
        Some(bound) => write!(text, "; bound {}, held back {held_back} times", amount(bound)),
        None => write!(text, "; no bound"),
    };
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latency_is_told_in_items_and_in_time_where_the_rate_is_known() {
        let mut latency = LatencyStats {
            source: "radio".into(),
            bound_items: Some(2000),
            rate_hz: Some(1e6),
            max_items: 1900,
            p50_items: 1000,
            p99_items: 1500,
            held_back: 7,
        };
        assert_eq!(
            under_way(&latency),
            "latency from radio: median 1000 items (1 ms), 99 of 100 within 1500 items \
             (1.500 ms), most 1900 items (1.900 ms); bound 2000 items (2 ms), held back 7 times"
        );
        (latency.bound_items, latency.rate_hz) = (None, None);
        assert_eq!(
            under_way(&latency),
            "latency from radio: median 1000 items, 99 of 100 within 1500 items, most 1900 items; \
             no bound"
        );
    }
}
