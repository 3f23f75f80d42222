//! The sensors of an open device, and the sources of its clock and time.

use rmpv::Value;

use super::Device;
use super::n320::LO_LOCKED;
use crate::RadioError;
use crate::front_end::Oscillator;
use crate::graph::StreamDirection;
use crate::rpc::{RpcError, as_map};

/// A reading of a sensor, in the words of the device.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SensorReading {
    /// Its name.
    pub name: String,
    /// The value: `true`, `41.5`, or text.
    pub value: String,
    /// The unit, or what a true value means (`locked`); may be empty.
    pub unit: String,
    /// The type of the value: `BOOLEAN`, `INTEGER`, `REALNUM` or `STRING`.
    pub kind: String,
}

impl SensorReading {
    /// Decodes an answer; `None` without a value.
    pub fn from_answer(answer: &Value) -> Option<Self> {
        let mut map = as_map(answer)?;
        let value = map.remove("value")?;
        let mut field = |name: &str| map.remove(name).unwrap_or_default();
        Some(Self { value, name: field("name"), unit: field("unit"), kind: field("type") })
    }

    /// Returns the value of a sensor that says yes or no; `None` for another one.
    pub fn as_bool(&self) -> Option<bool> {
        match self.value.as_str() {
            "true" | "True" => Some(true),
            "false" | "False" => Some(false),
            _ => None,
        }
    }

    /// Returns the value of a sensor that measures a finite number; `None` for another one.
    pub fn as_f64(&self) -> Option<f64> {
        self.value.parse().ok().filter(|value: &f64| value.is_finite())
    }
}

/// A clock or time: the two things that have a selectable source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceKind {
    /// The reference of the master clock.
    Clock,
    /// The PPS.
    Time,
}

impl SourceKind {
    /// Returns `clock` or `time`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Clock => "clock",
            Self::Time => "time",
        }
    }
}

impl Device {
    /// Returns the names of the sensors of the motherboard; none for a device without the method.
    ///
    /// # Errors
    /// [`RadioError::Rpc`].
    pub fn sensors(&self) -> Result<Vec<String>, RadioError> {
        self.names("get_mb_sensors", &[])
    }

    /// Reads a sensor of the motherboard, such as `ref_locked`.
    ///
    /// # Errors
    /// [`RadioError::Rpc`], also for a name that the device does not know.
    pub fn sensor(&self, name: &str) -> Result<SensorReading, RadioError> {
        self.reading("get_mb_sensor", &[name.into()])
    }

    /// Returns the names of the sensors of a channel's front end; none for a device without the
    /// method.
    ///
    /// # Errors
    /// [`RadioError::NoSuchChannel`], [`RadioError::Rpc`].
    pub fn channel_sensors(
        &self,
        direction: StreamDirection,
        channel: usize,
    ) -> Result<Vec<String>, RadioError> {
        let (method, _) = self.board_method(direction, channel, "get_sensors")?;
        let mut names = self.names(&method, &[side(direction)])?;
        if self.has_synthesiser() {
            names.push(LO_LOCKED.to_owned());
        }
        Ok(names)
    }

    /// Reads a sensor of a channel's front end, such as `lo_locked` or `rssi`.
    ///
    /// # Errors
    /// [`RadioError::NoSuchChannel`]; [`RadioError::Rpc`], also for a name that the device does not
    /// know.
    pub fn channel_sensor(
        &self,
        direction: StreamDirection,
        channel: usize,
        name: &str,
    ) -> Result<SensorReading, RadioError> {
        if name == LO_LOCKED && self.has_synthesiser() {
            return self.synthesiser_lock(direction, &self.settings(direction, channel)?);
        }
        let (method, port) = self.board_method(direction, channel, "get_sensor")?;
        self.reading(&method, &[side(direction), name.into(), port.into()])
    }

    /// Returns the present source; `None` for a device that does not report it.
    pub fn source(&self, kind: SourceKind) -> Option<String> {
        let answer = self.session.call(&format!("get_{}_source", kind.name()), &[]).ok()?;
        answer.as_str().map(str::to_owned)
    }

    /// Returns the possible sources; none for a device that does not report them.
    pub fn sources(&self, kind: SourceKind) -> Vec<String> {
        self.session.sources(kind.name())
    }

    /// Selects the source of the reference clock, or of the PPS. Running streams may see a jump of
    /// time. Sources named in [`crate::DeviceArgs`] are selected before the device starts its
    /// clocks, which disturbs less.
    ///
    /// # Errors
    /// [`RadioError::NoSuchSource`], [`RadioError::Rpc`].
    pub fn set_source(&self, kind: SourceKind, source: &str) -> Result<(), RadioError> {
        self.session.check_source(kind.name(), source)?;
        let method = format!("set_{}_source", kind.name());
        Ok(self.session.call(&method, &[source.into()]).map(drop)?)
    }

    /// Returns whether this host sets the oscillators by their registers.
    fn has_synthesiser(&self) -> bool {
        self.front_end().is_some_and(|front_end| front_end.oscillator == Oscillator::Synthesiser)
    }

    /// Returns a method of the daughterboard of a channel, and the number of the channel there.
    fn board_method(
        &self,
        direction: StreamDirection,
        channel: usize,
        name: &str,
    ) -> Result<(String, u8), RadioError> {
        let set = self.settings(direction, channel)?;
        let method = match self.front_end() {
            Some(front_end) => front_end.method(set.radio_number, name),
            None => format!("db_{}_{name}", set.radio_number),
        };
        Ok((method, set.radio.port))
    }

    fn names(&self, method: &str, arguments: &[Value]) -> Result<Vec<String>, RadioError> {
        let answer = match self.session.call(method, arguments) {
            Ok(answer) => answer,
            // It does not know the method.
            Err(RpcError::Remote { .. }) => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        };
        let names = answer.as_array().ok_or_else(|| self.session.protocol(method, "no list"))?;
        Ok(names.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect())
    }

    fn reading(&self, method: &str, arguments: &[Value]) -> Result<SensorReading, RadioError> {
        let answer = self.session.call(method, arguments)?;
        let reading = SensorReading::from_answer(&answer);
        Ok(reading.ok_or_else(|| self.session.protocol(method, "no map with a value"))?)
    }
}

/// Returns the name of a direction in MPM's methods.
fn side(direction: StreamDirection) -> Value {
    match direction {
        StreamDirection::Rx => "RX".into(),
        StreamDirection::Tx => "TX".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_has_a_value_and_maybe_a_unit() {
        let map = |entries: &[(&str, &str)]| {
            Value::Map(
                entries.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect(),
            )
        };
        let reading = SensorReading::from_answer(&map(&[
            ("name", "rssi"),
            ("type", "REALNUM"),
            ("unit", "dB"),
            ("value", "-42.25"),
        ]));
        let reading = reading.unwrap();
        assert_eq!((reading.as_f64(), reading.as_bool()), (Some(-42.25), None));
        assert_eq!((reading.name.as_str(), reading.unit.as_str()), ("rssi", "dB"));
        let locked = SensorReading::from_answer(&map(&[("value", "true")])).unwrap();
        assert_eq!(
            (locked.as_bool(), locked.as_f64(), locked.unit.as_str()),
            (Some(true), None, "")
        );
        let endless = SensorReading::from_answer(&map(&[("value", "inf")])).unwrap();
        assert_eq!(endless.as_f64(), None);
        assert_eq!(SensorReading::from_answer(&map(&[("name", "x")])), None);
        assert_eq!(SensorReading::from_answer(&Value::from(7)), None);
    }
}
