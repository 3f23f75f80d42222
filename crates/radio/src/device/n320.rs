//! What the N320 leaves to the host: oscillators, gains and switches.

use std::thread;
use std::time::Duration;

use millstream_wire::regs::e320::{BOTH, DIRECTION, IDLE, RX, STATIC, SWITCHES, TX};

use super::Device;
use super::chains::ChainSettings;
use super::sensors::SensorReading;
use super::tuning::FrontState;
use crate::RadioError;
use crate::front_end::lmx2592::{ASK_LOCK, LOCKED, LmxSettings};
use crate::front_end::rhodium::{self, RhodiumPaths};
use crate::front_end::spi::SpiBus;
use crate::graph::{BlockPort, StreamDirection};

/// The name of the sensor of the N320's oscillators.
pub(super) const LO_LOCKED: &str = "lo_locked";

/// The slaves of the N320: its oscillators and its CPLD.
const TX_OSCILLATOR: u32 = 1;
const RX_OSCILLATOR: u32 = 2;
const CPLD: u32 = 8;

/// Whether the receiver's and the transmitter's spectrum is turned round.
const RX_TURN: u32 = 0x80720;
const TX_TURN: u32 = 0x806A0;

/// A register of the CPLD without a function, and a value for it.
const SCRATCH: u32 = 0x05;
const MARK: u16 = 0x5A3C;

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
        let bus = SpiBus::new(&*self.control, set.radio.block.port);
        // A radio of another kind may have other things there.
        let at = SCRATCH << 17;
        bus.send(CPLD, at | u32::from(MARK))?;
        if bus.ask(CPLD, at | 1 << 16)? != MARK {
            let reason = "its CPLD does not answer on the serial bus of the radio block";
            return Err(self.not_set(reason.to_owned()));
        }
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
        let front = |direction| {
            let of_it = self.sets(direction).into_iter().find(|set| set.radio == radio);
            of_it.map_or(FrontState::default(), |set| set.front)
        };
        let (rx, tx) = (front(StreamDirection::Rx), front(StreamDirection::Tx));
        let paths = RhodiumPaths { rx_hz: rx.rf_hz, tx_hz: tx.rf_hz, antenna: rx.antenna };
        let port = radio.block.port;
        let bus = SpiBus::new(&*self.control, port);
        paths.cpld().into_iter().try_for_each(|word| bus.send(CPLD, word))?;
        let write = |address, value| self.control.write(port, address, value);
        write(SWITCHES + DIRECTION, u32::MAX)?;
        write(SWITCHES + STATIC, !rhodium::FOLLOWING)?;
        for (offset, word) in [IDLE, RX, TX, BOTH].into_iter().zip(paths.switches()) {
            write(SWITCHES + offset, word)?;
        }
        write(RX_TURN, u32::from(rhodium::is_low(rx.rf_hz)))?;
        write(TX_TURN, if rhodium::is_low(tx.rf_hz) { 1 } else { 0x10 })
    }

    pub(super) fn not_set(&self, reason: String) -> RadioError {
        RadioError::Unusable { address: self.address(), reason }
    }
}

fn oscillator(direction: StreamDirection) -> u32 {
    match direction {
        StreamDirection::Rx => RX_OSCILLATOR,
        StreamDirection::Tx => TX_OSCILLATOR,
    }
}
