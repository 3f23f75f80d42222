//! The sensors of the radio, with their values.

use millstream_radio::device::SensorReading;
use millstream_radio::graph::StreamDirection;
use millstream_radio::{Device, RadioError};
use serde_json::Value;

crate::results! {
    /// A sensor and its value.
    pub struct SensorDocument<'a> {
        /// `motherboard`, or the direction and channel.
        place: &'a str,
        /// Its name.
        name: &'a str,
        /// Its value: a truth value, a number or text.
        #[serde(skip_serializing_if = "Option::is_none")]
        value: Option<Value>,
        /// The unit of the value.
        #[serde(skip_serializing_if = "Option::is_none")]
        unit: Option<&'a str>,
        /// Why it cannot be read.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<&'a str>,
    }
}

/// A sensor and its reading.
pub struct SensorEntry {
    /// `motherboard`, or the direction and channel.
    place: String,
    name: String,
    /// The reading, or why there is none.
    reading: Result<SensorReading, String>,
}

/// Reads all sensors: those of the motherboard, and those of each channel. A sensor that cannot be
/// read is no reason to fail.
pub fn read(device: &Device) -> Vec<SensorEntry> {
    let entry = |place: &str, name: &String, reading: Result<SensorReading, RadioError>| {
        let (place, name) = (place.to_owned(), name.clone());
        SensorEntry { place, name, reading: reading.map_err(|error| error.to_string()) }
    };
    let mut all = Vec::new();
    for name in device.sensors().unwrap_or_default() {
        all.push(entry("motherboard", &name, device.sensor(&name)));
    }
    for (direction, channels) in
        [(StreamDirection::Rx, device.rx_channels()), (StreamDirection::Tx, device.tx_channels())]
    {
        for channel in 0..channels {
            let place = format!("{} {channel}", direction.name());
            for name in device.channel_sensors(direction, channel).unwrap_or_default() {
                let reading = device.channel_sensor(direction, channel, &name);
                all.push(entry(&place, &name, reading));
            }
        }
    }
    all
}

impl SensorEntry {
    /// Returns the name with its place, and the value with its unit.
    pub fn line(&self) -> (String, String) {
        let value = match &self.reading {
            Ok(reading) => match reading.as_bool() {
                Some(true) => reading.value.clone(),
                Some(false) => format!("{} (not {})", reading.value, reading.unit),
                None => format!("{} {}", reading.value, reading.unit).trim_end().to_owned(),
            },
            Err(error) => format!("cannot be read: {error}"),
        };
        (format!("{} {}", self.place, self.name), value)
    }

    /// Returns the same for programs: the value as its type says.
    pub fn document(&self) -> SensorDocument<'_> {
        let Self { place, name, reading } = self;
        let value = |reading: &SensorReading| {
            let typed = match reading.kind.as_str() {
                "BOOLEAN" => reading.as_bool().map(Value::from),
                "INTEGER" | "REALNUM" => reading.as_f64().map(Value::from),
                _ => None,
            };
            typed.unwrap_or_else(|| reading.value.clone().into())
        };
        let read = reading.as_ref().ok();
        SensorDocument {
            place,
            name,
            value: read.map(value),
            unit: read.map(|reading| reading.unit.as_str()),
            error: reading.as_ref().err().map(String::as_str),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::document;
    use serde_json::json;

    #[test]
    fn values_have_units_and_types() {
        let entry = |value: &str, unit: &str, kind: &str| SensorEntry {
            place: "rx 0".into(),
            name: "x".into(),
            reading: Ok(SensorReading {
                name: "x".into(),
                value: value.into(),
                unit: unit.into(),
                kind: kind.into(),
            }),
        };
        let line = |entry: &SensorEntry| entry.line().1;
        let locked = entry("true", "locked", "BOOLEAN");
        assert_eq!(
            (line(&locked), document(&locked.document())["value"].clone()),
            ("true".into(), json!(true))
        );
        assert_eq!(line(&entry("false", "locked", "BOOLEAN")), "false (not locked)");
        let warm = entry("41.5", "C", "REALNUM");
        assert_eq!(
            (line(&warm), document(&warm.document())["value"].clone()),
            ("41.5 C".into(), json!(41.5))
        );
        let text = entry("$GPGGA,1", "", "STRING");
        assert_eq!(
            (line(&text), document(&text.document())["value"].clone()),
            ("$GPGGA,1".into(), json!("$GPGGA,1"))
        );
        let broken = SensorEntry { reading: Err("no".into()), ..entry("", "", "") };
        assert_eq!(broken.line(), ("rx 0 x".into(), "cannot be read: no".into()));
        assert_eq!(document(&broken.document())["error"], "no");
    }
}
