//! What the N320 leaves to the host: oscillators, gains and switches.

use std::thread;
use std::time::Duration;

use millstream_wire::regs::front_end::SWITCHES;
use millstream_wire::regs::front_end::lmx2592::{ASK_LOCK, LOCKED, LmxSettings};
use millstream_wire::regs::front_end::rhodium::{
    self, CPLD, READ, RX_OSCILLATOR, RX_TURN, RhodiumPaths, SCRATCH, TX_OSCILLATOR, TX_TURN,
};

use super::Device;
use super::chains::ChainSettings;
use super::sensors::SensorReading;
use crate::RadioError;
use crate::front_end::spi::SpiBus;
use crate::graph::{BlockPort, StreamDirection};

/// The name of the sensor of the N320's oscillators.
pub(super) const LO_LOCKED: &str = "lo_locked";

/// How long an oscillator may take to lock: the interval of queries and their number.
const LOCK_POLL: Duration = Duration::from_millis(2);
const LOCK_POLLS: u32 = 25;

impl Device {
    /// Sets the oscillator of an N320's radio, waits for its lock, and returns its frequency.
    pub(super) fn tune_synthesiser(
        &self,
        direction: StreamDirection,
        set: &ChainSettings,
        freq_hz: f64,
    ) -> Result<f64, RadioError> {
        let is_low = rhodium::is_low(freq_hz);
        let settings = LmxSettings::nearest(rhodium::mixed_hz(is_low, freq_hz))
            .ok_or_else(|| self.not_set(format!("no oscillator reaches {freq_hz} Hz")))?;
        let bus = self.bus_with_cpld(set.radio, (CPLD, SCRATCH, READ))?;
        let slave = oscillator(direction);
        let words = settings.words(rhodium::oscillator_power(settings.freq_hz()));
        words.into_iter().try_for_each(|word| bus.send(slave, word))?;
        let (rx, tx) = rhodium::oscillator_gains(settings.freq_hz());
        bus.send(CPLD, if direction == StreamDirection::Rx { rx } else { tx })?;
        for _ in 0..LOCK_POLLS {
            if bus.ask(slave, ASK_LOCK)? == LOCKED {
                return Ok(rhodium::mixed_hz(is_low, settings.freq_hz()));
            }
            thread::sleep(LOCK_POLL);
        }
        Err(self.not_set(format!("its oscillator does not lock at {freq_hz} Hz")))
    }

    /// Returns whether the oscillator of an N320's radio is locked.
    pub(super) fn synthesiser_lock(
        &self,
        direction: StreamDirection,
        set: &ChainSettings,
    ) -> Result<SensorReading, RadioError> {
        let bus = SpiBus::new(&*self.control, set.radio.block.port);
        let locked = bus.ask(oscillator(direction), ASK_LOCK)? == LOCKED;
        let text = str::to_owned;
        Ok(SensorReading {
            name: text(LO_LOCKED),
            value: locked.to_string(),
            unit: text("locked"),
            kind: text("BOOLEAN"),
        })
    }

    /// Sets the gain of an N320's channel: an index of its CPLD's table, in steps of 1 dB. Returns
    /// the gain.
    pub(super) fn set_gain_index(
        &self,
        direction: StreamDirection,
        set: &ChainSettings,
        gain_db: f64,
    ) -> Result<f64, RadioError> {
        let index = gain_db.round();
        let (rx, tx) = rhodium::gains(index as u32);
        let bus = SpiBus::new(&*self.control, set.radio.block.port);
        bus.send(CPLD, if direction == StreamDirection::Rx { rx } else { tx })?;
        Ok(index)
    }

    /// Writes the paths of an N320's channel: filters, antenna, switches, and whether the low-band
    /// mixer turns the spectrum round.
    pub(super) fn switch_rhodium(&self, radio: BlockPort) -> Result<(), RadioError> {
        let front = |direction| self.front_of(direction, radio);
        let (rx, tx) = (front(StreamDirection::Rx), front(StreamDirection::Tx));
        let paths = RhodiumPaths { rx_hz: rx.rf_hz, tx_hz: tx.rf_hz, antenna: rx.antenna };
        let port = radio.block.port;
        let bus = SpiBus::new(&*self.control, port);
        paths.cpld().into_iter().try_for_each(|word| bus.send(CPLD, word))?;
        self.write_outputs(radio, SWITCHES, paths.switches())?;
        let write = |address, value| self.control.write(port, address, value);
        write(RX_TURN, u32::from(rhodium::is_low(rx.rf_hz)))?;
        write(TX_TURN, if rhodium::is_low(tx.rf_hz) { 1 } else { 0x10 })
    }
}

fn oscillator(direction: StreamDirection) -> u32 {
    match direction {
        StreamDirection::Rx => RX_OSCILLATOR,
        StreamDirection::Tx => TX_OSCILLATOR,
    }
}
