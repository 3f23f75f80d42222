//! Setting the sample rates and the master clock of an open device.

use super::{Device, clock, session};
use crate::RadioError;
use crate::graph::StreamDirection;
use crate::rpc::as_f64;
use crate::stream::StreamRate;

impl Device {
    /// Requests a sample rate for all channels and returns the one of the first receive channel,
    /// which is the nearest possible, at most 1 % away ([`check_rate`]).
    ///
    /// A channel with a DDC or DUC has a fraction of the master clock rate. Where the device can
    /// change its clock and the user named none (`master_clock_rate`), the clock is set to a
    /// multiple of the requested rate. Without a DDC the clock is set to the requested rate
    /// itself. Streams keep the rate at which they were opened.
    ///
    /// # Errors
    /// [`RadioError::BadRate`], [`RadioError::NoSuchRate`] (then the device keeps its rates),
    /// [`RadioError::Rpc`].
    pub fn set_rate(&mut self, rate_hz: f64) -> Result<f64, RadioError> {
        if !(rate_hz.is_finite() && rate_hz > 0.0) {
            return Err(RadioError::BadRate { rate_hz });
        }
        let before = (self.ticks_hz, self.dsp().map(|dsp| dsp.rate).collect::<Vec<_>>());
        if clock::is_adjustable(self.info().device_type()) {
            let block = self.dsp().find_map(|dsp| dsp.block);
            let clock_hz = match (block, self.args.master_clock_hz) {
                (Some(_), Some(_)) => self.ticks_hz,
                (Some(block), None) => clock::choose(rate_hz, self.ticks_hz, &block),
                (None, _) => rate_hz,
            };
            if block.is_none() || clock_hz != self.ticks_hz {
                self.set_clock(clock_hz)?;
            }
        }
        let ratio = self.ticks_hz / rate_hz;
        self.rx.iter_mut().for_each(|chain| chain.set.dsp.choose(ratio));
        self.tx.iter_mut().for_each(|chain| chain.set.dsp.choose(ratio));
        let near = check_rate(rate_hz, self.rate_hz(), self.ticks_hz);
        if near.is_err() {
            let (clock_hz, mut rates) = (before.0, before.1.into_iter());
            if clock_hz != self.ticks_hz {
                self.set_clock(clock_hz)?;
            }
            for direction in [StreamDirection::Rx, StreamDirection::Tx] {
                let sets = self.sets_mut(direction).into_iter();
                sets.zip(&mut rates).for_each(|(set, rate)| set.dsp.rate = rate);
            }
        }
        near
    }

    /// Requests a sample rate for one channel, as a fraction of the present master clock rate, and
    /// returns its rates. The other channels keep theirs.
    ///
    /// # Errors
    /// [`RadioError::BadRate`], [`RadioError::NoSuchChannel`].
    pub fn set_channel_rate(
        &mut self,
        direction: StreamDirection,
        channel: usize,
        rate_hz: f64,
    ) -> Result<StreamRate, RadioError> {
        if !(rate_hz.is_finite() && rate_hz > 0.0) {
            return Err(RadioError::BadRate { rate_hz });
        }
        let ticks_hz = self.ticks_hz;
        let (mut all, what) = (self.sets_mut(direction), direction.verb());
        let none = RadioError::NoSuchChannel { what, channel, available: all.len() };
        let dsp = &mut all.get_mut(channel).ok_or(none)?.dsp;
        dsp.choose(ticks_hz / rate_hz);
        Ok(dsp.stream_rate(ticks_hz))
    }

    /// Sets the master clock to the nearest possible rate, which it returns, and keeps it there:
    /// later rates are fractions of it, as with `master_clock_rate`. Channels keep their factors,
    /// and streams the rate at which they were opened.
    ///
    /// # Errors
    /// [`RadioError::BadRate`]; [`RadioError::NoSetting`] for a device whose clock is chosen when
    /// it is opened; [`RadioError::Rpc`].
    pub fn set_master_clock(&mut self, clock_hz: f64) -> Result<f64, RadioError> {
        if !(clock_hz.is_finite() && clock_hz > 0.0) {
            return Err(RadioError::BadRate { rate_hz: clock_hz });
        }
        if !clock::is_adjustable(self.info().device_type()) {
            return Err(self.no_setting("master clock rate while it is open"));
        }
        if clock_hz != self.ticks_hz {
            self.set_clock(clock_hz)?;
        }
        self.args.master_clock_hz = Some(self.ticks_hz);
        Ok(self.ticks_hz)
    }

    /// Sets the master clock rate.
    fn set_clock(&mut self, clock_hz: f64) -> Result<(), RadioError> {
        let method = "db_0_set_catalina_clock_rate";
        let answer = self.session.call(method, &[clock_hz.into()])?;
        let taken = as_f64(&answer)
            .filter(session::is_rate)
            .ok_or_else(|| self.session.protocol(method, "no usable rate"))?;
        self.session.set_tick_period(taken)?;
        self.ticks_hz = taken;
        Ok(())
    }
}

/// Returns the sample rate that a device took, if it is within 1 % of the requested one: a rate
/// further away is another one, and nobody wants its samples unknowingly.
///
/// # Errors
/// [`RadioError::NoSuchRate`]; `clock_hz` is the master clock rate that it names.
pub fn check_rate(rate_hz: f64, taken_hz: f64, clock_hz: f64) -> Result<f64, RadioError> {
    rate_within(rate_hz, taken_hz, clock_hz, 0.01)
}

/// Returns the sample rate that a device took, if its ratio to the requested one differs from 1 by
/// at most `slack`.
pub(crate) fn rate_within(
    rate_hz: f64,
    taken_hz: f64,
    clock_hz: f64,
    slack: f64,
) -> Result<f64, RadioError> {
    let error = RadioError::NoSuchRate { rate_hz, clock_hz, nearest_hz: taken_hz };
    if (taken_hz / rate_hz - 1.0).abs() <= slack { Ok(taken_hz) } else { Err(error) }
}
