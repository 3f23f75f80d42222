//! Classifies each datagram.
//!
//! Without a port: the bytes come in, and what follows from them is left in the core.

use millstream_wire::chdr::{DataRepr, Header, Packet};
use millstream_wire::stream::{CommandOp, CommandRepr};

use super::arrival::{Content, content};
use super::core::{Datagram, Intake, PacketSource, RxCore, UnreadSamples};
use super::meta::RxEvent;
use super::state::{NewestPacket, StreamState};
use super::tracker::{Arrival, Damage, PacketClass, PacketGap};
use crate::Cause;

impl RxCore {
    /// Takes a datagram that the port lends.
    pub(crate) fn take(&mut self, datagram: &Datagram<'_>) -> Intake {
        if datagram.source != self.path.device {
            self.counters.foreign += 1;
            return Intake::Done;
        }
        self.heard = true;
        let place = PacketSource::Lent(datagram.index);
        self.inspect(place, Some(datagram.payload))
    }

    /// Takes the next packet of the reorder buffer, if its turn has come; returns false without
    /// one.
    pub(crate) fn take_waiting(&mut self) -> bool {
        let Some(place) = self.aside.due_index(self.tracker.next_seq()) else { return false };
        self.inspect(PacketSource::Aside(place), None);
        true
    }

    /// Takes a packet: the bytes that the port lends, or those in the reorder buffer.
    fn inspect(&mut self, place: PacketSource, lent: Option<&[u8]>) -> Intake {
        let bytes = match place {
            PacketSource::Lent(_) => lent.unwrap_or_default(),
            PacketSource::Aside(place) => self.aside.packet(place),
        };
        let packet = match Packet::parse(bytes, self.path.width) {
            Ok(packet) => packet,
            Err(_) => {
                let number = self.number_of(bytes);
                return self.malformed(number);
            }
        };
        if packet.header().dst_epid != self.path.epid {
            self.counters.misaddressed += 1;
            return Intake::Done;
        }
        match content(&packet) {
            Ok(Content::Data { repr, at, flow_bytes }) => {
                self.data(place, lent, &repr, at, flow_bytes)
            }
            Ok(Content::Command { repr, flow_bytes }) => self.stream_command(&repr, flow_bytes),
            Ok(Content::Other) => {
                self.counters.unexpected += 1;
                Intake::Done
            }
            Err(_) => {
                let number = self.number_of(bytes);
                self.malformed(number)
            }
        }
    }

    /// Returns the number of a data packet of this stream whose rest cannot be decoded.
    fn number_of(&self, bytes: &[u8]) -> Option<u16> {
        let header = Header::peek(bytes).ok()?;
        (header.kind.is_data() && header.dst_epid == self.path.epid).then_some(header.seq)
    }

    /// Puts a packet into the reorder buffer, or lets it wait for those in it, where one before it
    /// may still come; returns `None` for one that need not wait. The end of an overrun burst does
    /// not wait: the restart is more urgent.
    ///
    /// The wait is measured by the device's clock, or by silence at the port, so delays of this
    /// machine lose nothing.
    fn waits(
        &mut self,
        packet: &[u8],
        arrival: &Arrival,
        eob: bool,
        flow_bytes: usize,
    ) -> Option<Intake> {
        let missing = self.tracker.missing_before(arrival);
        if self.tracker.is_doubtful(arrival) && !eob && self.aside.is_empty() {
            // Its samples are good if the next packet confirms its time.
            let may = self.aside.takes(arrival.seq, packet, 1);
            return may.then(|| {
                self.aside.doubt(arrival.seq, packet, self.last_look);
                self.release(flow_bytes);
                Intake::Done
            });
        }
        if missing == 0 || self.tracker.may_be_delayed(arrival) {
            return None;
        }
        let begun = self.run.awaited().is_none();
        let urgent = eob && self.run.is_continuous();
        // It may be what confirms the packet before it, which then goes first.
        let confirms = self.aside.is_in_doubt();
        let may = begun && (!urgent || confirms) && self.aside.takes(arrival.seq, packet, missing);
        if may {
            let due = self.tracker.next_ticks();
            let ahead = arrival.ticks.zip(due).map_or(0, |(at, due)| at.wrapping_sub(due));
            if self.aside.put(arrival.seq, packet, ahead, self.last_look) {
                self.counters.reordered += u64::from(!confirms);
                self.tracker.note_waiting(arrival);
                if urgent {
                    self.aside.give_up();
                }
            } else if self.is_misnumbered(arrival) {
                // Replace the buffered packet, whose number is damaged, by this one.
                self.aside.replace(arrival.seq, packet);
                self.malformed(None);
            } else {
                self.counters.duplicates += 1;
                return Some(Intake::Done);
            }
            // The copy takes no space in the queue.
            self.release(flow_bytes);
            return Some(Intake::Done);
        }
        // Waiting packets are processed first, and this one again after them.
        self.aside.give_up().then_some(Intake::Again)
    }

