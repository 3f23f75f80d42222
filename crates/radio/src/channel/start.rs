//! The start commands of a receive channel.

use std::sync::atomic::Ordering;

use millstream_wire::regs::radio::{
    RX_CMD, RX_NUM_WORDS_HI, RX_NUM_WORDS_LO, RX_TIME_HI, RX_TIME_LO, RxCommand, RxMode,
};

use super::RxChannel;
use crate::RadioError;

impl RxChannel {
    /// Starts reception of `samples` samples, or until stopped, at `at` or at once.
    ///
    /// The start itself is written only once, because a repeated one would queue a second
    /// acquisition.
    ///
    /// # Errors
    /// Those of [`Control::write_once`](crate::control::Control::write_once).
    pub fn start(&self, samples: Option<u64>, at: Option<u64>) -> Result<(), RadioError> {
        self.command(samples, at, false)
    }

    /// The same, when the transmitter of the channel runs.
    ///
    /// # Errors
    /// [`RadioError::Unusable`] for a radio older than UHD 4.10; those of [`RxChannel::start`].
    pub fn start_with_transmitter(&self, samples: Option<u64>) -> Result<(), RadioError> {
        if !self.map.has_features {
            let reason =
                "its radio has no captures that wait for a transmission: install an image \
                          of UHD 4.10 or newer, or start at a time"
                    .to_owned();
            return Err(RadioError::Unusable { address: *self.control.device().ip(), reason });
        }
        self.command(samples, None, true)
    }

    fn command(
        &self,
        samples: Option<u64>,
        at: Option<u64>,
        with_transmitter: bool,
    ) -> Result<(), RadioError> {
        if let Some(samples) = samples {
            let words = samples / u64::from(self.format.samples_per_word.get());
            self.write(RX_NUM_WORDS_HI, (words >> 32) as u32)?;
            self.write(RX_NUM_WORDS_LO, words as u32)?;
        }
        if let Some(ticks) = at {
            self.write(RX_TIME_HI, (ticks >> 32) as u32)?;
            self.write(RX_TIME_LO, ticks as u32)?;
        }
        let mode = if samples.is_some() { RxMode::Finite } else { RxMode::Continuous };
        let word = RxCommand { timed: at.is_some(), mode, with_transmitter }.to_word();
        self.started.store(true, Ordering::Relaxed);
        self.control.write_once(self.port, self.map.address(self.channel, RX_CMD), word)
    }
}
