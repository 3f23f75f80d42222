//! The daughterboard of the N320: the words of its CPLD and its switches.

use super::{OutputWords, RxAntenna, band};
use crate::regs::radio::FRONT_END_BASE;

/// Below this a mixer with a fixed oscillator moves the signals, Hz.
const LOW_BAND_HZ: f64 = 450e6;
/// That oscillator, Hz.
const LOW_BAND_OSCILLATOR_HZ: f64 = 1.2e9;

/// The slave of the serial bus that is the transmitter's oscillator.
pub const TX_OSCILLATOR: u32 = 1;
/// That of the receiver.
pub const RX_OSCILLATOR: u32 = 2;
/// The slave that is the CPLD.
pub const CPLD: u32 = 8;

/// Whether the receiver's spectrum is turned round.
pub const RX_TURN: u32 = FRONT_END_BASE + 0x720;
/// Whether the transmitter's spectrum is turned round.
pub const TX_TURN: u32 = FRONT_END_BASE + 0x6A0;

/// The word of a register of the CPLD without a function.
pub const SCRATCH: u32 = 5 << 17;
/// Registers of the CPLD: the receiver, the transmitter, and what both share.
const RX_PATH: u32 = 6;
const TX_PATH: u32 = 7;
const SHARED: u32 = 8;

/// In a word of the CPLD: it asks for the register.
pub const READ: u32 = 1 << 16;
/// The registers of the CPLD beside its gains.
pub const REGISTERS: usize = 1 << 5;

/// In the register of the receiver, `[2:1]`: the antenna.
const INPUT_RX2: u32 = 1;
const INPUT_TX_RX: u32 = 3;
/// In the shared register: the receiver and the transmitter go past the low-band mixer.
const RX_PAST_MIXER: u32 = 1 << 7;
const TX_PAST_MIXER: u32 = 1 << 4;

/// The largest gain, dB.
pub const GAIN_MAX_DB: u32 = 60;

/// Beginnings of bands, Hz, with the receiver's filters.
const RX_BANDS: [(f64, u32); 8] = [
    (0.0, 0x0C80),
    (450e6, 0x1C88),
    (750e6, 0x1C48),
    (1100e6, 0x1E08),
    (1410e6, 0x1D08),
    (2050e6, 0x10B8),
    (3000e6, 0x14A8),
    (4500e6, 0x1898),
];

/// The same with the transmitter's.
const TX_BANDS: [(f64, u32); 8] = [
    (0.0, 0x0C80),
    (450e6, 0x1C84),
    (650e6, 0x1C44),
    (1000e6, 0x1E04),
    (1350e6, 0x1D04),
    (1900e6, 0x10B4),
    (3000e6, 0x14A4),
    (4100e6, 0x1894),
];

/// The receiver's filter behind them.
const RX_LAST: [(f64, u32); 3] = [(0.0, 2), (3000e6, 1), (4500e6, 0)];

/// Beginnings of an oscillator's bands, Hz, with its filter.
const OSCILLATOR_FILTERS: [(f64, u32); 3] = [(0.0, 0), (975e6, 2), (2300e6, 1)];

/// The same with the power of its output.
const OSCILLATOR_POWERS: [(f64, u32); 17] = [
    (0.0, 0x12),
    (750e6, 0x11),
    (2250e6, 0x10),
    (2562.5e6, 0x0F),
    (2687.5e6, 0x0E),
    (2812.5e6, 0x0D),
    (2937.5e6, 0x0C),
    (3275e6, 0x0B),
    (4750e6, 0x0A),
    (5083.3e6, 0x0B),
    (5250e6, 0x0C),
    (5416.7e6, 0x0D),
    (5550e6, 0x0E),
    (5650e6, 0x0F),
    (5750e6, 0x10),
    (5850e6, 0x11),
    (5950e6, 0x12),
];

/// The same with the gain of its amplifier: receiver and transmitter.
const OSCILLATOR_GAINS: [(f64, u32, u32); 14] = [
    (0.0, 0xB, 0xB),
    (625e6, 0xA, 0xA),
    (875e6, 9, 9),
    (1750e6, 0xA, 0xA),
    (2625e6, 9, 9),
    (2875e6, 8, 8),
    (3275e6, 9, 9),
    (3775e6, 0xA, 8),
    (4125e6, 9, 7),
    (4375e6, 8, 6),
    (5125e6, 7, 5),
    (5375e6, 6, 4),
    (5625e6, 5, 3),
    (5875e6, 4, 2),
];

/// The parts of a gain word: which table, and the bits that all have.
const RX_TABLE: u32 = 1;
const TX_TABLE: u32 = 2;
const OSCILLATOR_TABLE: u32 = 3;
const TABLE_AT: u32 = 22;
const RX_SIDE: u32 = 0x2000;
const TX_SIDE: u32 = 0x0040;

