//! Kernels on the devices at hand, against sums of 64-bit numbers.
#![cfg(any(feature = "cuda", feature = "wgpu"))]

mod draw;
mod flight;
mod kernels;
mod reference;
mod sizes;

use draw::{Draw, error};
use millstream_accel::{Accelerator, Kernel, Opened};
use millstream_dsp::Sample;
use millstream_gpu::devices;
use std::io::{Write, stderr};
use std::sync::{Arc, OnceLock};

/// Returns the devices, or says that there are none, and why.
fn all_devices() -> &'static [Arc<dyn Accelerator>] {
    static FOUND: OnceLock<Vec<Arc<dyn Accelerator>>> = OnceLock::new();
    FOUND.get_or_init(|| {
        let found = devices();
        // Past the test harness, which keeps what a test prints to itself.
        let _ = match &found {
            Ok(all) => {
                let names: Vec<_> = all.iter().map(|device| device.name()).collect();
                writeln!(stderr(), "\ngpu: the tests run on {}", names.join(", "))
            }
            Err(error) => writeln!(stderr(), "\ngpu: SKIPPED, nothing was tested: {error}"),
        };
        found.unwrap_or_default()
    })
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
fn open(gpu: &dyn Accelerator, kernel: &Kernel, slots: usize, frames: usize) -> Opened {
    gpu.open(kernel, slots, frames).unwrap_or_else(|error| panic!("{kernel}: {error}"))
}
