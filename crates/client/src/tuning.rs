//! Frequency, gain, bandwidth and antenna.

use millstream_radio::graph::StreamDirection;
use millstream_radio::{TuneRequest, TuneResult};

use crate::channel::Channel;
use crate::error::ClientError;
use crate::radio::RadioState;
use crate::time::DeviceTime;

/// The frequency of a channel that nobody has tuned, Hz: that of the hardware after power-on.
const UNTUNED_HZ: f64 = 2.4e9;

/// The bandwidth of a channel after power-on, Hz.
const BANDWIDTH_HZ: f64 = 40e6;

/// The settings of a channel that the radio cannot be asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChannelSettings {
    gain_db: f64,
    automatic_gain: bool,
    bandwidth_hz: f64,
    antenna: Option<&'static str>,
    /// How far the middle of the band should lie above the oscillator, Hz.
    above_hz: f64,
    /// The rate that was asked for.
    pub rate_hz: Option<f64>,
}

impl ChannelSettings {
    pub fn new(antenna: Option<&'static str>) -> Self {
        Self {
            gain_db: 0.0,
            automatic_gain: false,
            bandwidth_hz: BANDWIDTH_HZ,
            antenna,
            above_hz: 0.0,
            rate_hz: None,
        }
    }
}

/// The frequencies of a channel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TuneParts {
    /// The middle of the stream's band, Hz: the sum of the others.
    pub freq_hz: f64,
    /// The local oscillator (`RF`), Hz.
    pub rf_hz: f64,
    /// The shift by the DDC or DUC (`BB`): how far the middle of the band lies above the
    /// oscillator, Hz.
    pub bb_hz: f64,
}

impl From<TuneResult> for TuneParts {
    fn from(result: TuneResult) -> Self {
        let TuneResult { freq_hz, rf_hz, .. } = result;
        Self { freq_hz, rf_hz, bb_hz: freq_hz - rf_hz }
    }
}

impl RadioState {
    /// Returns the frequencies of a channel.
    fn tuned(&self, direction: StreamDirection, channel: usize) -> TuneParts {
        let untuned = TuneParts { freq_hz: UNTUNED_HZ, rf_hz: UNTUNED_HZ, bb_hz: 0.0 };
        self.device.tuned(direction, channel).map_or(untuned, TuneParts::from)
    }

    fn tune(
        &mut self,
        direction: StreamDirection,
        channel: usize,
        freq_hz: f64,
        above_hz: f64,
    ) -> Result<TuneParts, ClientError> {
        if let Some(time) = self.command_time {
            return self.tune_at(direction, channel, freq_hz, time);
        }
        let request = TuneRequest::new(freq_hz).with_lo_offset(-above_hz);
        let result = self.device.tune(direction, channel, request)?;
        self.channel(direction, channel)?.above_hz = above_hz;
        Ok(result.into())
    }

    /// Moves the middle of the band at a time; the oscillator stays where it is.
    fn tune_at(
        &mut self,
        direction: StreamDirection,
        channel: usize,
        freq_hz: f64,
        time: DeviceTime,
    ) -> Result<TuneParts, ClientError> {
        let ticks = time.ticks_at(self.device.tick_rate_hz());
        let results = self.device.tune_at(direction, &[channel], freq_hz, ticks)?;
        let parts = TuneParts::from(results[0]);
        self.channel(direction, channel)?.above_hz = freq_hz - parts.rf_hz;
        Ok(parts)
    }

    /// Sets the switches of a channel that nobody has tuned, before its first stream.
    pub fn tune_once(
        &mut self,
        direction: StreamDirection,
        channel: usize,
    ) -> Result<(), ClientError> {
        let Some(ranges) = self.device.ranges(direction) else { return Ok(()) };
        let antenna = self.channel(direction, channel)?.antenna;
        if self.device.tuned(direction, channel).is_some() {
            return Ok(());
        }
        if let Some(antenna) = antenna.filter(|_| !ranges.antennas.is_empty()) {
            self.device.set_antenna(direction, channel, antenna)?;
        }
        let command_time = self.command_time.take();
        let tuned = self.tune(direction, channel, UNTUNED_HZ, 0.0);
        self.command_time = command_time;
        tuned.map(drop)
    }
}

