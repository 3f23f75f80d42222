//! The daughterboard of an N320: an oscillator LMX2592 for each direction, and a CPLD with gains
//! and switches. It has one channel, and hosts reach all of it by SPI.

use super::lmx2592::Lmx2592;
use super::spi::{SpiCore, SpiWord};
use super::{AntennaPort, Reception};
use millstream_wire::regs::spi::READ_BACK;

/// The slaves of the SPI core.
const RX_OSCILLATOR: u32 = 2;
const CPLD: u32 = 8;

/// Registers of the CPLD have 7 bits of address; those from 32 on are gains.
const CPLD_WORDS: usize = 1 << 5;
/// The upper two bits of a word for the gain of the receiver.
const RX_GAIN: u32 = 1;
const RX_GAIN_MAX: u32 = 60;
/// The antenna of the receiver, in bits 2 and 1.
const RX_INPUT: usize = 6;
/// Bit 7: the receiver goes past the low-band mixer.
const RX_BAND: usize = 8;

/// Below 450 MHz this oscillator moves the signals up.
const LOW_BAND_HZ: f64 = 1.2e9;
const BANDWIDTH_HZ: f64 = 250e6;

/// The state that hosts write.
#[derive(Debug, Default)]
pub(crate) struct Rhodium {
    spi: SpiCore,
    cpld: [u16; CPLD_WORDS],
    rx_oscillator: Lmx2592,
    rx_gain: u32,
}

impl Rhodium {
    /// Reads a register.
    pub fn read(&self, address: u32) -> u32 {
        if address == READ_BACK { self.spi.read_back } else { 0 }
    }

    /// Writes a register.
    pub fn write(&mut self, address: u32, value: u32) {
        let Some(SpiWord { slaves, word, .. }) = self.spi.write(address, value) else { return };
        // Whatever the oscillators are asked for, they are locked.
        self.spi.read_back = 0xffff;
        match slaves {
            RX_OSCILLATOR => self.rx_oscillator.write(word),
            CPLD => self.write_cpld(word),
            _ => {}
        }
    }

    fn write_cpld(&mut self, word: u32) {
        let (gain, register) = (word >> 22 & 3, (word >> 17) as usize % CPLD_WORDS);
        match (gain, word >> 16 & 1) {
            (0, 0) => self.cpld[register] = word as u16,
            (0, _) => self.spi.read_back = self.cpld[register].into(),
            (RX_GAIN, _) => self.rx_gain = (word >> 16 & 63).min(RX_GAIN_MAX),
            _ => {}
        }
    }

    /// Returns the state in which the channel receives.
    pub fn reception(&self) -> Reception {
        let oscillator_hz = self.rx_oscillator.frequency_hz().unwrap_or(0.0);
        let is_low = self.cpld[RX_BAND] & 1 << 7 == 0;
        Reception {
            lo_hz: if is_low { LOW_BAND_HZ - oscillator_hz } else { oscillator_hz },
            gain_db: self.rx_gain.into(),
            bandwidth_hz: BANDWIDTH_HZ,
            antenna: match self.cpld[RX_INPUT] >> 1 & 3 {
                1 => Some(AntennaPort::Rx2),
                3 => Some(AntennaPort::TxRx),
                _ => None,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transfer(board: &mut Rhodium, slaves: u32, word: u32) {
        board.write(0x80548, 24 << 24 | slaves);
        board.write(0x80550, word << 8);
    }

    /// A board whose oscillator has the words that UHD 4.3 writes for 1 GHz, less the divider.
    fn at_4_ghz() -> Rhodium {
        let mut board = Rhodium::default();
        for word in [
            0x090b02, 0x0a1258, 0x0b0038, 0x0c7004, 0x260030, 0x2809c4, 0x290000, 0x2c040b,
            0x2d2800,
        ] {
            transfer(&mut board, RX_OSCILLATOR, word);
        }
        transfer(&mut board, CPLD, 0x10ba90);
        board
    }

    #[test]
    fn the_words_that_uhd_writes_make_frequency_gain_and_antenna() {
        let mut board = at_4_ghz();
        transfer(&mut board, CPLD, 0x5e2040);
        transfer(&mut board, CPLD, 0x0c1c4a);
        let got = board.reception();
        assert!((got.lo_hz - 4e9).abs() < 1.0, "{}", got.lo_hz);
        assert_eq!((got.gain_db, got.antenna), (30.0, Some(AntennaPort::Rx2)));
        transfer(&mut board, CPLD, 0x7c2040);
        transfer(&mut board, CPLD, 0x942040);
        transfer(&mut board, CPLD, 0x0c0c86);
        let got = board.reception();
        assert_eq!((got.gain_db, got.antenna), (60.0, Some(AntennaPort::TxRx)));
        for terminated in [0x0c0c80, 0x0c0c84] {
            transfer(&mut board, CPLD, terminated);
            assert_eq!(board.reception().antenna, None);
        }
    }

    #[test]
    fn in_the_low_band_the_oscillator_is_above() {
        let mut board = at_4_ghz();
        // 4 GHz divided by 4, as for 200 MHz.
        for word in [0x220020, 0x230200, 0x240020] {
            transfer(&mut board, RX_OSCILLATOR, word);
        }
        transfer(&mut board, CPLD, 0x10ba10);
        assert!((board.reception().lo_hz - 200e6).abs() < 1.0, "{}", board.reception().lo_hz);
    }

    #[test]
    fn the_cpld_is_read_back_and_the_oscillators_are_locked() {
        let mut board = Rhodium::default();
        transfer(&mut board, CPLD, 5 << 17 | 0xCAFE);
        transfer(&mut board, CPLD, 5 << 17 | 1 << 16);
        assert_eq!(board.read(READ_BACK), 0xCAFE);
        transfer(&mut board, 1, 1 << 23);
        assert_eq!(board.read(READ_BACK), 0xffff);
    }
}
