//! Sample rates, also of streams that run.

use std::sync::Arc;

use millstream_radio::device::check_rate;
use millstream_radio::graph::StreamDirection;
use millstream_radio::{Device, RadioError};

use crate::channel::Channel;
use crate::error::ClientError;
use crate::radio::{OpenStream, Radio, RadioState};

/// The rates of an AD936x, Hz.
const AD936X_HZ: (f64, f64) = (0.22e6, 61.44e6);

/// Rates that people choose, Hz.
const USUAL_HZ: [f64; 20] = [
    250e3, 500e3, 1e6, 1.024e6, 1.92e6, 2e6, 2.4e6, 3.2e6, 4e6, 5e6, 6.25e6, 8e6, 10e6, 12.5e6,
    15.36e6, 20e6, 25e6, 30.72e6, 50e6, 61.44e6,
];

impl Channel<'_> {
    /// Sets the sample rate of the channel to the nearest possible one, at most 1 % away, and
    /// returns it. A rate that is refused leaves the present one.
    ///
    /// Channels of one stream get the rate together. The clock of the radio follows if the rate is
    /// no fraction of it, unless another stream runs. Streams go on with the new rate, behind an
    /// interruption; [`crate::Received::abrupt_end`] marks it.
    ///
    /// # Errors
    /// [`ClientError::Radio`].
    pub fn set_rate(&self, rate_hz: f64) -> Result<f64, ClientError> {
        let (parts, direction, channel) = (self.parts, self.direction, self.index);
        let _changes = parts.lock_changes();
        if self.rate()? == rate_hz {
            return parts.with(|state| {
                state.channel(direction, channel)?.rate_hz = Some(rate_hz);
                Ok(rate_hz)
            });
        }
        let own = |stream: &Arc<dyn OpenStream>| {
            stream.direction() == direction && stream.channels().contains(&channel)
        };
        let (own, others): (Vec<_>, Vec<_>) = parts.streams().into_iter().partition(own);
        let fixed = others.iter().any(|stream| stream.is_active());
        // An idle stream keeps its channel, but a clock that changes makes it useless.
        let touched: Vec<_> = if fixed { own.clone() } else { [own.clone(), others].concat() };
        let resumes: Vec<_> = touched.iter().map(|stream| stream.interrupt()).collect();
        let mut channels: Vec<usize> =
            own.iter().flat_map(|stream| stream.channels().to_vec()).collect();
        channels.push(channel);
        let set = parts.with(|state| state.set_rates(direction, &channels, rate_hz, fixed));
        let mut outcome = Ok(());
        for (stream, resume) in touched.iter().zip(resumes) {
            outcome = outcome.and(stream.resume(resume));
        }
        set.and_then(|rate_hz| outcome.map(|()| rate_hz))
    }

    /// Returns the sample rate of the channel, per second.
    ///
    /// # Errors
    /// [`ClientError::Radio`] for a channel that does not exist.
    pub fn rate(&self) -> Result<f64, ClientError> {
        self.with(|state, direction, channel| state.rate(direction, channel))
    }

    /// Returns the range of sample rates, per second.
    pub fn rate_range(&self) -> (f64, f64) {
        let range = self.with(|state, direction, channel| {
            let most = f64::from(state.device.factor_max(direction, channel).unwrap_or(1));
            let clock = state.device.tick_rate_hz();
            if state.device.info().device_type() != "e3xx" {
                return Ok((clock / most, clock));
            }
            let (low, high) = self.parts.emulated.as_ref().map_or(AD936X_HZ, |one| one.rates_hz());
            Ok((low / most, high.max(clock)))
        });
        range.unwrap_or(AD936X_HZ)
    }

    /// Returns usual sample rates within the range, per second; never none.
    pub fn usual_rates(&self) -> Vec<f64> {
        let (low, high) = self.rate_range();
        let now = self.rate().unwrap_or(high);
        let mut rates: Vec<f64> =
            USUAL_HZ.into_iter().filter(|rate| (low..=high).contains(rate)).collect();
        if rates.is_empty() {
            rates.push(now);
        }
        rates
    }
}