impl Channel<'_> {
    /// Tunes the channel to a frequency, Hz, and returns the frequencies that result.
    ///
    /// The local oscillator is tuned `lo_offset_hz` above it; `None` keeps the distance of the last
    /// call. Both channels of an E320 have one oscillator in each direction. With a time for
    /// commands ([`crate::Radio::set_command_time`]) the oscillator stays where it is.
    ///
    /// # Errors
    /// [`ClientError::Radio`] for a frequency or channel that does not exist.
    pub fn set_frequency(
        &self,
        freq_hz: f64,
        lo_offset_hz: Option<f64>,
    ) -> Result<TuneParts, ClientError> {
        self.with(|state, direction, channel| {
            let kept = state.channel(direction, channel)?.above_hz;
            let above_hz = lo_offset_hz.map_or(kept, |offset_hz| -offset_hz);
            state.tune(direction, channel, freq_hz, above_hz)
        })
    }

    /// Moves the middle of the channel's band to a frequency, Hz, at the sample of a time; the
    /// local oscillator stays. [`crate::Radio::set_command_time`] says what that asks for.
    ///
    /// # Errors
    /// [`ClientError::Radio`], also for a time that had passed.
    pub fn set_frequency_at(
        &self,
        freq_hz: f64,
        time: DeviceTime,
    ) -> Result<TuneParts, ClientError> {
        self.with(|state, direction, channel| state.tune_at(direction, channel, freq_hz, time))
    }

    /// Tunes the local oscillator of the channel, Hz, and keeps the distance between it and the
    /// middle of the band.
    ///
    /// # Errors
    /// Those of [`Channel::set_frequency`].
    pub fn set_rf(&self, rf_hz: f64) -> Result<TuneParts, ClientError> {
        self.with(|state, direction, channel| {
            if state.command_time.is_some() {
                return Err(ClientError::Argument {
                    key: "RF".to_owned(),
                    value: rf_hz.to_string(),
                    expected: "it without a time for commands: only BB moves at a given time"
                        .to_owned(),
                });
            }
            let above_hz = state.channel(direction, channel)?.above_hz;
            state.tune(direction, channel, rf_hz + above_hz, above_hz)
        })
    }

    /// Moves the middle of the band to a distance above the local oscillator, Hz, which stays.
    ///
    /// # Errors
    /// Those of [`Channel::set_frequency`].
    pub fn set_bb(&self, bb_hz: f64) -> Result<TuneParts, ClientError> {
        self.with(|state, direction, channel| {
            let rf_hz = state.tuned(direction, channel).rf_hz;
            state.tune(direction, channel, rf_hz + bb_hz, bb_hz)
        })
    }

    /// Returns the frequencies of the channel.
    ///
    /// # Errors
    /// [`ClientError::Radio`] for a channel that does not exist.
    pub fn frequency(&self) -> Result<TuneParts, ClientError> {
        self.with(|state, direction, channel| {
            state.channel(direction, channel)?;
            Ok(state.tuned(direction, channel))
        })
    }

    /// Returns the range of the local oscillator, Hz; `None` when it cannot be tuned from here.
    pub fn rf_range(&self) -> Option<(f64, f64)> {
        self.range(|ranges| Some(ranges.freq_hz))
    }

    /// Returns the range of the distance between oscillator and middle of the band, Hz.
    pub fn bb_range(&self) -> (f64, f64) {
        let half = self.with(|state, direction, channel| {
            let has_shift =
                state.device.factor_max(direction, channel).is_some_and(|most| most > 1);
            Ok(if has_shift { state.device.tick_rate_hz() / 2.0 } else { 0.0 })
        });
        let half = half.unwrap_or(0.0);
        (-half, half)
    }

    /// Sets the gain of the channel, dB, and ends automatic gain. Returns the gain in force,
    /// rounded to the radio's steps.
    ///
    /// # Errors
    /// [`ClientError::Radio`], also for a gain outside [`Channel::gain_range`].
    pub fn set_gain(&self, gain_db: f64) -> Result<f64, ClientError> {
        self.with(|state, direction, channel| {
            let taken = state.device.set_gain(direction, channel, gain_db)?;
            let settings = state.channel(direction, channel)?;
            (settings.gain_db, settings.automatic_gain) = (taken, false);
            Ok(taken)
        })
    }

    /// Returns the gain that was set, dB.
    ///
    /// # Errors
    /// [`ClientError::Radio`] for a channel that does not exist.
    pub fn gain(&self) -> Result<f64, ClientError> {
        self.with(|state, direction, channel| Ok(state.channel(direction, channel)?.gain_db))
    }

    /// Returns the range of the gain, dB; `None` when it cannot be set from here.
    pub fn gain_range(&self) -> Option<(f64, f64)> {
        self.range(|ranges| ranges.gain_db)
    }

    /// Returns whether the radio can set its gain by itself.
    pub fn has_automatic_gain(&self) -> bool {
        self.direction == StreamDirection::Rx && self.parts.device_type() == "e3xx"
    }

    /// Lets the radio set the gain of a receive channel by itself, or returns to the last gain.
    ///
    /// # Errors
    /// [`ClientError::Radio`], [`ClientError::Argument`] for a transmit channel.
    pub fn set_automatic_gain(&self, automatic: bool) -> Result<(), ClientError> {
        if automatic && self.direction == StreamDirection::Tx {
            return Err(ClientError::Argument {
                key: "automatic gain".to_owned(),
                value: "on".to_owned(),
                expected: "it to a receive channel only".to_owned(),
            });
        }
        self.with(|state, direction, channel| {
            let settings = *state.channel(direction, channel)?;
            if automatic {
                state.device.set_automatic_gain(channel)?;
            } else if settings.automatic_gain {
                state.device.set_gain(direction, channel, settings.gain_db)?;
            }
            state.channel(direction, channel)?.automatic_gain = automatic;
            Ok(())
        })
    }

    /// Returns whether the radio sets the gain of the channel by itself.
    ///
    /// # Errors
    /// [`ClientError::Radio`] for a channel that does not exist.
    pub fn automatic_gain(&self) -> Result<bool, ClientError> {
        self.with(|state, direction, channel| Ok(state.channel(direction, channel)?.automatic_gain))
    }

    /// Sets the bandwidth of the channel's analogue filter, Hz, clipped to its range; 0 is the
    /// present sample rate. Returns the bandwidth that results.
    ///
    /// # Errors
    /// [`ClientError::Radio`].
    pub fn set_bandwidth(&self, bandwidth_hz: f64) -> Result<f64, ClientError> {
        let wanted = if bandwidth_hz == 0.0 { self.rate()? } else { bandwidth_hz };
        let range = self.bandwidth_range();
        let wanted = range.map_or(wanted, |(from, to)| wanted.clamp(from, to));
        self.with(|state, direction, channel| {
            let taken = state.device.set_bandwidth(direction, channel, wanted)?;
            state.channel(direction, channel)?.bandwidth_hz = taken;
            Ok(taken)
        })
    }

    /// Returns the bandwidth of the channel's analogue filter, Hz.
    ///
    /// # Errors
    /// [`ClientError::Radio`] for a channel that does not exist.
    pub fn bandwidth(&self) -> Result<f64, ClientError> {
        self.with(|state, direction, channel| Ok(state.channel(direction, channel)?.bandwidth_hz))
    }

    /// Returns the range of the bandwidth, Hz; `None` when it cannot be set from here.
    pub fn bandwidth_range(&self) -> Option<(f64, f64)> {
        self.range(|ranges| ranges.bandwidth_hz)
    }

    /// Returns the antennas of the channel's direction; empty when none can be selected from here.
    pub fn antennas(&self) -> &'static [&'static str] {
        self.range(|ranges| Some(ranges.antennas)).unwrap_or_default()
    }

    /// Selects the antenna of the channel.
    ///
    /// # Errors
    /// [`ClientError::Radio`].
    pub fn set_antenna(&self, antenna: &str) -> Result<(), ClientError> {
        self.with(|state, direction, channel| {
            state.device.set_antenna(direction, channel, antenna)?;
            let known = state.device.ranges(direction).map_or(&[][..], |ranges| ranges.antennas);
            let taken = known.iter().find(|known| **known == antenna).copied();
            state.channel(direction, channel)?.antenna = taken;
            Ok(())
        })
    }

    /// Returns the antenna of the channel; empty when none can be selected from here.
    ///
    /// # Errors
    /// [`ClientError::Radio`] for a channel that does not exist.
    pub fn antenna(&self) -> Result<&'static str, ClientError> {
        self.with(|state, direction, channel| {
            Ok(state.channel(direction, channel)?.antenna.unwrap_or(""))
        })
    }

    fn range<R>(
        &self,
        of: impl FnOnce(&millstream_radio::front_end::FrontEndRanges) -> Option<R>,
    ) -> Option<R> {
        let range =
            self.with(|state, direction, _| Ok(state.device.ranges(direction).and_then(of)));
        range.ok().flatten()
    }
}
