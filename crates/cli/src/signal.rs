//! What an ATSC receiver says about the signal, for people and for JSON.

use millstream_atsc::blocks::Monitors;
use millstream_atsc::monitor::{Event, LockState, Status};
use serde::Serialize;

/// One receiver's figures.
#[derive(Debug, Clone, Serialize)]
pub struct SignalReport {
    /// The receiver's name in its graph.
    pub receiver: String,
    /// Its figures.
    #[serde(flatten)]
    pub status: Status,
    /// Its last changes of state.
    pub events: Vec<Event>,
}

impl SignalReport {
    /// Every receiver of a graph.
    pub fn all(monitors: &Monitors) -> Vec<Self> {
        let report = |(receiver, monitor): (String, std::sync::Arc<_>)| {
            let monitor: &millstream_atsc::monitor::Monitor = &monitor;
            Self { receiver, status: monitor.status(), events: monitor.events_since(0) }
        };
        monitors.all().into_iter().map(report).collect()
    }

    /// Whether it was locked at any time.
    pub fn ever_locked(&self) -> bool {
        self.status.packets > 0 || self.events.iter().any(|event| event.state == LockState::Locked)
    }

    /// One line for people.
    pub fn summary(&self) -> String {
        let Status { state, mer_db, pilot_offset_hz, packets, uncorrected_packets, .. } =
            self.status;
        let mer = mer_db.map_or("MER -".to_owned(), |mer| format!("MER {mer:.1} dB"));
        let pilot = pilot_offset_hz.map_or(String::new(), |hz| format!("  pilot {hz:+.0} Hz"));
        format!("{state}  {mer}{pilot}  {packets} packets, {uncorrected_packets} uncorrected")
    }
}
