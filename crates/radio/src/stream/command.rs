//! Starting and stopping.

use std::time::Duration;

use super::meta::RxError;
use super::streamer::{RxStreamer, StreamState};
use crate::RadioError;
use crate::channel::FINITE_SAMPLES_MAX;

/// Attempts of a start command. It is not simply repeated, because it may have taken effect.
const START_TRIES: u32 = 5;

/// How long the port must be quiet before a start command is tried again, and the limit of that
/// wait: other programs may send to the port without end.
const QUIET: Duration = Duration::from_millis(50);
const QUIET_TIMEOUT: Duration = Duration::from_millis(500);

impl RxStreamer {
    /// Starts reception until [`RxStreamer::stop`], at the device's time `at` or at once.
    ///
    /// # Errors
    /// [`RxError::Running`]; [`RxError::Radio`] when the device does not answer.
    pub fn start_continuous(&mut self, at: Option<u64>) -> Result<(), RxError> {
        self.start(None, at)
    }

    /// Starts reception of `samples` samples, at the device's time `at` or at once.
    ///
    /// # Errors
    /// [`RxError::Running`], [`RxError::BadLength`]; [`RxError::Radio`] when the device does not
    /// answer.
    pub fn start_finite(&mut self, samples: u64, at: Option<u64>) -> Result<(), RxError> {
        self.check_length(samples)?;
        self.start(Some(samples), at)
    }

    /// Checks that a capture of `samples` samples is possible.
    pub(super) fn check_length(&self, samples: u64) -> Result<(), RxError> {
        let (rate, word) = (self.path.rate, self.channel.samples_per_word().get());
        // A sample of the stream is a few of the radio, which counts in words.
        let multiple = word / gcd(word, rate.ticks_per_sample.get());
        let most = rate.samples(FINITE_SAMPLES_MAX);
        if samples == 0 || samples > most || !samples.is_multiple_of(multiple.into()) {
            return Err(RxError::BadLength { samples, multiple, most });
        }
        Ok(())
    }

    /// Stops reception. Packets in flight still come; receive until the end of the burst, or with
    /// queued captures until the stream [is not running](RxStreamer::is_running).
    ///
    /// # Errors
    /// [`RxError::Radio`] when the device does not answer.
    pub fn stop(&mut self) -> Result<(), RxError> {
        self.channel.stop()?;
        self.restart_wanted = None;
        if self.run == StreamState::Idle {
            return Ok(());
        }
        let outcome = self.forget_what_has_not_begun();
        self.run = StreamState::Stopping(self.now());
        outcome
    }

    pub(super) fn start(&mut self, samples: Option<u64>, at: Option<u64>) -> Result<(), RxError> {
        if self.is_running() || self.held.is_some() {
            return Err(RxError::Running);
        }
        // UHD's simulator needs a stop between two captures; other radios tolerate it.
        self.channel.stop_if_started()?;
        self.pass_over_strays(Duration::ZERO)?;
        self.command(samples, at)?;
        self.aside.clear();
        self.tracker.forget();
        self.tracker.begin(at);
        self.expectation.begin(at);
        (self.awaited, self.ended, self.ends_due) = (at, false, 0);
        self.lost_run = false;
        (self.silence_ticks, self.first_silence) = (None, None);
        self.recovery = None;
        self.restart_wanted = None;
        self.run_ticks = at.unwrap_or(0);
        self.run = samples.map_or(StreamState::Continuous, StreamState::Finite);
        Ok(())
    }

    /// Sends the radio start commands, exactly one of which takes effect.
    pub(super) fn command(&mut self, samples: Option<u64>, at: Option<u64>) -> Result<(), RxError> {
        for attempt in 1.. {
            self.late_commands_seen = self.channel.events().late_commands();
            self.overruns_seen = self.channel.events().overruns();
            match self.channel.start(samples.map(|samples| self.path.rate.ticks(samples)), at) {
                Ok(()) => break,
                Err(RadioError::Silent { .. }) if attempt < START_TRIES => {
                    // It is unknown whether the radio runs: stop it, then try again.
                    self.channel.stop()?;
                    if self.run == StreamState::Idle {
                        self.pass_over_strays(QUIET)?;
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        self.last_heard = self.now();
        Ok(())
    }

    /// Takes packets of an earlier burst off the port, until it has been quiet for `quiet`.
    fn pass_over_strays(&mut self, quiet: Duration) -> Result<(), RxError> {
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

/// Returns the greatest common divisor.
fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}
