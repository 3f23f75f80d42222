//! The daughterboard of the N310: the words of its CPLD, and its attenuators.

use super::{OutputWords, RxAntenna, band};

/// The slave of the serial bus that is the CPLD.
pub const CPLD: u32 = 1;
/// The slave that is the transmitter's oscillator of the low band.
pub const TX_OSCILLATOR: u32 = 2;
/// That of the receiver.
pub const RX_OSCILLATOR: u32 = 4;

/// The registers of the CPLD: a word has `[23]` read, `[22:16]` register, then the value.
pub const REGISTERS: usize = 1 << 7;
/// In a word of the CPLD: it asks for the register.
pub const READ: u32 = 1 << 23;
/// The word of a register without a function.
pub const SCRATCH: u32 = 0x40 << 16;
/// The first register of a channel's paths, and the distance of two channels.
const PATHS: u32 = 0x50;
const CHANNEL: u32 = 0x10;
/// Among them, that of the receiver while it receives.
const RX_INPUT: u32 = 5;

/// The steps of a closed attenuator, 0.5 dB each.
pub const CLOSED: u8 = 60;
/// The gain of the receiver's amplifier, dB.
pub const AMPLIFIER_DB: f64 = 20.0;

/// Beginnings of bands, Hz, with the words of the receiver's filters and its amplifier.
const RX_BANDS: [(f64, (u32, u32)); 8] = [
    (0.0, (0x1217, 0xB9)),
    (300e6, (0x1217, 0xA1)),
    (430e6, (0x0647, 0xA1)),
    (600e6, (0x2257, 0xA1)),
    (1050e6, (0x0A67, 0xA1)),
    (1600e6, (0x0527, 0x62)),
    (2100e6, (0x0487, 0x62)),
    (2700e6, (0x067F, 0x62)),
];

/// The same around them.
const RX_AROUND: [(f64, (u32, u32)); 2] = [(0.0, (0x08FB, 0x3C)), (300e6, (0x08FB, 0x24))];

/// Beginnings of bands with the word of the transmitter's filters and its amplifier.
const TX_BANDS: [(f64, u32); 5] =
    [(0.0, 0x6793), (300e6, 0x6613), (723.17e6, 0x6609), (1623.17e6, 0x6606), (3323.17e6, 0x6E20)];

/// The same around them.
const TX_AROUND: [(f64, u32); 2] = [(0.0, 0x7FE0), (300e6, 0x7E60)];

/// The transmitter while the radio does not transmit, and the bits for its path to the connector.
const TX_IDLE: u32 = 0x4604;
const CONNECTOR: u32 = 3 << 11;
/// The connector belongs to the receiver.
const CONNECTOR_RECEIVES: u32 = 2 << 11;

/// The receiver's second word: the way around filters and amplifier, and its inputs: off, `RX2`,
/// and `TX/RX`.
const AROUND: u32 = 1 << 2;
const INPUTS: u32 = 3 << 8;
const INPUT_OFF: u32 = 0x400;
const INPUT_RX2: u32 = 1 << 8;
const INPUT_TX_RX: u32 = 2 << 8;

/// The settings that the paths of a channel depend on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MagnesiumPaths {
    /// The channel of the radio.
    pub channel: u8,
    /// The frequency of the receiver, Hz, and whether it uses its amplifier.
    pub rx: (f64, bool),
    /// The same of the transmitter.
    pub tx: (f64, bool),
    /// The receiver's antenna.
    pub antenna: RxAntenna,
}

impl MagnesiumPaths {
    /// Returns the words of the CPLD: the transmitter and the receiver while the radio is idle, and
    /// while it transmits and receives.
    #[must_use]
    pub fn cpld(&self) -> [u32; 6] {
        let ((rx_hz, rx_amplified), (tx_hz, tx_amplified)) = (self.rx, self.tx);
        let (filters, gains) =
            band(if rx_amplified { &RX_BANDS[..] } else { &RX_AROUND[..] }, rx_hz);
        let tx = band(if tx_amplified { &TX_BANDS[..] } else { &TX_AROUND[..] }, tx_hz);
        let (connector, input, select) = match self.antenna {
            RxAntenna::Rx2 => (tx & CONNECTOR, INPUT_OFF | INPUT_RX2, 3),
            RxAntenna::TxRx => (CONNECTOR_RECEIVES, INPUT_OFF | INPUT_TX_RX, 2),
        };
        let words = [
            TX_IDLE | connector,
            filters,
            INPUT_OFF | gains,
            tx,
            filters & !3 | select,
            input | gains,
        ];
        let first = PATHS + CHANNEL * u32::from(self.channel & 1);
        let mut numbered = (first..).zip(words).map(|(register, word)| register << 16 | word);
        [(); 6].map(|()| numbered.next().unwrap_or(0))
    }
}

