//! A receive stream through a fault.

use super::rig::{FaultSetup, SAMPLES_BEFORE};
use super::{Ending, FaultCase, FaultRow, PACKET_SAMPLES, Run, Stream};
use crate::Direction;
use millstream_radio::{Cause, Device, RadioError, RxArgs, RxError, RxEvent, RxStreamer};
use std::time::Duration;

/// Receive queue, bytes: a small window, so that its credit is renewed often.
const QUEUE_BYTES: usize = 256 << 10;

/// One wait for samples.
const TURN: Duration = Duration::from_millis(20);

impl Stream for RxStreamer {
    const DIRECTION: Direction = Direction::Rx;
    const FILL: [i16; 2] = [0; 2];
    const BLOCK_PACKETS: usize = 16;
    type Error = RxError;

    fn open(device: &Device) -> Result<Self, RadioError> {
        let args = RxArgs::new(0).with_samples_per_packet(PACKET_SAMPLES);
        device.rx_stream(args.with_recv_queue_bytes(QUEUE_BYTES))
    }

    fn before(run: &mut Run<Self>) -> Result<(), RxError> {
        run.stream.start_continuous(None)?;
        run.receive(|run| run.delivered() < SAMPLES_BEFORE)
    }

    fn after(run: &mut Run<Self>, case: &FaultCase) -> Result<(), RxError> {
        run.receive(|run| !run.rig.is_over())?;
        let goal = run.delivered() + case.samples_after;
        run.receive(|run| run.delivered() < goal)?;
        run.strikes_end();
        run.stream.stop()?;
        run.receive(|run| run.stream.is_running())
    }

    fn book(self, rig: FaultSetup, row: &mut FaultRow) {
        // The device may have received an unacknowledged start: its samples belong to no stream.
        let stray = self.counters().stray * u64::from(PACKET_SAMPLES);
        let ledger = self.finish();
        row.device_samples = rig.stop().rx_bytes / 4;
        (row.expected, row.delivered) = (ledger.expected, ledger.delivered);
        (row.lost, row.balances) = (ledger.lost_by_name(), ledger.balance().is_ok());
        let unsent = [Cause::DeviceOverrun, Cause::LateCommand, Cause::ClockJump];
        let unsent: u64 = unsent.into_iter().map(|cause| ledger.lost(cause)).sum();
        let sent = ledger.expected - unsent;
        row.ledger_samples = (sent - ledger.lost(Cause::Unknown), sent + stray);
    }
}

impl Run<RxStreamer> {
    fn delivered(&self) -> u64 {
        self.stream.ledger().delivered
    }

    /// Receives while `more` returns true, or until the stream hangs.
    fn receive(&mut self, mut more: impl FnMut(&Self) -> bool) -> Result<(), RxError> {
        while self.row.ending == Ending::GoesOn && more(self) {
            let meta = self.stream.recv(&mut self.block, TURN)?;
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
}

/// The time in a sample of the antenna `ramp`, its low 32 bits.
fn ramp([low, high]: [i16; 2]) -> u32 {
    u32::from(high as u16) << 16 | u32::from(low as u16)
}
