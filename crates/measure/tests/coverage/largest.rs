//! Coverage of the estimate of the largest value to come.

use super::draw::share;
use super::{Line, is_thorough, judge, sets};
use millstream_measure::extreme::Estimate;
use millstream_measure::observed::BlockMaxima;
use millstream_stats::Random;

/// The values of a block.
const BLOCK: u64 = 128;
/// The samples, one after the other; each has a share of the blocks.
const SAMPLES: usize = 4;

/// The latency as a function of the probability of a later one, nanoseconds.
type Tail = fn(f64) -> f64;

const TAILS: [(&str, Tail); 5] = [
    ("exponential tail", |later| 10e3 - 5e3 * later.ln()),
    ("heavy tail (shape 0.2)", |later| 10e3 * later.powf(-0.2)),
    ("very heavy tail (shape 0.4)", |later| 10e3 * later.powf(-0.4)),
    ("bounded tail (shape -0.25)", |later| 10e3 + 40e3 * (1.0 - later.powf(0.25))),
    // Log-logistic: heavy, and reached slowly.
    ("log-logistic (shape 0.15)", |later| 10e3 * ((1.0 - later) / later).powf(0.15)),
];

/// Returns the largest of so many values, by the tail.
fn largest_ns(tail: Tail, values: f64, noise: &mut Random) -> f64 {
    tail(-(share(noise).ln() / values).exp_m1())
}

/// Returns blocks as a sample stores them.
fn blocks(tail: Tail, count: usize, level: f64, noise: &mut Random) -> BlockMaxima {
    let maxima = (0..count).map(|_| (level * largest_ns(tail, BLOCK as f64, noise)) as u64);
    let maxima: Vec<u64> = maxima.collect();
    let text = serde_json::json!({ "values_per_block": BLOCK, "maxima_ns": maxima });
    serde_json::from_value(text).unwrap()
}

#[test]
fn the_largest_value_to_come_lies_where_it_says() {
    let mut lines = Vec::new();
    // Each draw is fitted some hundred times.
    let (sets, sizes): (u32, &[usize]) =
        if is_thorough() { (sets(), &[48, 128, 384]) } else { (sets() / 2, &[48]) };
    for (name, tail) in TAILS {
        for (count, spread) in sizes.iter().flat_map(|count| [(*count, 0.0), (*count, 0.05)]) {
            let mut noise = Random::new(count as u64);
            let values = count as u64 * BLOCK;
            let mut line = Line::new(format!(
                "{values} values, {name}, samples differ by {:.0} %",
                spread * 100.0
            ));
            for seed in 0..sets {
                let levels: Vec<f64> =
                    (0..SAMPLES).map(|_| (spread * noise.normal()).exp()).collect();
                let samples: Vec<BlockMaxima> = levels
                    .iter()
                    .map(|level| blocks(tail, count / SAMPLES, *level, &mut noise))
                    .collect();
                let samples: Vec<&BlockMaxima> = samples.iter().collect();
                let ahead = values * 10;
                let found = Estimate::of_samples(&samples, ahead, u64::from(seed));
                // The samples continue unchanged, each for ten times as long.
                let each = ahead as f64 / SAMPLES as f64;
                let came = levels.iter().map(|level| level * largest_ns(tail, each, &mut noise));
                let came = came.fold(0.0, f64::max);
                if let Ok(found) = found {
                    line.add(found.interval_ns, came);
                }
            }
            lines.push(line);
        }
    }
    judge("the largest of ten times as many values to come (latency, lab report)", &lines);
}
