//! The oscillator LMX2592, by its registers.

const REGISTERS: usize = 1 << 7;
const REFERENCE_HZ: f64 = 122.88e6;

/// One oscillator.
#[derive(Debug)]
pub(super) struct Lmx2592 {
    registers: [u16; REGISTERS],
}

impl Default for Lmx2592 {
    fn default() -> Self {
        Self { registers: [0; REGISTERS] }
    }
}

impl Lmx2592 {
    /// Takes a word of 24 bits: `[23]` read, `[22:16]` address, then the value.
    pub fn write(&mut self, word: u32) {
        if word >> 23 & 1 == 0 {
            self.registers[(word >> 16) as usize % REGISTERS] = word as u16;
        }
    }

    /// Returns the frequency that the registers make; `None` when they make none.
    pub fn frequency_hz(&self) -> Option<f64> {
        let word = |index: usize| self.registers[index];
        let field = |index: usize, low: u32, bits: u32| -> f64 {
            (word(index) >> low & ((1 << bits) - 1)).into()
        };
        let bit = |index: usize, at: u32| word(index) >> at & 1 != 0;
        let long = |index: usize| f64::from(word(index)) * 65_536.0 + f64::from(word(index + 1));
        let doubler = if bit(9, 11) { 2.0 } else { 1.0 };
        let (multiplier, dividers) = (field(10, 7, 5), field(12, 0, 12) * field(11, 4, 8));
        let denominator = long(40);
        let before = if bit(37, 12) { 4.0 } else { 2.0 };
        let ratio = before * (field(38, 1, 12) + long(44) / denominator);
        let hz = REFERENCE_HZ * doubler * multiplier / dividers * ratio / self.divider();
        (hz.is_finite() && hz > 0.0).then_some(hz)
    }

    /// Returns the factor of the divider behind the oscillator, by its segments.
    fn divider(&self) -> f64 {
        if self.registers[34] >> 5 & 1 == 0 {
            return 1.0;
        }
        let segment = |code: u16| match code {
            1 => 2.0,
            2 => 4.0,
            4 => 6.0,
            8 => 8.0,
            _ => 1.0,
        };
        let first = if self.registers[35] >> 2 & 1 != 0 { 3.0 } else { 2.0 };
        let second = segment(self.registers[35] >> 9 & 15);
        let third = segment(self.registers[36] & 15);
        match self.registers[36] >> 4 & 7 {
            1 => first,
            2 => first * second,
            4 => first * second * third,
            _ => 1.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns an oscillator with these registers: index and value.
    fn with(registers: &[(u32, u32)]) -> Lmx2592 {
        let mut lmx = Lmx2592::default();
        registers.iter().for_each(|(index, value)| lmx.write(index << 16 | value));
        lmx
    }

    /// 122.88 MHz at the phase detector; 32.552 times two of them are 8 GHz.
    const BASE: [(u32, u32); 8] = [
        (10, 1 << 7),
        (11, 1 << 4),
        (12, 1),
        (38, 32 << 1),
        (40, 0),
        (41, 1000),
        (44, 0),
        (45, 552),
    ];

    #[test]
    fn the_frequency_is_the_reference_times_the_ratio() {
        let hz = with(&BASE).frequency_hz().unwrap();
        assert!((hz - 122.88e6 * 2.0 * 32.552).abs() < 1.0, "{hz}");
        let doubled = with(&[&BASE[..], &[(9, 1 << 11)]].concat()).frequency_hz().unwrap();
        assert!((doubled / hz - 2.0).abs() < 1e-9);
        let four = with(&[&BASE[..], &[(37, 1 << 12)]].concat()).frequency_hz().unwrap();
        assert!((four / hz - 2.0).abs() < 1e-9);
    }

    #[test]
    fn the_segments_of_the_divider_multiply() {
        let hz = with(&BASE).frequency_hz().unwrap();
        for (r35, r36, factor) in [
            (0, 1 << 4, 2.0),
            (4, 1 << 4, 3.0),
            (2 << 9, 2 << 4, 8.0),
            (4 | 4 << 9, 2 << 4, 18.0),
            (8 << 9, 4 << 4 | 8, 128.0),
        ] {
            let divided = [&BASE[..], &[(34, 1 << 5), (35, r35), (36, r36)]].concat();
            let got = with(&divided).frequency_hz().unwrap();
            assert!((hz / got - factor).abs() < 1e-9, "{factor}: {got}");
        }
    }

    #[test]
    fn registers_that_make_no_frequency_make_none_and_reads_change_nothing() {
        assert_eq!(Lmx2592::default().frequency_hz(), None);
        let mut lmx = with(&BASE);
        lmx.write(1 << 23 | 12 << 16);
        assert!(lmx.frequency_hz().is_some());
    }
}
