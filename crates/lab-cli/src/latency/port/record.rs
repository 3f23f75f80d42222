//! Round trips through a port as records.

use crate::samples::entries;
use millstream_lab::packets::port::{PortCase, PortFigures, PortTopology, Probing};
use millstream_measure::{Measured, Observed};
use serde_json::json;
use std::collections::BTreeMap;

/// One repetition of a case.
pub fn measured(
    case: &PortCase,
    how: &Probing,
    found: &PortFigures,
    started: String,
    seconds: f64,
) -> Measured {
    let bulk = (case.topology != PortTopology::Shared).then_some(case.bulk);
    let queue = (case.topology == PortTopology::Bulk).then_some(case.queue);
    let parameters = json!({
        "topology": case.topology, "port_bps": case.rate_bps, "frame_bytes": how.frame_bytes,
        "rate_pps": how.rate_pps, "bulk_frame_bytes": bulk.map(|bulk| bulk.frame_bytes),
        "bulk_share": bulk.map(|bulk| bulk.share), "bulk_burst": bulk.map(|bulk| bulk.burst),
        "queue_packets": queue, "class": how.fifo.map(|priority| format!("fifo:{priority}")),
    });
    // The predicted waits for other frames.
    let waits = case.waits(found.busy);
    let wait_ns = |quantile| waits.quantile_ns(quantile);
    let details = json!({
        "cpu_share": found.trips.cpu_share, "bound": case.bound(), "busy": found.busy,
        "wait_ns": {"p50": wait_ns(0.5), "p99": wait_ns(0.99)}, "bulk_offered": found.offered,
        "port_sent_packets": found.queued.packets, "port_sent_bytes": found.queued.bytes,
        "queue": found.queued.kind,
    });
    Measured {
        measurement: "port".to_owned(),
        series: case.name(),
        parameters: entries(parameters),
        started,
        seconds,
        observed: Observed::from(found.trips.from_due.clone()),
        counters: BTreeMap::from([
            ("lost".to_owned(), found.trips.lost),
            ("dropped by the port's queue".to_owned(), u64::from(found.queued.drops)),
        ]),
        details: entries(details),
        ..Measured::default()
    }
}
