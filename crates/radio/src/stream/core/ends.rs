//! The ends of captures that did not come.

use super::RxCore;
use crate::Cause;
use crate::stream::arrival::Arrival;
use crate::stream::meta::RxEvent;
use crate::stream::numbers::PacketGap;
use crate::stream::recovery::Step;
use crate::stream::run::Mode;

impl RxCore {
    /// Handles a timed start that the device discarded.
    pub(super) fn late_command(&mut self) -> Option<Step> {
        self.late_commands_seen += 1;
        match self.run.mode() {
            Mode::Continuous if self.run.restart().is_some() => {
                return self.run.discard_restart().map(|attempts| Step::Restart { attempts });
            }
            Mode::Finite { left } if self.run.awaited().is_some() => {
                self.books.lose(Cause::LateCommand, left);
                self.end_burst(RxEvent::LateCommand);
            }
            Mode::Continuous if self.run.awaited().is_some() => {
                self.end_burst(RxEvent::LateCommand);
            }
            _ => {}
        }
        None
    }

    /// Counts the end of a finite capture as lost. The device reported an overrun, or had no credit
    /// for all of it, or its start may have been too late; otherwise its packets were lost.
    pub(super) fn lose_tail(&mut self, samples: u64) {
        let spp = u64::from(self.samples_per_packet);
        let packets = samples.div_ceil(spp);
        let damaged = self.numbers.damaged_ahead(packets);
        let overrun = self.new_overrun();
        let never_began = !self.numbers.has_begun() && self.run.awaited().is_some();
        let kept = samples > self.surely_sent_samples();
        let mixed = (1..packets).contains(&damaged) && samples % spp != 0;
        let whole = match overrun {
            Some(_) if overrun == self.numbers.next_ticks() => Some(Cause::DeviceOverrun),
            None if !never_began && !kept && !mixed => None,
            _ => Some(Cause::Unknown),
        };
        let gap = PacketGap { packets, damaged, in_packets: samples, ..PacketGap::default() };
        self.books.lose_end(&gap, whole, self.reports.queue_drops);
        self.numbers.lose_end(packets, samples);
        self.end_burst(match overrun {
            Some(_) => RxEvent::Overrun { samples },
            None => RxEvent::SequenceGap { packets, samples },
        });
    }

    /// Returns the samples for which the device had credit behind the newest packet that came.
    fn surely_sent_samples(&self) -> u64 {
        let packets = self.credit.window_packets();
        let packets = packets.saturating_sub(self.credit.unreported_packets());
        packets.saturating_mul(self.samples_per_packet.into())
    }

    /// Returns whether a packet lies behind the end of the current capture.
    pub(super) fn is_of_a_later_capture(&self, arrival: &Arrival) -> bool {
        let Some(left) = self.run.left().filter(|_| self.run.has_queued_captures()) else {
            return false;
        };
        // The newest packet of a capture is followed by the capture's own end, not by another
        // capture.
        let begun = self.run.awaited().is_none() && self.numbers.has_begun();
        if begun && left > 0 && self.numbers.missing_before(arrival) == 0 {
            return false;
        }
        let times = arrival.ticks.zip(self.numbers.next_ticks());
        times.is_some_and(|(ticks, due)| {
            (self.path.rate.ticks(left)..1 << 48).contains(&ticks.wrapping_sub(due))
        })
    }

    /// Gives up the rest of the current capture, because a packet of a later one arrived.
    pub(super) fn give_up_capture(&mut self, arrival: &Arrival) {
        let Some(left) = self.run.left() else { return };
        let awaited = self.run.awaited().is_some();
        if awaited && self.reports.late_commands != self.late_commands_seen {
            self.late_commands_seen += 1;
            self.books.lose(Cause::LateCommand, left);
            return self.end_burst(RxEvent::LateCommand);
        }
        // Of the missing packets, those that fit into the rest of this capture.
        let spp = u64::from(self.samples_per_packet);
        let packets = self.numbers.missing_before(arrival).min(left.div_ceil(spp));
        let damaged = self.numbers.damaged_ahead(packets);
        self.numbers.pass_over(packets, left);
        let whole = match packets {
            // The start of a capture that never began may have been too late.
            0 if !awaited => Some(Cause::DeviceOverrun),
            packets if packets > 0 && packets * spp >= left => None,
            _ => Some(Cause::Unknown),
        };
        let gap = PacketGap { packets, damaged, in_packets: left, ..PacketGap::default() };
        self.books.lose_end(&gap, whole, self.reports.queue_drops);
        self.end_burst(match packets {
            0 => RxEvent::Overrun { samples: left },
            packets => RxEvent::SequenceGap { packets, samples: left },
        });
    }
}
