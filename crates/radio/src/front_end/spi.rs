//! The serial bus in the radio block of the N320 and N310.

use millstream_wire::regs::spi::{CONTROL, DATA, DIVIDER, READ_BACK, control, data};

use crate::RadioError;
use crate::control::Registers;

/// A divider that is slow enough for all chips.
const SLOW: u32 = 32;
/// Bits of a word of most chips.
const WORD_BITS: u32 = 24;

/// The bus of one radio block.
pub(crate) struct SpiBus<'a, R: Registers> {
    control: &'a R,
    /// The block's control port.
    port: u16,
}

impl<'a, R: Registers> SpiBus<'a, R> {
    /// Returns the bus of the radio at this control port.
    pub fn new(control: &'a R, port: u16) -> Self {
        Self { control, port }
    }

    /// Sends the low 24 bits of `word` to the chip of this slave mask.
    ///
    /// # Errors
    /// Those of [`Registers::write`].
    pub fn send(&self, slave: u32, word: u32) -> Result<(), RadioError> {
        self.send_bits(slave, word, WORD_BITS)
    }

    /// Sends the low `bits` bits of `word` to the chip of this slave mask.
    ///
    /// # Errors
    /// Those of [`Registers::write`].
    pub fn send_bits(&self, slave: u32, word: u32, bits: u32) -> Result<(), RadioError> {
        let write = |address, value| self.control.write(self.port, address, value);
        write(DIVIDER, SLOW)?;
        write(CONTROL, control(slave, bits))?;
        write(DATA, data(word, bits))
    }

    /// Sends a word that asks, and returns the low 16 bits of the answer.
    ///
    /// # Errors
    /// Those of [`Registers::write`] and [`Registers::read`].
    pub fn ask(&self, slave: u32, word: u32) -> Result<u16, RadioError> {
        self.send(slave, word)?;
        Ok(self.control.read(self.port, READ_BACK)? as u16)
    }
}
