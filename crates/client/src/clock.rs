//! The radio's time, and the sources of clock and time.

use rmpv::Value;

use millstream_radio::RadioError;

use crate::error::ClientError;
use crate::radio::ClientRadio;
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

    /// Returns the sources of the reference clock.
    ///
    /// # Errors
    /// [`ClientError::Radio`].
    pub fn clock_sources(&self) -> Result<Vec<String>, ClientError> {
        self.texts("get_clock_sources")
    }

    /// Returns the present source of the reference clock.
    ///
    /// # Errors
    /// [`ClientError::Radio`].
    pub fn clock_source(&self) -> Result<String, ClientError> {
        self.text("get_clock_source")
    }

    /// Selects the source of the reference clock.
    ///
    /// # Errors
    /// [`ClientError::Radio`].
    pub fn set_clock_source(&self, source: &str) -> Result<(), ClientError> {
        self.call("set_clock_source", &[source.into()]).map(drop)
    }

    /// Returns the sources of the PPS.
    ///
    /// # Errors
    /// [`ClientError::Radio`].
    pub fn time_sources(&self) -> Result<Vec<String>, ClientError> {
        self.texts("get_time_sources")
    }

    /// Returns the present source of the PPS.
    ///
    /// # Errors
    /// [`ClientError::Radio`].
    pub fn time_source(&self) -> Result<String, ClientError> {
        self.text("get_time_source")
    }

    /// Selects the source of the PPS.
    ///
    /// # Errors
    /// [`ClientError::Radio`].
    pub fn set_time_source(&self, source: &str) -> Result<(), ClientError> {
        self.call("set_time_source", &[source.into()]).map(drop)
    }

    /// Calls a method of the radio.
    pub(crate) fn call(&self, method: &str, arguments: &[Value]) -> Result<Value, ClientError> {
        self.parts.with(|state| {
            let answer = state.device.session().call(method, arguments);
            Ok(answer.map_err(RadioError::from)?)
        })
    }

    fn text(&self, method: &str) -> Result<String, ClientError> {
        Ok(text_of(&self.call(method, &[])?))
    }

    pub(crate) fn texts(&self, method: &str) -> Result<Vec<String>, ClientError> {
        Ok(texts_of(&self.call(method, &[])?))
    }
}

/// Returns a text of an answer; empty for anything else.
fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.as_str().unwrap_or_default().to_owned(),
        Value::Binary(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        _ => String::new(),
    }
}

/// Returns the texts of a list in an answer.
pub(crate) fn texts_of(value: &Value) -> Vec<String> {
    value.as_array().map_or_else(Vec::new, |all| all.iter().map(text_of).collect())
}
