//! Readings: the sensors of the radio, and the ledgers of its streams.

use millstream_radio::device::SensorReading;
use millstream_radio::graph::StreamDirection;
use millstream_radio::{Ledger, TxLedger};

use crate::error::ClientError;
use crate::radio::ClientRadio;
use crate::rx::StreamGap;

/// The beginning of the names of ledger readings.
const LEDGER: &str = "ledger_";

impl ClientRadio {
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
        self.check_sensor(name, &self.sensors()?)?;
        let reading = self.parts.with(|state| Ok(state.device.sensor(name)?))?;
        Ok(SensorReading { name: name.to_owned(), ..reading })
    }

    /// Returns the names of a channel's sensors, and of the ledger of its stream.
    ///
    /// # Errors
    /// [`ClientError::Radio`].
    pub fn channel_sensors(
        &self,
        direction: StreamDirection,
        channel: usize,
    ) -> Result<Vec<String>, ClientError> {
        let mut names =
            self.parts.with(|state| Ok(state.device.channel_sensors(direction, channel)?))?;
        let ledger = self.ledger_readings(direction, channel);
        names.extend(ledger.into_iter().map(|reading| reading.name));
        Ok(names)
    }

    /// Reads a sensor of a channel, or the ledger of its stream.
    ///
    /// # Errors
    /// [`ClientError::NoSensor`], [`ClientError::Radio`].
    pub fn channel_sensor(
        &self,
        direction: StreamDirection,
        channel: usize,
        name: &str,
    ) -> Result<SensorReading, ClientError> {
        if name.starts_with(LEDGER) {
            let all = self.ledger_readings(direction, channel);
            if let Some(reading) = all.into_iter().find(|reading| reading.name == name) {
                return Ok(reading);
            }
        }
        self.check_sensor(name, &self.channel_sensors(direction, channel)?)?;
        let reading = self
            .parts
            .with(|state| Ok(state.device.channel_sensor(direction, channel, name)?))?;
        Ok(SensorReading { name: name.to_owned(), ..reading })
    }

    /// Returns the outcome of every sample of a receive channel, by the stream that is open on it.
    pub fn rx_ledger(&self, channel: usize) -> Option<Ledger> {
        self.parts.streams().iter().rev().find_map(|stream| stream.rx_ledger(channel))
    }

    /// Returns the latest gap of the stream that is open on a receive channel.
    pub fn last_gap(&self, channel: usize) -> Option<StreamGap> {
        self.parts.streams().iter().rev().find_map(|stream| stream.last_gap(channel))
    }

    /// Returns the outcome of every sample of a transmit channel, by the stream that is open on it.
    pub fn tx_ledger(&self, channel: usize) -> Option<TxLedger> {
        self.parts.streams().iter().rev().find_map(|stream| stream.tx_ledger(channel))
    }

    fn ledger_readings(&self, direction: StreamDirection, channel: usize) -> Vec<SensorReading> {
        if channel >= self.channels(direction) {
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
        match direction {
            StreamDirection::Rx => {
                let ledger = self.rx_ledger(channel).unwrap_or_default();
                note("expected", ledger.expected);
                note("delivered", ledger.delivered);
                note("lost", ledger.lost_total());
                ledger.losses().for_each(|(cause, lost)| note(&format!("lost_{cause}"), lost));
            }
            StreamDirection::Tx => {
                let ledger = self.tx_ledger(channel).unwrap_or_default();
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

    fn check_sensor(&self, name: &str, known: &[String]) -> Result<(), ClientError> {
        if known.iter().any(|known| known == name) {
            return Ok(());
        }
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        Err(ClientError::NoSensor { name: name.to_owned(), known })
    }
}
