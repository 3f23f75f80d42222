//! Receiving: from lent datagrams into the caller's slice.

use std::io;
use std::time::{Duration, Instant};

use millstream_wire::Width;
use millstream_wire::stream::StatusRepr;

use super::RxMember;
use crate::RadioError;
use crate::convert::StreamSample;
use crate::deadline::deadline_after;
use crate::error::io_error;
use crate::stream::arrival::{
    LentDatagram, PacketSource, PendingReport, SideReports, UnreadSamples,
};
use crate::stream::core::Intake;
use crate::stream::meta::{RxError, RxEvent, RxMetadata};

impl RxMember {
    /// Receives into `out`, see [`crate::RxStreamer::recv`].
    pub(in crate::stream) fn recv<T: StreamSample>(
        &mut self,
        out: &mut [T],
        timeout: Duration,
    ) -> Result<RxMetadata, RxError> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let mut meta = RxMetadata::default();
        match self.fill(out, timeout, &mut meta) {
            // The samples have left the stream, so they are returned first.
            Err(failure) if meta.samples > 0 => self.failure = Some(failure),
            outcome => outcome?,
        }
        Ok(meta)
    }

    fn fill<T: StreamSample>(
        &mut self,
        out: &mut [T],
        timeout: Duration,
        meta: &mut RxMetadata,
    ) -> Result<(), RxError> {
        // Computed only when there is no data: reading the clock takes time.
        let mut until = None;
        loop {
            if self.core.is_recovering() {
                let until = *until.get_or_insert_with(|| deadline_after(self.now(), timeout));
                self.recover(Some(until))?;
            }
            if self.core.has_report() {
                if let Some(pending) =
                    (meta.samples == 0).then(|| self.core.take_pending()).flatten()
                {
                    *meta = deliver(&pending);
                }
                return Ok(());
            }
            if let Some(held) = self.core.held() {
                if meta.samples == out.len() && held.at < held.end {
                    return Ok(());
                }
                self.hand_out(held, out, meta)?;
                if meta.end_of_burst {
                    return Ok(());
                }
                continue;
            }
            if meta.samples == out.len() && !out.is_empty() {
                return Ok(());
            }
            if self.inspect_batch()? {
                continue;
            }
            let until = *until.get_or_insert_with(|| deadline_after(self.now(), timeout));
            if !self.advance(until)? && self.now() >= until {
                if meta.samples == 0 {
                    meta.event = RxEvent::Timeout;
                }
                return Ok(());
            }
        }
    }

    /// Converts as much of the current packet as there is space for, and releases it at its end.
    pub(in crate::stream) fn hand_out<T: StreamSample>(
        &mut self,
        held: UnreadSamples,
        out: &mut [T],
        meta: &mut RxMetadata,
    ) -> Result<(), RxError> {
        let packet = &self.packet(held.place)[held.at..held.end];
        let out = &mut out[meta.samples..];
        let samples = T::from_packet(self.converter, packet, out, self.scale);
        if meta.samples == 0 {
            meta.time_ticks = held.ticks;
        }
        meta.samples += samples;
        if samples > 0 {
            self.before_gap = self.core.books_mut().deliver(samples as u64);
        }
        meta.end_of_burst |= self.pass(held, samples)?;
        Ok(())
    }

    /// Advances by `samples` in the current packet and releases it at its end. Returns true when
    /// the burst ended with it without a further report.
    pub(in crate::stream) fn pass(
        &mut self,
        held: UnreadSamples,
        samples: usize,
    ) -> Result<bool, RxError> {
        let (ended, is_reported) = self.core.pass(held, samples);
        self.obey()?;
        if ended {
            self.inspect_rest()?;
        }
        Ok(ended && !is_reported)
    }

    /// Waits for datagrams, no longer than a slice and not beyond `until`, and processes them.
    /// Returns true when there is a result for the caller.
    pub(in crate::stream) fn advance(&mut self, until: Instant) -> Result<bool, RxError> {
        if self.inspect_batch()? {
            return Ok(true);
        }
        if self.core.is_recovering() {
            self.recover(Some(until))?;
            return Ok(self.core.has_result());
        }
        self.core.report_if_owed();
        self.obey()?;
        let wait = self.core.wait(self.now(), until);
        let received = self.port.rx.recv_batch(wait);
        let count = received.map_err(|error| self.receive_error(error))?;
        self.batch = (0, count);
        let now = self.now();
        self.core.look(now);
        let mut found = self.inspect_batch()?;
        if !found && self.core.give_up_waiting() {
            found = self.inspect_batch()?;
        }
        if self.core.listen(found) {
            let step = self.core.idle(self.now());
            self.obey()?;
            if let Some(step) = step {
                self.core.begin_step(step, self.now())?;
                self.recover(Some(until))?;
            }
        }
        self.core.check_samples(now)?;
        Ok(found || self.core.has_result())
    }

    /// Processes the lent datagrams until there is a result for the caller; returns false at their
    /// end, and while a recovery is under way.
    pub(in crate::stream) fn inspect_batch(&mut self) -> Result<bool, RxError> {
        self.look();
        loop {
            if self.core.is_recovering() {
                return Ok(false);
            }
            if !self.core.accept_waiting() {
                if self.batch.0 == self.batch.1 {
                    return Ok(false);
                }
                self.give_datagram();
            }
            self.obey()?;
            if self.core.has_result() {
                return Ok(true);
            }
        }
    }

    /// Processes the packets that came together with the end of the last burst.
    fn inspect_rest(&mut self) -> Result<(), RxError> {
        while self.core.run().is_idle() && self.batch.0 < self.batch.1 {
            self.give_datagram();
            self.obey()?;
        }
        Ok(())
    }

    /// Gives the core the next lent datagram.
    fn give_datagram(&mut self) {
        let index = self.batch.0;
        let lent = self.port.rx.datagram(index);
        let datagram = LentDatagram { index, payload: lent.payload, source: lent.source };
        if self.core.accept(&datagram) == Intake::Done {
            self.batch.0 += 1;
        }
    }

    /// Gives the core what the radio and the port have reported besides packets.
    pub(in crate::stream) fn look(&mut self) {
        let events = self.channel.events();
        self.core.note_reports(SideReports {
            queue_drops: self.port.rx.queue_drops(),
            late_commands: events.late_commands(),
            overruns: events.overruns(),
            // The message has the time of the last sample.
            overrun_ticks: events.overrun_ticks().wrapping_add(1),
            too_long: self.port.rx.too_long(),
        });
    }

    /// Sends the report that is due, and does what the core asks for.
    fn obey(&mut self) -> Result<(), RxError> {
        if self.core.take_report_due() {
            self.report()?;
        }
        match self.core.take_step() {
            Some(step) => self.core.begin_step(step, self.now()),
            None => Ok(()),
        }
    }

    /// Returns the bytes of a packet.
    fn packet(&self, place: PacketSource) -> &[u8] {
        match place {
            PacketSource::Lent(index) => self.port.rx.datagram(index).payload,
            PacketSource::Aside(place) => self.core.packet_aside(place),
        }
    }

    /// Reports the consumed packets to the device. A report that the link cannot take now is sent
    /// later: no samples wait for it.
    fn report(&mut self) -> Result<(), RxError> {
        let report = self.core.report();
        let mut bytes = [0; StatusRepr::packet_len(Width::W512)];
        let length = report.emit(self.path.width, &mut bytes).expect("the buffer is that long");
        let device = self.path.device;
        match self.port.tx.try_send(&bytes[..length], device) {
            Ok(()) => self.core.note_reported(true),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.core.note_reported(false);
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

fn deliver(pending: &PendingReport) -> RxMetadata {
    let PendingReport { event, ticks, ends_burst, then } = *pending;
    let end_of_burst = ends_burst && then == RxEvent::None;
    RxMetadata { time_ticks: ticks, end_of_burst, event, ..RxMetadata::default() }
}
