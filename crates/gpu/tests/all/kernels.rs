//! Every kernel, with drawn lengths, against the reference.

use crate::{Draw, all_devices, error, once, open, reference};
use millstream_accel::{Accelerator, Kernel};

/// The largest difference that is allowed, in units of the results' RMS.
const ALLOWED: f64 = 1e-5;

/// Calculates batches of several lengths with a kernel, and compares.
fn check(gpu: &dyn Accelerator, draw: &mut Draw, kernel: &Kernel, frames: usize) -> f64 {
    let mut opened = open(gpu, kernel, 3, frames);
    let mut worst: f64 = 0.0;
    for frames in [frames, 1 + draw.below(frames)] {
        let samples = draw.samples(kernel.shape().window(frames));
        let results = once(&mut opened, draw.below(3), &samples, frames);
        let error = error(&results, &reference::results(kernel, &samples, frames));
        assert!(error <= ALLOWED, "{kernel}, {frames} frames: {error:.1e}");
        worst = worst.max(error);
    }
    if worst > 3e-6 {
        println!("{kernel}: {worst:.1e}");
    }
    worst
}

/// Checks many kernels, and prints the largest error.
fn check_all(name: &str, kernels: &[(Kernel, usize)], draw: &mut Draw) {
    for gpu in all_devices() {
        let mut worst: f64 = 0.0;
        for (kernel, frames) in kernels {
            worst = worst.max(check(&**gpu, draw, kernel, *frames));
        }
        let (count, device) = (kernels.len(), gpu.name());
        assert!(count > 0);
        println!("{device}: {name}: {count} kernels, largest error {worst:.1e} of the RMS");
    }
}

#[test]
fn filters_of_drawn_taps_and_decimations() {
    let mut draw = Draw(1);
    let edges = [
        1, 2, 3, 4, 5, 15, 16, 17, 63, 64, 255, 256, 257, 511, 715, 1024, 2048, 2049, 2050, 4095,
        4096,
    ];
    let mut kernels = vec![];
    for (i, taps) in edges
        .into_iter()
        .chain((0..12).map(|_| 1 + draw.below(4096)))
        .enumerate()
        .collect::<Vec<_>>()
    {
        let decimation = [1, 1, 2, 5, 64, 1 + draw.below(300)][draw.below(6)];
        let frames = 1 + draw.below(4_000_000 / taps).min(9_000);
        kernels.push((Kernel::Fir { taps: draw.taps(taps, i % 2 == 0), decimation }, frames));
    }
    check_all("filters", &kernels, &mut draw);
}

#[test]
fn channels_of_drawn_numbers_hops_and_taps() {
    let mut draw = Draw(2);
    let mut kernels = vec![];
    let drawn: Vec<usize> = (0..8).map(|_| 2 + draw.below(130)).collect();
    for channels in [2, 3, 4, 5, 8, 12, 16, 32, 64, 128, 256, 500, 512, 1024, 2048, 4096]
        .into_iter()
        .chain(drawn)
    {
        let hops: Vec<usize> =
            (1..=channels).filter(|hop| channels % hop == 0 && channels / hop <= 8).collect();
        let hop = hops[draw.below(hops.len())];
        let taps = 1 + draw.below(12 * channels);
        let work = taps * channels * (channels / hop);
        let frames = 1 + draw.below(1 + 20_000_000 / work).min(2_000);
        let taps = draw.taps(taps, true).iter().map(|tap| tap.re).collect();
        kernels.push((Kernel::Channelizer { channels, hop, taps }, frames));
    }
    check_all("channels", &kernels, &mut draw);
}

#[test]
fn spectra_of_drawn_lengths_and_averages() {
    let mut draw = Draw(3);
    let mut kernels = vec![];
    let drawn: Vec<usize> = (0..6).map(|_| 1 + draw.below(900)).collect();
    for n in [1, 2, 3, 4, 8, 16, 17, 32, 64, 100, 128, 256, 512, 1024, 2048, 4096, 8192]
        .into_iter()
        .chain(drawn)
    {
        let room = 1 + 30_000_000 / (n * n);
        let average = 1 + draw.below(room.min(40));
        let frames = 1 + draw.below((room / average).clamp(1, 3_000));
        let window = (0..n).map(|_| 1.0 + 0.9 * draw.float()).collect();
        kernels.push((Kernel::PowerSpectrum { window, average }, frames));
    }
    check_all("spectra", &kernels, &mut draw);
}

/// Long spectra, whose reference would take minutes: tones come out where they are.
#[test]
fn long_spectra_have_their_tones_at_the_right_place() {
    for (gpu, bits) in all_devices().iter().flat_map(|gpu| [14, 17, 20].map(|bits| (gpu, bits))) {
        let n = 1usize << bits;
        let kernel = Kernel::PowerSpectrum { window: vec![1.0; n], average: 2 };
        let mut opened = open(&**gpu, &kernel, 2, 1);
        let tones = [(1usize, 1.0), (n / 3, 0.01), (n - 5, 3.0)];
        let samples: Vec<_> = (0..2 * n)
            .map(|t| {
                let tone = |&(k, size): &(usize, f64)| {
                    let angle = std::f64::consts::TAU * ((t * k) % n) as f64 / n as f64;
                    millstream_dsp::Complex::from_polar(size, angle)
                };
                let sum: millstream_dsp::Complex<f64> = tones.iter().map(tone).sum();
                millstream_dsp::Sample::new(sum.re as f32, sum.im as f32)
            })
            .collect();
        let results = once(&mut opened, 1, &samples, 1);
        for (k, &power) in results.iter().enumerate() {
            let wanted = tones
                .iter()
                .find(|(tone, _)| (tone + n / 2) % n == k)
                .map_or(0.0, |(_, size)| size * size);
            let error = (f64::from(power) - wanted).abs();
            assert!(error <= 1e-9 + 1e-5 * wanted, "{n} samples, line {k}: {power}, not {wanted}");
        }
    }
}