/// Returns the antenna of a channel (0 or 1) and whether its receiver uses the amplifier, from the
/// registers of the CPLD; no antenna where the input is off.
#[must_use]
pub fn receiver(channel: usize, registers: &[u16; REGISTERS]) -> (Option<RxAntenna>, bool) {
    let register = PATHS + RX_INPUT + CHANNEL * (channel as u32 & 1);
    let word = u32::from(registers[register as usize]);
    let antenna = match word & INPUTS {
        INPUT_RX2 => Some(RxAntenna::Rx2),
        INPUT_TX_RX => Some(RxAntenna::TxRx),
        _ => None,
    };
    (antenna, word & AROUND == 0)
}

/// Returns the words of the attenuators, from their steps of 0.5 dB, 0 to 63: `[5:0]` the
/// receiver's, `[11:6]` the transmitter's. They do not depend on the radio's state.
#[must_use]
pub fn attenuators(rx: u8, tx: u8) -> OutputWords {
    OutputWords::following([u32::from(rx) | u32::from(tx) << 6; 4])
}

/// Returns the loss of the receiver's attenuator, dB, from a word of the attenuators.
#[must_use]
pub fn rx_attenuation_db(word: u32) -> f64 {
    f64::from(word & 0x3F) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What UHD 4.3 sends at these frequencies, antennas and gains: registers 0x50 to 0x55.
    #[test]
    fn the_paths_are_those_that_uhd_sends_and_give_antenna_and_amplifier() {
        use RxAntenna::{Rx2, TxRx};
        for (antenna, rx, tx, want) in [
            (Rx2, (1e9, false), (1e9, false), [0x5E04, 0x08FB, 0x0424, 0x7E60, 0x08FB, 0x0524]),
            (TxRx, (1e9, false), (1e9, true), [0x5604, 0x08FB, 0x0424, 0x6609, 0x08FA, 0x0624]),
            (Rx2, (1e9, false), (1e9, true), [0x4604, 0x08FB, 0x0424, 0x6609, 0x08FB, 0x0524]),
            (Rx2, (100e6, true), (6e9, true), [0x4E04, 0x1217, 0x04B9, 0x6E20, 0x1217, 0x05B9]),
            (TxRx, (500e6, true), (6e9, true), [0x5604, 0x0647, 0x04A1, 0x6E20, 0x0646, 0x06A1]),
            (Rx2, (200e6, false), (200e6, false), [0x5E04, 0x08FB, 0x043C, 0x7FE0, 0x08FB, 0x053C]),
            (Rx2, (700e6, true), (700e6, true), [0x4604, 0x2257, 0x04A1, 0x6613, 0x2257, 0x05A1]),
            (Rx2, (1.5e9, true), (1.5e9, true), [0x4604, 0x0A67, 0x04A1, 0x6609, 0x0A67, 0x05A1]),
            (Rx2, (2e9, true), (2e9, true), [0x4604, 0x0527, 0x0462, 0x6606, 0x0527, 0x0562]),
            (Rx2, (2.5e9, true), (3.3e9, true), [0x4604, 0x0487, 0x0462, 0x6606, 0x0487, 0x0562]),
            (Rx2, (3e9, true), (0.3e9, true), [0x4604, 0x067F, 0x0462, 0x6613, 0x067F, 0x0562]),
        ] {
            for channel in [0, 1] {
                let words = MagnesiumPaths { channel, rx, tx, antenna }.cpld();
                let first = 0x50 + 0x10 * u32::from(channel);
                let mut registers = [0; REGISTERS];
                for word in words {
                    registers[(word >> 16) as usize] = word as u16;
                }
                let (got, amplified) = receiver(channel.into(), &registers);
                assert_eq!((got, amplified), (Some(antenna), rx.1), "{rx:?}");
                let words = words.map(|word| (word >> 16, word & 0xFFFF));
                let want: Vec<_> = (first..).zip(want).collect();
                assert_eq!(words.to_vec(), want, "{rx:?} {tx:?} {antenna:?}");
            }
        }
        assert_eq!(receiver(1, &[0x24; REGISTERS]), (None, false), "the input is off");
    }

    #[test]
    fn attenuators_have_half_decibels_in_every_state() {
        let words = attenuators(30, 60);
        assert_eq!(words, OutputWords::following([30 | 60 << 6; 4]));
        assert_eq!(rx_attenuation_db(words.idle), 15.0);
    }
}