/// Bits of the switches that follow the state of the radio.
const FOLLOWING: u32 = 0x1F;

/// The settings that the words of a channel depend on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RhodiumPaths {
    /// The frequency of the receiver, Hz.
    pub rx_hz: f64,
    /// The frequency of the transmitter, Hz.
    pub tx_hz: f64,
    /// The receiver's antenna.
    pub antenna: RxAntenna,
}

/// Returns whether a frequency needs the low-band mixer.
#[must_use]
pub fn is_low(hz: f64) -> bool {
    hz < LOW_BAND_HZ
}

/// Returns the frequency of the oscillator for one of the signal, and the other way round.
#[must_use]
pub fn mixed_hz(is_low: bool, hz: f64) -> f64 {
    if is_low { LOW_BAND_OSCILLATOR_HZ - hz } else { hz }
}

/// Returns the power of an oscillator's output at its frequency.
#[must_use]
pub fn oscillator_power(hz: f64) -> u32 {
    band(&OSCILLATOR_POWERS, hz)
}

/// Returns the words of the gain of an oscillator's amplifier: receiver and transmitter.
#[must_use]
pub fn oscillator_gains(hz: f64) -> (u32, u32) {
    let bands = OSCILLATOR_GAINS.map(|(from_hz, rx, tx)| (from_hz, (rx, tx)));
    let (rx, tx) = band(&bands, hz);
    let word = |gain: u32, side: u32| OSCILLATOR_TABLE << TABLE_AT | gain << 16 | side;
    (word(rx, RX_SIDE), word(tx, TX_SIDE))
}

/// Returns the words of gains, 0 to 60 dB: receiver and transmitter.
#[must_use]
pub fn gains(index: u32) -> (u32, u32) {
    let common = (index & 0x3F) << 16 | RX_SIDE | TX_SIDE;
    (RX_TABLE << TABLE_AT | common, TX_TABLE << TABLE_AT | common)
}

/// What a word of the CPLD does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RhodiumWord {
    /// Writes a register.
    Write(usize, u16),
    /// Asks for a register.
    Read(usize),
    /// Sets the gain of the receiver, dB.
    RxGain(u32),
    /// Sets another gain.
    OtherGain,
}

impl RhodiumWord {
    /// Decodes a word of 24 bits.
    #[must_use]
    pub const fn from_word(word: u32) -> RhodiumWord {
        let register = (word >> 17) as usize % REGISTERS;
        match word >> TABLE_AT & 3 {
            0 if word & READ == 0 => RhodiumWord::Write(register, word as u16),
            0 => RhodiumWord::Read(register),
            RX_TABLE if word >> 16 & 0x3F > GAIN_MAX_DB => RhodiumWord::RxGain(GAIN_MAX_DB),
            RX_TABLE => RhodiumWord::RxGain(word >> 16 & 0x3F),
            _ => RhodiumWord::OtherGain,
        }
    }
}

/// Returns the antenna of the receiver, from the registers of the CPLD; `None` where its input is
/// terminated.
#[must_use]
pub fn antenna(registers: &[u16; REGISTERS]) -> Option<RxAntenna> {
    match u32::from(registers[RX_PATH as usize]) >> 1 & 3 {
        INPUT_RX2 => Some(RxAntenna::Rx2),
        INPUT_TX_RX => Some(RxAntenna::TxRx),
        _ => None,
    }
}

/// Returns whether the receiver has the low-band mixer, from the registers of the CPLD.
#[must_use]
pub fn is_low_receiver(registers: &[u16; REGISTERS]) -> bool {
    u32::from(registers[SHARED as usize]) & RX_PAST_MIXER == 0
}

impl RhodiumPaths {
    /// Returns the words of the CPLD.
    #[must_use]
    pub fn cpld(&self) -> [u32; 3] {
        let antenna = match self.antenna {
            RxAntenna::Rx2 => INPUT_RX2,
            RxAntenna::TxRx => INPUT_TX_RX,
        };
        let oscillator = |hz| band(&OSCILLATOR_FILTERS, mixed_hz(is_low(hz), hz));
        let high = |hz, bit| if is_low(hz) { 0 } else { bit };
        let shared = oscillator(self.rx_hz) << 14
            | oscillator(self.tx_hz) << 12
            | band(&RX_LAST, self.rx_hz) << 10
            | 0x200
            | high(self.rx_hz, RX_PAST_MIXER)
            | high(self.tx_hz, TX_PAST_MIXER);
        let word = |register: u32, value: u32| register << 17 | value;
        [
            word(RX_PATH, band(&RX_BANDS, self.rx_hz) | antenna << 1),
            word(TX_PATH, band(&TX_BANDS, self.tx_hz)),
            word(SHARED, shared),
        ]
    }

