//! Packets with launch times as records: the distances from the launch times.

use crate::samples::entries;
use millstream_lab::packets::launch::{LaunchFigures, LaunchVia, Launching};
use millstream_measure::{Measured, Observed};
use serde_json::json;
use std::collections::BTreeMap;

/// One repetition; nothing where no packet came, because a record has latencies.
pub fn measured(
    via: LaunchVia,
    how: &Launching,
    found: &LaunchFigures,
    started: String,
    seconds: f64,
) -> Option<Measured> {
    let parameters = json!({
        "via": via.name(), "frame_bytes": how.frame_bytes, "batch": how.batch,
        "interval_ns": how.interval.as_nanos() as u64, "lead_ns": how.lead.as_nanos() as u64,
        "tolerance_ns": how.tolerance.as_nanos() as u64,
        "class": how.fifo.map(|priority| format!("fifo:{priority}")),
    });
    let (sent, arrived) = (&found.sent, &found.arrived);
    let quantile = |share| arrived.offsets.quantile_ns(share);
    let details = json!({
        "cpu_s": sent.cpu_s, "queue": found.queued.as_ref().map(|queued| &queued.kind),
        "offset_ns": {
            "min": quantile(0.0), "p50": quantile(0.5), "p99": quantile(0.99), "max": quantile(1.0),
        },
    });
    let counters = [
        ("early", arrived.early),
        ("late", arrived.late),
        ("refused at the queue", sent.refusals.invalid),
        ("missed in the queue", sent.refusals.missed),
        ("dropped by the queue", found.dropped()),
        ("lost", found.lost()),
    ];
    (arrived.offsets.count() > 0).then(|| Measured {
        measurement: "launch".to_owned(),
        series: via.name().to_owned(),
        parameters: entries(parameters),
        started,
        seconds,
        observed: Observed::from(arrived.offsets.distances()),
        counters: BTreeMap::from(counters.map(|(name, count)| (name.to_owned(), count))),
        details: entries(details),
        ..Measured::default()
    })
}
