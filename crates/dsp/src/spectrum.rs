//! A spectral line in noise.

use crate::Sample;
use crate::window::hann;
use rustfft::{Fft, FftPlanner};
use std::sync::Arc;

/// A line found in a spectrum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpectralLine {
    /// Frequency in cycles per sample.
    pub frequency: f64,
    /// Power of the strongest bin over the median bin of the range searched.
    pub over_median: f64,
    /// Power of the line over the power of all samples.
    pub share: f64,
}

/// A search for the strongest line within a range of frequencies.
#[derive(Clone)]
pub struct LineFinder {
    fft: Arc<dyn Fft<f32>>,
    window: Vec<f32>,
    work: Vec<Sample>,
    scratch: Vec<Sample>,
    powers: Vec<f32>,
}

impl std::fmt::Debug for LineFinder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LineFinder").field("len", &self.len()).finish()
    }
}

impl LineFinder {
    /// Creates a finder over spectra of `len` samples.
    #[must_use]
    pub fn new(len: usize) -> Self {
        let fft = FftPlanner::new().plan_fft_forward(len);
        let scratch = vec![Sample::default(); fft.get_inplace_scratch_len()];
        let work = vec![Sample::default(); len];
        Self { fft, window: hann(len), work, scratch, powers: Vec::with_capacity(len) }
    }

    /// Returns the number of samples that a search takes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.window.len()
    }

    /// Returns false, because a search always takes samples.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Returns the strongest line within `reach` of `centre` (both in cycles per sample) in `re + j
    /// im`; `None` if the range has no power.
    ///
    /// # Panics
    /// If the rows do not hold [`len`](Self::len) values.
    pub fn find(
        &mut self,
        re: &[f32],
        im: &[f32],
        centre: f64,
        reach: f64,
    ) -> Option<SpectralLine> {
        assert!(re.len() == self.len() && im.len() == self.len(), "a whole spectrum");
        let mut power_sum = 0.0;
        for (n, work) in self.work.iter_mut().enumerate() {
            let sample = Sample::new(re[n], im[n]);
            power_sum += f64::from(sample.norm_sqr());
            *work = sample * self.window[n];
        }
        self.fft.process_with_scratch(&mut self.work, &mut self.scratch);
        let len = self.len() as i64;
        let bin = |frequency: f64| (frequency * len as f64).round() as i64;
        let (low, high) = (bin(centre - reach), bin(centre + reach));
        let power = |k: i64| self.work[k.rem_euclid(len) as usize].norm_sqr();
        let peak = (low..=high).max_by(|a, b| power(*a).total_cmp(&power(*b)))?;
        let (before, at, after) = (power(peak - 1), power(peak), power(peak + 1));
        // The Hann window's main lobe: the amplitudes next to the peak give the fraction of a bin.
        let fraction = hann_fraction(before.sqrt(), at.sqrt(), after.sqrt());
        self.powers.clear();
        self.powers.extend((low..=high).map(|k| self.work[k.rem_euclid(len) as usize].norm_sqr()));
        let middle = self.powers.len() / 2;
        let (_, median, _) = self.powers.select_nth_unstable_by(middle, f32::total_cmp);
        let over_median = f64::from(at) / f64::from(median.max(f32::MIN_POSITIVE));
        let frequency = (peak as f64 + f64::from(fraction)) / len as f64;
        // A line of amplitude A reaches A / 2 times the length under a Hann window.
        let share = f64::from(at) * 4.0 / (len as f64 * power_sum);
        (at > 0.0).then_some(SpectralLine { frequency, over_median, share })
    }
}

/// Returns the offset of a line from its strongest bin, from the amplitudes there and on either
/// side.
fn hann_fraction(before: f32, at: f32, after: f32) -> f32 {
    let (neighbour, sign) = if after > before { (after, 1.0) } else { (before, -1.0) };
    // For a Hann window neighbour / at = (1 + d) / (2 - d).
    let ratio = neighbour / at.max(f32::MIN_POSITIVE);
    sign * ((2.0 * ratio - 1.0) / (1.0 + ratio)).clamp(0.0, 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tone(frequency: f64, len: usize) -> (Vec<f32>, Vec<f32>) {
        let phase = |n: usize| std::f64::consts::TAU * frequency * n as f64;
        (0..len).map(|n| (phase(n).cos() as f32, phase(n).sin() as f32)).unzip()
    }

    #[test]
    fn a_tone_is_found_to_a_small_part_of_a_bin() {
        let len = 4096;
        let mut finder = LineFinder::new(len);
        for bin in [-1200.0, -1000.4, -999.75, 3.5, 1000.25] {
            let (re, im) = tone(bin / len as f64, len);
            let line = finder.find(&re, &im, (bin + 30.0) / len as f64, 0.02).unwrap();
            assert!((line.frequency * len as f64 - bin).abs() < 0.02, "{bin}: {line:?}");
            assert!(line.over_median > 1e4);
            assert!((0.7..1.01).contains(&line.share), "{bin}: {line:?}");
        }
    }

    #[test]
    fn silence_has_no_line() {
        let silence = vec![0.0; 256];
        assert_eq!(LineFinder::new(256).find(&silence, &silence, 0.1, 0.05), None);
    }
}
