//! The formulas of `millstream_accel::Kernel`, term by term, by 64-bit numbers.

use millstream_accel::Kernel;
use millstream_dsp::{Complex, Sample};
use std::f64::consts::TAU;

type Wide = Complex<f64>;

fn wide(v: Sample) -> Wide {
    Wide::new(v.re.into(), v.im.into())
}

/// `exp(-j 2π k / n)`.
fn turn(k: i64, n: usize) -> Wide {
    Wide::from_polar(1.0, -TAU * k.rem_euclid(n as i64) as f64 / n as f64)
}

/// Returns the results of so many frames of a window.
pub fn results(kernel: &Kernel, window: &[Sample], frames: usize) -> Vec<f64> {
    let shape = kernel.shape();
    assert_eq!(window.len(), shape.window(frames));
    let x = |t: i64| wide(window[(t + shape.history as i64) as usize]);
    let pairs = |v: Wide| [v.re, v.im];
    match kernel {
        Kernel::Fir { taps, decimation } => (0..frames as i64)
            .flat_map(|m| {
                let term = |(k, &tap): (i64, &Sample)| wide(tap) * x(m * *decimation as i64 - k);
                pairs((0..).zip(taps).map(term).sum())
            })
            .collect(),
        Kernel::Channelizer { channels, hop, taps } => {
            let rows = frames * channels / hop;
            let mut results = vec![];
            for h in 0..rows as i64 {
                let t = h * *hop as i64;
                let terms: Vec<Wide> =
                    (0..).zip(taps).map(|(n, &tap)| x(t - n) * f64::from(tap)).collect();
                for c in 0..*channels as i64 {
                    let term = |(n, &v): (i64, &Wide)| v * turn(c * (t - n), *channels);
                    results.extend(pairs((0..).zip(&terms).map(term).sum()));
                }
            }
            results
        }
        Kernel::PowerSpectrum { window: w, average } => {
            let n = w.len();
            let sum: f64 = w.iter().map(|&w| f64::from(w)).sum();
            let scale = 1.0 / (*average as f64 * sum * sum);
            let turns: Vec<Wide> = (0..n as i64).map(|k| turn(k, n)).collect();
            let mut results = vec![0.0; frames * n];
            for (a, part) in window.chunks(n).enumerate() {
                let weighted: Vec<Wide> =
                    part.iter().zip(w).map(|(&v, &w)| wide(v) * f64::from(w)).collect();
                for k in 0..n {
                    let term = |(i, v): (usize, &Wide)| v * turns[i * k % n];
                    let value: Wide = weighted.iter().enumerate().map(term).sum();
                    results[a / average * n + (k + n / 2) % n] += value.norm_sqr() * scale;
                }
            }
            results
        }
        _ => unreachable!("the tests draw no other kernel"),
    }
}
