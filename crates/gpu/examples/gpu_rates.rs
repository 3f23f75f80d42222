//! Measures kernels on each device, beside the rate of copies:
//!
//!     cargo run --release -p millstream-gpu --features wgpu --example gpu_rates

use millstream_accel::{Accelerator, Kernel, Opened};
use millstream_dsp::Sample;
use millstream_gpu::{Gpu, gpus};
use std::collections::VecDeque;
use std::error::Error;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Batches at the same time.
const SLOTS: usize = 3;
/// How long a kernel is measured.
const TIME: Duration = Duration::from_secs(1);

fn kernels() -> Vec<Kernel> {
    let taps = |count: usize| (0..count).map(|k| ((k % 7) as f32 - 3.0) / 8.0).collect::<Vec<_>>();
    let fir = |count, decimation| {
        let taps = taps(count).into_iter().map(|tap| Sample::new(tap, 0.0)).collect();
        Kernel::Fir { taps, decimation }
    };
    let bank =
        |channels, hop, count| Kernel::Channelizer { channels, hop, taps: taps(count * channels) };
    let spectrum = |n, average| Kernel::PowerSpectrum { window: vec![1.0; n], average };
    vec![
        fir(15, 1),
        fir(91, 1),
        fir(715, 1),
        fir(715, 8),
        fir(4096, 1),
        bank(64, 64, 8),
        bank(64, 32, 8),
        bank(1024, 1024, 8),
        bank(100, 100, 8),
        spectrum(1024, 16),
        spectrum(4096, 16),
        spectrum(1 << 16, 1),
    ]
}

fn main() -> Result<(), Box<dyn Error>> {
    for gpu in gpus()? {
        println!("{}{}", gpu.name(), if gpu.is_software() { " (a program)" } else { "" });
        println!(
            "| kernel | way | samples in a batch | ns for a sample | 10⁶ samples/s | of copies |"
        );
        println!("| --- | --- | --- | --- | --- | --- |");
        for bits in [12, 16, 20] {
            let bytes = 8usize << bits;
            let copies = gpu.copy_rate(bytes)?.bytes_per_second() / 8.0;
            let (ns, rate) = (1e9 / copies, copies / 1e6);
            println!("| copies | | {} | {ns:.2} | {rate:.1} | 100 % |", 1 << bits);
            for kernel in kernels() {
                measure(&gpu, &kernel, 1 << bits, copies)?;
            }
        }
    }
    Ok(())
}

/// Prints the row of a kernel by the best of many rounds of batches.
fn measure(gpu: &Gpu, kernel: &Kernel, wanted: usize, copies: f64) -> Result<(), Box<dyn Error>> {
    let shape = kernel.shape();
    let frames = wanted / shape.samples;
    if frames == 0 {
        return Ok(());
    }
    let mut opened = gpu.open(kernel, SLOTS, frames)?;
    let way = gpu.way(kernel, SLOTS, frames)?;
    let begin = Instant::now();
    let mut best = f64::INFINITY;
    while begin.elapsed() < TIME {
        best = best.min(round(&mut opened, frames)?);
    }
    let ns = best * 1e9 / (frames * shape.samples) as f64;
    let (rate, share) = (1e3 / ns, 100.0 * 1e9 / ns / copies);
    println!("| {kernel} | {way} | {wanted} | {ns:.2} | {rate:.1} | {share:.0} % |");
    Ok(())
}

/// Returns the seconds for a batch, of some that follow each other without a pause.
fn round(opened: &mut Opened, frames: usize) -> Result<f64, Box<dyn Error>> {
    const BATCHES: usize = 12;
    let begin = Instant::now();
    let mut flying = VecDeque::with_capacity(SLOTS);
    for batch in 0..BATCHES + SLOTS {
        if batch >= SLOTS {
            let slot = flying.pop_front().expect("some are on their way");
            while !opened.session.poll(slot)? {
                thread::yield_now();
            }
            std::hint::black_box(opened.session.results(slot));
            opened.session.release(slot);
        }
        if batch < BATCHES {
            let slot = batch % SLOTS;
            let window = Arc::clone(&opened.windows[slot]);
            opened.session.submit(slot, &window, frames)?;
            flying.push_back(slot);
        }
    }
    Ok(begin.elapsed().as_secs_f64() / BATCHES as f64)
}