    /// Returns whether this packet fits and the buffered packet of the same number does not.
    fn is_misnumbered(&self, arrival: &Arrival) -> bool {
        let waiting = self.aside.place_of(arrival.seq).map(|place| self.aside.packet(place));
        let other = waiting.and_then(|packet| Arrival::in_packet(packet, self.path.width));
        self.tracker.fits(arrival) && other.is_some_and(|other| !self.tracker.fits(&other))
    }

    /// Takes the port's count of datagrams that were too long for it.
    pub(super) fn note_too_long(&mut self, count: u64) {
        self.losses.note_malformed(count.saturating_sub(self.counters.too_long));
        self.counters.too_long = self.counters.too_long.max(count);
    }

    /// Counts a packet that cannot be decoded, except perhaps its number.
    fn malformed(&mut self, seq: Option<u16>) -> Intake {
        self.counters.malformed += 1;
        match seq.map(|seq| self.tracker.damage(seq)) {
            Some(Damage::Noted | Damage::OfCopy) => {}
            Some(Damage::OfMissing) => self.losses.found_damaged(&mut self.ledger),
            Some(Damage::Unknown) | None => self.losses.note_malformed(1),
        }
        Intake::Done
    }

    fn data(
        &mut self,
        place: PacketSource,
        lent: Option<&[u8]>,
        repr: &DataRepr,
        at: usize,
        flow_bytes: usize,
    ) -> Intake {
        let arrival = Arrival::of(repr);
        if self.run.is_idle() {
            self.stray(&arrival);
            self.consumed(place, flow_bytes);
            return Intake::Done;
        }
        if lent.is_some() && self.tracker.is_settling() && self.was_delayed(&arrival) {
            // It was delayed over the new set-up. The gap there counts it.
            return self.pass_over(&arrival);
        }
        let waits = lent.and_then(|packet| self.waits(packet, &arrival, repr.eob, flow_bytes));
        if let Some(waits) = waits {
            return waits;
        }
        if self.is_of_a_later_capture(&arrival) {
            self.give_up_capture(&arrival);
            // Process it again after that report.
            return Intake::Again;
        }
        if self.tracker.disown_delayed(&arrival) {
            self.credit.begin_anew();
        }
        let (before, due) = (self.before(), self.tracker.next_seq());
        let gap = match self.judge(&arrival) {
            PacketClass::Next => None,
            PacketClass::After(gap) => Some(gap),
            other => return self.pass_by(place, &arrival, flow_bytes, other),
        };
        let is_due = self.tracker.next_seq() == due.wrapping_add(1);
        if lent.is_some() && is_due {
            self.drop_doubted(due);
        }
        self.counters.packets += 1;
        let missing = gap.map_or(0, |gap| gap.in_packets.div_ceil(self.samples_per_packet.into()));
        let fresh = matches!(place, PacketSource::Lent(_));
        self.credit.pass_gap(missing, flow_bytes, fresh);
        self.book(&arrival, gap, &before);
        if fresh {
            (self.setups, self.reopened) = (0, 0);
        }
        let end = at + repr.payload_len;
        let ticks = repr.timestamp;
        let is_last = repr.eob && self.ends_due == 0;
        self.newest = match (repr.eob, is_last) {
            (false, _) => NewestPacket::Inside,
            (true, false) => NewestPacket::EndOfRun,
            (true, true) => NewestPacket::EndOfLastRun,
        };
        self.ends_due -= u32::from(repr.eob && !is_last);
        let (ends_burst, then) = self.burst_after(&arrival, gap.as_ref(), is_last);
        self.held = Some(UnreadSamples { place, at, end, ticks, flow_bytes, ends_burst, then });
        // While a restart is awaited, this is the end of the previous run.
        if repr.eob && self.run.is_continuous() && self.run.restarted().is_none() {
            self.overran();
        }
        Intake::Done
    }

    /// Returns whether a packet was sent before the newest set-up of the stream, and counts it: few
    /// may be.
    fn was_delayed(&mut self, arrival: &Arrival) -> bool {
        let packet_ticks = self.path.rate.ticks(self.samples_per_packet.into());
        self.passed_over.takes(arrival)
            || self.tracker.is_far_back(arrival)
                && self.passed_over.takes_of_before(arrival, packet_ticks)
    }

    /// Passes a packet over, like those that came during the new set-up of the stream before it.
    fn pass_over(&mut self, arrival: &Arrival) -> Intake {
        self.tracker.note_passed_over();
        if self.passed_over.note_data(arrival) {
            self.counters.late += 1;
            if self.tracker.has_restarted() {
                self.losses.pass_over(arrival.samples);
            } else {
                // The gap is in the ledger already.
                self.losses.found_behind_set_up(arrival, &mut self.ledger);
            }
        } else {
            self.counters.duplicates += 1;
        }
        Intake::Done
    }

