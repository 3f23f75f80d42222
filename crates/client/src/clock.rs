//! The radio's time, and the sources of clock and time.

use millstream_radio::device::SourceKind;
use millstream_radio::{Device, RadioError};

use crate::error::ClientError;
use crate::radio::{Radio, RadioParts, RadioState};
use crate::time::DeviceTime;

impl Radio {
    /// Reads the radio's time.
    ///
    /// # Errors
    /// [`ClientError::Radio`].
    pub fn now(&self) -> Result<DeviceTime, ClientError> {
        self.read_time(Device::time_ticks)
    }

    /// Reads the time that the radio had at its latest PPS edge.
    ///
    /// # Errors
    /// [`ClientError::Radio`].
    pub fn last_pps(&self) -> Result<DeviceTime, ClientError> {
        self.read_time(Device::time_last_pps)
    }

    /// Sets the radio's time at once. Streams that run see a jump of the clock.
    ///
    /// # Errors
    /// [`ClientError::Radio`].
    pub fn set_time(&self, time: DeviceTime) -> Result<(), ClientError> {
        self.write_time(time, Device::set_time_now)
    }

    /// Sets the time that the radio takes at its next PPS edge. Streams that run see a jump of the
    /// clock.
    ///
    /// # Errors
    /// [`ClientError::Radio`].
    pub fn set_time_at_pps(&self, time: DeviceTime) -> Result<(), ClientError> {
        self.write_time(time, Device::set_time_next_pps)
    }

    fn read_time(
        &self,
        read: fn(&Device) -> Result<u64, RadioError>,
    ) -> Result<DeviceTime, ClientError> {
        self.parts.with(|RadioState { device, .. }| {
            Ok(DeviceTime::from_ticks(read(device)?, device.tick_rate_hz()))
        })
    }

    fn write_time(
        &self,
        time: DeviceTime,
        write: fn(&Device, u64) -> Result<(), RadioError>,
    ) -> Result<(), ClientError> {
        self.parts.with(|RadioState { device, .. }| {
            Ok(write(device, time.ticks_at(device.tick_rate_hz()))?)
        })
    }

    /// Sets the time at which settings take effect, until another call; `None` for at once.
    ///
    /// It holds for frequencies, which the DDC or DUC of a channel changes at that very sample: the
    /// oscillator stays, so they lie within half of the master clock rate of it. The stream of the
    /// channel must be open, and the time some milliseconds ahead. All other settings take effect
    /// at once.
    ///
    /// # Errors
    /// [`ClientError::Closed`].
    pub fn set_command_time(&self, time: Option<DeviceTime>) -> Result<(), ClientError> {
        self.parts.with(|state| {
            state.command_time = time;
            Ok(())
        })
    }

    /// Returns the time at which settings take effect, if there is one.
    ///
    /// # Errors
    /// [`ClientError::Closed`].
    pub fn command_time(&self) -> Result<Option<DeviceTime>, ClientError> {
        self.parts.with(|state| Ok(state.command_time))
    }

    /// Returns the sources of the reference clock.
    ///
    /// # Errors
    /// [`ClientError::Radio`].
    pub fn clock_sources(&self) -> Result<Vec<String>, ClientError> {
        self.parts.with(|state| Ok(state.device.sources(SourceKind::Clock)))
    }

    /// Returns the present source of the reference clock.
    ///
    /// # Errors
    /// [`ClientError::Radio`].
    pub fn clock_source(&self) -> Result<String, ClientError> {
        self.source(SourceKind::Clock)
    }

    /// Selects the source of the reference clock.
    ///
    /// # Errors
    /// [`ClientError::Radio`].
    pub fn set_clock_source(&self, source: &str) -> Result<(), ClientError> {
        self.parts.with(|state| Ok(state.device.set_source(SourceKind::Clock, source)?))
    }

    /// Returns the sources of the PPS.
    ///
    /// # Errors
    /// [`ClientError::Radio`].
    pub fn time_sources(&self) -> Result<Vec<String>, ClientError> {
        self.parts.with(|state| Ok(state.device.sources(SourceKind::Time)))
    }

    /// Returns the present source of the PPS.
    ///
    /// # Errors
    /// [`ClientError::Radio`].
    pub fn time_source(&self) -> Result<String, ClientError> {
        self.source(SourceKind::Time)
    }

    /// Selects the source of the PPS.
    ///
    /// # Errors
    /// [`ClientError::Radio`].
    pub fn set_time_source(&self, source: &str) -> Result<(), ClientError> {
        self.parts.with(|state| Ok(state.device.set_source(SourceKind::Time, source)?))
    }

    fn source(&self, kind: SourceKind) -> Result<String, ClientError> {
        self.parts.with(|state| Ok(state.device.source(kind).unwrap_or_default()))
    }
}

impl RadioParts {
    /// Refuses a time that the radio's clock has passed.
    pub(crate) fn check_ahead(&self, time: DeviceTime) -> Result<(), ClientError> {
        self.with(|state| {
            let now_ticks = state.device.time_ticks()?;
            let ticks = time.ticks_at(state.device.tick_rate_hz());
            match ticks.wrapping_sub(now_ticks) as i64 {
                ..=0 => Err(RadioError::TooLate { ticks, now_ticks }.into()),
                _ => Ok(()),
            }
        })
    }
}
