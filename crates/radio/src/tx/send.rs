//! Sending: from the caller's slice into batches of packets.

use std::time::Duration;

use millstream_wire::chdr::{SC16_LEN, round_to_word};
use num_complex::Complex32;

use super::meta::{TxError, TxMetadata, TxSent};
use super::streamer::{Burst, TxStreamer};
use crate::convert::StreamSample;
use crate::error::io_error;

impl TxStreamer {
    /// Sends complex floats: times the stream's scale, rounded to the wire's 16 bits.
    ///
    /// Any number of samples is allowed. Packets are filled across calls, so the division of a
    /// burst into calls changes neither the packets nor their times; samples that do not fill a
    /// packet wait for the next call, the end of the burst or [`TxStreamer::flush`].
    ///
    /// In a burst with time every packet has a time, so a lost packet leaves a gap, and later ones
    /// are on time.
    ///
    /// Waits up to `timeout` for space in the device; with `Duration::ZERO` takes the samples for
    /// which there is space. The end of the burst counts only when all samples were taken. A call
    /// that finds a device silent for longer than [`super::RECOVERY_MAX`] checks by control reads
    /// whether it is alive, which may take some seconds more than `timeout` until the error.
    ///
    /// # Errors
    /// [`TxError::DeviceSilent`] when the device stopped answering; [`TxError::Radio`] when the
    /// system refuses. Samples taken until then are in the ledger.
    pub fn send(
        &mut self,
        samples: &[Complex32],
        meta: TxMetadata,
        timeout: Duration,
    ) -> Result<TxSent, TxError> {
        self.send_as(samples, meta, timeout)
    }

    /// Sends the wire's own 16-bit samples as `[I, Q]`, otherwise like [`TxStreamer::send`].
    ///
    /// # Errors
    /// Those of [`TxStreamer::send`].
    pub fn send_sc16(
        &mut self,
        samples: &[[i16; 2]],
        meta: TxMetadata,
        timeout: Duration,
    ) -> Result<TxSent, TxError> {
        self.send_as(samples, meta, timeout)
    }

    /// Sends samples that wait for their packet to fill, in a short packet.
    ///
    /// A radio that takes several samples in a cycle gets whole cycles: the samples of an
    /// incomplete one wait on, and all do while the device has no space for another packet.
    ///
    /// # Errors
    /// [`TxError::Radio`] when the system refuses.
    pub fn flush(&mut self) -> Result<(), TxError> {
        match self.train.filled() % self.whole {
            0 if self.train.filled() == 0 => {}
            0 => self.complete(false)?,
            rest if rest < self.train.filled() && self.room_packets() > 1 => {
                let length = rest * SC16_LEN;
                self.train.take_back(&mut *self.port.tx, &mut self.rest[..length]);
                self.complete(false)?;
                self.depart()?;
                let space = self.train.space(&mut *self.port.tx);
                let space = space.map_err(io_error("send to", self.path.device))?;
                space[..length].copy_from_slice(&self.rest[..length]);
                self.train.fill(rest);
            }
            _ => {}
        }
        self.depart()
    }

    /// Sends samples of any type, otherwise like [`TxStreamer::send`].
    ///
    /// # Errors
    /// Those of [`TxStreamer::send`].
    pub fn send_as<T: StreamSample>(
        &mut self,
        samples: &[T],
        meta: TxMetadata,
        timeout: Duration,
    ) -> Result<TxSent, TxError> {
        let mut sent = TxSent::default();
        if !samples.is_empty() {
            self.begin(meta.time_ticks)?;
        }
        // Computed only when there is no space: reading the clock takes time.
        let mut until = None;
        loop {
            if self.has_room() {
                sent.samples += self.load(&samples[sent.samples..], meta.end_of_burst)?;
            }
            if sent.samples == samples.len() && (!meta.end_of_burst || self.end_burst()?) {
                sent.end_of_burst = meta.end_of_burst;
                self.depart()?;
                return Ok(sent);
            }
            self.depart()?;
            if self.has_room() {
                continue;
            }
            let until = *until.get_or_insert_with(|| self.path.clock.deadline(timeout));
            let left = self.path.clock.left(until);
            if !self.wait(left, Self::has_room)? {
                return Ok(sent);
            }
        }
    }

    /// Sends samples for which there is credit, no more than [`TxStreamer::ready_samples`], in a
    /// burst that has begun. Returns their number: nothing else takes credit meanwhile, so all are
    /// sent.
    pub(super) fn send_ready<T: StreamSample>(
        &mut self,
        samples: &[T],
        end_of_burst: bool,
    ) -> Result<usize, TxError> {
        let mut sent = 0;
        loop {
            let count = self.load(&samples[sent..], end_of_burst)?;
            sent += count;
            let done = sent == samples.len() && (!end_of_burst || self.end_burst()?);
            self.launch()?;
            if done || count == 0 {
                self.keep_up()?;
                return Ok(sent);
            }
        }
    }

    /// Starts a burst, or continues one at a given time.
    pub(super) fn begin(&mut self, time_ticks: Option<u64>) -> Result<(), TxError> {
        match self.burst {
            Burst::Idle => self.depart()?,
            Burst::Open { next_ticks } => {
                let waiting = self.path.rate.ticks(self.train.filled() as u64);
                let next = next_ticks.map(|ticks| ticks.wrapping_add(waiting));
                if time_ticks.is_none() || time_ticks == next {
                    return Ok(());
                }
                if self.train.filled() > 0 {
                    self.complete_whole(self.train.filled(), false)?;
                }
                self.depart()?;
            }
        }
        self.train.shape(time_ticks.is_some());
        self.burst = Burst::Open { next_ticks: time_ticks };
        Ok(())
    }

