//! What the N310 leaves to the host: the oscillators of its low band, filters, amplifiers, antennas
//! and attenuators.

use millstream_wire::regs::e320::{CHANNEL_STRIDE, OutputWords, SWITCHES};

use super::Device;
use super::chains::ChainSettings;
use super::tuning::FrontState;
use crate::RadioError;
use crate::front_end::RadioFrontEnd;
use crate::front_end::magnesium::{GainSplit, MagnesiumPaths, idle_oscillator, low_band};
use crate::front_end::spi::SpiBus;
use crate::graph::{BlockPort, StreamDirection};

/// The slaves on the bus: the CPLD, and the oscillators of the low band.
const CPLD: u32 = 1;
const TX_OSCILLATOR: u32 = 2;
const RX_OSCILLATOR: u32 = 4;
/// Bits of a word of an oscillator.
const OSCILLATOR_BITS: u32 = 32;

/// A word that reads a register of the CPLD.
const READ: u32 = 1 << 23;
/// A register of the CPLD without a function, and a value for it.
const SCRATCH: u32 = 0x40 << 16;
const MARK: u16 = 0x5A3C;

impl Device {
    /// Tunes the transceiver of an N310's radio, by the method `name`, and the oscillator of its
    /// low band. Returns the frequency of the signals.
    pub(super) fn tune_transceiver(
        &self,
        (front_end, name): (&RadioFrontEnd, &str),
        direction: StreamDirection,
        set: &ChainSettings,
        freq_hz: f64,
    ) -> Result<f64, RadioError> {
        let bus = SpiBus::new(&*self.control, set.radio.block.port);
        // A radio of another kind may have other things there.
        bus.send(CPLD, SCRATCH | u32::from(MARK))?;
        if bus.ask(CPLD, SCRATCH | READ)? != MARK {
            let reason = "its CPLD does not answer on the serial bus of the radio block";
            return Err(self.not_set(reason.to_owned()));
        }
        let slave = match direction {
            StreamDirection::Rx => RX_OSCILLATOR,
            StreamDirection::Tx => TX_OSCILLATOR,
        };
        let was_on = |front: FrontState| low_band(direction, front.rf_hz, self.ticks_hz).is_some();
        let (words, moved_hz) = match low_band(direction, freq_hz, self.ticks_hz) {
            Some(settings) => (Some(settings.words()), settings.freq_hz()),
            // Another program may have left it on.
            None if set.front.target_hz.is_none() || was_on(set.front) => {
                (Some(idle_oscillator(self.ticks_hz).silent()), 0.0)
            }
            None => (None, 0.0),
        };
        let mut words = words.into_iter().flatten();
        words.try_for_each(|word| bus.send_bits(slave, word, OSCILLATOR_BITS))?;
        let wanted_hz = freq_hz + moved_hz;
        let hz = self.call_tune(front_end, direction, set, (name, wanted_hz), Some(false))?;
        Ok(hz - moved_hz)
    }

    /// Sets the gain of an N310's transceiver to its part of the channel's gain, if that was set.
    pub(super) fn set_transceiver_gain(
        &self,
        (front_end, name): (&RadioFrontEnd, &str),
        direction: StreamDirection,
        set: &ChainSettings,
    ) -> Result<(), RadioError> {
        let Some(gain_db) = set.front.gain_db else { return Ok(()) };
        let split = GainSplit::of(direction, set.front.rf_hz, gain_db);
        let (method, chain) = self.method_for(front_end, direction, set, name);
        self.session.call(&method, &[chain, split.transceiver_db.into()])?;
        Ok(())
    }

    /// Writes the paths of an N310's channel: filters, amplifiers, antenna, and the attenuators.
    pub(super) fn switch_magnesium(&self, radio: BlockPort) -> Result<(), RadioError> {
        let part = |direction| {
            let set = self.sets(direction).into_iter().find(|set| set.radio == radio);
            let front = set.map_or(FrontState::default(), |set| set.front);
            let split = front.gain_db.map(|db| GainSplit::of(direction, front.rf_hz, db));
            (front, split.unwrap_or(GainSplit::unset(direction)))
        };
        let (rx, rx_split) = part(StreamDirection::Rx);
        let (tx, tx_split) = part(StreamDirection::Tx);
        let paths = MagnesiumPaths {
            channel: radio.port,
            rx: (rx.rf_hz, rx_split.amplified),
            tx: (tx.rf_hz, tx_split.amplified),
            antenna: rx.antenna,
        };
        let bus = SpiBus::new(&*self.control, radio.block.port);
        paths.cpld().into_iter().try_for_each(|word| bus.send(CPLD, word))?;
        // `[5:0]` the receiver's attenuator, `[11:6]` the transmitter's.
        let word = u32::from(rx_split.attenuator) | u32::from(tx_split.attenuator) << 6;
        let words = OutputWords { idle: word, rx: word, tx: word, both: word };
        let base = SWITCHES + CHANNEL_STRIDE * u32::from(radio.port);
        let write = |(offset, value)| self.control.write(radio.block.port, base + offset, value);
        words.writes().into_iter().try_for_each(write)
    }
}
