//! The switches and LEDs of the E320, and the receiver's switches of the E310.
//!
//! The radio selects one of four words by its own state, so they are written once per tuning and
//! not per burst.

use super::{OutputWords, RxAntenna, band};

/// The settings that the words of a channel depend on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SwitchSettings {
    /// The channel of the radio: its connectors are wired in another order.
    pub channel: u8,
    /// The local oscillator of the receiver, Hz.
    pub rx_hz: f64,
    /// The local oscillator of the transmitter, Hz.
    pub tx_hz: f64,
    /// The receiver's antenna.
    pub antenna: RxAntenna,
}

/// Beginnings of the receive bands, Hz, with their switches 1 and 2: `[2:0]` and `[5:3]`.
const RX_BANDS: [(f64, [u32; 2]); 7] = [
    (70e6, [4, 5]),
    (450e6, [5, 4]),
    (700e6, [2, 3]),
    (1200e6, [3, 2]),
    (1800e6, [0, 1]),
    (2350e6, [1, 0]),
    (RX_OPEN_HZ, [7, 7]),
];

/// The same of an E310: all switches of a band, `[9:0]`, for either channel.
const E310_RX_BANDS: [(f64, [u32; 2]); 7] = [
    (70e6, [0x128, 0x220]),
    (450e6, [0x318, 0x310]),
    (700e6, [0x208, 0x100]),
    (1200e6, [0x040, 0x088]),
    (1800e6, [0x0D0, 0x0D8]),
    (2350e6, [0x0A0, 0x068]),
    (RX_OPEN_HZ, [0x038, 0x038]),
];

/// Beginnings of the transmit bands, Hz, with their switches 1 and 2: `[10:8]` and `[13:11]`.
const TX_BANDS: [(f64, [u32; 2]); 9] = [
    (47e6, [3, 7]),
    (117.7e6, [7, 3]),
    (178.2e6, [1, 5]),
    (284.3e6, [5, 1]),
    (453.7e6, [2, 6]),
    (723.8e6, [6, 2]),
    (1154.9e6, [0, 4]),
    (1842.6e6, [4, 0]),
    (TX_HIGH_HZ, [7, 3]),
];

/// The first frequencies of the receiver and transmitter that take the way without a filter.
const RX_OPEN_HZ: f64 = 2600e6;
const TX_HIGH_HZ: f64 = 2940e6;

/// The switch of the connector `TX/RX`, `[16:14]`, to the receiver of each channel, and its way in
/// every other state.
const TO_RX: [u32; 2] = [4, 1];
const TO_RX2: u32 = 2;

/// Bits of a word of the LEDs.
const LED_RX2: u32 = 1 << 0;
const LED_TX: u32 = 1 << 1;
const LED_TX_RX: u32 = 1 << 2;

/// Returns switch 3 of the receiver, `[7:6]`: it is wired in reverse for the highest band.
fn third(antenna: RxAntenna, hz: f64) -> u32 {
    if (antenna == RxAntenna::TxRx) != (hz >= RX_OPEN_HZ) { 1 } else { 2 }
}

/// Returns the antenna of a code of switch 3, if the connector `TX/RX` is there when it is needed.
fn antenna_of(code: u32, hz: f64, is_connected: bool) -> Option<RxAntenna> {
    let is_it = |antenna: &RxAntenna| third(*antenna, hz) == code;
    let antenna = [RxAntenna::Rx2, RxAntenna::TxRx].into_iter().find(is_it)?;
    (antenna == RxAntenna::Rx2 || is_connected).then_some(antenna)
}

impl SwitchSettings {
    /// Returns the words of the switches.
    #[must_use]
    pub fn switches(&self) -> OutputWords {
        let rx_word = |[first, second]: [u32; 2], third: u32| first | second << 3 | third << 6;
        let tx_word =
            |[first, second]: [u32; 2], amplifier: u32| first << 8 | second << 11 | amplifier << 17;
        let channel = usize::from(self.channel & 1);
        let rx_connector = match self.antenna {
            RxAntenna::Rx2 => TO_RX2,
            RxAntenna::TxRx => TO_RX[channel],
        };
        // The amplifiers of the low and of the high band; 3 is none.
        let (amplifier, tx_connector) = match self.tx_hz >= TX_HIGH_HZ {
            true => (2, TO_RX2),
            false => (1, TO_RX[1 - channel]),
        };
        let third = third(self.antenna, self.rx_hz);
        let rx = rx_word(band(&RX_BANDS, self.rx_hz), third) | rx_connector << 14;
        let tx = tx_word(band(&TX_BANDS, self.tx_hz), amplifier) | tx_connector << 14;
        let off = rx_word([7, 7], 0) | tx_word([3, 7], 3) | TO_RX2 << 14;
        OutputWords::following([off, rx, tx, rx | tx])
    }

    /// Returns the words of the LEDs: green at the antenna that receives, red while transmitting.
    #[must_use]
    pub fn leds(&self) -> OutputWords {
        let rx = if self.antenna == RxAntenna::Rx2 { LED_RX2 } else { LED_TX_RX };
        OutputWords::following([0, rx, LED_TX, LED_RX2 | LED_TX])
    }
}

