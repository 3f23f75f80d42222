//! Latencies like those of machines: starts that differ, values of a start that depend on each
//! other, and a heavy tail in bursts.

use millstream_stats::Histogram;
use millstream_stats::Random;

/// The values of a start.
const VALUES: u32 = 500;

/// The distribution of starts.
#[derive(Debug, Clone, Copy)]
pub enum Levels {
    /// Factors that are normal on the logarithm.
    Normal(f64),
    /// The same, and one start in seven is 50 % later.
    Wild(f64),
    /// Two kinds of starts, like two placements of memory.
    TwoKinds(f64),
}

impl Levels {
    fn draw(self, noise: &mut Random) -> f64 {
        let unit = noise.uniform();
        let (spread, moved) = match self {
            Self::Normal(spread) => (spread, 0.0),
            Self::Wild(spread) => (spread, if unit < 1.0 / 7.0 { 0.4 } else { 0.0 }),
            Self::TwoKinds(spread) => (spread, if unit < 0.4 { 0.25 } else { 0.0 }),
        };
        (spread * noise.normal() + moved).exp()
    }
}

/// Returns the quantile of all values of one start.
pub fn start_ns(base_ns: f64, levels: Levels, quantile: f64, noise: &mut Random) -> f64 {
    let level = base_ns * levels.draw(noise);
    let mut histogram = Histogram::default();
    let (mut drift, mut late) = (0.0, 0.0);
    for _ in 0..VALUES {
        // Half of the previous wake-up's delay remains.
        drift = 0.7 * drift + 0.12 * noise.normal();
        late *= 0.5;
        if noise.uniform() < 0.01 {
            late = 3.0 * share(noise).powf(-0.3);
        }
        histogram.record((level * (f64::exp(drift) + late)) as u64);
    }
    histogram.quantile_ns(quantile) as f64
}

/// Returns a random number above 0 and below 1.
pub fn share(noise: &mut Random) -> f64 {
    ((noise.bits() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
}
