//! Settings that take effect at a time of the device.
//!
//! Only registers can do that: a packet with a time makes a DDC or DUC apply its new shift at that
//! sample. Settings by remote calls (oscillator, gain, bandwidth of most products) act at once.

use std::net::Ipv4Addr;

use super::Device;
use super::tuning::check_range;
use crate::RadioError;
use crate::control::{Control, Registers};
use crate::front_end::TuneResult;
use crate::graph::StreamDirection;

/// Registers whose writes take effect at a time.
struct TimedRegisters<'a> {
    control: &'a Control,
    ticks: u64,
}

impl Registers for TimedRegisters<'_> {
    fn address(&self) -> Ipv4Addr {
        Registers::address(self.control)
    }

    fn read(&self, port: u16, address: u32) -> Result<u32, RadioError> {
        self.control.read(port, address)
    }

    fn write(&self, port: u16, address: u32, value: u32) -> Result<(), RadioError> {
        self.control.write_at(port, address, value, self.ticks)
    }
}

impl Device {
    /// Tunes channels to a frequency at the device's time `ticks`, by their DDCs or DUCs; their
    /// oscillators stay where they are. The shifts of all channels start at the same sample with
    /// the same phase, so signals of channels with a common oscillator keep their phases to each
    /// other. Returns the frequencies that result, in the order of `channels`.
    ///
    /// The time must be far enough away for the commands to arrive: some milliseconds. The streams
    /// of the channels must be open already: opening one applies its shift at once.
    ///
    /// # Errors
    /// [`RadioError::OutOfRange`] for a frequency farther from a channel's oscillator than half of
    /// the master clock rate (tune with [`Device::tune`] first); [`RadioError::NoSetting`] for a
    /// channel without DDC or DUC; [`RadioError::TooLate`] when the time had passed before all
    /// commands were there: the channels may then have changed at different times.
    pub fn tune_at(
        &mut self,
        direction: StreamDirection,
        channels: &[usize],
        freq_hz: f64,
        ticks: u64,
    ) -> Result<Vec<TuneResult>, RadioError> {
        let reach_hz = self.ticks_hz / 2.0;
        for &channel in channels {
            let set = self.settings(direction, channel)?;
            if set.dsp.block.is_none() {
                return Err(self.no_setting("frequency at a given time"));
            }
            let rf_hz = set.front.rf_hz;
            check_range("frequency", freq_hz, (rf_hz - reach_hz, rf_hz + reach_hz), "Hz")?;
        }
        let mut results = Vec::with_capacity(channels.len());
        for &channel in channels {
            let ticks_hz = self.ticks_hz;
            let set = &self.sets_mut(direction)[channel];
            let rf_hz = set.front.rf_hz;
            let mut dsp = set.dsp;
            dsp.shift_hz = TuneResult::shift_hz(direction, freq_hz, rf_hz);
            dsp.write_shift(&TimedRegisters { control: &self.control, ticks }, ticks_hz)?;
            let set = &mut self.sets_mut(direction)[channel];
            (set.front.target_hz, set.dsp) = (Some(freq_hz), dsp);
            results.push(TuneResult::of(direction, rf_hz, dsp.shift_set(ticks_hz)));
        }
        let now = self.time_ticks()?;
        if now >= ticks {
            return Err(RadioError::TooLate { ticks, now_ticks: now });
        }
        Ok(results)
    }
}