    /// Converts as many samples into the batch as it has space and credit for. With `ending` the
    /// last sample is not put into a packet that it would complete without the end of the burst.
    fn load<T: StreamSample>(&mut self, samples: &[T], ending: bool) -> Result<usize, TxError> {
        let mut taken = 0;
        while taken < samples.len() && !self.train.is_full() && self.has_credit() {
            let space = self.train.space(&mut *self.port.tx);
            let space = space.map_err(io_error("send to", self.path.device))?;
            let count = T::to_packet(self.converter, &samples[taken..], space, self.scale);
            taken += count;
            self.core.account.accept(count as u64);
            let full = self.train.fill(count);
            if full && !(ending && taken == samples.len()) {
                self.complete(false)?;
            }
        }
        Ok(taken)
    }

    /// Ends the burst with the packet under construction, or else with a zero sample. Returns false
    /// when there is no credit for that.
    fn end_burst(&mut self) -> Result<bool, TxError> {
        if self.burst == Burst::Idle {
            return Ok(true);
        }
        if self.train.filled() == 0 {
            if self.train.is_full() || self.room_packets() == 0 {
                return Ok(false);
            }
            self.pad(1)?;
            self.complete_whole(0, true)?;
        } else {
            self.complete_whole(self.train.filled(), true)?;
        }
        self.burst = Burst::Idle;
        self.core.counters.bursts += 1;
        Ok(true)
    }

    fn complete(&mut self, eob: bool) -> Result<(), TxError> {
        self.complete_with(self.train.filled(), eob)
    }

    /// Completes the packet under construction with zeros up to a whole cycle of the radio.
    fn complete_whole(&mut self, samples: usize, eob: bool) -> Result<(), TxError> {
        let filled = self.train.filled();
        self.pad(filled.next_multiple_of(self.whole) - filled)?;
        self.complete_with(samples, eob)
    }

    /// Adds zeros to the packet under construction, which has space for them.
    fn pad(&mut self, samples: usize) -> Result<(), TxError> {
        if samples > 0 {
            let space = self.train.space(&mut *self.port.tx);
            let space = space.map_err(io_error("send to", self.path.device))?;
            space[..samples * SC16_LEN].fill(0);
            self.train.fill(samples);
            self.core.counters.padding += samples as u64;
        }
        Ok(())
    }

    /// Completes the packet under construction, which has `samples` samples of the caller.
    fn complete_with(&mut self, samples: usize, eob: bool) -> Result<(), TxError> {
        let Burst::Open { next_ticks } = &mut self.burst else { return Ok(()) };
        let ticks = *next_ticks;
        *next_ticks = ticks.map(|t| t.wrapping_add(self.path.rate.ticks(samples as u64)));
        let (epid, device, length) =
            (self.path.endpoint.epid, self.path.device, self.train.length());
        let tx = &mut *self.port.tx;
        let done = self.train.complete(tx, device, epid, self.seq, ticks, eob);
        self.seq = self.seq.wrapping_add(1);
        self.core.counters.packets += 1;
        // Counted when the packet is complete; it is sent before any other.
        let flow_bytes = round_to_word(length, self.path.width) as u64;
        self.core.account.send(flow_bytes, samples as u64, ticks, eob);
        done.map_err(io_error("send to", device)).map_err(TxError::from)
    }

    /// Sends the complete packets, and does the periodic work.
    fn depart(&mut self) -> Result<(), TxError> {
        if self.train.is_empty() {
            return Ok(());
        }
        self.launch()?;
        self.keep_up()
    }

    /// Sends the complete packets.
    fn launch(&mut self) -> Result<(), TxError> {
        if self.train.is_empty() {
            return Ok(());
        }
        self.core.counters.trains += 1;
        let device = self.path.device;
        let sent = self.train.depart(&mut *self.port.tx);
        sent.map_err(io_error("send to", device)).map_err(TxError::from)
    }

    /// Does the periodic work: a count query once per window, and a poll for credit once per
    /// period.
    fn keep_up(&mut self) -> Result<(), TxError> {
        if self.core.account.is_audit_due() {
            self.audit()?;
        }
        let sent_bytes = self.core.account.window.sent().bytes;
        let since = sent_bytes.wrapping_sub(self.core.polled_bytes);
        if since >= self.core.account.window.period().bytes || self.room_packets() == 0 {
            self.core.polled_bytes = sent_bytes;
            self.poll()?;
        }
        Ok(())
    }

    /// Returns the length of a full packet in flow control.
    pub(super) fn flow_bytes(&self) -> u64 {
        round_to_word(self.train.segment_bytes(), self.path.width) as u64
    }

    /// Returns the packets that may be completed.
    pub(super) fn room_packets(&self) -> u64 {
        self.core.account.room_packets(self.flow_bytes())
    }

    /// Returns the samples that can be taken now, while no complete packet waits.
    pub(super) fn ready_samples(&self) -> usize {
        let packets = usize::try_from(self.room_packets()).unwrap_or(usize::MAX);
        let (full, filled) = (self.samples_per_packet, self.train.filled());
        // The credit for a packet under construction was there when it was begun.
        let packets = if filled > 0 { packets.max(1) } else { packets };
        packets.saturating_mul(full) - filled
    }

    /// Returns whether the window allows the next sample. The record has space for one or two GSO
    /// batches.
    fn has_credit(&self) -> bool {
        self.train.filled() > 0 || self.core.account.window.room_packets(self.flow_bytes()) > 0
    }

    /// Returns whether the next sample can be taken.
    fn has_room(&self) -> bool {
        self.train.filled() > 0 || self.room_packets() > 0
    }
}
