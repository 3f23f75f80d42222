//! The daughterboard of an N320: an oscillator LMX2592 for each direction, and a CPLD with gains
//! and switches. It has one channel, and hosts reach all of it by SPI.

use super::Reception;
use super::spi::{SpiCore, SpiWord};
use millstream_wire::regs::front_end::lmx2592::{LOCKED, LmxRegisters};
use millstream_wire::regs::front_end::rhodium::{
    CPLD, REGISTERS, RX_OSCILLATOR, RhodiumWord, antenna, is_low_receiver, mixed_hz,
};
use millstream_wire::regs::spi::READ_BACK;

const BANDWIDTH_HZ: f64 = 250e6;

/// The state that hosts write.
#[derive(Debug, Default)]
pub(crate) struct Rhodium {
    spi: SpiCore,
    cpld: [u16; REGISTERS],
    rx_oscillator: LmxRegisters,
    rx_gain_db: u32,
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
        self.spi.read_back = LOCKED.into();
        match slaves {
            RX_OSCILLATOR => self.rx_oscillator.write(word),
            CPLD => self.write_cpld(word),
            _ => {}
        }
    }

    fn write_cpld(&mut self, word: u32) {
        match RhodiumWord::from_word(word) {
            RhodiumWord::Write(register, value) => self.cpld[register] = value,
            RhodiumWord::Read(register) => self.spi.read_back = self.cpld[register].into(),
            RhodiumWord::RxGain(gain_db) => self.rx_gain_db = gain_db,
            RhodiumWord::OtherGain => {}
        }
    }

    /// Returns the state in which the channel receives.
    pub fn reception(&self) -> Reception {
        let oscillator_hz = self.rx_oscillator.freq_hz().unwrap_or(0.0);
        Reception {
            lo_hz: mixed_hz(is_low_receiver(&self.cpld), oscillator_hz),
            gain_db: self.rx_gain_db.into(),
            bandwidth_hz: BANDWIDTH_HZ,
            antenna: antenna(&self.cpld),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_wire::regs::front_end::RxAntenna;

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
        assert_eq!((got.gain_db, got.antenna), (30.0, Some(RxAntenna::Rx2)));
        transfer(&mut board, CPLD, 0x7c2040);
        transfer(&mut board, CPLD, 0x942040);
        transfer(&mut board, CPLD, 0x0c0c86);
        let got = board.reception();
        assert_eq!((got.gain_db, got.antenna), (60.0, Some(RxAntenna::TxRx)));
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
