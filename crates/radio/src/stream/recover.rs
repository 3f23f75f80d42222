//! Recovery from silence: asks the device for the reason, and continues where that is possible.

use std::time::Duration;

use millstream_wire::ctrl::CLIENT_ZERO_PORT;
use millstream_wire::regs::client_zero::PROTO_VER;

use super::core::Step;
use super::handshake;
use super::meta::RxError;
use super::state::StreamState;
use super::streamer::RxStreamer;
use crate::{Cause, RadioError};

/// The start commands after one overrun.
const RESTART_TRIES: u32 = 9;

impl RxStreamer {
    /// Does what the core asks for.
    pub(super) fn carry_out(&mut self, step: Step) -> Result<(), RxError> {
        match step {
            Step::Restart { attempts } => self.restart(attempts),
            Step::Ask { silent } => self.ask(silent),
            Step::SetUp => self.restart_after_stall(),
        }
    }

    /// Asks the device for a sign of life after a too long silence.
    fn ask(&mut self, silent: Duration) -> Result<(), RxError> {
        let asked = self.now();
        match self.channel.control().read(CLIENT_ZERO_PORT, PROTO_VER) {
            Ok(_) => {}
            Err(RadioError::Silent { .. } | RadioError::Io { .. }) => {
                return Err(RxError::DeviceSilent {
                    address: self.path.device,
                    claim_lost: self.channel.control().claim_lost(),
                    silent_ms: (silent + self.now().duration_since(asked)).as_millis() as u64,
                });
            }
            Err(error) => return Err(error.into()),
        }
        self.core.last_heard = self.now();
        // Packets that it sent before its answer have arrived by now.
        if self.has_come()? {
            return Ok(());
        }
        let now = self.channel.time_ticks()?;
        if self.core.is_early(now) {
            return Ok(());
        }
        match self.core.outlived_silence() {
            Some(step) => self.carry_out(step),
            None => Ok(()),
        }
    }

    /// Returns whether a packet of the device came meanwhile.
    fn has_come(&mut self) -> Result<bool, RxError> {
        let received = self.port.rx.recv_batch(Duration::ZERO);
        let count = received.map_err(|error| self.receive_error(error))?;
        self.core.last_look = self.now();
        (self.batch, self.core.heard) = ((0, count), false);
        Ok(self.inspect_batch()? || self.core.heard)
    }

    /// Sets the stream up again: the device is alive, but all of its credit is lost in the network,
    /// and no rule of the protocol restores it.
    fn restart_after_stall(&mut self) -> Result<(), RxError> {
        self.core.counters.stalls += 1;
        if self.core.run.restarted().is_some() {
            let now = self.channel.time_ticks()?;
            self.look();
            self.core.lose_run(now);
        }
        self.channel.stop()?;
        let samples = handshake::open(&mut self.port, &self.path, &mut self.core.credit)?;
        self.batch = (0, 0);
        self.core.set_up_again(samples);
        self.restart(0)
    }

    /// Restarts after `attempts` attempts; a member of a group waits for the others.
    fn restart(&mut self, attempts: u32) -> Result<(), RxError> {
        if self.core.in_group {
            self.core.run.want(attempts);
            return Ok(());
        }
        check_attempts(attempts).inspect_err(|_| self.core.run = StreamState::Idle)?;
        let before = self.channel.time_ticks()?;
        self.channel.stop()?;
        let now = self.channel.time_ticks()?;
        let start = now.wrapping_add(self.core.restart_lead(now.wrapping_sub(before), attempts));
        let start = self.core.aligned(start, now);
        self.start_again(now, start, attempts + 1, Cause::DeviceOverrun)
    }

    /// Continues at `start`, commanded at `told`; samples missing until then have the cause
    /// `cause`.
    pub(super) fn start_again(
        &mut self,
        told: u64,
        start: u64,
        attempts: u32,
        cause: Cause,
    ) -> Result<(), RxError> {
        self.look();
        let recovery = self.core.recovery(attempts, told, start, cause);
        self.command(None, Some(start))?;
        self.core.await_restart(recovery);
        Ok(())
    }
}

/// Checks that another attempt to restart is left.
pub(super) fn check_attempts(attempts: u32) -> Result<(), RxError> {
    if attempts < RESTART_TRIES { Ok(()) } else { Err(RxError::NotRestarted { attempts }) }
}
