//! The synthesiser ADF4351 of the N310's low band: its words for a frequency, from the maker's
//! data sheet.
//!
//! The reference is divided to the phase detector, and the output is that times a fraction, because
//! the output divider is part of the loop. The bits that do not depend on the frequency are those
//! that stock UHD 4.3 sends.

/// The largest frequency of the phase detector, Hz.
const DETECTOR_MAX_HZ: f64 = 25e6;
/// The denominator of the fraction.
const MODULUS: u32 = 4095;
/// Below this the output is half the VCO's frequency, Hz.
const HALVED_BELOW_HZ: f64 = 2.2e9;
/// The clock of the VCO's choice of band, Hz.
const BAND_CLOCK_HZ: f64 = 100e3;

/// The counters are held meanwhile.
const RESET: u32 = 1 << 3;
/// The output is on, with the highest power.
const OUTPUT: u32 = 0x1B4;
/// The output is off.
const SILENT: u32 = 0x094;

/// The fraction and the dividers for a frequency.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct AdfSettings {
    detector_hz: f64,
    /// The divider of the reference.
    reference: u32,
    whole: u32,
    numerator: u32,
    halved: bool,
}

impl AdfSettings {
    /// Returns the settings for a frequency, from a reference.
    pub fn nearest(freq_hz: f64, reference_hz: f64) -> Self {
        let reference = (reference_hz / DETECTOR_MAX_HZ).ceil().clamp(1.0, 1023.0) as u32;
        let detector_hz = reference_hz / f64::from(reference);
        let parts = (freq_hz / detector_hz * f64::from(MODULUS)).round() as u32;
        Self {
            detector_hz,
            reference,
            whole: parts / MODULUS,
            numerator: parts % MODULUS,
            halved: freq_hz < HALVED_BELOW_HZ,
        }
    }

    /// Returns the frequency that results, Hz.
    pub fn freq_hz(&self) -> f64 {
        let ratio = f64::from(self.whole) + f64::from(self.numerator) / f64::from(MODULUS);
        self.detector_hz * ratio
    }

    /// Returns the words to send, in this order.
    pub fn words(&self) -> [u32; 7] {
        self.words_with(OUTPUT)
    }

    /// Returns the words that turn the output off.
    pub fn silent(&self) -> [u32; 7] {
        self.words_with(SILENT)
    }

    fn words_with(&self, output: u32) -> [u32; 7] {
        let band_clock = ((self.detector_hz / BAND_CLOCK_HZ).ceil() as u32).clamp(1, 255);
        let dividers = 0x6400_0042 | self.reference << 14;
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What UHD 4.3 sends for these frequencies of the signal and of the master clock: the first
    /// word, the one of the output, and the fraction.
    #[test]
    fn the_words_are_those_that_uhd_sends() {
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
            assert_eq!(settings.words(), want, "{freq_hz} Hz");
            assert!((settings.freq_hz() - freq_hz).abs() < clock_hz / 4095.0 / 5.0, "{freq_hz}");
            assert_eq!(settings.silent()[2], output & !0xFFF | 0x094);
        }
    }
}
