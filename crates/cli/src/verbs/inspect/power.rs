//! The power of a recording's samples.

use std::fmt::Write;

crate::results! {
    /// The power of samples; 0 dBFS is a tone whose I and Q reach full scale.
    pub struct PowerFigures {
        /// Samples.
        samples: u64,
        /// Mean power; null for silence.
        mean_dbfs: Option<f64>,
        /// Highest power; null for silence.
        peak_dbfs: Option<f64>,
        /// The mean of I and of Q, full scale is 1.
        dc_offset: [f64; 2],
        /// Samples at full scale.
        full_scale_samples: u64,
        /// Samples that are no numbers.
        not_finite_samples: u64,
    }
}

/// Sums over complex samples; full scale is 1 in each part.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Power {
    /// Samples added.
    pub samples: u64,
    sum: [f64; 2],
    energy: f64,
    peak: f64,
    full_scale: u64,
    not_finite: u64,
}

impl Power {
    /// Adds samples.
    pub fn add(&mut self, samples: impl Iterator<Item = [f32; 2]>) {
        for [i, q] in samples {
            self.samples += 1;
            let [i, q] = [f64::from(i), f64::from(q)];
            let power = i * i + q * q;
            if !power.is_finite() {
                self.not_finite += 1;
                continue;
            }
            self.sum[0] += i;
            self.sum[1] += q;
            self.energy += power;
            self.peak = self.peak.max(power);
            self.full_scale += u64::from(i.abs() >= 1.0 || q.abs() >= 1.0);
        }
    }

    /// Mean and peak in dB of a full-scale tone; `None` for silence.
    fn levels_db(&self) -> [Option<f64>; 2] {
        let finite = (self.samples - self.not_finite).max(1) as f64;
        [self.energy / finite, self.peak].map(|power| (power > 0.0).then(|| 10.0 * power.log10()))
    }

    /// The mean of both parts.
    fn offset(&self) -> [f64; 2] {
        let finite = (self.samples - self.not_finite).max(1) as f64;
        self.sum.map(|sum| sum / finite)
    }

    /// The figures as text.
    pub fn words(&self) -> String {
        let [mean, peak] = self.levels_db();
        let mut text = match (mean, peak) {
            (Some(mean), Some(peak)) => {
                format!("power        mean {mean:.1} dBFS, peak {peak:.1} dBFS\n")
            }
            _ => "power        none: all samples are 0\n".to_owned(),
        };
        let [i, q] = self.offset();
        let _ = writeln!(text, "DC offset    I {i:+.5}, Q {q:+.5} of full scale");
        let _ = writeln!(text, "at the limit {} samples are at full scale", self.full_scale);
        if self.not_finite > 0 {
            let _ = writeln!(text, "not finite   {} samples", self.not_finite);
        }
        text
    }

    /// The figures for the document.
    pub fn figures(&self) -> PowerFigures {
        let [mean_dbfs, peak_dbfs] = self.levels_db();
        PowerFigures {
            samples: self.samples,
            mean_dbfs,
            peak_dbfs,
            dc_offset: self.offset(),
            full_scale_samples: self.full_scale,
            not_finite_samples: self.not_finite,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_scale_tone_is_0_dbfs_and_silence_has_no_level() {
        let mut power = Power::default();
        power.add([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]].into_iter());
        assert_eq!(power.levels_db(), [Some(0.0), Some(0.0)]);
        assert_eq!((power.offset(), power.full_scale), ([0.0, 0.0], 4));
        let mut silence = Power::default();
        silence.add([[0.0, 0.0]].into_iter());
        assert_eq!(silence.levels_db(), [None, None]);
        assert!(silence.words().contains("all samples are 0"));
    }

    #[test]
    fn what_is_no_number_is_counted_and_left_out() {
        let mut power = Power::default();
        power.add([[f32::NAN, 0.0], [0.5, 0.0], [f32::INFINITY, 1.0]].into_iter());
        assert_eq!((power.samples, power.not_finite), (3, 2));
        assert_eq!(power.offset(), [0.5, 0.0]);
        assert!(power.words().contains("not finite   2 samples"));
    }
}
