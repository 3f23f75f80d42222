//! The SPI core in a radio block.

use millstream_wire::regs::spi::{CONTROL, DATA, parts, word};

/// The core.
#[derive(Debug, Default)]
pub(super) struct SpiCore {
    control: u32,
    pub read_back: u32,
}

/// A transfer to a slave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SpiWord {
    /// The mask of the slaves.
    pub slaves: u32,
    pub bits: u32,
    pub word: u32,
}

impl SpiCore {
    /// Takes a write to a front-end register; returns the transfer that it starts, if it does.
    pub fn write(&mut self, address: u32, value: u32) -> Option<SpiWord> {
        match address {
            CONTROL => self.control = value,
            DATA => {
                let (slaves, bits) = parts(self.control);
                return Some(SpiWord { slaves, bits, word: word(value, bits) });
            }
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transfer_begins_with_the_data_which_are_left_aligned() {
        let mut core = SpiCore::default();
        assert_eq!(core.write(0x80540, 4), None);
        assert_eq!(core.write(0x80548, 24 << 24 | 8), None);
        let transfer = core.write(0x80550, 0x1234_5600);
        assert_eq!(transfer, Some(SpiWord { slaves: 8, bits: 24, word: 0x12_3456 }));
        core.write(0x80548, 32 << 24 | 4);
        assert_eq!(core.write(0x80550, 0xdead_beef).unwrap().word, 0xdead_beef);
        core.write(0x80548, 0);
        assert_eq!(core.write(0x80550, 0xdead_beef).unwrap().word, 0, "no bits, no word");
    }
}
