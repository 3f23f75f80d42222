//! Classifies each datagram.

use std::io;

use millstream_wire::Width;
use millstream_wire::chdr::{DataRepr, Header, Packet};
use millstream_wire::stream::{CommandOp, CommandRepr, StatusRepr};

use super::arrival::{Content, content};
use super::meta::{RxError, RxEvent};
use super::streamer::{PacketSource, RxStreamer, StreamState, UnreadSamples};
use super::tracker::{Arrival, Damage, PacketClass, PacketGap};
use crate::error::io_error;
use crate::{Cause, RadioError};

impl RxStreamer {
    /// Processes the lent datagrams until there is a result for the caller; returns false at their
    /// end.
    pub(super) fn inspect_batch(&mut self) -> Result<bool, RxError> {
        loop {
            if let Some(place) = self.aside.due_index(self.tracker.next_seq()) {
                self.inspect(PacketSource::Aside(place))?;
            } else if self.batch.0 < self.batch.1 {
                self.batch.0 += 1;
                self.inspect(PacketSource::Lent(self.batch.0 - 1))?;
            } else {
                return Ok(false);
            }
            if self.held.is_some() || self.pending.is_some() {
                return Ok(true);
            }
        }
    }

    /// Returns the bytes of a packet.
    pub(super) fn packet(&self, place: PacketSource) -> &[u8] {
        match place {
            PacketSource::Lent(index) => self.port.rx.datagram(index).payload,
            PacketSource::Aside(place) => self.aside.packet(place),
        }
    }

    fn inspect(&mut self, place: PacketSource) -> Result<(), RxError> {
        if let PacketSource::Lent(index) = place {
            if self.port.rx.datagram(index).source != self.path.device {
                self.counters.foreign += 1;
                return Ok(());
            }
            self.heard = true;
        }
        let packet = match Packet::parse(self.packet(place), self.path.width) {
            Ok(packet) => packet,
            Err(_) => return self.malformed(self.number_of(place)),
        };
        if packet.header().dst_epid != self.path.epid {
            self.counters.misaddressed += 1;
            return Ok(());
        }
        match content(&packet) {
            Ok(Content::Data { repr, at, flow_bytes }) => self.data(place, &repr, at, flow_bytes),
            Ok(Content::Command { repr, flow_bytes }) => self.stream_command(&repr, flow_bytes),
            Ok(Content::Other) => {
                self.counters.unexpected += 1;
                Ok(())
            }
            Err(_) => self.malformed(self.number_of(place)),
        }
    }

    /// Returns the number of a data packet of this stream whose rest cannot be decoded.
    fn number_of(&self, place: PacketSource) -> Option<u16> {
        let header = Header::peek(self.packet(place)).ok()?;
        (header.kind.is_data() && header.dst_epid == self.path.epid).then_some(header.seq)
    }

    /// Returns whether a packet was put into the reorder buffer, or has to wait for those in it:
    /// one before it may still come. The end of an overrun burst does not wait: the restart is more
    /// urgent.
    ///
    /// The wait is measured by the device's clock, or by silence at the port, so delays of this
    /// machine lose nothing.
    fn waits(
        &mut self,
        place: PacketSource,
        arrival: &Arrival,
        eob: bool,
        flow_bytes: usize,
    ) -> Result<bool, RxError> {
        let PacketSource::Lent(index) = place else { return Ok(false) };
        let missing = self.tracker.missing_before(arrival);
        if missing == 0 || self.tracker.may_be_delayed(arrival) {
            return Ok(false);
        }
        let begun = self.awaited.is_none() && self.recovery.is_none();
        let urgent = eob && self.run == StreamState::Continuous;
        let packet = self.port.rx.datagram(index).payload;
        let may = begun && !urgent && self.aside.takes(arrival.seq, packet, missing);
        if may {
            let due = self.tracker.next_ticks();
            let ahead = arrival.ticks.zip(due).map_or(0, |(at, due)| at.wrapping_sub(due));
            if self.aside.put(arrival.seq, packet, ahead, self.last_look) {
                self.counters.reordered += 1;
            } else if self.is_misnumbered(arrival) {
                // Replace the buffered packet, whose number is damaged, by this one.
                self.aside.replace(arrival.seq, packet);
                self.malformed(None)?;
            } else {
                self.counters.duplicates += 1;
                return Ok(true);
            }
            // The copy takes no space in the queue.
            self.release(flow_bytes)?;
            return Ok(true);
        }
        // Waiting packets are processed first, and this one again after them.
        let others = self.aside.give_up();
        if others {
            self.batch.0 = index;
        }
        Ok(others)
    }

