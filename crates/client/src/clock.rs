//! The radio's time, and the sources of clock and time.

use millstream_radio::RadioError;
use millstream_radio::device::SourceKind;

use crate::error::ClientError;
use crate::radio::{ClientRadio, RadioParts};
use crate::time::{ns_of_ticks, ticks_of_ns};

/// A moment at which the radio's time is read or set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeMoment {
    /// At once.
    Now,
    /// At a PPS edge: the latest one when reading, the next one when setting.
    Pps,
}

impl ClientRadio {
    /// Reads the radio's time, nanoseconds.
    ///
    /// # Errors
    /// [`ClientError::Radio`].
    pub fn time_ns(&self, moment: TimeMoment) -> Result<i64, ClientError> {
        self.parts.with(|state| {
            let device = &state.device;
            let ticks = match moment {
                TimeMoment::Now => device.time_ticks()?,
                TimeMoment::Pps => device.time_last_pps()?,
            };
            Ok(ns_of_ticks(ticks, device.tick_rate_hz()))
        })
    }

    /// Sets the radio's time, nanoseconds. Streams that run see a jump of the clock.
    ///
    /// # Errors
    /// [`ClientError::Radio`].
    pub fn set_time_ns(&self, time_ns: i64, moment: TimeMoment) -> Result<(), ClientError> {
        self.parts.with(|state| {
            let device = &state.device;
            let ticks = ticks_of_ns(time_ns, device.tick_rate_hz());
            let set = match moment {
                TimeMoment::Now => device.set_time_now(ticks),
                TimeMoment::Pps => device.set_time_next_pps(ticks),
            };
            Ok(set?)
        })
    }

    /// Sets the time at which settings take effect, nanoseconds, until another call; `None` for at
    /// once.
    ///
    /// It holds for frequencies, which the DDC or DUC of a channel changes at that very sample: the
    /// oscillator stays, so they lie within half of the master clock rate of it. The stream of the
    /// channel must be open, and the time some milliseconds ahead. All other settings take effect
    /// at once.
    ///
    /// # Errors
    /// [`ClientError::Closed`].
    pub fn set_command_time_ns(&self, time_ns: Option<i64>) -> Result<(), ClientError> {
        self.parts.with(|state| {
            state.command_ns = time_ns;
            Ok(())
        })
    }

    /// Returns the time at which settings take effect, if there is one.
    ///
    /// # Errors
    /// [`ClientError::Closed`].
    pub fn command_time_ns(&self) -> Result<Option<i64>, ClientError> {
        self.parts.with(|state| Ok(state.command_ns))
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
    pub(crate) fn check_ahead(&self, time_ns: i64) -> Result<(), ClientError> {
        self.with(|state| {
            let now_ticks = state.device.time_ticks()?;
            let ticks = ticks_of_ns(time_ns, state.device.tick_rate_hz());
            match ticks.wrapping_sub(now_ticks) as i64 {
                ..=0 => Err(RadioError::TooLate { ticks, now_ticks }.into()),
                _ => Ok(()),
            }
        })
    }
}
