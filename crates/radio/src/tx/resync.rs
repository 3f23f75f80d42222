//! The accounting behind a RESYNC: where the device is, and whether its count may lack packets.

use millstream_wire::chdr::PacketType;
use millstream_wire::stream::SequenceGap;

use super::accounting::TxAccounting;
use super::audits::Audit;
use super::window::Totals;

impl TxAccounting {
    /// Handles a device that has taken over our totals as of this count query. `missing`: how much
    /// less it had counted than was sent before, if known.
    pub(super) fn resynchronised(
        &mut self,
        audit: &Audit,
        missing: Option<Totals>,
        counted: Totals,
        commands: u64,
    ) -> bool {
        if missing.is_some_and(|missing| self.window.audited(missing)) {
            self.course.crowd(counted.bytes);
        }
        self.window.resynchronised();
        let less = missing.map_or(0, |missing| missing.packets as i64);
        self.uncounted = self.uncounted.saturating_add(less);
        let lag = match missing {
            Some(missing) => u64::try_from(self.course.lag(missing.packets)).ok(),
            None => audit.accepted.then_some(0),
        };
        // Where a report is missing, a count that lacks packets may agree by chance: packets that
        // the commands overtook hide copies. No later count shows that. Where it may lack packets
        // itself, it shows no place.
        let blind = self.course.is_blind();
        let doubtful = blind || self.course.suspect.is_some();
        let whole = |lag: u64| !doubtful && (lag == 0 || !self.unsure);
        let place = lag.filter(|&lag| whole(lag)).and_then(|lag| audit.sent.checked_sub(lag));
        let known = place.is_some_and(|place| {
            self.course.apply_counts(place, audit.sent, commands, counted.bytes)
        });
        if !known {
            let short = self.course.resolve(None, audit.sent, commands, counted.bytes);
            // These packets may still come, and then count in the place of longer ones.
            self.course.ledger.doubt_transmitted(short);
        }
        // The earlier count no longer applies.
        self.course.take_surplus();
        self.course.set_right(audit.sent, place.filter(|_| known), counted.bytes);
        self.course.loose_count = blind.then_some(counted.packets);
        self.straight = true;
        // Samples that were sent behind it may have come before it, and missing ones between the
        // last report and it.
        let lacks = known && lag > Some(0);
        let hidden = lacks && (self.unsure || !self.audits.was_direct());
        self.unsure = hidden || audit.sent != self.course.record.sent();
        // What the first query behind it missed may also have come between its PINGs and it.
        let again = self.overtaken.filter(|&sent| sent == audit.sent);
        self.overtaken = if lacks && !audit.repeats { Some(audit.sent) } else { again };
        known
    }

    /// Compares the count of `counted` packets with the number that the device expected when a
    /// packet with another one came. If they agree, the count lacks no packet.
    pub(super) fn check_count(&mut self, gap: SequenceGap, counted: u64, commands: u64) {
        if !self.unsure || gap.kind == PacketType::StreamCommand || self.course.is_blind() {
            return;
        }
        let lacks = self.course.lacks(gap.expected, counted, commands);
        if lacks == Some(0) {
            self.unsure = false;
        } else if let Some(lacks) = lacks
            && self.audits.is_empty()
            && self.straight
        {
            // No command is on its way: it lacks that many packets for good.
            self.course.shift += lacks;
            self.unsure = false;
        }
    }
}
