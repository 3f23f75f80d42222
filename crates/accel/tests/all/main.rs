//! Blocks over the stand-in device.

mod allocation;
mod faults;
mod stream;
mod waiting;

use millstream_accel::{Kernel, OnHost, ResultItem};
use millstream_dsp::Sample;
use millstream_dsp::noise::Noise;
use millstream_flow::Mock;

fn noise(seed: u64, count: usize) -> Vec<Sample> {
    let mut noise = Noise::new(seed);
    (0..count).map(|_| noise.gaussian_pair()).collect()
}

fn filter(taps: usize, decimation: usize) -> Kernel {
    Kernel::Fir { taps: noise(7, taps), decimation }
}

/// Returns what the CPU's block makes of a stream.
fn on_cpu<O: ResultItem>(kernel: &Kernel, samples: &[Sample]) -> Vec<O> {
    let mut mock = Mock::new(OnHost::<O>::new(kernel.clone()));
    mock.feed("in", samples);
    mock.end("in");
    mock.run().unwrap();
    mock.take("out")
}

fn assert_near(a: &[Sample], b: &[Sample]) {
    assert_eq!(a.len(), b.len(), "as many results");
    let power = b.iter().map(|x| f64::from(x.norm_sqr())).sum::<f64>() / b.len().max(1) as f64;
    for (n, (a, b)) in a.iter().zip(b).enumerate() {
        assert!(f64::from((a - b).norm()) < 1e-5 * power.sqrt(), "result {n}: {a} instead of {b}");
    }
}
