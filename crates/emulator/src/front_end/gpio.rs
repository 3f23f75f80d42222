//! The pins of the front panel's connector: driven by words that the state of the radio chooses.

use millstream_wire::regs::radio::FRONT_END_BASE;

/// The words: idle, receiving, transmitting, both; then the pins that are outputs, and those that
/// have the word for idle in every state.
const WORDS: u32 = FRONT_END_BASE + 0x5C0;
const STRIDE: u32 = 8;
/// What the pins are.
const READ_BACK: u32 = FRONT_END_BASE + 0xA0;
const OUTPUTS: usize = 4;
const STATIC: usize = 5;

/// The written words.
#[derive(Debug, Default)]
pub(crate) struct PanelPins([u32; 6]);

impl PanelPins {
    /// Takes a write to the front end's registers; others than those of the pins have no effect.
    pub fn write(&mut self, address: u32, value: u32) {
        let Some(offset) = address.checked_sub(WORDS) else { return };
        let word = self.0.get_mut((offset / STRIDE) as usize);
        if let Some(word) = word.filter(|_| offset % STRIDE == 0) {
            *word = value;
        }
    }

    /// Returns what the pins are in a state of the radio, at the address for that. Nothing drives
    /// those that are inputs.
    pub fn read(&self, address: u32, receives: bool, transmits: bool) -> Option<u32> {
        let state = usize::from(receives) | usize::from(transmits) << 1;
        let driven = self.0[state] & !self.0[STATIC] | self.0[0] & self.0[STATIC];
        (address == READ_BACK).then_some(driven & self.0[OUTPUTS])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What UHD's example `gpio` writes and expects.
    #[test]
    fn an_output_is_read_back_as_the_state_of_the_radio_drives_it() {
        let mut pins = PanelPins::default();
        let read = |pins: &PanelPins, receives, transmits| {
            pins.read(0x800A0, receives, transmits).unwrap()
        };
        for (word, value) in [(0, 0b0001), (1, 0b0010), (2, 0b0100), (3, 0b1000), (4, 0b1111)] {
            pins.write(0x805C0 + 8 * word, value);
        }
        let states = [(false, false), (true, false), (false, true), (true, true)];
        let all = |pins: &PanelPins| states.map(|(rx, tx)| read(pins, rx, tx));
        assert_eq!(all(&pins), [1, 2, 4, 8]);
        pins.write(0x805E8, 0b0011);
        assert_eq!(all(&pins), [0b0001, 0b0001, 0b0101, 0b1001], "two static pins");
        pins.write(0x805E0, 0b1000);
        assert_eq!(all(&pins), [0, 0, 0, 8], "the others are inputs");
        for address in [0x805C4, 0x805F0, 0x805B8, 0xffff_ffff] {
            pins.write(address, u32::MAX);
        }
        assert_eq!(all(&pins), [0, 0, 0, 8]);
        assert_eq!(pins.read(0x800A8, false, false), None);
    }
}
