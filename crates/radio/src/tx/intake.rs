//! The packets from the device: credit at the stream's port, events through control.

use std::time::Duration;

use super::meta::{TxError, TxEvent};
use super::streamer::TxStreamer;
use crate::error::io_error;

impl TxStreamer {
    /// Returns the next event, if there is one.
    ///
    /// # Errors
    /// [`TxError::Radio`] when the system refuses.
    pub fn poll_event(&mut self) -> Result<Option<TxEvent>, TxError> {
        if self.core.events.is_empty() {
            self.poll()?;
        }
        Ok(self.core.events.pop_front())
    }

    /// Returns the next event, waiting for one up to `timeout`.
    ///
    /// # Errors
    /// [`TxError::DeviceSilent`], [`TxError::Radio`].
    pub fn next_event(&mut self, timeout: Duration) -> Result<Option<TxEvent>, TxError> {
        self.wait(timeout, |stream| !stream.core.events.is_empty())?;
        Ok(self.core.events.pop_front())
    }

    /// Takes received packets, without waiting.
    pub(super) fn poll(&mut self) -> Result<(), TxError> {
        self.receive(Duration::ZERO)
    }

    /// Waits until `done`, no longer than `timeout`. It also reopens a closed window, even with a
    /// zero `timeout`, so that a caller that never waits does not stall.
    pub(super) fn wait(
        &mut self,
        timeout: Duration,
        done: impl Fn(&Self) -> bool,
    ) -> Result<bool, TxError> {
        self.poll()?;
        let until = self.path.clock.deadline(timeout);
        loop {
            if done(self) {
                return Ok(true);
            }
            let now = self.path.clock.now();
            self.recover(now)?;
            if now >= until {
                return Ok(false);
            }
            self.receive(self.core.sleep(now, until))?;
        }
    }

    pub(super) fn receive(&mut self, timeout: Duration) -> Result<(), TxError> {
        let received = self.port.rx.recv_batch(timeout);
        let count = received.map_err(io_error("receive from", self.path.device))?;
        for index in 0..count {
            let datagram = self.port.rx.datagram(index);
            self.core.take(datagram.payload, datagram.source);
        }
        self.take_async();
        Ok(())
    }

    /// Gives the core the messages that the control thread stored.
    fn take_async(&mut self) {
        self.core.counters.reports_missed =
            self.channel.missed().saturating_sub(self.missed_before);
        let reported = self.channel.events().tx_reported();
        if reported == self.async_seen {
            return;
        }
        self.async_seen = reported;
        while let Some((event, time_ticks)) = self.channel.events().take_tx() {
            self.core.take_event(event, time_ticks);
        }
    }
}
