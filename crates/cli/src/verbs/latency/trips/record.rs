//! Round trips as records.

use millstream_lab::packets::job::RoundTrips;
use millstream_lab::packets::{Carriage, PathRow, Round};
use millstream_measure::{Measured, Observed};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// One repetition of a row.
pub fn measured(
    row: &PathRow,
    round: &Round,
    trips: &RoundTrips,
    started: String,
    seconds: f64,
) -> Measured {
    let mut parameters = Map::new();
    let mut set = |name: &str, value: Value| parameters.insert(name.to_owned(), value);
    set("row", row.name.clone().into());
    set("link", row.active.link.clone().into());
    set("frame_bytes", round.frame_bytes.into());
    let numbers = [("rate_pps", round.rate_pps), ("load_pps", round.load_pps)];
    for (name, value) in numbers {
        if let Some(value) = value {
            set(name, value.into());
        }
    }
    if let Some(priority) = round.fifo {
        set("class", format!("fifo:{priority}").into());
    }
    let frames = matches!(row.active.path, Carriage::Frames | Carriage::IpFrames);
    let beside = round.load_pps.map_or(String::new(), |load| format!(" beside {load:.0} pps"));
    let details = Map::from_iter([("cpu_share".to_owned(), trips.cpu_share.into())]);
    Measured {
        measurement: if frames { "link" } else { "udp" }.to_owned(),
        series: format!("{}{beside}", row.name),
        parameters,
        started,
        seconds,
        observed: Observed::from(trips.from_due.clone()),
        counters: BTreeMap::from([("lost".to_owned(), trips.lost)]),
        stages: Vec::new(),
        outliers: Vec::new(),
        details,
    }
}
