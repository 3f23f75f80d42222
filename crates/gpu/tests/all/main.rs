//! Kernels on the device at hand, against sums of 64-bit numbers.
#![cfg(feature = "wgpu")]

mod draw;
mod flight;
mod kernels;
mod reference;
mod sizes;

use draw::{Draw, error};
use millstream_accel::{Accelerator, Kernel, Opened};
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

/// Opens a device for a kernel.
fn open(gpu: &Gpu, kernel: &Kernel, slots: usize, frames: usize) -> Opened {
    gpu.open(kernel, slots, frames).unwrap_or_else(|error| panic!("{kernel}: {error}"))
}
