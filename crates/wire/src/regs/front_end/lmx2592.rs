//! The synthesiser LMX2592 of the N320: its registers for a frequency and the frequency of its
//! registers, from the maker's data sheet.
//!
//! The reference is divided to the phase detector. The VCO is locked to twice that times a
//! fraction, and an output divider by a power of two reaches the lower octaves.

/// The reference, Hz.
const REFERENCE_HZ: f64 = 122.88e6;
/// The division of the reference: with the larger number of the fraction, its modulator of third
/// order is allowed in the whole band.
const R: u32 = 2;
/// The steps of the VCO, Hz: twice the phase detector's frequency, by the prescaler of 2.
const STEP_HZ: f64 = 2.0 * REFERENCE_HZ / R as f64;
/// The denominator of the fraction: the VCO has steps of 1 Hz.
const DENOMINATOR: u32 = STEP_HZ as u32;

/// The range of the VCO, one octave, Hz.
const VCO_HZ: (f64, f64) = (3.55e9, 7.1e9);

/// The output dividers, with segments 1 and 2 as in registers 35 and 36: the number of segments,
/// and the code of segment 2.
const DIVIDERS: [(u32, u32, u32); 4] = [(1, 0, 0), (2, 1, 0), (4, 2, 1), (8, 2, 2)];

/// The fraction and the divider for a frequency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LmxSettings {
    divider: (u32, u32, u32),
    whole: u32,
    numerator: u32,
}

impl LmxSettings {
    /// Returns the settings for a frequency; `None` for one out of reach.
    #[must_use]
    pub fn nearest(freq_hz: f64) -> Option<LmxSettings> {
        let in_band = |vco_hz: f64| (VCO_HZ.0..=VCO_HZ.1).contains(&vco_hz);
        let fits = |divider: &&(u32, u32, u32)| in_band(freq_hz * f64::from(divider.0));
        let divider = *DIVIDERS.iter().find(fits)?;
        let vco_hz = (freq_hz * f64::from(divider.0) + 0.5) as u64;
        let step = u64::from(DENOMINATOR);
        let (whole, numerator) = ((vco_hz / step) as u32, (vco_hz % step) as u32);
        Some(LmxSettings { divider, whole, numerator })
    }

    /// Returns the frequency that results, Hz.
    #[must_use]
    pub fn freq_hz(&self) -> f64 {
        let vco_hz = f64::from(self.whole) * STEP_HZ + f64::from(self.numerator);
        vco_hz / f64::from(self.divider.0)
    }

    /// Returns the words to send, in this order: the last one starts the calibration of the VCO.
    /// `power` is that of the output. The registers that do not depend on the frequency are those
    /// that stock UHD 4.3 sends.
    #[must_use]
    pub fn words(&self, power: u32) -> [u32; 45] {
        let (_, segments, second) = self.divider;
        let is_divided = segments > 0;
        // The outputs take the divider or the VCO.
        let from_vco = u32::from(!is_divided);
        let both = u32::from(segments == 2);
        let (drive, divider) = match is_divided {
            true => (0x0601, 0x001B | second << 9 | both << 7),
            false => (0x0481, 0x001D),
        };
        [
            // A reset.
            (0, 0x221E),
            (0, 0x2204),
            (64, 0x017F),
            (62, 0),
            (61, 1),
            (59, 0),
            (48, 0x03FC | from_vco),
            (47, 0x00C0 | from_vco << 11),
            // Output A on, modulator of third order.
            (46, power << 8 | 0xA3),
            (45, self.numerator & 0xFFFF),
            (44, self.numerator >> 16),
            (43, 0),
            (42, 0),
            (41, DENOMINATOR & 0xFFFF),
            (40, DENOMINATOR >> 16),
            (39, 0x8204),
            (38, self.whole << 1),
            // The prescaler divides by 2.
            (37, 0x4000),
            (36, 0x0400 | segments << 4),
            (35, divider),
            (34, 0xC3EA),
            (33, 0x2A0A),
            (32, 0x210A),
            (31, drive),
            (30, 0x0434),
            (29, 0x0084),
            (28, 0x2924),
            (25, 0),
            (24, 0x0509),
            (23, 0x8842),
            (22, 0x2300),
            (20, 0x012C),
            (19, 0x0AF5),
            (14, 0x0631),
            (13, 0x4000),
            (12, 0x7001),
            (11, 0x0008 | R << 4),
            // No doubler and no multiplier of the reference.
            (10, 0x10D8),
            (9, 0x0302),
            (8, 0x3084),
            (7, 0x28B2),
            (4, 0x1943),
            (2, 0x0500),
            (1, 0x0808),
            // Shows the lock in place of data, and calibrates.
            (0, 0x220C),
        ]
        .map(|(address, data)| address << 16 | data)
    }
}

/// The word that asks for the lock: any read answers with it.
pub const ASK_LOCK: u32 = 1 << 23;
/// The answer of a synthesiser that is locked.
pub const LOCKED: u16 = 0xFFFF;

const REGISTERS: usize = 1 << 7;

/// The registers of an LMX2592.
#[derive(Debug, Clone)]
pub struct LmxRegisters([u16; REGISTERS]);

impl Default for LmxRegisters {
    fn default() -> LmxRegisters {
        LmxRegisters([0; REGISTERS])
    }
}

