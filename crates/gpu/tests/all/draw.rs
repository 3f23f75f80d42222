//! Drawn samples, and how far results are from the reference.

use millstream_dsp::Sample;

/// Numbers that look random.
pub struct Draw(pub u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let x = self.0 ^ (self.0 >> 29);
        x.wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 20
    }

    /// From 0 to `end`, without it.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// From -1 to 1.
    pub fn float(&mut self) -> f32 {
        self.below(1 << 24) as f32 / (1 << 23) as f32 - 1.0
    }

    pub fn sample(&mut self) -> Sample {
        Sample::new(self.float(), self.float())
    }

    /// Samples whose size changes by a factor of up to a million from one stretch to the next.
    pub fn samples(&mut self, count: usize) -> Vec<Sample> {
        let mut size = 1.0;
        (0..count)
            .map(|i| {
                if i % 64 == 0 {
                    size = 10f32.powi(self.below(7) as i32 - 3);
                }
                self.sample() * size
            })
            .collect()
    }

    pub fn taps(&mut self, count: usize, real: bool) -> Vec<Sample> {
        (0..count)
            .map(|_| if real { Sample::new(self.float(), 0.0) } else { self.sample() })
            .collect()
    }
}

/// Returns the largest difference, in units of the reference's RMS.
pub fn error(results: &[f32], reference: &[f64]) -> f64 {
    assert_eq!(results.len(), reference.len());
    let power: f64 = reference.iter().map(|v| v * v).sum::<f64>() / reference.len() as f64;
    let differences = results.iter().zip(reference).map(|(&a, &b)| (f64::from(a) - b).abs());
    let worst = differences.fold(0.0, |worst, d| if d > worst || d.is_nan() { d } else { worst });
    worst / power.sqrt()
}
