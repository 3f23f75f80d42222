//! The switches and LEDs of the E320.
//!
//! The radio selects one of four words by its own state, so they are written once per tuning and
//! not per burst.

use millstream_wire::regs::e320::{OutputWords, leds, switches};

/// The antenna of a receive channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RxAntenna {
    /// The connector that only receives.
    #[default]
    Rx2,
    /// The connector of the transmitter.
    TxRx,
}

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

/// Beginnings of the receive bands, Hz, with their switches 1 and 2.
const RX_BANDS: [(f64, u32, u32); 7] = [
    (70e6, 4, 5),
    (450e6, 5, 4),
    (700e6, 2, 3),
    (1200e6, 3, 2),
    (1800e6, 0, 1),
    (2350e6, 1, 0),
    (2600e6, 7, 7),
];

/// Beginnings of the transmit bands, Hz, with their switches 1 and 2.
const TX_BANDS: [(f64, u32, u32); 9] = [
    (47e6, 3, 7),
    (117.7e6, 7, 3),
    (178.2e6, 1, 5),
    (284.3e6, 5, 1),
    (453.7e6, 2, 6),
    (723.8e6, 6, 2),
    (1154.9e6, 0, 4),
    (1842.6e6, 4, 0),
    (2940e6, 7, 3),
];

/// The first frequencies of the receiver and transmitter that take the way without a filter.
const RX_OPEN_HZ: f64 = 2600e6;
const TX_HIGH_HZ: f64 = 2940e6;

/// Returns the switches of the band of a frequency; the lowest band for one below it.
fn band(bands: &[(f64, u32, u32)], hz: f64) -> (u32, u32) {
    let band = bands.iter().rev().find(|band| hz >= band.0).unwrap_or(&bands[0]);
    (band.1, band.2)
}

impl SwitchSettings {
    /// Returns the words of the switches.
    #[must_use]
    pub fn switches(&self) -> OutputWords {
        let (rx1, rx2) = band(&RX_BANDS, self.rx_hz);
        let (tx1, tx2) = band(&TX_BANDS, self.tx_hz);
        let is_first = self.channel == 0;
        // The last switch of the receiver is wired in reverse for the highest band.
        let way = (self.antenna == RxAntenna::TxRx) != (self.rx_hz >= RX_OPEN_HZ);
        let rx3 = if way { 1 } else { 2 };
        let rx_connector = match self.antenna {
            RxAntenna::Rx2 => 2,
            RxAntenna::TxRx => {
                if is_first {
                    4
                } else {
                    1
                }
            }
        };
        let high = self.tx_hz >= TX_HIGH_HZ;
        let tx_connector = match (high, is_first) {
            (true, _) => 2,
            (false, true) => 1,
            (false, false) => 4,
        };
        let rx = switches::rx(rx1, rx2, rx3) | switches::connector(rx_connector);
        let amplifier = if high { 2 } else { 1 };
        let tx = switches::tx(tx1, tx2, amplifier) | switches::connector(tx_connector);
        let off = switches::rx(7, 7, 0) | switches::tx(3, 7, 3) | switches::connector(2);
        OutputWords { idle: off, rx, tx, both: rx | tx }
    }

    /// Returns the words of the LEDs: green at the antenna that receives, red while transmitting.
    #[must_use]
    pub fn leds(&self) -> OutputWords {
        let rx = if self.antenna == RxAntenna::Rx2 { leds::RX2 } else { leds::TX_RX_RECEIVES };
        OutputWords { idle: 0, rx, tx: leds::TRANSMITS, both: leds::RX2 | leds::TRANSMITS }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_are_those_that_uhd_writes() {
        let at = |channel, rx_hz, tx_hz, antenna| {
            let settings = SwitchSettings { channel, rx_hz, tx_hz, antenna };
            let OutputWords { idle, rx, tx, both } = settings.switches();
            assert_eq!(idle, 0x6_BB3F);
            let leds = settings.leds();
            (rx, tx, both, [leds.idle, leds.rx, leds.tx, leds.both])
        };
        use RxAntenna::{Rx2, TxRx};
        let on_rx2 = [0, 1, 2, 3];
        let on_tx_rx = [0, 4, 2, 3];
        for (channel, rx_hz, tx_hz, antenna, words) in [
            (0, 2.4e9, 2.4e9, Rx2, (0x0_8081, 0x2_4400, 0x2_C481, on_rx2)),
            (0, 2.4e9, 2.4e9, TxRx, (0x1_0041, 0x2_4400, 0x3_4441, on_tx_rx)),
            (1, 2.4e9, 2.4e9, Rx2, (0x0_8081, 0x3_0400, 0x3_8481, on_rx2)),
            (1, 2.4e9, 2.4e9, TxRx, (0x0_4041, 0x3_0400, 0x3_4441, on_tx_rx)),
            (0, 2.7e9, 2.4e9, TxRx, (0x1_00BF, 0x2_4400, 0x3_44BF, on_tx_rx)),
            (1, 500e6, 2.4e9, Rx2, (0x0_80A5, 0x3_0400, 0x3_84A5, on_rx2)),
            (1, 2.4e9, 900e6, Rx2, (0x0_8081, 0x3_1600, 0x3_9681, on_rx2)),
        ] {
            assert_eq!(at(channel, rx_hz, tx_hz, antenna), words, "{channel} {rx_hz} {tx_hz}");
        }
    }
}
