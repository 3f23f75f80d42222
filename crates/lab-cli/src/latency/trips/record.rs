//! Round trips as records.

use crate::samples::entries;
use millstream_lab::packets::job::RoundTrips;
use millstream_lab::packets::{Carriage, PathRow, Round};
use millstream_measure::{Measured, Observed};
use serde_json::json;
use std::collections::BTreeMap;

/// What a repetition found, and the way of its packets.
pub struct FoundTrips<'f> {
    /// The round trips.
    pub trips: &'f RoundTrips,
    /// The topology.
    pub topology: &'f str,
    /// Frames that the bridge between both sides received meanwhile, if there is one.
    pub bridged: Option<u64>,
}

/// One repetition of a row.
pub fn measured(
    row: &PathRow,
    round: &Round,
    found: &FoundTrips,
    started: String,
    seconds: f64,
) -> Measured {
    let FoundTrips { trips, topology, bridged } = found;
    let frames = matches!(row.active.path, Carriage::Frames | Carriage::IpFrames);
    let beside = round.load_pps.map_or(String::new(), |load| format!(" beside {load:.0} pps"));
    let parameters = json!({
        "row": row.name, "link": row.active.link, "frame_bytes": round.frame_bytes,
        "rate_pps": round.rate_pps, "load_pps": round.load_pps,
        "class": round.fifo.map(|priority| format!("fifo:{priority}")),
    });
    Measured {
        measurement: if frames { "link" } else { "udp" }.to_owned(),
        series: format!("{}{beside}", row.name),
        parameters: entries(parameters),
        topology: (*topology).to_owned(),
        started,
        seconds,
        observed: Observed::from(trips.from_due.clone()),
        counters: BTreeMap::from([("lost".to_owned(), trips.lost)]),
        details: entries(json!({ "cpu_share": trips.cpu_share, "bridge_frames": bridged })),
        ..Measured::default()
    }
}