    /// Returns whether this packet fits and the buffered packet of the same number does not.
    fn is_misnumbered(&self, arrival: &Arrival) -> bool {
        let waiting = self.aside.place_of(arrival.seq).map(|place| self.aside.packet(place));
        let other = waiting.and_then(|packet| Arrival::in_packet(packet, self.path.width));
        self.tracker.fits(arrival) && other.is_some_and(|other| !self.tracker.fits(&other))
    }

    /// Counts a packet that cannot be decoded, except perhaps its number.
    fn malformed(&mut self, seq: Option<u16>) -> Result<(), RxError> {
        self.counters.malformed += 1;
        match seq.map(|seq| self.tracker.damage(seq)) {
            Some(Damage::Noted | Damage::OfCopy) => {}
            Some(Damage::OfMissing) => self.losses.found_damaged(&mut self.ledger),
            Some(Damage::Unknown) | None => self.losses.note_malformed(),
        }
        Ok(())
    }

    fn data(
        &mut self,
        place: PacketSource,
        repr: &DataRepr,
        at: usize,
        flow_bytes: usize,
    ) -> Result<(), RxError> {
        let arrival = Arrival::of(repr);
        if self.run == StreamState::Idle {
            self.stray(&arrival);
            return self.consumed(place, flow_bytes);
        }
        if self.waits(place, &arrival, repr.eob, flow_bytes)? {
            return Ok(());
        }
        if self.is_of_a_later_capture(&arrival) {
            self.give_up_capture(&arrival);
            // Process it again after that report.
            if let PacketSource::Lent(index) = place {
                self.batch.0 = index;
            }
            return Ok(());
        }
        let before = self.before();
        let gap = match self.judge(&arrival) {
            PacketClass::Next => None,
            PacketClass::After(gap) => Some(gap),
            other => return self.pass_by(place, &arrival, other),
        };
        self.counters.packets += 1;
        let missing = gap.map_or(0, |gap| gap.in_packets.div_ceil(self.samples_per_packet.into()));
        let fresh = matches!(place, PacketSource::Lent(_));
        self.credit.pass_gap(missing, flow_bytes, fresh);
        self.book(&arrival, gap, &before);
        (self.ended, self.setups) = (repr.eob, 0);
        self.run_ended = repr.eob && self.ends_due == 0;
        let end = at + repr.payload_len;
        let ticks = repr.timestamp;
        let is_last = repr.eob && self.ends_due == 0;
        self.ends_due -= u32::from(repr.eob && !is_last);
        let (ends_burst, then) = self.burst_after(&arrival, gap.as_ref(), is_last);
        self.held = Some(UnreadSamples { place, at, end, ticks, flow_bytes, ends_burst, then });
        // While a restart is awaited, this is the end of the previous run.
        if repr.eob && self.run == StreamState::Continuous && self.recovery.is_none() {
            return self.overran();
        }
        Ok(())
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

    /// Processes the packets that came together with the end of the last burst.
    pub(super) fn inspect_rest(&mut self) -> Result<(), RxError> {
        while self.run == StreamState::Idle && self.batch.0 < self.batch.1 {
            self.batch.0 += 1;
            self.inspect(PacketSource::Lent(self.batch.0 - 1))?;
        }
        Ok(())
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

    /// Counts a packet of no use.
    fn pass_by(
        &mut self,
        place: PacketSource,
        arrival: &Arrival,
        verdict: PacketClass,
    ) -> Result<(), RxError> {
        if let PacketSource::Aside(place) = place {
            self.aside.free(place);
        }
        match verdict {
            PacketClass::Duplicate => self.counters.duplicates += 1,
            PacketClass::Late { damaged } => {
                self.counters.late += 1;
                self.losses.found(arrival.samples, damaged, &mut self.ledger);
            }
            _ => return self.malformed(Some(arrival.seq)),
        }
        Ok(())
    }

    /// Returns whether the burst is over with this packet, and the event to report behind it.
    fn burst_after(
        &mut self,
        arrival: &Arrival,
        gap: Option<&PacketGap>,
        eob: bool,
    ) -> (bool, RxEvent) {
        match self.run {
            StreamState::Finite(left) => {
                // A jump of the clock removes nothing from the requested samples.
                let missing = gap.map_or(0, |gap| gap.in_packets);
                let left = left.saturating_sub(missing + arrival.samples);
                self.run = StreamState::Finite(left);
                if eob && left > 0 {
                    self.lose_rest(left, Cause::DeviceOverrun);
                    return (true, RxEvent::Overrun { samples: left });
                }
                (left == 0, RxEvent::None)
            }
            // A run that was started before the stop has a separate end.
            StreamState::Stopping(_) => (eob && self.recovery.is_none(), RxEvent::None),
            StreamState::Continuous | StreamState::Idle => (false, RxEvent::None),
        }
    }

    fn stream_command(&mut self, repr: &CommandRepr, flow_bytes: usize) -> Result<(), RxError> {
        match repr.op {
            CommandOp::Resync => {
                self.credit.resync(repr.packets, repr.bytes);
                self.release(flow_bytes)
            }
            // The device did not receive the answer to the handshake, or this is a second copy. In
            // either case the count since the handshake is correct.
            CommandOp::Init => self.report(),
            CommandOp::Ping => {
                self.credit.release(flow_bytes);
                self.report()
            }
        }
    }

    /// Releases the packet at `place`.
    pub(super) fn consumed(
        &mut self,
        place: PacketSource,
        flow_bytes: usize,
    ) -> Result<(), RxError> {
        match place {
            PacketSource::Lent(_) => self.release(flow_bytes),
            // It was counted when it entered the reorder buffer.
            PacketSource::Aside(place) => {
                self.aside.free(place);
                Ok(())
            }
        }
    }

    /// Counts a packet whose buffer is free again, and reports once per period.
    pub(super) fn release(&mut self, flow_bytes: usize) -> Result<(), RxError> {
        self.credit.release(flow_bytes);
        if self.credit.is_due() { self.report_unless_over() } else { Ok(()) }
    }

    /// Sends a report, except to a stopped device without time: it does not send the end of the
    /// burst, and UHD's simulator exits on a report after the stop.
    pub(super) fn report_unless_over(&mut self) -> Result<(), RxError> {
        let stopped = matches!(self.run, StreamState::Stopping(_));
        if stopped && self.tracker.next_ticks().is_none() { Ok(()) } else { self.report() }
    }

    /// Reports the consumed packets to the device. A report that the link cannot take now is sent
    /// later: no samples wait for it.
    pub(super) fn report(&mut self) -> Result<(), RxError> {
        let report = self.credit.report(self.path.endpoint.epid, self.path.epid);
        let mut bytes = [0; StatusRepr::packet_len(Width::W512)];
        let length = report.emit(self.path.width, &mut bytes).expect("the buffer is that long");
        let device = self.path.device;
        match self.port.tx.try_send(&bytes[..length], device) {
            Ok(()) => self.counters.reports += 1,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.counters.reports_put_off += 1;
                self.credit.owe();
            }
            Err(error) => return Err(RxError::Radio(io_error("send to", device)(error))),
        }
        Ok(())
    }

    pub(super) fn receive_error(&self, source: io::Error) -> RxError {
        let address = self.path.device;
        RadioError::Io { what: "receive from", address, source }.into()
    }
}
