//! The synthesiser ADF4351 of the N310's low band: its words for a frequency and the frequency of
//! its words, from the maker's data sheet.
//!
//! The reference is divided to the phase detector, and the output is that times a fraction. The
//! bits that do not depend on the frequency are those that stock UHD 4.3 sends.

/// The largest frequency of the phase detector, Hz.
const DETECTOR_MAX_HZ: f64 = 25e6;
/// The denominator of the fraction.
const MODULUS: u32 = 4095;
/// Below this the output is half the VCO's frequency, Hz.
const HALVED_BELOW_HZ: f64 = 2.2e9;
/// The clock of the VCO's choice of band, Hz.
const BAND_CLOCK_HZ: f64 = 100e3;

/// Bits of a word.
pub const WORD_BITS: u32 = 32;

/// In register 2: the counters are held meanwhile.
const RESET: u32 = 1 << 3;
/// In register 4: the output is on, and the word with the highest power.
const IS_ON: u32 = 1 << 5;
const OUTPUT: u32 = 0x194 | IS_ON;
/// In register 4: the output is off.
const SILENT: u32 = 0x094;
/// In register 4: the VCO is the feedback, so that the output divider is behind the loop.
const FUNDAMENTAL: u32 = 1 << 23;

/// The fraction and the dividers for a frequency.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AdfSettings {
    detector_hz: f64,
    /// The divider of the reference.
    reference: u32,
    whole: u32,
    numerator: u32,
    halved: bool,
}

impl AdfSettings {
    /// Returns the settings for a frequency, from a reference, Hz.
    #[must_use]
    pub fn nearest(freq_hz: f64, reference_hz: f64) -> AdfSettings {
        let reference = ceil(reference_hz / DETECTOR_MAX_HZ).clamp(1, 1023);
        let detector_hz = reference_hz / f64::from(reference);
        let parts = (freq_hz / detector_hz * f64::from(MODULUS) + 0.5) as u32;
        AdfSettings {
            detector_hz,
            reference,
            whole: parts / MODULUS,
            numerator: parts % MODULUS,
            halved: freq_hz < HALVED_BELOW_HZ,
        }
    }

    /// Returns the frequency that results, Hz.
    #[must_use]
    pub fn freq_hz(&self) -> f64 {
        let ratio = f64::from(self.whole) + f64::from(self.numerator) / f64::from(MODULUS);
        self.detector_hz * ratio
    }

    /// Returns the words to send, in this order; those that turn the output off if not `is_on`.
    #[must_use]
    pub fn words(&self, is_on: bool) -> [u32; 7] {
        let band_clock = ceil(self.detector_hz / BAND_CLOCK_HZ).clamp(1, 255);
        let dividers = 0x6400_0042 | self.reference << 14;
        let output = if is_on { OUTPUT } else { SILENT };
        [
            dividers | RESET,
            0x0040_0005,
            u32::from(self.halved) << 20 | band_clock << 12 | output,
            0x0001_001B,
            dividers,
            MODULUS << 3 | 1,
            self.whole << 15 | self.numerator << 3,
        ]
    }
}

/// Returns the least whole number that is not below one.
fn ceil(value: f64) -> u32 {
    let whole = value as u32;
    whole.saturating_add(u32::from(f64::from(whole) < value))
}

/// The registers of an ADF4351.
#[derive(Debug, Clone, Default)]
pub struct AdfRegisters([u32; 8]);

impl AdfRegisters {
    /// Takes a word, whose last 3 bits are the number of its register.
    pub fn write(&mut self, word: u32) {
        self.0[(word & 7) as usize] = word;
    }

    /// Returns the frequency from this reference, Hz; `None` while the output is off.
    #[must_use]
    pub fn freq_hz(&self, reference_hz: f64) -> Option<f64> {
        let [r0, r1, r2, _, r4, ..] = self.0;
        let field = |word: u32, low: u32, bits: u32| f64::from(word >> low & ((1 << bits) - 1));
        let doubled = 1.0 + field(r2, 25, 1);
        let divided = field(r2, 14, 10) * (1.0 + field(r2, 24, 1));
        let ratio = field(r0, 15, 16) + field(r0, 3, 12) / field(r1, 3, 12);
        let divider = if r4 & FUNDAMENTAL == 0 { 1.0 } else { f64::from(1 << (r4 >> 20 & 7)) };
        let hz = reference_hz * doubled / divided * ratio / divider;
        (r4 & IS_ON != 0 && hz.is_finite()).then_some(hz)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What UHD 4.3 sends for these frequencies of the signal and of the master clock: the first
    /// word, the one of the output, and the fraction.
    #[test]
    fn the_words_are_those_that_uhd_sends_and_make_the_frequency() {
        for (freq_hz, clock_hz, first, output, fraction) in [
            (2441.8e6 - 100e6, 125e6, 0x6401_404A, 0x000F_A1B4, 0x002E_D600),
            (2441.8e6 - 260e6, 125e6, 0x6401_404A, 0x001F_A1B4, 0x002B_A2D0),
            (1950e6 - 290e6, 125e6, 0x6401_404A, 0x001F_A1B4, 0x0021_3330),
            (2441.8e6 - 100.3e6, 122.88e6, 0x6401_404A, 0x000F_61B4, 0x002F_A350),
            (1950e6 - 241.9e6, 122.88e6, 0x6401_404A, 0x001F_61B4, 0x0022_C058),
            (2441.8e6 - 241.7e6, 153.6e6, 0x6401_C04A, 0x000D_C1B4, 0x0032_21E8),
            (2441.8e6 - 241.9e6, 153.6e6, 0x6401_C04A, 0x001D_C1B4, 0x0032_20C0),
        ] {
            let settings = AdfSettings::nearest(freq_hz, clock_hz);
            let want = [first, 0x0040_0005, output, 0x0001_001B, first & !8, 0x0000_7FF9, fraction];
            assert_eq!(settings.words(true), want, "{freq_hz} Hz");
            assert!((settings.freq_hz() - freq_hz).abs() < clock_hz / 4095.0 / 5.0, "{freq_hz}");
            assert_eq!(settings.words(false)[2], output & !0xFFF | 0x094);

            let mut registers = AdfRegisters::default();
            assert_eq!(registers.freq_hz(clock_hz), None);
            want.into_iter().for_each(|word| registers.write(word));
            let made_hz = registers.freq_hz(clock_hz).unwrap();
            assert!((made_hz - settings.freq_hz()).abs() < 1e-3, "{freq_hz}: {made_hz}");
            settings.words(false).into_iter().for_each(|word| registers.write(word));
            assert_eq!(registers.freq_hz(clock_hz), None, "the output is off");
        }
    }
}
