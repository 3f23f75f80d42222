//! Measures how much a device's count grows with a PING.
//!
//! Devices differ: the FPGA's logic counts a PING as a packet, others do not. A wrong assumption
//! would let samples seem lost that the device has taken, so the handshake measures it, before
//! samples flow, between two RESYNCs that name the measurement:
//! ```text
//! RESYNC to base ─▶ base, or more where a device counts the RESYNC
//! PING ───────────▶ so much more
//! RESYNC further ─▶ the answers before are complete
//! ```
//! The count of the logic is the usual case, and one measurement shows it. A lost or repeated
//! packet can imitate another one: that takes several equal measurements.

use millstream_wire::Width;
use millstream_wire::stream::{CommandOp, StatusRepr, StreamCondition};

use super::handshake::command_bytes;
use super::window::{Totals, usual_ping};

/// The attempts. Each fails when one of its packets is lost.
const MEASUREMENTS: u64 = 5;

/// The measurements in a row that must agree about an unusual device.
const AGREEING: u32 = 3;

/// The packets and bytes from one RESYNC to the next: more than the commands themselves count.
const STEP: Totals = Totals { packets: 1000, bytes: 4_096_000 };

/// The measurements of a device's counts, one after the other. Without a result, the usual case is
/// assumed.
#[derive(Debug)]
pub(super) struct Counting {
    usual: Totals,
    turn: u64,
    /// The last result, and how many in a row were equal.
    last: Totals,
    agreeing: u32,
    measurement: Measurement,
    /// What the present measurement shows, if it does.
    found: Option<Totals>,
}

impl Counting {
    /// Begins the first measurement.
    pub fn new(width: Width) -> Self {
        let usual = usual_ping(command_bytes(width));
        let measurement = Measurement::of(0, usual);
        Self { usual, turn: 0, last: usual, agreeing: 0, measurement, found: None }
    }

    /// Returns the command at a place of the present measurement, and its number; `None` behind the
    /// last one.
    pub fn command(&self, place: usize) -> Option<(u16, CommandOp, Totals)> {
        let (op, totals) = *self.measurement.commands().get(place)?;
        Some((3 * self.turn as u16 + place as u16, op, totals))
    }

    /// Returns the answers to commands of the present measurement.
    pub fn answers(&self) -> usize {
        self.measurement.answers as usize
    }

    /// Takes a status. Returns true once the last command was answered.
    pub fn take(&mut self, status: &StatusRepr) -> bool {
        let taken = self.measurement.take(status);
        self.found = taken.flatten().or(self.found);
        taken.is_some()
    }

    /// Concludes the present measurement. Returns the result; `None` when the next one is begun.
    pub fn result(&mut self) -> Option<Totals> {
        match self.found.take() {
            Some(ping) if ping == self.usual => return Some(ping),
            Some(ping) => {
                self.agreeing = if ping == self.last { self.agreeing + 1 } else { 1 };
                self.last = ping;
                if self.agreeing == AGREEING {
                    return Some(ping);
                }
            }
            None => {}
        }
        self.turn += 1;
        self.measurement = Measurement::of(self.turn, self.usual);
        (self.turn == MEASUREMENTS).then_some(self.usual)
    }
}

/// One measurement: its RESYNCs, and the counts since the first of them.
#[derive(Debug)]
struct Measurement {
    base: Totals,
    further: Totals,
    most: Totals,
    /// The first count and the last one, and their number.
    first: Totals,
    last: Totals,
    answers: u32,
}

impl Measurement {
    fn of(turn: u64, usual: Totals) -> Self {
        let at = |steps: u64| Totals { packets: steps * STEP.packets, bytes: steps * STEP.bytes };
        Self {
            base: at(2 * turn + 1),
            further: at(2 * turn + 2),
            most: usual.and(usual),
            first: Totals::default(),
            last: Totals::default(),
            answers: 0,
        }
    }

    fn commands(&self) -> [(CommandOp, Totals); 3] {
        [
            (CommandOp::Resync, self.base),
            (CommandOp::Ping, Totals::default()),
            (CommandOp::Resync, self.further),
        ]
    }

    /// Takes a status. Returns the result once the last command was answered: `Some(None)` when
    /// answers are missing or contradict each other.
    fn take(&mut self, status: &StatusRepr) -> Option<Option<Totals>> {
        if status.status != StreamCondition::Ok {
            return None;
        }
        let counted = Totals { packets: status.count_packets, bytes: status.count_bytes };
        let is_small =
            |above: Totals| above.packets <= self.most.packets && above.bytes <= self.most.bytes;
        let (above, further) = (counted.since(self.base), counted.since(self.further));
        if is_small(further) {
            let ping = self.last.since(self.first);
            let is_right = self.answers >= 2 && further == self.first && is_small(ping);
            return Some(is_right.then_some(ping));
        }
        if is_small(above) {
            if self.answers == 0 {
                self.first = above;
            }
            self.last = above;
            self.answers += 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USUAL: u64 = 24;

    fn result(turn: u64, counts: &[(u64, u64)]) -> Option<Option<Totals>> {
        let mut measurement = Measurement::of(turn, usual_ping(USUAL));
        counts.iter().find_map(|&(count_packets, count_bytes)| {
            measurement.take(&StatusRepr { count_packets, count_bytes, ..StatusRepr::default() })
        })
    }

    fn ping(packets: u64, bytes: u64) -> Option<Option<Totals>> {
        Some(Some(Totals { packets, bytes }))
    }

    #[test]
    fn each_way_of_counting_is_found() {
        let usual = ping(1, USUAL);
        assert_eq!(result(0, &[(1000, 4_096_000), (1001, 4_096_024), (2000, 8_192_000)]), usual);
        let each = [(1001, 4_096_024), (1002, 4_096_048), (2001, 8_192_024)];
        assert_eq!(result(0, &each), usual, "it counts each RESYNC, too");
        let late = [(2001, 8_192_024), (3001, 12_288_024), (3002, 12_288_048), (4001, 16_384_024)];
        assert_eq!(result(1, &late), usual, "an answer of the measurement before is passed over");
        let no_ping = [(1001, 4_096_024), (1001, 4_096_024), (2001, 8_192_024)];
        assert_eq!(result(0, &no_ping), ping(0, 0));
        let shorter = [(1001, 4_096_016), (1001, 4_096_016), (2001, 8_192_016)];
        assert_eq!(result(0, &shorter), ping(0, 0));
        // It reports by its period, too.
        let twice = [(1000, 4_096_000), (1000, 4_096_000), (1001, 4_096_024), (2000, 8_192_000)];
        assert_eq!(result(0, &twice), usual);
    }

    #[test]
    fn lost_answers_are_no_result() {
        assert_eq!(result(0, &[(1001, 4_096_024), (1002, 4_096_048)]), None);
        assert_eq!(result(0, &[(1001, 4_096_024), (2001, 8_192_024)]), Some(None));
        assert_eq!(
            result(0, &[(1002, 4_096_048), (1001, 4_096_024), (2001, 8_192_024)]),
            Some(None)
        );
        assert_eq!(result(0, &[(7, 999), (u64::MAX, u64::MAX), (2001, 8_192_024)]), Some(None));
        // The answer to the first RESYNC is missing.
        assert_eq!(result(0, &[(1002, 4_096_048), (2001, 8_192_024)]), Some(None));
    }
}
