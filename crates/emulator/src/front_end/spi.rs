//! The SPI core in a radio block (blocks section 5.2).

use millstream_wire::regs::radio::FRONT_END_BASE;

/// Write: `[23:0]` mask of the slaves, `[29:24]` number of bits.
const CONTROL: u32 = FRONT_END_BASE + 0x548;
/// Write: the bits, from bit 31 on; it starts a transfer.
const DATA: u32 = FRONT_END_BASE + 0x550;
/// Read: what the last transfer read.
pub(super) const READ_BACK: u32 = FRONT_END_BASE + 0x88;

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
                let bits = self.control >> 24 & 63;
                let word = value.checked_shr(32 - bits.min(32)).unwrap_or(0);
                return Some(SpiWord { slaves: self.control & 0xff_ffff, bits, word });
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