impl Radio {
    /// Sets the rate of the radio's master clock to the nearest possible one, which it returns, and
    /// keeps it: sample rates are fractions of it from now on. Channels get the fractions nearest
    /// to the rates that were asked for. Streams go on behind an interruption.
    ///
    /// # Errors
    /// [`ClientError::Radio`], also for a radio whose clock `master_clock_rate` chooses at the
    /// opening.
    pub fn set_tick_rate(&self, clock_hz: f64) -> Result<f64, ClientError> {
        let parts = &self.parts;
        let _changes = parts.lock_changes();
        let streams = parts.streams();
        let resumes: Vec<_> = streams.iter().map(|stream| stream.interrupt()).collect();
        let set = parts.with(|state| {
            let taken_hz = state.device.set_master_clock(clock_hz)?;
            state.set_wanted_rates()?;
            Ok(taken_hz)
        });
        let mut outcome = Ok(());
        for (stream, resume) in streams.iter().zip(resumes) {
            outcome = outcome.and(stream.resume(resume));
        }
        set.and_then(|clock_hz| outcome.map(|()| clock_hz))
    }

    /// Returns the range of the master clock's rate, Hz.
    ///
    /// # Errors
    /// [`ClientError::Closed`].
    pub fn tick_rate_range(&self) -> Result<(f64, f64), ClientError> {
        self.parts.with(|state| {
            let now = state.device.tick_rate_hz();
            if state.device.info().device_type() != "e3xx" {
                return Ok((now, now));
            }
            Ok(self.parts.emulated.as_ref().map_or(AD936X_HZ, |one| one.rates_hz()))
        })
    }

    /// Returns the rate of the radio's master clock, which counts its time, Hz.
    ///
    /// # Errors
    /// [`ClientError::Closed`].
    pub fn tick_rate(&self) -> Result<f64, ClientError> {
        self.parts.with(|state| Ok(state.device.tick_rate_hz()))
    }
}

impl RadioState {
    fn rate(&self, direction: StreamDirection, channel: usize) -> Result<f64, ClientError> {
        let rate = match direction {
            StreamDirection::Rx => self.device.rx_rate(channel),
            StreamDirection::Tx => self.device.tx_rate(channel),
        };
        let available = match direction {
            StreamDirection::Rx => self.device.rx_channels(),
            StreamDirection::Tx => self.device.tx_channels(),
        };
        let none = RadioError::NoSuchChannel { what: direction.verb(), channel, available };
        Ok(rate.ok_or(none)?.samples_hz())
    }

    /// Sets the rate of some channels; the others get the rates that were asked for, as well as
    /// the clock allows.
    fn set_rates(
        &mut self,
        direction: StreamDirection,
        channels: &[usize],
        rate_hz: f64,
        fixed: bool,
    ) -> Result<f64, ClientError> {
        let mut before = Vec::new();
        for channel in channels {
            before.push(self.channel(direction, *channel)?.rate_hz.replace(rate_hz));
        }
        let taken = self.try_rates(direction, channels[0], rate_hz, fixed);
        if taken.is_err() {
            for (channel, before) in channels.iter().zip(before).rev() {
                self.channel(direction, *channel)?.rate_hz = before;
            }
            self.set_wanted_rates()?;
        }
        taken
    }

    /// Sets the rates that are wanted, if the channel then has the one that is asked for.
    fn try_rates(
        &mut self,
        direction: StreamDirection,
        channel: usize,
        rate_hz: f64,
        fixed: bool,
    ) -> Result<f64, ClientError> {
        if !fixed {
            self.device.set_rate(rate_hz)?;
        }
        self.set_wanted_rates()?;
        let taken_hz = self.rate(direction, channel)?;
        Ok(check_rate(rate_hz, taken_hz, self.device.tick_rate_hz())?)
    }

    /// Sets the rates that were asked for, as well as the clock allows.
    fn set_wanted_rates(&mut self) -> Result<(), ClientError> {
        for direction in [StreamDirection::Rx, StreamDirection::Tx] {
            for channel in 0..channels_of(&self.device, direction) {
                if let Some(wanted) = self.channel(direction, channel)?.rate_hz {
                    self.device.set_channel_rate(direction, channel, wanted)?;
                }
            }
        }
        Ok(())
    }
}

fn channels_of(device: &Device, direction: StreamDirection) -> usize {
    match direction {
        StreamDirection::Rx => device.rx_channels(),
        StreamDirection::Tx => device.tx_channels(),
    }
}
