//! Round trips through a port as records.

use millstream_lab::packets::port::{PortCase, PortFigures, PortTopology, Probing};
use millstream_measure::{Measured, Observed};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// One repetition of a case.
pub fn measured(
    case: &PortCase,
    how: &Probing,
    found: &PortFigures,
    started: String,
    seconds: f64,
) -> Measured {
    let mut parameters = Map::from_iter([
        ("topology".to_owned(), json!(case.topology)),
        ("port_bps".to_owned(), case.rate_bps.into()),
        ("frame_bytes".to_owned(), how.frame_bytes.into()),
        ("rate_pps".to_owned(), how.rate_pps.into()),
    ]);
    let mut set = |name: &str, value: Value| parameters.insert(name.to_owned(), value);
    if case.topology != PortTopology::Shared {
        set("bulk_frame_bytes", case.bulk.frame_bytes.into());
        set("bulk_share", case.bulk.share.into());
        set("bulk_burst", case.bulk.burst.into());
    }
    if case.topology == PortTopology::Bulk {
        set("queue_packets", case.queue.into());
    }
    if let Some(priority) = how.fifo {
        set("class", format!("fifo:{priority}").into());
    }
    let counters = BTreeMap::from([
        ("lost".to_owned(), found.trips.lost),
        ("dropped by the port's queue".to_owned(), u64::from(found.queued.drops)),
    ]);
    // The predicted waits for other frames.
    let waits = case.waits(found.busy);
    let wait_ns = |quantile| waits.quantile_ns(quantile);
    let details = Map::from_iter([
        ("cpu_share".to_owned(), found.trips.cpu_share.into()),
        ("bound".to_owned(), json!(case.bound())),
        ("busy".to_owned(), found.busy.into()),
        ("wait_ns".to_owned(), json!({"p50": wait_ns(0.5), "p99": wait_ns(0.99)})),
        ("bulk_offered".to_owned(), found.offered.into()),
        ("port_sent_packets".to_owned(), found.queued.packets.into()),
        ("port_sent_bytes".to_owned(), found.queued.bytes.into()),
        ("queue".to_owned(), found.queued.kind.clone().into()),
    ]);
    Measured {
        measurement: "port".to_owned(),
        series: case.name(),
        parameters,
        started,
        seconds,
        observed: Observed::from(found.trips.from_due.clone()),
        counters,
        stages: Vec::new(),
        outliers: Vec::new(),
        details,
    }
}
