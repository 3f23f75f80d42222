//! An ATSC receiver's report on the signal, as text and as JSON.

use crate::output::signed;
use millstream_atsc::blocks::Monitors;
use millstream_atsc::monitor::{LockState, MissingSamples, ReceiverStatus, StateChange};

crate::results! {
    /// One receiver's figures.
    #[derive(Debug, Clone)]
    pub struct SignalReport {
        /// The receiver's name in its graph.
        receiver: String,
        /// Its figures.
        #[serde(flatten)]
        status: ReceiverStatus,
        /// Its last changes of state.
        events: Vec<StateChange>,
        /// The last gaps in its samples that were reported to it.
        gaps: Vec<MissingSamples>,
    }
}

impl SignalReport {
    /// Every receiver of a graph.
    pub fn all(monitors: &Monitors) -> Vec<Self> {
        let report = |(receiver, monitor): (String, std::sync::Arc<_>)| {
            let monitor: &millstream_atsc::monitor::Monitor = &monitor;
            Self {
                receiver,
                status: monitor.status(),
                events: monitor.events_since(0),
                gaps: monitor.gaps_since(0),
            }
        };
        monitors.all().into_iter().map(report).collect()
    }

    /// The reason why the received signal is useless; `None` with at least one good packet.
    pub fn failure(&self) -> Option<String> {
        let ReceiverStatus { state, packets, uncorrected_packets: bad, .. } = self.status;
        if packets > bad {
            return None;
        }
        let locked = self.events.iter().any(|event| event.state == LockState::Locked);
        Some(match state {
            _ if packets > 0 => format!(
                "the signal is too weak or disturbed: none of {packets} packets could be corrected"
            ),
            LockState::Starting => "too few samples to find a signal in: give 0.1 s or more".into(),
            _ if locked => "the signal was too short to decode a packet: give 0.1 s or more".into(),
            _ => format!(
                "no ATSC signal was received: {state}; check the frequency, the rate and the \
                 format, and whether the spectrum is inverted (I and Q exchanged)"
            ),
        })
    }

    /// A line short enough for a terminal.
    pub fn brief(&self) -> String {
        let ReceiverStatus { state, mer_db, packets, uncorrected_packets, .. } = self.status;
        let mer = mer_db.filter(|_| state == LockState::Locked);
        let mer = mer.map_or(String::new(), |mer| format!("  MER {mer:.1} dB"));
        format!("{state}{mer}  {packets} packets, {uncorrected_packets} bad")
    }

    /// A summary in one line.
    pub fn summary(&self) -> String {
        let ReceiverStatus { state, mer_db, pilot_offset_hz, packets, uncorrected_packets, .. } =
            self.status;
        let mer = mer_db.map_or("MER -".to_owned(), |mer| format!("MER {mer:.1} dB"));
        let pilot = pilot_offset_hz.map(|hz| format!("  pilot {} Hz", signed(hz, 0)));
        let pilot = pilot.unwrap_or_default();
        format!("{state}  {mer}{pilot}  {packets} packets, {uncorrected_packets} uncorrected")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_atsc::monitor::Monitor;

    fn report(change: impl FnOnce(&mut ReceiverStatus)) -> SignalReport {
        let mut status = Monitor::new().status();
        change(&mut status);
        SignalReport { receiver: "atsc".to_owned(), status, events: Vec::new(), gaps: Vec::new() }
    }

    fn failure(change: impl FnOnce(&mut ReceiverStatus)) -> String {
        report(change).failure().unwrap()
    }

    #[test]
    fn one_good_packet_is_a_signal() {
        let status = |packets, uncorrected_packets| {
            report(|status| *status = ReceiverStatus { packets, uncorrected_packets, ..*status })
                .failure()
        };
        assert_eq!(status(5, 4), None);
        assert!(status(5, 5).unwrap().contains("none of 5 packets"));
    }

    #[test]
    fn what_is_missing_is_named() {
        assert!(failure(|_| ()).starts_with("too few samples"));
        let text = failure(|status| status.state = LockState::NoPilot);
        assert!(text.starts_with("no ATSC signal was received: no pilot"), "{text}");
        let mut report = report(|status| status.state = LockState::SegmentSync);
        report.events.push(StateChange { state: LockState::Locked, at_sample: 7 });
        assert!(report.failure().unwrap().contains("too short to decode a packet"));
    }

    #[test]
    fn the_live_line_of_a_locked_receiver_is_short() {
        let locked = |status: &mut ReceiverStatus| {
            *status = ReceiverStatus {
                state: LockState::Locked,
                mer_db: Some(48.12),
                packets: 123_456,
                ..*status
            }
        };
        assert_eq!(report(locked).brief(), "locked  MER 48.1 dB  123456 packets, 0 bad");
    }
}
