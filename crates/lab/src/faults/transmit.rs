//! A transmit stream through a fault.

use super::rig::{PACKET, Rig, SAMPLES_BEFORE};
use super::{Case, Ending, MatrixError, PACKET_SAMPLES, Progress, Row};
use crate::Direction;
use millstream_emulator::CounterSnapshot;
use millstream_radio::{TxArgs, TxError, TxEvent, TxLedger, TxMetadata, TxStreamer};
use std::time::{Duration, Instant};

/// One wait for credit.
const TURN: Duration = Duration::from_millis(20);

/// How long the faults may take to strike.
const STRIKE: Duration = Duration::from_secs(30);

/// How long the device may take to play what it holds.
const DRAIN: Duration = Duration::from_secs(5);

struct Run {
    rig: Rig,
    stream: TxStreamer,
    row: Row,
    progress: Progress,
    block: Vec<[i16; 2]>,
}

/// Runs the case; the row lacks its judgement.
pub fn run(case: &Case) -> Result<Row, MatrixError> {
    let rig = Rig::start(case, Direction::Tx)?;
    let stream = rig.device.tx_stream(TxArgs::new(0).with_samples_per_packet(PACKET_SAMPLES))?;
    let (row, progress) = (Row::new(case, Direction::Tx), Progress::new());
    let mut run = Run { rig, stream, row, progress, block: vec![[1000, -1000]; 8 * PACKET] };
    if let Err(error) = run.stream_through(case)? {
        run.row.ending = Ending::Failed(error.to_string());
    }
    Ok(run.end())
}

impl Run {
    fn stream_through(&mut self, case: &Case) -> Result<Result<(), TxError>, MatrixError> {
        if let Err(error) = self.send(|run| run.transmitted() < SAMPLES_BEFORE) {
            return Ok(Err(error));
        }
        self.rig.strike()?;
        self.progress.restart();
        Ok(self.after_the_strike(case))
    }

    fn after_the_strike(&mut self, case: &Case) -> Result<(), TxError> {
        let until = Instant::now() + STRIKE;
        self.send(|run| !run.rig.is_over() && Instant::now() < until)?;
        if !self.rig.is_over() {
            self.row.ending = Ending::Hangs;
            return Ok(());
        }
        let goal = self.transmitted() + case.samples_after;
        self.send(|run| run.transmitted() < goal)?;
        self.row.recovery_ms = self.progress.longest_ms();
        self.row.hits = self.rig.end_faults();
        let until = Instant::now() + DRAIN;
        while !self.stream.send_sc16(&[], TxMetadata::now().ending(), TURN)?.end_of_burst {
            if Instant::now() > until {
                self.row.ending = Ending::Hangs;
                return Ok(());
            }
        }
        if !self.stream.settle(DRAIN)? {
            self.row.ending = Ending::Hangs;
        }
        self.take_events()
    }

    /// By the device's own count.
    fn transmitted(&self) -> u64 {
        self.rig.radio.counters().tx_samples
    }

    /// Sends while `more`, or until the stream hangs.
    fn send(&mut self, mut more: impl FnMut(&Self) -> bool) -> Result<(), TxError> {
        while self.row.ending == Ending::GoesOn && more(self) {
            // Whole packets, so that a packet lost is so many samples.
            let mut left = self.block.len();
            while left > 0 {
                let block = &self.block[self.block.len() - left..];
                left -= self.stream.send_sc16(block, TxMetadata::now(), TURN)?.samples;
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
        while let Some(event) = self.stream.poll_event()? {
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

    fn end(self) -> Row {
        let Self { rig, stream, mut row, progress, .. } = self;
        if row.hits == 0 {
            // It ended early.
            row.recovery_ms = progress.longest_ms();
            row.hits = rig.end_faults();
        }
        let padding = stream.counters().padding;
        let ledger = stream.finish();
        let until = Instant::now() + DRAIN;
        while waiting(&rig.radio.counters()) > 0 && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
        let counters = rig.stop();
        row.fill(&ledger);
        row.device_samples = counters.tx_samples;
        let (unknown, repeated) = (ledger.unknown, ledger.repeated);
        let least = ledger.transmitted + padding + repeated.min;
        let surely = unknown.samples - unknown.lost_max;
        let most = least + unknown.samples - unknown.lost_min;
        let most = most.saturating_add(repeated.max - repeated.min);
        row.ledger_samples = (least + surely, most);
        row
    }
}

impl Row {
    fn fill(&mut self, ledger: &TxLedger) {
        self.expected = ledger.accepted;
        self.delivered = ledger.transmitted;
        let losses = ledger.losses().filter(|loss| loss.1 > 0);
        self.lost = losses.map(|(cause, samples)| (cause.name(), samples)).collect();
        self.balances = ledger.balance().is_ok();
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
