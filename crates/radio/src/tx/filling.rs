//! Filling packets: from samples into the memory that a port lends, with credit, times and ends of
//! bursts.

use std::io;

use millstream_link::port::PortTx;
use millstream_wire::Width;
use millstream_wire::chdr::{SC16_LEN, round_to_word};

use super::core::TxCore;
use super::train::PacketTrain;
use crate::convert::{Converter, StreamSample, Wire};

/// The packets under construction.
#[derive(Debug)]
pub(super) struct Filling {
    pub train: PacketTrain,
    pub burst: Burst,
    converter: Converter,
    /// The next data packet's sequence number.
    seq: u16,
    samples_per_packet: usize,
    /// The fewest samples that are whole cycles of the radio; every packet is a multiple.
    whole: usize,
    /// Samples of an incomplete cycle, while the packet before them is sent.
    rest: Box<[u8]>,
}

/// The burst that is being sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Burst {
    /// No burst: the next sample starts one.
    Idle,
    /// The time of the first sample of the next packet, ticks, in a burst with time.
    Open { next_ticks: Option<u64> },
}

impl Filling {
    /// Returns the state of a stream with full packets of `samples_per_packet`, a multiple of
    /// `whole`, which is at least 1.
    pub fn new(width: Width, samples_per_packet: usize, whole: usize) -> Self {
        Self {
            train: PacketTrain::new(width, samples_per_packet),
            burst: Burst::Idle,
            converter: Converter::new(Wire::Sc16),
            seq: 0,
            samples_per_packet,
            whole,
            rest: vec![0; (whole - 1) * SC16_LEN].into(),
        }
    }

    /// Begins anew with the packets' numbers.
    pub fn restart(&mut self) {
        self.seq = 0;
    }
}

impl TxCore {
    /// Returns whether samples of this time go on in the packet under construction.
    pub fn continues(&self, time_ticks: Option<u64>) -> bool {
        let Burst::Open { next_ticks } = self.filling.burst else { return false };
        let waiting = self.path.rate.ticks(self.filling.train.filled() as u64);
        time_ticks.is_none() || time_ticks == next_ticks.map(|ticks| ticks.wrapping_add(waiting))
    }

    /// Starts a burst, or continues one at another time, while no packet is under construction.
    pub fn open_burst(&mut self, time_ticks: Option<u64>) {
        self.filling.train.shape(time_ticks.is_some());
        self.filling.burst = Burst::Open { next_ticks: time_ticks };
    }

    /// Converts as many samples into the batch as it has space and credit for. With `ending` the
    /// last sample is not put into a packet that it would complete without the end of the burst.
    pub fn load<T: StreamSample>(
        &mut self,
        tx: &mut dyn PortTx,
        samples: &[T],
        scale: f32,
        ending: bool,
    ) -> io::Result<usize> {
        let mut taken = 0;
        while taken < samples.len() && !self.filling.train.is_full() && self.has_credit() {
            let space = self.filling.train.space(tx)?;
            let count = T::to_packet(self.filling.converter, &samples[taken..], space, scale);
            taken += count;
            self.account.accept(count as u64);
            let full = self.filling.train.fill(count);
            if full && !(ending && taken == samples.len()) {
                self.complete(tx, self.filling.train.filled(), false)?;
            }
        }
        Ok(taken)
    }

    /// Ends the burst with the packet under construction, or else with a zero sample. Returns false
    /// when there is no credit for that.
    pub fn end_burst(&mut self, tx: &mut dyn PortTx) -> io::Result<bool> {
        if self.filling.burst == Burst::Idle {
            return Ok(true);
        }
        let filled = self.filling.train.filled();
        if filled == 0 {
            if self.filling.train.is_full() || self.room_packets() == 0 {
                return Ok(false);
            }
            self.pad(tx, 1)?;
        }
        self.complete_whole(tx, filled, true)?;
        self.filling.burst = Burst::Idle;
        self.counters.bursts += 1;
        Ok(true)
    }

    /// Completes a packet under construction before a gap.
    pub fn complete_part(&mut self, tx: &mut dyn PortTx) -> io::Result<()> {
        match self.filling.train.filled() {
            0 => Ok(()),
            filled => self.complete_whole(tx, filled, false),
        }
    }

    /// Completes the whole cycles of a packet under construction. Returns the number of the samples
    /// behind them, which [`TxCore::put_back`] makes the beginning of the next packet; all wait on
    /// where there is no credit for that.
    pub fn complete_cycles(&mut self, tx: &mut dyn PortTx) -> io::Result<usize> {
        let filled = self.filling.train.filled();
        let rest = filled % self.filling.whole;
        if rest == filled || rest > 0 && self.room_packets() <= 1 {
            return Ok(0);
        }
        if rest > 0 {
            self.filling.train.take_back(tx, &mut self.filling.rest[..rest * SC16_LEN]);
        }
        self.complete(tx, filled - rest, false)?;
        Ok(rest)
    }

