//! The oscillator ADF4351, by its words of 32 bits.

const REGISTERS: usize = 8;
const OUTPUT_ON: u32 = 1 << 5;
const FUNDAMENTAL: u32 = 1 << 23;

/// One oscillator.
#[derive(Debug, Default)]
pub(super) struct Adf4351 {
    registers: [u32; REGISTERS],
}

impl Adf4351 {
    /// Takes a word, whose last 3 bits are the number of its register.
    pub fn write(&mut self, word: u32) {
        self.registers[word as usize % REGISTERS] = word;
    }

    /// Returns the frequency from this reference; `None` while the output is off.
    pub fn frequency_hz(&self, reference_hz: f64) -> Option<f64> {
        let [r0, r1, r2, _, r4, ..] = self.registers;
        let field = |word: u32, low: u32, bits: u32| f64::from(word >> low & ((1 << bits) - 1));
        let doubled = 1.0 + field(r2, 25, 1);
        let divided = field(r2, 14, 10) * (1.0 + field(r2, 24, 1));
        let ratio = field(r0, 15, 16) + field(r0, 3, 12) / field(r1, 3, 12);
        // Without the fundamental as feedback the divider is part of the loop.
        let divider = if r4 & FUNDAMENTAL == 0 { 1.0 } else { f64::from(1 << (r4 >> 20 & 7)) };
        let hz = reference_hz * doubled / divided * ratio / divider;
        (r4 & OUTPUT_ON != 0 && hz.is_finite()).then_some(hz)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_that_uhd_writes_for_100_mhz_make_2341_8_mhz() {
        let mut oscillator = Adf4351::default();
        assert_eq!(oscillator.frequency_hz(125e6), None);
        let words =
            [0x6401404a, 0x00400005, 0x000fa1b4, 0x0001001b, 0x64014042, 0x00007ff9, 0x002ed600];
        words.into_iter().for_each(|word| oscillator.write(word));
        let hz = oscillator.frequency_hz(125e6).unwrap();
        assert!((hz - 2_341.800_976_8e6).abs() < 100.0, "{hz}");
        oscillator.write(0x0080_001c);
        assert_eq!(oscillator.frequency_hz(125e6), None, "the output is off");
    }
}
