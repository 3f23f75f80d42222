//! What the N310 leaves to the host: the oscillators of its low band, filters, amplifiers, antennas
//! and attenuators.

use millstream_wire::regs::front_end::SWITCHES;
use millstream_wire::regs::front_end::adf4351::WORD_BITS;
use millstream_wire::regs::front_end::magnesium::{
    CPLD, MagnesiumPaths, READ, RX_OSCILLATOR, SCRATCH, TX_OSCILLATOR, attenuators,
};

use super::Device;
use super::chains::ChainSettings;
use super::tuning::FrontState;
use crate::RadioError;
use crate::front_end::RadioFrontEnd;
use crate::front_end::magnesium::{GainSplit, idle_oscillator, low_band};
use crate::front_end::spi::SpiBus;
use crate::graph::{BlockPort, StreamDirection};

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
        let bus = self.bus_with_cpld(set.radio, (CPLD, SCRATCH, READ))?;
        let slave = match direction {
            StreamDirection::Rx => RX_OSCILLATOR,
            StreamDirection::Tx => TX_OSCILLATOR,
        };
        let was_on = |front: FrontState| low_band(direction, front.rf_hz, self.ticks_hz).is_some();
        let (words, moved_hz) = match low_band(direction, freq_hz, self.ticks_hz) {
            Some(settings) => (Some(settings.words(true)), settings.freq_hz()),
            // Another program may have left it on.
            None if set.front.target_hz.is_none() || was_on(set.front) => {
                (Some(idle_oscillator(self.ticks_hz).words(false)), 0.0)
            }
            None => (None, 0.0),
        };
        let mut words = words.into_iter().flatten();
        words.try_for_each(|word| bus.send_bits(slave, word, WORD_BITS))?;
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
            let front = self.front_of(direction, radio);
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
        self.write_outputs(radio, SWITCHES, attenuators(rx_split.attenuator, tx_split.attenuator))
    }
}