impl LmxRegisters {
    /// Takes a word of 24 bits: `[23]` read, `[22:16]` address, then the value.
    pub fn write(&mut self, word: u32) {
        if word & ASK_LOCK == 0 {
            self.0[(word >> 16) as usize % REGISTERS] = word as u16;
        }
    }

    fn field(&self, register: usize, low: u32, bits: u32) -> u16 {
        self.0[register] >> low & ((1 << bits) - 1)
    }

    /// Returns the frequency that the registers make, Hz; `None` when they make none.
    #[must_use]
    pub fn freq_hz(&self) -> Option<f64> {
        let field = |register, low, bits| f64::from(self.field(register, low, bits));
        let long = |at: usize| f64::from(u32::from(self.0[at]) << 16 | u32::from(self.0[at + 1]));
        let (doubler, multiplier) = (1.0 + field(9, 11, 1), field(10, 7, 5));
        let dividers = field(12, 0, 12) * field(11, 4, 8);
        let prescaler = 2.0 * (1.0 + field(37, 12, 1));
        let ratio = prescaler * (field(38, 1, 12) + long(44) / long(40));
        let hz = REFERENCE_HZ * doubler * multiplier / dividers * ratio / self.divider();
        (hz.is_finite() && hz > 0.0).then_some(hz)
    }

    /// Returns the factor of the divider behind the VCO, by its segments.
    fn divider(&self) -> f64 {
        if self.field(34, 5, 1) == 0 {
            return 1.0;
        }
        let segment = |code| match code {
            1 => 2.0,
            2 => 4.0,
            4 => 6.0,
            8 => 8.0,
            _ => 1.0,
        };
        let first = 2.0 + f64::from(self.field(35, 2, 1));
        let second = segment(self.field(35, 9, 4));
        match self.field(36, 4, 3) {
            1 => first,
            2 => first * second,
            4 => first * second * segment(self.field(36, 0, 4)),
            _ => 1.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns registers with these values.
    fn with(registers: &[(u32, u32)]) -> LmxRegisters {
        let mut lmx = LmxRegisters::default();
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
        let hz = with(&BASE).freq_hz().unwrap();
        assert!((hz - 122.88e6 * 2.0 * 32.552).abs() < 1.0, "{hz}");
        let doubled = with(&[&BASE[..], &[(9, 1 << 11)]].concat()).freq_hz().unwrap();
        assert!((doubled / hz - 2.0).abs() < 1e-9);
        let four = with(&[&BASE[..], &[(37, 1 << 12)]].concat()).freq_hz().unwrap();
        assert!((four / hz - 2.0).abs() < 1e-9);
    }

    #[test]
    fn the_segments_of_the_divider_multiply() {
        let hz = with(&BASE).freq_hz().unwrap();
        for (r35, r36, factor) in [
            (0, 1 << 4, 2.0),
            (4, 1 << 4, 3.0),
            (2 << 9, 2 << 4, 8.0),
            (4 | 4 << 9, 2 << 4, 18.0),
            (8 << 9, 4 << 4 | 8, 128.0),
        ] {
            let divided = [&BASE[..], &[(34, 1 << 5), (35, r35), (36, r36)]].concat();
            let got = with(&divided).freq_hz().unwrap();
            assert!((hz / got - factor).abs() < 1e-9, "{factor}: {got}");
        }
    }

    #[test]
    fn registers_that_make_no_frequency_make_none_and_reads_change_nothing() {
        assert_eq!(LmxRegisters::default().freq_hz(), None);
        let mut lmx = with(&BASE);
        lmx.write(ASK_LOCK | 12 << 16);
        assert!(lmx.freq_hz().is_some());
    }

    #[test]
    fn the_words_make_the_frequency() {
        for freq_hz in
            [450e6, 887.4e6, 915e6, 1100e6, 1.7749e9, 1.7751e9, 2.45e9, 3.6e9, 5.8e9, 6e9]
        {
            let settings = LmxSettings::nearest(freq_hz).unwrap();
            assert_eq!(settings.freq_hz(), freq_hz);
            let mut lmx = LmxRegisters::default();
            settings.words(0x11).into_iter().for_each(|word| lmx.write(word));
            assert!((lmx.freq_hz().unwrap() - freq_hz).abs() < 1e-3, "{freq_hz}");
            let vco_hz = freq_hz * lmx.divider();
            assert!((VCO_HZ.0..=VCO_HZ.1).contains(&vco_hz), "{vco_hz}");
        }
        let odd = LmxSettings::nearest(433_920_123.4 + 100e6).unwrap();
        assert!((odd.freq_hz() - 533_920_123.4).abs() <= 0.5, "{odd:?}");
        for freq_hz in [0.0, 100e6, 7.2e9, f64::NAN, f64::INFINITY] {
            assert_eq!(LmxSettings::nearest(freq_hz), None, "{freq_hz}");
        }
    }

    #[test]
    fn the_last_word_calibrates() {
        let words = LmxSettings::nearest(2e9).unwrap().words(0x11);
        assert_eq!((words[0], words[44]), (0x221E, 0x220C), "a reset first");
        let others = &words[2..];
        assert!(others.windows(2).all(|pair| pair[0] > pair[1]), "from the highest register down");
    }
}
