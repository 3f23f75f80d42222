//! The switches between the antennas and the AD9361, by the words that hosts write.

use super::settings::BOARD_CHANNELS;
use millstream_wire::regs::radio::FRONT_END_BASE;

/// The first switch word, for an idle channel.
const SWITCHES: u32 = FRONT_END_BASE + 0x600;
const CHANNEL_STRIDE: u32 = 0x800;
const WORD_STRIDE: u32 = 8;

/// The bands of the receive filters: lowest frequency in Hz, and the switches before and behind.
const RX_BANDS: [(f64, [u32; 2]); 7] = [
    (0.0, [4, 5]),
    (450e6, [5, 4]),
    (700e6, [2, 3]),
    (1200e6, [3, 2]),
    (1800e6, [0, 1]),
    (2350e6, [1, 0]),
    (2600e6, [7, 7]),
];

/// The same of an E310: all switches of a band, for either channel.
const E310_RX_BANDS: [(f64, [u32; 2]); 7] = [
    (0.0, [0x128, 0x220]),
    (450e6, [0x318, 0x310]),
    (700e6, [0x208, 0x100]),
    (1200e6, [0x040, 0x088]),
    (1800e6, [0x0d0, 0x0d8]),
    (2350e6, [0x0a0, 0x068]),
    (2600e6, [0x038, 0x038]),
];

/// A connector of a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AntennaPort {
    Rx2,
    TxRx,
}

impl AntennaPort {
    /// Returns the port called `name`.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "RX2" => Some(Self::Rx2),
            "TX/RX" => Some(Self::TxRx),
            _ => None,
        }
    }
}

/// The words of each channel by its state: idle, receiving, transmitting, both.
#[derive(Debug, Default)]
pub(crate) struct SwitchWords([[u32; 4]; BOARD_CHANNELS]);

impl SwitchWords {
    /// Takes a write to the front end's registers; others than the switches' have no effect.
    pub fn write(&mut self, address: u32, value: u32) {
        let Some(offset) = address.checked_sub(SWITCHES) else { return };
        let (channel, offset) = (offset / CHANNEL_STRIDE, offset % CHANNEL_STRIDE);
        let state = offset / WORD_STRIDE;
        let words = self.0.get_mut(channel as usize);
        let word = words.and_then(|words| words.get_mut(state as usize));
        if let Some(word) = word.filter(|_| offset % WORD_STRIDE == 0) {
            *word = value;
        }
    }

    /// Returns the same as [`SwitchWords::antenna`] for the switches of an E310.
    pub fn e310_antenna(
        &self,
        channel: usize,
        is_transmitting: bool,
        lo_hz: f64,
    ) -> Option<AntennaPort> {
        let word = self.0[channel][if is_transmitting { 3 } else { 1 }];
        let band = E310_RX_BANDS.iter().rposition(|(from, _)| lo_hz >= *from)?;
        if word & 0x3ff != E310_RX_BANDS[band].1[channel] {
            return None;
        }
        let top = band == E310_RX_BANDS.len() - 1;
        match (word >> 14 & 3, top) {
            (1, false) | (2, true) => Some(AntennaPort::Rx2),
            (2, false) | (1, true) if word >> 12 & 3 == [1, 2][channel] => Some(AntennaPort::TxRx),
            _ => None,
        }
    }

    /// Returns the antenna to which the receiver of a channel is joined at this frequency; `None`
    /// when the switches pass another band, or none.
    pub fn antenna(
        &self,
        channel: usize,
        is_transmitting: bool,
        lo_hz: f64,
    ) -> Option<AntennaPort> {
        // Words for an idle channel are not asked for: its samples go nowhere.
        let word = self.0[channel][if is_transmitting { 3 } else { 1 }];
        let field = |from: u32, bits: u32| word >> from & ((1 << bits) - 1);
        let band = RX_BANDS.iter().rposition(|(from, _)| lo_hz >= *from)?;
        let (first, second) = (field(0, 3), field(3, 3));
        if [first, second] != RX_BANDS[band].1 {
            return None;
        }
        let top = band == RX_BANDS.len() - 1;
        let joined = |code| field(14, 3) & code != 0;
        match (field(6, 2), top) {
            (2, false) | (1, true) => Some(AntennaPort::Rx2),
            (1, false) | (2, true) if joined([4, 1][channel]) => Some(AntennaPort::TxRx),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(channel: u32, state: u32, word: u32) -> SwitchWords {
        let mut words = SwitchWords::default();
        words.write(0x80600 + 0x800 * channel + 8 * state, word);
        words
    }

    #[test]
    fn the_words_that_uhd_writes_choose_the_antenna() {
        for (state, word, antenna) in [
            (1, 0x08081, AntennaPort::Rx2),
            (1, 0x10041, AntennaPort::TxRx),
            (3, 0x2C481, AntennaPort::Rx2),
            (3, 0x34441, AntennaPort::TxRx),
        ] {
            let words = with(0, state, word);
            assert_eq!(words.antenna(0, state == 3, 2.4e9), Some(antenna), "{word:#x}");
            assert_eq!(words.antenna(0, state != 3, 2.4e9), None, "the word of the other state");
            assert_eq!(words.antenna(1, state == 3, 2.4e9), None, "the other channel");
        }
    }

    #[test]
    fn another_band_is_not_passed() {
        let words = with(0, 1, 0x08081);
        assert_eq!(words.antenna(0, false, 2.349e9), None);
        assert_eq!(words.antenna(0, false, 2.6e9), None);
        assert_eq!(with(0, 1, 0x6BB3F).antenna(0, false, 2.4e9), None, "the word for idle");
        assert_eq!(with(1, 1, 1 << 6 | 0o77).antenna(1, false, 5e9), Some(AntennaPort::Rx2));
    }

    #[test]
    fn an_e310_has_words_of_its_own() {
        for (channel, word, lo_hz, antenna) in [
            (0, 0x40a0, 2.4e9, Some(AntennaPort::Rx2)),
            (1, 0x4068, 2.4e9, Some(AntennaPort::Rx2)),
            (0, 0x5038, 5e9, Some(AntennaPort::TxRx)),
            (1, 0x6038, 5e9, Some(AntennaPort::TxRx)),
            (0, 0x8038, 3e9, Some(AntennaPort::Rx2)),
            (0, 0x40a0, 2.6e9, None),
            (1, 0x40a0, 2.4e9, None),
        ] {
            let words = with(channel, 1, word);
            let got = words.e310_antenna(channel as usize, false, lo_hz);
            assert_eq!(got, antenna, "{channel} {word:#x}");
        }
    }

    #[test]
    fn other_registers_are_no_switches() {
        let mut words = SwitchWords::default();
        for address in [0x80000, 0x80580, 0x805C0, 0x80604, 0x80620, 0x81600, 0xffff_fff8] {
            words.write(address, 0x08081);
        }
        assert_eq!(words.antenna(0, false, 2.4e9), None);
    }
}
