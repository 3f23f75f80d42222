//! A transmit stream through a fault.

use super::rig::{FaultSetup, SAMPLES_BEFORE};
use super::{Ending, FaultCase, FaultRow, PACKET_SAMPLES, Run, Stream};
use crate::Direction;
use millstream_emulator::CounterSnapshot;
use millstream_radio::{Device, RadioError, TxArgs, TxError, TxEvent, TxMetadata, TxStreamer};
use std::time::{Duration, Instant};

/// One wait for credit.
const TURN: Duration = Duration::from_millis(20);

/// Time limit of the faults.
const STRIKE: Duration = Duration::from_secs(30);

/// Time limit of the device for draining its buffer.
const DRAIN: Duration = Duration::from_secs(5);

impl Stream for TxStreamer {
    const DIRECTION: Direction = Direction::Tx;
    const FILL: [i16; 2] = [1000, -1000];
    const BLOCK_PACKETS: usize = 8;
    type Error = TxError;

    fn open(device: &Device) -> Result<Self, RadioError> {
        device.tx_stream(TxArgs::new(0).with_samples_per_packet(PACKET_SAMPLES))
    }

    fn before(run: &mut Run<Self>) -> Result<(), TxError> {
        run.send(|run| run.transmitted() < SAMPLES_BEFORE)
    }

    fn after(run: &mut Run<Self>, case: &FaultCase) -> Result<(), TxError> {
        let until = Instant::now() + STRIKE;
        run.send(|run| !run.rig.is_over() && Instant::now() < until)?;
        if !run.rig.is_over() {
            run.row.ending = Ending::Hangs;
            return Ok(());
        }
        let goal = run.transmitted() + case.samples_after;
        run.send(|run| run.transmitted() < goal)?;
        run.strikes_end();
        let until = Instant::now() + DRAIN;
        while !run.stream.send::<[i16; 2]>(&[], TxMetadata::now().ending(), TURN)?.end_of_burst {
            if Instant::now() > until {
                run.row.ending = Ending::Hangs;
                return Ok(());
            }
        }
        if !run.stream.drain(DRAIN)? {
            run.row.ending = Ending::Hangs;
        }
        run.take_events()
    }

    fn book(self, rig: FaultSetup, row: &mut FaultRow) {
        let padding = self.counters().padding;
        let ledger = self.finish();
        let until = Instant::now() + DRAIN;
        while waiting(&rig.radio.counters()) > 0 && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
        let counters = rig.stop();
        row.device_samples = counters.tx_samples;
        (row.expected, row.delivered) = (ledger.accepted, ledger.transmitted);
        (row.lost, row.balances) = (ledger.lost_by_name(), ledger.balance().is_ok());
        let (unknown, repeated) = (ledger.unknown, ledger.repeated);
        let least = ledger.transmitted + padding + repeated.min;
        let surely = unknown.samples - unknown.lost_max;
        let most = least + unknown.samples - unknown.lost_min;
        let most = most.saturating_add(repeated.max - repeated.min);
        // A device that restarts drops samples that it had taken.
        let kept = (least + surely).saturating_sub(counters.tx_flushed_samples);
        row.ledger_samples = (kept, most);
    }
}

impl Run<TxStreamer> {
    /// The device's own count of transmitted samples.
    fn transmitted(&self) -> u64 {
        self.rig.radio.counters().tx_samples
    }

    /// Sends while `more` returns true, or until the stream hangs.
    fn send(&mut self, mut more: impl FnMut(&Self) -> bool) -> Result<(), TxError> {
        while self.row.ending == Ending::GoesOn && more(self) {
            // Whole packets, so that a lost packet is a known number of samples.
            let mut left = self.block.len();
            while left > 0 {
                let block = &self.block[self.block.len() - left..];
                left -= self.stream.send(block, TxMetadata::now(), TURN)?.samples;
                self.progress.note(self.rig.radio.counters().tx_samples);
                if self.progress.hangs() {
                    self.row.ending = Ending::Hangs;
                    break;
                }
            }
            self.take_events()?;
        }
        Ok(())
    }

    fn take_events(&mut self) -> Result<(), TxError> {
        while let Some((_, event)) = self.stream.poll_event()? {
            self.row.count(match event {
                TxEvent::Underflow { .. } => "underflow",
                TxEvent::Late { .. } => "late",
                TxEvent::BurstAck { .. } => "burst ack",
                TxEvent::SequenceError => "sequence error",
                TxEvent::Lost { .. } => "lost",
                TxEvent::Reestablished { .. } => "reestablished",
                _ => "other",
            });
        }
        Ok(())
    }
}

/// Samples that are still in the device's buffer.
fn waiting(counters: &CounterSnapshot) -> u64 {
    let gone = counters.tx_samples
        + counters.tx_late_samples
        + counters.tx_skipped_samples
        + counters.tx_flushed_samples
        + counters.tx_overflow_samples;
    (counters.tx_bytes / 4).saturating_sub(gone)
}
