//! The daughterboard of an N310: attenuators, switches and a low-band oscillator around the AD9371.

use super::Reception;
use super::settings::{BOARD_CHANNELS, Tuning};
use super::spi::{SpiCore, SpiWord};
use millstream_wire::regs::front_end::adf4351::AdfRegisters;
use millstream_wire::regs::front_end::magnesium::{
    AMPLIFIER_DB, CLOSED, CPLD, READ, REGISTERS, RX_OSCILLATOR, receiver, rx_attenuation_db,
};
use millstream_wire::regs::front_end::{OutputWords, SWITCHES, write_outputs};
use millstream_wire::regs::spi::READ_BACK;

/// The state that hosts write.
#[derive(Debug)]
pub(crate) struct Magnesium {
    spi: SpiCore,
    cpld: [u16; REGISTERS],
    /// By channel; UHD writes the same for all states of the radio.
    attenuators: [OutputWords; BOARD_CHANNELS],
    rx_low_band: AdfRegisters,
}

impl Default for Magnesium {
    fn default() -> Self {
        Self {
            spi: SpiCore::default(),
            cpld: [0; REGISTERS],
            attenuators: Default::default(),
            rx_low_band: AdfRegisters::default(),
        }
    }
}

impl Magnesium {
    /// Reads a register.
    pub fn read(&self, address: u32) -> u32 {
        if address == READ_BACK { self.spi.read_back } else { 0 }
    }

    /// Writes a register.
    pub fn write(&mut self, address: u32, value: u32) {
        if let Some(transfer) = self.spi.write(address, value) {
            self.transfer(transfer);
        }
        write_outputs(&mut self.attenuators, SWITCHES, address, value);
    }

    fn transfer(&mut self, SpiWord { slaves, word, .. }: SpiWord) {
        // Whatever the other slaves are asked for, they are locked.
        self.spi.read_back = 0xffff;
        if slaves == RX_OSCILLATOR {
            self.rx_low_band.write(word);
        }
        if slaves == CPLD {
            let register = &mut self.cpld[(word >> 16) as usize % REGISTERS];
            if word & READ == 0 {
                *register = word as u16;
            }
            self.spi.read_back = (*register).into();
        }
    }

    /// Returns the state in which a channel receives, with the master clock as reference.
    pub fn reception(&self, port: usize, tuning: &Tuning, clock_hz: f64) -> Reception {
        let loss_db = rx_attenuation_db(self.attenuators[port].idle);
        let (antenna, amplified) = receiver(port, &self.cpld);
        // The transceiver's part of the gain is what it is with a closed attenuator.
        let closed_db = rx_attenuation_db(CLOSED.into());
        let amplifier_db = if amplified { AMPLIFIER_DB } else { 0.0 };
        // Below 300 MHz the low-band oscillator moves the signals up to the AD9371.
        let up_hz = self.rx_low_band.freq_hz(clock_hz).unwrap_or(0.0);
        Reception {
            lo_hz: tuning.lo_hz - up_hz,
            gain_db: tuning.gain_db[port] + closed_db - loss_db + amplifier_db,
            bandwidth_hz: tuning.bandwidth_hz[port],
            antenna,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front_end::FrontEnd;
    use crate::personality::FrontEndKind;
    use millstream_wire::regs::front_end::RxAntenna;

    /// Transfers a word of so many bits to a slave.
    fn transfer(board: &mut Magnesium, slaves: u32, bits: u32, word: u32) {
        board.write(0x80548, bits << 24 | slaves);
        board.write(0x80550, word << (32 - bits));
    }

    fn settings(calls: &[(&str, f64)]) -> Tuning {
        let mut front_end = FrontEnd::new(FrontEndKind::Ad9371, true);
        for (chain, gain_db) in calls {
            front_end.set_gain(chain, *gain_db).unwrap();
        }
        front_end.tune("RX1", 2.4e9, 0).unwrap();
        front_end.rx
    }

    /// What UHD 4.3 writes and calls for these gains at 2.4 GHz: gain of the AD9371, attenuator,
    /// and the way around the amplifier or through it.
    #[test]
    fn the_parts_that_uhd_sets_make_the_gain_that_it_was_asked_for() {
        for (gain_db, part_db, attenuator, path) in [
            (0.0, 0.0, 0x3c, 0x0524),
            (10.0, 10.0, 0x3c, 0x0524),
            (30.0, 15.0, 0x1e, 0x0524),
            (31.0, 16.0, 0x1e, 0x0524),
            (45.0, 20.0, 0x0a, 0x0524),
            (50.0, 15.0, 0x1e, 0x0562),
            (60.0, 20.0, 0x14, 0x0562),
            (75.0, 30.0, 0x0a, 0x0562),
        ] {
            for port in [0, 1] {
                let mut board = Magnesium::default();
                board.write(0x80600 + 0x800 * port, attenuator);
                transfer(&mut board, 1, 24, (0x55 + 0x10 * port) << 16 | path);
                let tuning = settings(&[(["RX1", "RX2"][port as usize], part_db)]);
                let reception = board.reception(port as usize, &tuning, 125e6);
                assert_eq!(reception.gain_db, gain_db, "{port}");
            }
        }
    }

    #[test]
    fn the_antenna_is_that_of_the_cpld_and_a_low_band_moves_the_frequency() {
        let mut board = Magnesium::default();
        let tuning = settings(&[]);
        for (word, antenna) in
            [(0x0524, Some(RxAntenna::Rx2)), (0x06b9, Some(RxAntenna::TxRx)), (0x0024, None)]
        {
            transfer(&mut board, 1, 24, 0x55 << 16 | word);
            assert_eq!(board.reception(0, &tuning, 125e6).antenna, antenna);
        }
        assert_eq!(board.reception(0, &tuning, 125e6).lo_hz, 2.4e9);
        for word in [0x000f_a1b4, 0x6401_4042, 0x0000_7ff9, 0x002e_d600] {
            transfer(&mut board, 4, 32, word);
        }
        let hz = board.reception(0, &tuning, 125e6).lo_hz;
        assert!((hz - (2.4e9 - 2_341.800_977e6)).abs() < 100.0, "{hz}");
    }

    #[test]
    fn the_cpld_is_read_back_and_everything_else_is_locked() {
        let mut board = Magnesium::default();
        transfer(&mut board, 1, 24, 0x40 << 16 | 0xCAFE);
        transfer(&mut board, 1, 24, 1 << 23 | 0x40 << 16);
        assert_eq!(board.read(READ_BACK), 0xCAFE);
        transfer(&mut board, 2, 24, 1 << 23);
        assert_eq!(board.read(READ_BACK), 0xffff);
        for address in [0x80000, 0x80544, 0x80604, 0x81e00, 0xffff_fff8] {
            board.write(address, u32::MAX);
        }
        assert_eq!(board.read(0x80600), 0);
    }
}