    /// Begins a packet with the samples that [`TxCore::complete_cycles`] took out, once the packets
    /// before are sent.
    pub fn put_back(&mut self, tx: &mut dyn PortTx, samples: usize) -> io::Result<()> {
        let mut rest = &self.filling.rest[..samples * SC16_LEN];
        while !rest.is_empty() {
            let space = self.filling.train.space(tx)?;
            let (part, others) = rest.split_at(rest.len().min(space.len()));
            space[..part.len()].copy_from_slice(part);
            rest = others;
            self.filling.train.fill(part.len() / SC16_LEN);
        }
        Ok(())
    }

    /// Completes the packet under construction with zeros up to a whole cycle of the radio.
    fn complete_whole(&mut self, tx: &mut dyn PortTx, samples: usize, eob: bool) -> io::Result<()> {
        let filled = self.filling.train.filled();
        self.pad(tx, filled.next_multiple_of(self.filling.whole) - filled)?;
        self.complete(tx, samples, eob)
    }

    /// Adds zeros to the packet under construction, which has space for them.
    fn pad(&mut self, tx: &mut dyn PortTx, samples: usize) -> io::Result<()> {
        let mut left = samples;
        while left > 0 {
            let space = self.filling.train.space(tx)?;
            let part = left.min(space.len() / SC16_LEN);
            space[..part * SC16_LEN].fill(0);
            self.filling.train.fill(part);
            left -= part;
        }
        self.counters.padding += samples as u64;
        Ok(())
    }

    /// Completes the packet under construction, which has `samples` samples of the caller.
    fn complete(&mut self, tx: &mut dyn PortTx, samples: usize, eob: bool) -> io::Result<()> {
        let filling = &mut self.filling;
        let Burst::Open { next_ticks } = &mut filling.burst else { return Ok(()) };
        let ticks = *next_ticks;
        *next_ticks = ticks.map(|t| t.wrapping_add(self.path.rate.ticks(samples as u64)));
        let (epid, device, length) =
            (self.path.endpoint.epid, self.path.device, filling.train.length());
        let done = filling.train.complete(tx, device, epid, filling.seq, ticks, eob);
        filling.seq = filling.seq.wrapping_add(1);
        self.counters.packets += 1;
        // Counted when the packet is complete; it is sent before any other.
        let flow_bytes = round_to_word(length, self.path.width) as u64;
        self.account.send(flow_bytes, samples as u64, ticks, eob);
        self.unpolled_bytes += flow_bytes;
        done
    }

    /// Sends the complete packets as a train; there is at least one.
    pub fn send_train(&mut self, tx: &mut dyn PortTx) -> io::Result<()> {
        self.counters.trains += 1;
        self.filling.train.depart(tx)
    }

    /// Returns whether credit is to be looked for: once per period, and when there is none.
    pub fn is_poll_due(&mut self) -> bool {
        let period = self.account.window().period().bytes;
        let due = self.unpolled_bytes >= period || self.room_packets() == 0;
        if due {
            self.unpolled_bytes = 0;
        }
        due
    }

    /// Returns the credit of the packet under construction, bytes.
    pub fn begun_bytes(&self) -> u64 {
        if self.filling.train.filled() > 0 { self.flow_bytes() } else { 0 }
    }

    /// Returns the length of a full packet in flow control.
    fn flow_bytes(&self) -> u64 {
        round_to_word(self.filling.train.segment_bytes(), self.path.width) as u64
    }

    /// Returns the packets that may be completed.
    pub fn room_packets(&self) -> u64 {
        self.account.room_packets(self.flow_bytes())
    }

    /// Returns the samples that can be taken now, while no complete packet waits.
    pub fn ready_samples(&self) -> usize {
        let packets = usize::try_from(self.room_packets()).unwrap_or(usize::MAX);
        let (full, filled) = (self.filling.samples_per_packet, self.filling.train.filled());
        // The credit for a packet under construction was there when it was begun.
        let packets = if filled > 0 { packets.max(1) } else { packets };
        packets.saturating_mul(full) - filled
    }

    /// Returns whether the window allows the next sample.
    fn has_credit(&self) -> bool {
        self.filling.train.filled() > 0 || self.account.credit_packets(self.flow_bytes()) > 0
    }

    /// Returns whether the next sample can be taken.
    pub fn has_room(&self) -> bool {
        self.filling.train.filled() > 0 || self.room_packets() > 0
    }
}

#[cfg(test)]
#[path = "filling_tests.rs"]
mod tests;