    /// Counts a packet while nothing runs. It is tracked all the same, so that the next burst
    /// begins with the right number; it may be one that the burst before it gave up.
    fn stray(&mut self, arrival: &Arrival) {
        self.tracker.begin(None);
        self.aside.clear();
        match self.tracker.judge(arrival) {
            PacketClass::Late { damaged } => {
                self.counters.late += 1;
                self.losses.found(arrival.samples, damaged, &mut self.ledger);
                return;
            }
            // The packets missing before it are not in the ledger.
            PacketClass::Next | PacketClass::After(_) => self.tracker.forget(),
            PacketClass::Duplicate | PacketClass::Nonsense => {}
        }
        self.counters.stray += 1;
    }

    /// Classifies a packet, together with those in the reorder buffer.
    fn judge(&mut self, arrival: &Arrival) -> PacketClass {
        let verdict = self.tracker.judge(arrival);
        if verdict != PacketClass::Nonsense || self.tracker.is_unconfirmed(arrival) {
            return verdict;
        }
        let mut waiting =
            self.aside.packets().filter_map(|p| Arrival::in_packet(p, self.path.width));
        let other = waiting.find(|other| self.tracker.confirms(other));
        let Some(other) = other else { return verdict };
        self.tracker.suspect(&other);
        self.tracker.judge(arrival)
    }

    /// Drops a waiting packet of a doubtful time whose place another one with its number has taken.
    fn drop_doubted(&mut self, seq: u16) {
        let Some(place) = self.aside.place_of(seq) else { return };
        let packet = Packet::parse(self.aside.packet(place), self.path.width);
        self.credit.take_back(packet.map_or(0, |packet| packet.flow_len()));
        self.aside.free(place);
        self.malformed(Some(seq));
    }

    /// Counts a packet of no use.
    fn pass_by(
        &mut self,
        place: PacketSource,
        arrival: &Arrival,
        flow_bytes: usize,
        verdict: PacketClass,
    ) -> Intake {
        if let PacketSource::Aside(place) = place {
            self.aside.free(place);
            if verdict == PacketClass::Nonsense {
                // The gap at its number will count it.
                self.credit.take_back(flow_bytes);
            }
        }
        match verdict {
            PacketClass::Duplicate => self.counters.duplicates += 1,
            PacketClass::Late { damaged } => {
                self.counters.late += 1;
                self.losses.found(arrival.samples, damaged, &mut self.ledger);
            }
            // It has a number from before the set-up.
            _ if self.tracker.is_settling() && self.passed_over.takes_old(arrival) => {
                return self.pass_over(arrival);
            }
            _ => return self.malformed(Some(arrival.seq)),
        }
        Intake::Done
    }

    /// Returns whether the burst is over with this packet, and the event to report behind it.
    fn burst_after(
        &mut self,
        arrival: &Arrival,
        gap: Option<&PacketGap>,
        eob: bool,
    ) -> (bool, RxEvent) {
        match &mut self.run {
            StreamState::Finite { left, .. } => {
                // A jump of the clock removes nothing from the requested samples.
                let missing = gap.map_or(0, |gap| gap.in_packets);
                *left = left.saturating_sub(missing + arrival.samples);
                let left = *left;
                if eob && left > 0 {
                    self.lose_rest(left, Cause::DeviceOverrun);
                    return (true, RxEvent::Overrun { samples: left });
                }
                (left == 0, RxEvent::None)
            }
            // A run that was started before the stop has a separate end.
            StreamState::Stopping { .. } => (eob && self.run.restarted().is_none(), RxEvent::None),
            StreamState::Continuous { .. } | StreamState::Idle => (false, RxEvent::None),
        }
    }

    fn stream_command(&mut self, repr: &CommandRepr, flow_bytes: usize) -> Intake {
        match repr.op {
            CommandOp::Resync => {
                if self.credit.resync(repr.packets, repr.bytes) {
                    self.reopened += 1;
                    self.release(flow_bytes);
                } else {
                    self.counters.unexpected += 1;
                }
            }
            // The device did not receive the answer to the handshake, or this is a second copy. In
            // either case the count since the handshake is correct.
            CommandOp::Init => self.report_due = true,
            CommandOp::Ping => {
                self.credit.release(flow_bytes);
                self.report_due = true;
            }
        }
        Intake::Done
    }

    /// Releases the packet at `place`.
    pub(super) fn consumed(&mut self, place: PacketSource, flow_bytes: usize) {
        match place {
            PacketSource::Lent(_) => self.release(flow_bytes),
            // It was counted when it entered the reorder buffer.
            PacketSource::Aside(place) => self.aside.free(place),
        }
    }

    /// Counts a packet whose buffer is free again; once per period a report is due.
    fn release(&mut self, flow_bytes: usize) {
        self.credit.release(flow_bytes);
        if self.credit.is_due() {
            self.report_unless_over();
        }
    }

    /// Makes a report due, except to a stopped device without time: it does not send the end of the
    /// burst, and UHD's simulator exits on a report after the stop.
    pub(super) fn report_unless_over(&mut self) {
        self.report_due |= !self.run.is_stopping() || self.tracker.next_ticks().is_some();
    }
}
