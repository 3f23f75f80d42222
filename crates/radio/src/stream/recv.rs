//! Receiving: from lent datagrams into the caller's slice.

use std::time::{Duration, Instant};

use millstream_wire::chdr::SC16_LEN;
use num_complex::Complex32;

use super::meta::{RxError, RxEvent, RxMetadata};
use super::streamer::{Pending, RxStreamer, UnreadSamples};
use crate::deadline::deadline_after;

/// The longest sleep between checks of the stream's state.
const SLICE: Duration = Duration::from_millis(50);

/// The longest sleep while the link has no space for a report that the device waits for.
const OWED: Duration = Duration::from_millis(1);

/// The longest part of a pause between two polls of the port that counts as silence of the device:
/// packets during a longer absence of the caller are unknown.
const AWAY_MAX: Duration = SLICE;

impl RxStreamer {
    /// Receives complex floats: the wire's samples times the stream's scale.
    ///
    /// Fills `out`, unless a gap, the end of a burst or the end of `timeout` comes before. Samples
    /// of one call are contiguous in time. An event is returned separately, before the samples
    /// behind it, and an error after what came before it.
    ///
    /// # Errors
    /// [`RxError::DeviceSilent`] when the device stopped answering, [`RxError::NotRestarted`],
    /// [`RxError::Radio`] when the system refuses.
    pub fn recv(
        &mut self,
        out: &mut [Complex32],
        timeout: Duration,
    ) -> Result<RxMetadata, RxError> {
        let (converter, scale) = (self.converter, self.scale);
        self.recv_with(out, timeout, |wire, out| converter.to_user(wire, out, scale))
    }

    /// Receives the wire's own 16-bit samples as `[I, Q]`, otherwise like [`RxStreamer::recv`].
    ///
    /// # Errors
    /// Those of [`RxStreamer::recv`].
    pub fn recv_sc16(
        &mut self,
        out: &mut [[i16; 2]],
        timeout: Duration,
    ) -> Result<RxMetadata, RxError> {
        let converter = self.converter;
        self.recv_with(out, timeout, |wire, out| converter.to_user(wire, out, 1.0))
    }

    fn recv_with<T>(
        &mut self,
        out: &mut [T],
        timeout: Duration,
        convert: impl Fn(&[u8], &mut [T]) -> usize,
    ) -> Result<RxMetadata, RxError> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let mut meta = RxMetadata::default();
        match self.fill(out, timeout, &mut meta, &convert) {
            // The samples have left the stream, so they are returned first.
            Err(failure) if meta.samples > 0 => self.failure = Some(failure),
            outcome => outcome?,
        }
        Ok(meta)
    }

    fn fill<T>(
        &mut self,
        out: &mut [T],
        timeout: Duration,
        meta: &mut RxMetadata,
        convert: &impl Fn(&[u8], &mut [T]) -> usize,
    ) -> Result<(), RxError> {
        // Computed only when there is no data: reading the clock takes time.
        let mut until = None;
        loop {
            if self.pending.is_some() {
                if let Some(pending) = (meta.samples == 0).then(|| self.take_pending()).flatten() {
                    *meta = deliver(&pending);
                }
                return Ok(());
            }
            if let Some(held) = self.held {
                if meta.samples == out.len() && held.at < held.end {
                    return Ok(());
                }
                self.hand_out(held, out, meta, convert)?;
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
    pub(super) fn hand_out<T>(
        &mut self,
        held: UnreadSamples,
        out: &mut [T],
        meta: &mut RxMetadata,
        convert: &impl Fn(&[u8], &mut [T]) -> usize,
    ) -> Result<(), RxError> {
        let wire = &self.packet(held.place)[held.at..held.end];
        let samples = convert(wire, &mut out[meta.samples..]);
        if meta.samples == 0 {
            meta.time_ticks = held.ticks;
        }
        meta.samples += samples;
        self.ledger.deliver(samples as u64);
        meta.end_of_burst |= self.pass(held, samples)?;
        Ok(())
    }

    /// Advances by `samples` in the current packet and releases it at its end. Returns true when
    /// the burst ended with it without a further report.
    pub(super) fn pass(
        &mut self,
        mut held: UnreadSamples,
        samples: usize,
    ) -> Result<bool, RxError> {
        held.at += samples * SC16_LEN;
        held.ticks = held.ticks.map(|t| t.wrapping_add(self.path.rate.ticks(samples as u64)));
        if held.at < held.end {
            self.held = Some(held);
            return Ok(false);
        }
        self.held = None;
        let (event, ends_burst) = (held.then, held.ends_burst);
        if event != RxEvent::None {
            self.pending = Some(Pending::new(event, held.ticks, ends_burst));
        }
        if ends_burst {
            self.burst_over();
        }
        self.consumed(held.place, held.flow_bytes)?;
        if ends_burst {
            self.inspect_rest()?;
        }
        Ok(ends_burst && event == RxEvent::None)
    }

    /// Waits for datagrams, no longer than a slice and not beyond `until`, and processes them.
    /// Returns true when there is a result for the caller.
    pub(super) fn advance(&mut self, until: Instant) -> Result<bool, RxError> {
        if self.inspect_batch()? {
            return Ok(true);
        }
        if self.credit.is_owed() {
            self.report_unless_over()?;
        }
        let now = self.now();
        let away = now.saturating_duration_since(self.last_look).saturating_sub(AWAY_MAX);
        self.last_heard = (self.last_heard + away).min(now);
        let left = until.saturating_duration_since(now);
        let longest = if self.credit.is_owed() { OWED } else { SLICE };
        let wait = self.aside.left(now).map_or(longest, |wait| wait.min(longest));
        let received = self.port.rx.recv_batch(left.min(wait));
        let count = received.map_err(|error| self.receive_error(error))?;
        self.last_look = self.now();
        self.batch = (0, count);
        self.heard = false;
        let mut found = self.inspect_batch()?;
        if !found && self.aside.left(self.last_look) == Some(Duration::ZERO) {
            // Packets that have waited long enough for an earlier one continue without it.
            self.aside.give_up();
            found = self.inspect_batch()?;
        }
        if self.heard {
            self.last_heard = self.last_look;
        } else if !found {
            // Other packets may come to the port, but none of the device.
            self.idle()?;
        }
        Ok(found || self.pending.is_some() || self.held.is_some())
    }
}

fn deliver(pending: &Pending) -> RxMetadata {
    let Pending { event, ticks, ends_burst, then } = *pending;
    let end_of_burst = ends_burst && then == RxEvent::None;
    RxMetadata { samples: 0, time_ticks: ticks, end_of_burst, event }
}
