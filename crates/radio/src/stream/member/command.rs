//! Starting and stopping.

use std::num::NonZeroU32;
use std::time::Duration;

use millstream_wire::regs::radio::RX_CMD_SLOTS;

use super::RxMember;
use crate::RadioError;
use crate::channel::FINITE_SAMPLES_MAX;
use crate::stream::meta::RxError;
use crate::stream::rate::{StreamRate, next_on_grid};
use crate::stream::recovery::START_TRIES;
use crate::stream::run::{Mode, QueuedCapture};

/// How long the port must be quiet before a start command is tried again, and the limit of that
/// wait: other programs may send to the port without end.
const QUIET: Duration = Duration::from_millis(50);
const QUIET_TIMEOUT: Duration = Duration::from_millis(500);

/// Checks that a capture of `samples` samples is possible at this rate, for a radio with words of
/// this length.
pub(crate) fn check_length(
    rate: StreamRate,
    word: NonZeroU32,
    samples: u64,
) -> Result<(), RxError> {
    // A sample of the stream is a few of the radio, which counts in words.
    let multiple = rate.whole_cycles(word).get();
    let most = rate.samples(FINITE_SAMPLES_MAX);
    if samples == 0 || samples > most || samples % u64::from(multiple) != 0 {
        return Err(RxError::BadLength { samples, multiple, most });
    }
    Ok(())
}

/// When a capture starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::stream) enum RxStart {
    /// At this time of the device, or at once.
    At(Option<u64>),
    /// When the transmitter of the channel runs.
    WithTransmitter,
}

impl RxMember {
    /// Checks that a capture of `samples` samples is possible.
    pub(in crate::stream) fn check_length(&self, samples: u64) -> Result<(), RxError> {
        let rate = self.path.rate;
        check_length(rate, self.channel.samples_per_word(), samples)
    }

    /// Stops reception, see [`crate::RxStreamer::stop`].
    pub(in crate::stream) fn stop(&mut self) -> Result<(), RxError> {
        let set_up = self.give_up_recovery();
        self.channel.stop()?;
        set_up?;
        if self.core.run().is_idle() {
            return Ok(());
        }
        let outcome = self.forget_what_has_not_begun();
        self.core.stop(self.now());
        outcome
    }

    /// Returns the first time not before `at` at which a cycle of the radio begins. Its clock may
    /// have been set to any time, so that is asked for.
    pub(in crate::stream) fn on_cycle(&self, at: Option<u64>) -> Result<Option<u64>, RxError> {
        let cycle = self.channel.samples_per_word();
        match at {
            Some(at) if cycle.get() > 1 => {
                Ok(Some(next_on_grid(at, self.channel.time_ticks()?, cycle)))
            }
            at => Ok(at),
        }
    }

    /// Starts reception of `samples` samples, or until [`RxMember::stop`].
    pub(in crate::stream) fn start(
        &mut self,
        samples: Option<u64>,
        start: RxStart,
    ) -> Result<(), RxError> {
        if self.is_running() || self.core.held().is_some() {
            return Err(RxError::Running);
        }
        let at = match start {
            RxStart::At(at) => self.on_cycle(at)?,
            RxStart::WithTransmitter => None,
        };
        // UHD's simulator needs a stop between two captures; other radios tolerate it.
        self.channel.stop_if_started()?;
        self.drop_strays(Duration::ZERO)?;
        let with_transmitter = start == RxStart::WithTransmitter;
        self.command(samples, at, with_transmitter)?;
        self.core.begin(samples, at, with_transmitter);
        Ok(())
    }

    /// Removes the captures that had not begun when the radio was stopped. The others are still to
    /// come, each burst with its own end.
    fn forget_what_has_not_begun(&mut self) -> Result<(), RxError> {
        if !self.core.run().has_queued_captures() && self.core.run().restart().is_none() {
            return Ok(());
        }
        let now = self.channel.time_ticks();
        let now = now.inspect_err(|_| self.core.forget_queued_captures())?;
        self.look();
        self.core.forget_what_has_not_begun(now);
        Ok(())
    }

    /// Queues a capture of a length that is possible, see [`crate::RxStreamer::queue_finite`].
    pub(in crate::stream) fn queue_finite(
        &mut self,
        samples: u64,
        at: Option<u64>,
    ) -> Result<(), RxError> {
        match self.core.run().mode() {
            Mode::Finite { .. } => {}
            Mode::Idle => return self.start(Some(samples), RxStart::At(at)),
            Mode::Continuous | Mode::Stopping { .. } => return Err(RxError::Endless),
        }
        let at = self.on_cycle(at)?;
        let free = self.channel.free_slots()?;
        if free == 0 {
            return Err(RxError::QueueFull);
        }
        // The radio counts its own samples.
        let length = Some(self.path.rate.ticks(samples));
        match self.channel.start(length, at) {
            Ok(()) => {}
            Err(RadioError::Silent { .. }) if !self.was_queued(free, at)? => {
                self.channel.start(length, at)?;
            }
            Err(RadioError::Silent { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        self.core.queue_capture(QueuedCapture { samples, at });
        Ok(())
    }

    /// Returns whether a capture was queued although the write was not acknowledged. In doubt it
    /// was: the ledger shows whether its samples come, and none can come twice.
    fn was_queued(&self, free_before: u32, at: Option<u64>) -> Result<bool, RxError> {
        let before = self.core.run().waiting_from(self.channel.time_ticks()?);
        let free = self.channel.free_slots()?;
        let now = self.channel.time_ticks()?;
        if free < free_before || before != self.core.run().waiting_from(now) {
            return Ok(true);
        }
        // No capture began meanwhile, so the queued ones can be counted.
        let ahead = |at: u64| at.wrapping_sub(now).wrapping_sub(1) < 1 << 63;
        match (before, at) {
            (Some(waiting), Some(at)) if ahead(at) => Ok(RX_CMD_SLOTS - free > waiting),
            _ => Ok(true),
        }
    }

    /// Sends an idle radio start commands, exactly one of which takes effect.
    fn command(
        &mut self,
        samples: Option<u64>,
        at: Option<u64>,
        with_transmitter: bool,
    ) -> Result<(), RxError> {
        // The radio counts its own samples.
        let length = samples.map(|samples| self.path.rate.ticks(samples));
        for attempt in 1.. {
            self.look();
            self.core.see_reports();
            let sent = match with_transmitter {
                true => self.channel.start_with_transmitter(length),
                false => self.channel.start(length, at),
            };
            match sent {
                Ok(()) => break,
                Err(RadioError::Silent { .. }) if attempt < START_TRIES => {
                    // It is unknown whether the radio runs: stop it, then try again.
                    self.channel.stop()?;
                    self.drop_strays(QUIET)?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        self.core.answered(self.now());
        Ok(())
    }

    /// Takes packets of an earlier burst off the port, until it has been quiet for `quiet`.
    fn drop_strays(&mut self, quiet: Duration) -> Result<(), RxError> {
        let until = self.now() + QUIET_TIMEOUT;
        loop {
            self.inspect_batch()?;
            if self.now() >= until {
                return Ok(());
            }
            let received = self.port.rx.recv_batch(quiet);
            let count = received.map_err(|error| self.receive_error(error))?;
            self.batch = (0, count);
            if count == 0 {
                return Ok(());
            }
        }
    }
}
