//! The sensors of the radio, with their values.

use millstream_radio::device::SensorReading;
use millstream_radio::graph::StreamDirection;
use millstream_radio::{Device, RadioError};
use serde_json::{Value, json};

/// A sensor and its value.
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
    pub fn json(&self) -> Value {
        let mut json = json!({ "place": self.place, "name": self.name });
        match &self.reading {
            Ok(reading) => {
                let number = || reading.as_f64().map(Value::from);
                let truth = reading.as_bool().map(Value::from);
                json["value"] = match reading.kind.as_str() {
                    "BOOLEAN" => truth,
                    "INTEGER" | "REALNUM" => number(),
                    _ => None,
                }
                .unwrap_or_else(|| reading.value.clone().into());
                json["unit"] = reading.unit.clone().into();
            }
            Err(error) => json["error"] = error.clone().into(),
        }
        json
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!((line(&locked), &locked.json()["value"]), ("true".into(), &json!(true)));
        assert_eq!(line(&entry("false", "locked", "BOOLEAN")), "false (not locked)");
        let warm = entry("41.5", "C", "REALNUM");
        assert_eq!((line(&warm), &warm.json()["value"]), ("41.5 C".into(), &json!(41.5)));
        let text = entry("$GPGGA,1", "", "STRING");
        assert_eq!((line(&text), &text.json()["value"]), ("$GPGGA,1".into(), &json!("$GPGGA,1")));
        let broken = SensorEntry { reading: Err("no".into()), ..entry("", "", "") };
        assert_eq!(broken.line(), ("rx 0 x".into(), "cannot be read: no".into()));
        assert_eq!(broken.json()["error"], "no");
    }
}