/// Returns the antenna to which a word of the switches joins the receiver of a channel (0 or 1) at
/// this frequency, Hz; `None` when the switches pass another band, or none.
#[must_use]
pub fn antenna(channel: usize, word: u32, hz: f64) -> Option<RxAntenna> {
    let [first, second] = band(&RX_BANDS, hz);
    let is_connected = word >> 14 & TO_RX[channel & 1] != 0;
    (word & 0x3F == first | second << 3).then_some(())?;
    antenna_of(word >> 6 & 3, hz, is_connected)
}

/// Returns the same as [`antenna`] for the switches of an E310.
#[must_use]
pub fn e310_antenna(channel: usize, word: u32, hz: f64) -> Option<RxAntenna> {
    // The connector's switch has 2 bits, and the last switch of the receiver its codes in reverse.
    let is_connected = word >> 12 & 3 == [1, 2][channel & 1];
    (word & 0x3FF == band(&E310_RX_BANDS, hz)[channel & 1]).then_some(())?;
    antenna_of((word >> 14 & 3) ^ 3, hz, is_connected)
}

#[cfg(test)]
mod tests {
    use super::*;
    use RxAntenna::{Rx2, TxRx};

    #[test]
    fn the_words_are_those_that_uhd_writes_and_give_the_antenna() {
        let on_rx2 = [0, 1, 2, 3];
        let on_tx_rx = [0, 4, 2, 3];
        for (channel, rx_hz, tx_hz, wanted, words, leds) in [
            (0, 2.4e9, 2.4e9, Rx2, [0x0_8081, 0x2_4400, 0x2_C481], on_rx2),
            (0, 2.4e9, 2.4e9, TxRx, [0x1_0041, 0x2_4400, 0x3_4441], on_tx_rx),
            (1, 2.4e9, 2.4e9, Rx2, [0x0_8081, 0x3_0400, 0x3_8481], on_rx2),
            (1, 2.4e9, 2.4e9, TxRx, [0x0_4041, 0x3_0400, 0x3_4441], on_tx_rx),
            (0, 2.7e9, 2.4e9, TxRx, [0x1_00BF, 0x2_4400, 0x3_44BF], on_tx_rx),
            (1, 500e6, 2.4e9, Rx2, [0x0_80A5, 0x3_0400, 0x3_84A5], on_rx2),
            (1, 2.4e9, 900e6, Rx2, [0x0_8081, 0x3_1600, 0x3_9681], on_rx2),
        ] {
            let settings = SwitchSettings { channel, rx_hz, tx_hz, antenna: wanted };
            let [rx, tx, both] = words;
            let want = OutputWords::following([0x6_BB3F, rx, tx, both]);
            assert_eq!(settings.switches(), want, "{settings:?}");
            assert_eq!(settings.leds(), OutputWords::following(leds), "{settings:?}");
            for word in [rx, both] {
                assert_eq!(antenna(channel.into(), word, rx_hz), Some(wanted), "{word:#x}");
            }
            assert_eq!(antenna(channel.into(), want.idle, rx_hz), None);
            // The words of the other channel join no antenna but this channel's own.
            let other = antenna(1 - usize::from(channel), rx, rx_hz);
            assert_eq!(other, (wanted == Rx2).then_some(Rx2), "{rx:#x}");
        }
    }

    #[test]
    fn another_band_is_not_passed() {
        for hz in [0.0, 2.349e9, 2.6e9] {
            assert_eq!(antenna(0, 0x0_8081, hz), None, "{hz}");
        }
        assert_eq!(antenna(1, 1 << 6 | 0o77, 5e9), Some(Rx2));
    }

    #[test]
    fn every_setting_is_found_again_in_its_words() {
        for channel in [0, 1] {
            for (rx_hz, tx_hz) in [10e6, 100e6, 500e6, 1e9, 1.5e9, 2e9, 2.5e9, 3e9, 6e9]
                .into_iter()
                .flat_map(|rx_hz| [100e6, 1e9, 5e9].map(|tx_hz| (rx_hz, tx_hz)))
            {
                for wanted in [Rx2, TxRx] {
                    let settings = SwitchSettings { channel, rx_hz, tx_hz, antenna: wanted };
                    let word = settings.switches().rx;
                    assert_eq!(antenna(channel.into(), word, rx_hz), Some(wanted), "{settings:?}");
                }
            }
        }
    }

    #[test]
    fn an_e310_has_words_of_its_own() {
        for (channel, word, hz, want) in [
            (0, 0x40A0, 2.4e9, Some(Rx2)),
            (1, 0x4068, 2.4e9, Some(Rx2)),
            (0, 0x5038, 5e9, Some(TxRx)),
            (1, 0x6038, 5e9, Some(TxRx)),
            (0, 0x8038, 3e9, Some(Rx2)),
            (0, 0x40A0, 2.6e9, None),
            (1, 0x40A0, 2.4e9, None),
        ] {
            assert_eq!(e310_antenna(channel, word, hz), want, "{channel} {word:#x}");
        }
    }
}
