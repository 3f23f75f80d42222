//! Readings: the sensors of the radio, and the ledgers of its streams.

use millstream_radio::device::SensorReading;
use millstream_radio::graph::StreamDirection;

use crate::channel::{Channel, ReceiveChannel, TransmitChannel};
use crate::error::ClientError;
use crate::radio::Radio;

/// The beginning of the names of ledger readings.
const LEDGER: &str = "ledger_";

impl Radio {
    /// Returns the names of the radio's own sensors.
    ///
    /// # Errors
    /// [`ClientError::Radio`].
    pub fn sensors(&self) -> Result<Vec<String>, ClientError> {
        self.parts.with(|state| Ok(state.device.sensors()?))
    }

    /// Reads one of the radio's own sensors.
    ///
    /// # Errors
    /// [`ClientError::NoSensor`], [`ClientError::Radio`].
    pub fn sensor(&self, name: &str) -> Result<SensorReading, ClientError> {
        check_sensor(name, &self.sensors()?)?;
        let reading = self.parts.with(|state| Ok(state.device.sensor(name)?))?;
        Ok(SensorReading { name: name.to_owned(), ..reading })
    }
}

impl Channel<'_> {
    /// Returns the names of the channel's sensors, and of the ledger of its stream.
    ///
    /// # Errors
    /// [`ClientError::Radio`].
    pub fn sensors(&self) -> Result<Vec<String>, ClientError> {
        let mut names = self.with(|state, direction, channel| {
            Ok(state.device.channel_sensors(direction, channel)?)
        })?;
        let ledger = self.ledger_readings();
        names.extend(ledger.into_iter().map(|reading| reading.name));
        Ok(names)
    }

    /// Reads a sensor of the channel, or the ledger of its stream.
    ///
    /// # Errors
    /// [`ClientError::NoSensor`], [`ClientError::Radio`].
    pub fn sensor(&self, name: &str) -> Result<SensorReading, ClientError> {
        if name.starts_with(LEDGER) {
            let all = self.ledger_readings();
            if let Some(reading) = all.into_iter().find(|reading| reading.name == name) {
                return Ok(reading);
            }
        }
        check_sensor(name, &self.sensors()?)?;
        let reading = self.with(|state, direction, channel| {
            Ok(state.device.channel_sensor(direction, channel, name)?)
        })?;
        Ok(SensorReading { name: name.to_owned(), ..reading })
    }

    fn ledger_readings(&self) -> Vec<SensorReading> {
        if self.index >= self.parts.channels(self.direction) {
            return Vec::new();
        }
        let mut all = Vec::new();
        let mut note = |name: &str, samples| {
            all.push(SensorReading {
                name: format!("{LEDGER}{name}"),
                value: u64::to_string(&samples),
                unit: "samples".to_owned(),
                kind: "INTEGER".to_owned(),
            });
        };
        match self.direction {
            StreamDirection::Rx => {
                let ledger = ReceiveChannel(*self).ledger().unwrap_or_default();
                note("expected", ledger.expected);
                note("delivered", ledger.delivered);
                note("lost", ledger.lost_total());
                ledger.losses().for_each(|(cause, lost)| note(&format!("lost_{cause}"), lost));
            }
            StreamDirection::Tx => {
                let ledger = TransmitChannel(*self).ledger().unwrap_or_default();
                note("accepted", ledger.accepted);
                note("transmitted", ledger.transmitted);
                note("in_flight", ledger.in_flight);
                note("unknown", ledger.unknown.samples);
                note("lost", ledger.lost_total());
                ledger.losses().for_each(|(cause, lost)| note(&format!("lost_{cause}"), lost));
            }
        }
        all
    }
}

fn check_sensor(name: &str, known: &[String]) -> Result<(), ClientError> {
    if known.iter().any(|known| known == name) {
        return Ok(());
    }
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    Err(ClientError::NoSensor { name: name.to_owned(), known })
}
