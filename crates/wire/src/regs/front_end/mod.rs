//! The registers of front ends: one table each, which the host encodes and a device decodes.
//!
//! The values are those that stock UHD 4.3 sends at each frequency, antenna and gain, as a device
//! on the wire sees them; the tests contain such words.

pub mod adf4351;
pub mod e3xx;
pub mod lmx2592;
pub mod magnesium;
pub mod rhodium;

use super::radio::FRONT_END_BASE;

/// Base of the LEDs' core of channel 0.
pub const LEDS: u32 = FRONT_END_BASE + 0x580;
/// Base of the core of the pins of the front panel's connector.
pub const PANEL: u32 = FRONT_END_BASE + 0x5C0;
/// Base of the core of channel 0 for the switches; those of an N310 are attenuators.
pub const SWITCHES: u32 = FRONT_END_BASE + 0x600;
/// Distance of the cores of two channels.
pub const CHANNEL_STRIDE: u32 = 0x800;
/// Read: what the pins of the front panel's connector are.
pub const PANEL_READ_BACK: u32 = FRONT_END_BASE + 0xA0;

/// Distance of two words of a core.
const WORD_STRIDE: u32 = 8;

/// The words of a core of general outputs in a radio block, in the order of their registers. The
/// radio selects one of the first four by its own state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct OutputWords {
    /// While the radio neither receives nor transmits.
    pub idle: u32,
    /// While it receives.
    pub rx: u32,
    /// While it transmits.
    pub tx: u32,
    /// While it does both.
    pub both: u32,
    /// Bits that are outputs.
    pub outputs: u32,
    /// Bits that have their value of `idle` in every state.
    pub fixed: u32,
}

impl OutputWords {
    /// Returns words of outputs that all follow the radio's state.
    #[must_use]
    pub const fn following([idle, rx, tx, both]: [u32; 4]) -> OutputWords {
        OutputWords { idle, rx, tx, both, outputs: u32::MAX, fixed: 0 }
    }

    /// Returns the writes that make a core drive these words: offsets and values.
    #[must_use]
    pub const fn writes(self) -> [(u32, u32); 6] {
        [
            (4 * WORD_STRIDE, self.outputs),
            (5 * WORD_STRIDE, self.fixed),
            (0, self.idle),
            (WORD_STRIDE, self.rx),
            (2 * WORD_STRIDE, self.tx),
            (3 * WORD_STRIDE, self.both),
        ]
    }

    /// Takes a write at an offset from the core's base; there are no other words.
    pub fn write(&mut self, offset: u32, value: u32) {
        let word = match (offset / WORD_STRIDE, offset % WORD_STRIDE) {
            (0, 0) => &mut self.idle,
            (1, 0) => &mut self.rx,
            (2, 0) => &mut self.tx,
            (3, 0) => &mut self.both,
            (4, 0) => &mut self.outputs,
            (5, 0) => &mut self.fixed,
            _ => return,
        };
        *word = value;
    }

    /// Returns the word of a state of the radio.
    #[must_use]
    pub const fn of(&self, receives: bool, transmits: bool) -> u32 {
        match (receives, transmits) {
            (false, false) => self.idle,
            (true, false) => self.rx,
            (false, true) => self.tx,
            (true, true) => self.both,
        }
    }

    /// Returns what the outputs are in a state of the radio. Nothing drives the inputs.
    #[must_use]
    pub const fn driven(&self, receives: bool, transmits: bool) -> u32 {
        let following = self.of(receives, transmits) & !self.fixed;
        (following | self.idle & self.fixed) & self.outputs
    }
}

/// Takes a write to the cores of channels, of which that of channel 0 has the base `base`; other
/// addresses have no effect.
pub fn write_outputs(channels: &mut [OutputWords], base: u32, address: u32, value: u32) {
    let Some(offset) = address.checked_sub(base) else { return };
    if let Some(core) = channels.get_mut((offset / CHANNEL_STRIDE) as usize) {
        core.write(offset % CHANNEL_STRIDE, value);
    }
}

/// The antenna of a receive channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RxAntenna {
    /// The connector that only receives.
    #[default]
    Rx2,
    /// The connector of the transmitter.
    TxRx,
}

impl RxAntenna {
    /// Returns the antenna called `name`.
    #[must_use]
    pub fn named(name: &str) -> Option<RxAntenna> {
        match name {
            "RX2" => Some(RxAntenna::Rx2),
            "TX/RX" => Some(RxAntenna::TxRx),
            _ => None,
        }
    }
}

/// Returns the value of the band of a frequency, from bands by their beginnings; the first one for
/// a frequency below.
#[must_use]
pub fn band<T: Copy>(bands: &[(f64, T)], hz: f64) -> T {
    bands.iter().rev().find(|band| hz >= band.0).unwrap_or(&bands[0]).1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_takes_the_words_that_a_host_writes_and_no_others() {
        let sent = OutputWords { outputs: 0xF0, fixed: 7, ..OutputWords::following([1, 2, 3, 4]) };
        let mut words = OutputWords::default();
        sent.writes().into_iter().for_each(|(offset, value)| words.write(offset, value));
        assert_eq!(words, sent);
        for offset in [4, 6 * 8, 0x800, u32::MAX] {
            words.write(offset, u32::MAX);
        }
        assert_eq!(words, sent);

        let mut channels = [words; 2];
        write_outputs(&mut channels, SWITCHES, 0x80E08, 9);
        assert_eq!(channels, [words, OutputWords { rx: 9, ..words }]);
        for other in [0, 0x80580, 0x805C0, 0x80604, 0x80630, 0x81600, 0xFFFF_FFF8] {
            write_outputs(&mut channels, SWITCHES, other, u32::MAX);
        }
        assert_eq!(channels, [words, OutputWords { rx: 9, ..words }]);
    }

    /// What UHD's example `gpio` writes and expects.
    #[test]
    fn an_output_is_read_back_as_the_state_of_the_radio_drives_it() {
        let states = [(false, false), (true, false), (false, true), (true, true)];
        let all = |words: OutputWords| states.map(|(rx, tx)| words.driven(rx, tx));
        let words = OutputWords { outputs: 15, ..OutputWords::following([1, 2, 4, 8]) };
        assert_eq!(all(words), [1, 2, 4, 8]);
        assert_eq!(all(OutputWords { fixed: 3, ..words }), [0b0001, 0b0001, 0b0101, 0b1001]);
        let inputs = OutputWords { fixed: 3, outputs: 8, ..words };
        assert_eq!(all(inputs), [0, 0, 0, 8], "the others are inputs");
    }
}
