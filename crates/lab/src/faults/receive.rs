//! A receive stream through a fault.

use super::rig::{PACKET, Rig, SAMPLES_BEFORE};
use super::{Case, Ending, MatrixError, PACKET_SAMPLES, Progress, Row};
use crate::Direction;
use millstream_radio::{Cause, RxArgs, RxError, RxEvent, RxStreamer};
use std::time::Duration;

/// Receive queue, bytes: a small window, so that its credit is renewed often.
const QUEUE_BYTES: usize = 256 << 10;

/// One wait for samples.
const TURN: Duration = Duration::from_millis(20);

struct Run {
    rig: Rig,
    stream: RxStreamer,
    row: Row,
    progress: Progress,
    block: Vec<[i16; 2]>,
}

/// Runs the case; the row lacks its judgement.
pub fn run(case: &Case) -> Result<Row, MatrixError> {
    let rig = Rig::start(case, Direction::Rx)?;
    let args =
        RxArgs::new(0).with_samples_per_packet(PACKET_SAMPLES).with_recv_queue_bytes(QUEUE_BYTES);
    let stream = rig.device.rx_stream(args)?;
    let (row, progress) = (Row::new(case, Direction::Rx), Progress::new());
    let mut run = Run { rig, stream, row, progress, block: vec![[0; 2]; 16 * PACKET] };
    if let Err(error) = run.stream_through(case)? {
        run.row.ending = Ending::Failed(error.to_string());
    }
    Ok(run.end())
}

impl Run {
    fn stream_through(&mut self, case: &Case) -> Result<Result<(), RxError>, MatrixError> {
        if let Err(error) = self
            .stream
            .start_continuous(None)
            .and_then(|()| self.receive(|run| run.delivered() < SAMPLES_BEFORE))
        {
            return Ok(Err(error));
        }
        self.rig.strike()?;
        self.progress.restart();
        Ok(self.after_the_strike(case))
    }

    fn after_the_strike(&mut self, case: &Case) -> Result<(), RxError> {
        self.receive(|run| !run.rig.is_over())?;
        let goal = self.delivered() + case.samples_after;
        self.receive(|run| run.delivered() < goal)?;
        self.row.recovery_ms = self.progress.longest_ms();
        self.row.hits = self.rig.end_faults();
        self.stream.stop()?;
        self.receive(|run| run.stream.is_running())
    }

    fn delivered(&self) -> u64 {
        self.stream.ledger().delivered
    }

    /// Receives while `more`, or until the stream hangs.
    fn receive(&mut self, mut more: impl FnMut(&Self) -> bool) -> Result<(), RxError> {
        while self.row.ending == Ending::GoesOn && more(self) {
            let meta = self.stream.recv_sc16(&mut self.block, TURN)?;
            self.progress.note(self.delivered());
            match meta.event {
                RxEvent::None => {}
                RxEvent::Timeout if self.progress.hangs() => self.row.ending = Ending::Hangs,
                RxEvent::Timeout => {}
                RxEvent::Overrun { .. } => self.row.count("overrun"),
                RxEvent::ClockJump { .. } => self.row.count("clock jump"),
                RxEvent::SequenceGap { .. } => self.row.count("gap"),
                RxEvent::LateCommand => self.row.count("late command"),
                _ => self.row.count("other"),
            }
            let Some(ticks) = meta.time_ticks.filter(|_| meta.samples > 0) else { continue };
            let samples = self.block[..meta.samples].iter().zip(ticks as u32..);
            let wrong = samples.filter(|(sample, tick)| ramp(**sample) != *tick);
            self.row.wrong_samples += wrong.count() as u64;
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
        // A start that was not acknowledged may have been heard: what it brought is nobody's.
        let stray = stream.counters().stray * u64::from(PACKET_SAMPLES);
        let ledger = stream.finish();
        let counters = rig.stop();
        row.expected = ledger.expected;
        row.delivered = ledger.delivered;
        let losses = ledger.losses().filter(|loss| loss.1 > 0);
        row.lost = losses.map(|(cause, samples)| (cause.name(), samples)).collect();
        row.balances = ledger.balance().is_ok();
        row.device_samples = counters.rx_bytes / 4;
        let unsent = [Cause::DeviceOverrun, Cause::LateCommand, Cause::ClockJump];
        let unsent: u64 = unsent.into_iter().map(|cause| ledger.lost(cause)).sum();
        let sent = ledger.expected - unsent;
        row.ledger_samples = (sent - ledger.lost(Cause::Unknown), sent + stray);
        row
    }
}

/// The time in a sample of the antenna `ramp`, its low 32 bits.
fn ramp([low, high]: [i16; 2]) -> u32 {
    u32::from(high as u16) << 16 | u32::from(low as u16)
}