    /// Returns the words of the switches.
    #[must_use]
    pub fn switches(&self) -> OutputWords {
        let tx = 0x10 | u32::from(!is_low(self.tx_hz));
        let words = match self.antenna {
            RxAntenna::Rx2 => [0x02, 0x0A, tx, tx | 0x08],
            // The connector belongs to the transmitter while that is on.
            RxAntenna::TxRx => [0x02, 0x07, tx, tx],
        };
        OutputWords { fixed: !FOLLOWING, ..OutputWords::following(words) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_are_those_that_uhd_sends_and_give_band_and_antenna() {
        let at = |rx_hz, tx_hz, antenna| RhodiumPaths { rx_hz, tx_hz, antenna };
        use RxAntenna::{Rx2, TxRx};
        for (rx_hz, tx_hz, antenna, rx, tx, shared) in [
            (5950e6, 10e6, Rx2, 0x189A, 0x0C80, 0x6280),
            (5950e6, 300e6, Rx2, 0x189A, 0x0C80, 0x4280),
            (5950e6, 500e6, Rx2, 0x189A, 0x1C84, 0x4290),
            (5950e6, 700e6, Rx2, 0x189A, 0x1C44, 0x4290),
            (5950e6, 1200e6, Rx2, 0x189A, 0x1E04, 0x6290),
            (5950e6, 2000e6, Rx2, 0x189A, 0x10B4, 0x6290),
            (5950e6, 5000e6, Rx2, 0x189A, 0x1894, 0x5290),
            (200e6, 5500e6, Rx2, 0x0C82, 0x1894, 0x9A10),
            (200e6, 5500e6, TxRx, 0x0C86, 0x1894, 0x9A10),
            (2400e6, 5500e6, Rx2, 0x10BA, 0x1894, 0x5A90),
            (2400e6, 5500e6, TxRx, 0x10BE, 0x1894, 0x5A90),
            (3500e6, 5500e6, Rx2, 0x14AA, 0x1894, 0x5690),
            (460e6, 5500e6, Rx2, 0x1C8A, 0x1894, 0x1A90),
            (1420e6, 5500e6, Rx2, 0x1D0A, 0x1894, 0x9A90),
        ] {
            let want = [6 << 17 | rx, 7 << 17 | tx, 8 << 17 | shared];
            assert_eq!(at(rx_hz, tx_hz, antenna).cpld(), want, "{rx_hz} {tx_hz}");
            let mut registers = [0; REGISTERS];
            for word in want {
                let RhodiumWord::Write(register, value) = RhodiumWord::from_word(word) else {
                    panic!("{word:#x} is no write");
                };
                registers[register] = value;
            }
            assert_eq!(super::antenna(&registers), Some(antenna));
            assert_eq!(is_low_receiver(&registers), is_low(rx_hz));
        }
        for terminated in [0x0C80, 0x0C84] {
            let mut registers = [0; REGISTERS];
            registers[RX_PATH as usize] = terminated;
            assert_eq!(super::antenna(&registers), None);
        }
        let switches = |rx_hz, tx_hz, antenna| at(rx_hz, tx_hz, antenna).switches();
        let want = |words| OutputWords { fixed: !0x1F, ..OutputWords::following(words) };
        assert_eq!(switches(1e9, 1e9, Rx2), want([0x02, 0x0A, 0x11, 0x19]));
        assert_eq!(switches(1e9, 1e8, Rx2), want([0x02, 0x0A, 0x10, 0x18]));
        assert_eq!(switches(1e9, 1e9, TxRx), want([0x02, 0x07, 0x11, 0x11]));
        assert_eq!(gains(30), (0x5E_2040, 0x9E_2040));
        assert_eq!(RhodiumWord::from_word(0x5E_2040), RhodiumWord::RxGain(30));
        assert_eq!(RhodiumWord::from_word(0x7F_2040), RhodiumWord::RxGain(60));
        for other in [0x9E_2040, 0xC9_2000] {
            assert_eq!(RhodiumWord::from_word(other), RhodiumWord::OtherGain);
        }
        assert_eq!(RhodiumWord::from_word(5 << 17 | READ), RhodiumWord::Read(5));
        assert_eq!(oscillator_gains(1e9), (0xC9_2000, 0xC9_0040));
        assert_eq!(oscillator_gains(5.9e9), (0xC4_2000, 0xC2_0040));
        assert_eq!([500e6, 1e9, 2.4e9, 5.2e9].map(oscillator_power), [0x12, 0x11, 0x10, 0x0B]);
    }

    #[test]
    fn the_low_band_is_below_its_oscillator() {
        assert!(is_low(200e6) && !is_low(450e6));
        assert_eq!((mixed_hz(true, 200e6), mixed_hz(true, 1e9)), (1e9, 200e6));
        assert_eq!(mixed_hz(false, 2.4e9), 2.4e9);
    }
}
