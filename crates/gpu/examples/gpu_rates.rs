//! Measures kernels on each device, beside the rate of copies:
//!
//!     cargo run --release -p millstream-gpu --features wgpu,cuda --example gpu_rates
//!
//! The only argument, if there is one, is the number of the device.

use millstream_accel::choose::batch_time;
use millstream_accel::{Accelerator, Kernel};
use millstream_dsp::Sample;
use millstream_gpu::devices;
use std::error::Error;
use std::time::Duration;

/// Batches at the same time, as in blocks.
const SLOTS: usize = 4;
/// How long a kernel is measured, and how often; the median counts.
const TIME: Duration = Duration::from_millis(30);
const TIMES: usize = 5;

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
    let number = std::env::args().nth(1).map(|number| number.parse::<usize>()).transpose()?;
    for (place, device) in devices()?.iter().enumerate() {
        if number.is_some_and(|number| number != place) {
            continue;
        }
        println!("{place}: {}", device.name());
        println!(
            "| kernel | way | samples in a batch | ns for a sample | 10⁶ samples/s | of copies |"
        );
        println!("| --- | --- | --- | --- | --- | --- |");
        for bits in [12, 16, 20] {
            let copies = copies(&**device, 1 << bits)?;
            println!("| copies | | {} | {copies:.3} | {:.0} | 100 % |", 1 << bits, 1e3 / copies);
            for kernel in kernels() {
                measure(&**device, &kernel, 1 << bits)?;
            }
        }
    }
    Ok(())
}

/// Returns the nanoseconds for a sample that is only copied there and back.
fn copies(device: &dyn Accelerator, samples: usize) -> Result<f64, Box<dyn Error>> {
    let rates = (0..TIMES).map(|_| device.copy_rate(8 * samples)).collect::<Option<Vec<_>>>();
    Ok(8e9 / median(rates.ok_or("the device has no rate of copies")?))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Prints the row of a kernel.
fn measure(device: &dyn Accelerator, kernel: &Kernel, wanted: usize) -> Result<(), Box<dyn Error>> {
    let shape = kernel.shape();
    let frames = wanted / shape.samples;
    if frames == 0 {
        return Ok(());
    }
    let samples = frames * shape.samples;
    // The copies of as many bytes as the larger direction has.
    let bytes = (8 * samples).max(4 * shape.words * frames);
    let mut opened = device.open(kernel, SLOTS, frames)?;
    let mut times = vec![];
    // In turns with the copies, whose rate changes with the machine's.
    let mut shares = vec![];
    for _ in 0..TIMES {
        let ns = batch_time(&mut opened, frames, TIME)?.as_secs_f64() * 1e9 / samples as f64;
        let copies = device.copy_rate(bytes).ok_or("the device has no rate of copies")?;
        times.push(ns);
        shares.push(bytes as f64 / copies * 1e9 / samples as f64 / ns);
    }
    let (ns, share) = (median(times), 100.0 * median(shares));
    let way = &opened.way;
    println!("| {kernel} | {way} | {wanted} | {ns:.3} | {:.0} | {share:.0} % |", 1e3 / ns);
    Ok(())
}
