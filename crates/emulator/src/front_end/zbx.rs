//! The daughterboard of an X410: a CPLD that is plain memory, with oscillators LMX2572 behind it.
//! What the parts make of a frequency and a gain is not emulated.

use super::Reception;
use millstream_wire::regs::radio::FRONT_END_BASE;

/// The words of the memory, and of the resets of the converters behind it.
const WORDS: usize = 0x1_0000 / 4;
/// The access to the oscillators: `[15:0]` data, `[22:16]` register, 23 read, `[26:24]` oscillator;
/// when read, 30 ready and 31 valid.
const OSCILLATORS: u32 = FRONT_END_BASE + 0x1020;
const READY: u32 = 3 << 30;
const KEPT: u32 = 0x07ff_0000;

const OSCILLATORS_MAX: usize = 8;
const OSCILLATOR_WORDS: usize = 1 << 7;
/// What the register with the name of the part reads.
const PART_REGISTER: usize = 125;
const PART: u16 = 0x2288;
/// Bit 2 of register 0: any read gives the lock.
const SHOWS_LOCK: u16 = 1 << 2;
const LOCKED: u16 = 0xffff;

/// The state that hosts write.
#[derive(Debug)]
pub(crate) struct Zbx {
    memory: Box<[u32]>,
    oscillators: Box<[[u16; OSCILLATOR_WORDS]; OSCILLATORS_MAX]>,
    access: u32,
}

impl Default for Zbx {
    fn default() -> Self {
        Self {
            memory: vec![0; WORDS].into(),
            oscillators: Box::new([[0; OSCILLATOR_WORDS]; OSCILLATORS_MAX]),
            access: 0,
        }
    }
}

impl Zbx {
    /// Reads a register.
    pub fn read(&self, address: u32) -> u32 {
        if address == OSCILLATORS {
            return READY | self.access & KEPT | u32::from(self.read_oscillator());
        }
        self.memory.get(index(address)).copied().unwrap_or(0)
    }

    /// Writes a register.
    pub fn write(&mut self, address: u32, value: u32) {
        if address == OSCILLATORS {
            self.access = value;
            if value >> 23 & 1 == 0 {
                let (oscillator, register) = place(value);
                self.oscillators[oscillator][register] = value as u16;
            }
        } else if let Some(word) = self.memory.get_mut(index(address)) {
            *word = value;
        }
    }

    fn read_oscillator(&self) -> u16 {
        let (oscillator, register) = place(self.access);
        let registers = &self.oscillators[oscillator];
        match register {
            _ if registers[0] & SHOWS_LOCK != 0 => LOCKED,
            PART_REGISTER => PART,
            _ => registers[register],
        }
    }

    /// Returns a state in which a channel receives nothing: a scene has no place here.
    pub fn reception(&self) -> Reception {
        Reception { lo_hz: 0.0, gain_db: 0.0, bandwidth_hz: 0.0, antenna: None }
    }
}

fn index(address: u32) -> usize {
    address.wrapping_sub(FRONT_END_BASE) as usize / 4
}

/// Returns the oscillator and register of an access.
fn place(access: u32) -> (usize, usize) {
    ((access >> 24) as usize % OSCILLATORS_MAX, (access >> 16) as usize % OSCILLATOR_WORDS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_are_memory() {
        let mut board = Zbx::default();
        for (address, value) in [(0x8_000C, 0xCAFE), (0x8_8000, 7), (0x8_1004, 1)] {
            board.write(address, value);
            assert_eq!(board.read(address), value);
        }
        board.write(0xffff_fffc, 1);
        assert_eq!(board.read(0xffff_fffc), 0, "there is none");
    }

    #[test]
    fn an_oscillator_tells_its_part_and_locks_when_asked() {
        let mut board = Zbx::default();
        let ask = |board: &mut Zbx, oscillator: u32, register: u32| {
            board.write(OSCILLATORS, 1 << 28 | oscillator << 24 | 1 << 23 | register << 16);
            board.read(OSCILLATORS)
        };
        assert_eq!(ask(&mut board, 3, 125), READY | 3 << 24 | 1 << 23 & KEPT | 125 << 16 | 0x2288);
        board.write(OSCILLATORS, 1 << 28 | 3 << 24 | 5 << 16 | 0x1234);
        assert_eq!(ask(&mut board, 3, 5) as u16, 0x1234);
        assert_eq!(ask(&mut board, 2, 5) as u16, 0, "another one");
        board.write(OSCILLATORS, 1 << 28 | 3 << 24 | 4);
        assert_eq!(ask(&mut board, 3, 5) as u16, LOCKED);
    }
}
