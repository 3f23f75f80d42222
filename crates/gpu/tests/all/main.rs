//! Kernels on the device at hand, against sums of 64-bit numbers.
#![cfg(feature = "wgpu")]

mod flight;
mod kernels;
mod reference;
mod sizes;

use millstream_accel::{Device, Kernel, Opened};
use millstream_dsp::Sample;
use millstream_gpu::{Gpu, gpus};
use std::io::{Write, stderr};
use std::sync::{Arc, Once};

/// Returns the first device, or says that there is none, and why.
fn gpu() -> Option<Gpu> {
    static SAID: Once = Once::new();
    let found = gpus();
    // Past the test harness, which keeps what a test prints to itself.
    SAID.call_once(|| {
        let _ = match &found {
            Ok(gpus) => writeln!(stderr(), "\ngpu: the tests run on {}", gpus[0].name()),
            Err(error) => writeln!(stderr(), "\ngpu: SKIPPED, nothing was tested: {error}"),
        };
    });
    found.ok().map(|mut gpus| gpus.remove(0))
}

/// Numbers that look random.
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let x = self.0 ^ (self.0 >> 29);
        x.wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 20
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// From -1 to 1.
    fn float(&mut self) -> f32 {
        self.below(1 << 24) as f32 / (1 << 23) as f32 - 1.0
    }

    fn sample(&mut self) -> Sample {
        Sample::new(self.float(), self.float())
    }

    /// Samples whose size changes by a factor of up to a million from one stretch to the next.
    fn samples(&mut self, count: usize) -> Vec<Sample> {
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

    fn taps(&mut self, count: usize, real: bool) -> Vec<Sample> {
        (0..count)
            .map(|_| if real { Sample::new(self.float(), 0.0) } else { self.sample() })
            .collect()
    }
}

/// Writes samples to a window that nobody else has.
fn fill(opened: &mut Opened, slot: usize, samples: &[Sample]) {
    let window = Arc::get_mut(&mut opened.windows[slot]).expect("the device gave the window back");
    window[..samples.len()].copy_from_slice(samples);
}

/// Waits for a batch.
fn wait(opened: &mut Opened, slot: usize) {
    let end = std::time::Instant::now() + std::time::Duration::from_secs(120);
    while !opened.session.poll(slot).expect("the device is there") {
        assert!(std::time::Instant::now() < end, "slot {slot}: no results after 120 seconds");
        std::thread::yield_now();
    }
}

/// Calculates one batch in one slot.
fn once(opened: &mut Opened, slot: usize, samples: &[Sample], frames: usize) -> Vec<f32> {
    fill(opened, slot, samples);
    let window = Arc::clone(&opened.windows[slot]);
    opened.session.submit(slot, &window, frames).expect("the device is there");
    drop(window);
    wait(opened, slot);
    let results = opened.session.results(slot).to_vec();
    opened.session.release(slot);
    results
}

/// Returns the largest difference, in units of the reference's RMS.
fn error(results: &[f32], reference: &[f64]) -> f64 {
    assert_eq!(results.len(), reference.len());
    let power: f64 = reference.iter().map(|v| v * v).sum::<f64>() / reference.len() as f64;
    let differences = results.iter().zip(reference).map(|(&a, &b)| (f64::from(a) - b).abs());
    let worst = differences.fold(0.0, |worst, d| if d > worst || d.is_nan() { d } else { worst });
    worst / power.sqrt()
}

/// Opens a device for a kernel.
fn open(gpu: &Gpu, kernel: &Kernel, slots: usize, frames: usize) -> Opened {
    gpu.open(kernel, slots, frames).unwrap_or_else(|error| panic!("{kernel}: {error}"))
}
