//! Batches on their way: order, slots, lengths, release, drop.

use crate::{Draw, all_devices, error, fill, once, open, reference, wait};
use millstream_accel::{Accelerator, Kernel};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// One kernel of each way to calculate.
fn kernels(draw: &mut Draw) -> Vec<(Kernel, usize)> {
    let real = |draw: &mut Draw, count| draw.taps(count, true).iter().map(|tap| tap.re).collect();
    vec![
        (Kernel::Fir { taps: draw.taps(7, true), decimation: 1 }, 3_000),
        (Kernel::Fir { taps: draw.taps(700, false), decimation: 2 }, 700),
        (Kernel::Fir { taps: draw.taps(4096, true), decimation: 1 }, 900),
        (Kernel::Channelizer { channels: 64, hop: 32, taps: real(draw, 500) }, 20),
        (Kernel::Channelizer { channels: 12, hop: 12, taps: real(draw, 50) }, 200),
        (Kernel::PowerSpectrum { window: vec![1.0; 256], average: 3 }, 40),
        (Kernel::PowerSpectrum { window: vec![1.0; 8192], average: 2 }, 2),
        (Kernel::PowerSpectrum { window: vec![1.0; 15], average: 4 }, 90),
    ]
}

#[test]
fn batches_come_in_any_order_and_do_not_depend_on_their_slot() {
    all_devices().iter().for_each(|gpu| check_order(&**gpu));
}

fn check_order(gpu: &dyn Accelerator) {
    let mut draw = Draw(4);
    for (kernel, frames) in kernels(&mut draw) {
        const SLOTS: usize = 4;
        let mut opened = open(gpu, &kernel, SLOTS, frames);
        let inputs: Vec<_> =
            (0..SLOTS).map(|_| draw.samples(kernel.shape().window(frames))).collect();
        let alone: Vec<_> =
            inputs.iter().map(|input| once(&mut opened, 0, input, frames)).collect();
        for round in 0..6 {
            // Which input is in which slot, and in which order slots are polled.
            let order: Vec<usize> =
                (0..SLOTS).map(|i| (i * [1, 3][round % 2] + round) % SLOTS).collect();
            for (slot, &input) in order.iter().enumerate() {
                fill(&mut opened, slot, &inputs[input]);
                let window = Arc::clone(&opened.windows[slot]);
                opened.session.submit(slot, &window, frames).unwrap();
            }
            for &slot in order.iter().rev() {
                wait(&mut opened, slot);
                let wanted = &alone[order[slot]];
                assert!(opened.session.results(slot) == wanted, "{kernel}: slot {slot} differs");
                opened.session.release(slot);
            }
        }
    }
}

#[test]
fn a_short_batch_sees_nothing_of_a_long_one_before_it() {
    all_devices().iter().for_each(|gpu| check_short(&**gpu));
}

fn check_short(gpu: &dyn Accelerator) {
    let mut draw = Draw(5);
    for (kernel, frames) in kernels(&mut draw) {
        let mut opened = open(gpu, &kernel, 3, frames);
        let mut poison = draw.samples(kernel.shape().window(frames));
        let short = draw.samples(kernel.shape().window(1));
        poison[short.len()..].fill(millstream_dsp::Sample::new(f32::NAN, f32::INFINITY));
        once(&mut opened, 0, &poison, frames);
        let results = once(&mut opened, 0, &short, 1);
        assert_eq!(results.len(), kernel.shape().words);
        let error = error(&results, &reference::results(&kernel, &short, 1));
        assert!(error <= 1e-5, "{kernel}: {error:.1e}");
    }
}

#[test]
fn a_session_with_batches_on_their_way_is_dropped_at_once() {
    all_devices().iter().for_each(|gpu| check_drop(&**gpu));
}

fn check_drop(gpu: &dyn Accelerator) {
    let mut draw = Draw(6);
    let kernel = Kernel::Fir { taps: draw.taps(200, false), decimation: 1 };
    let threads = || std::fs::read_dir("/proc/self/task").unwrap().count();
    let mut before = 0;
    for round in 0..8 {
        let frames = 100_000;
        let mut opened = open(gpu, &kernel, 3, frames);
        for slot in 0..3 {
            let window = Arc::clone(&opened.windows[slot]);
            opened.session.submit(slot, &window, frames).unwrap();
        }
        let begin = Instant::now();
        drop(opened);
        let time = begin.elapsed();
        assert!(time < Duration::from_millis(50), "the drop took {time:?}");
        if round == 1 {
            before = threads();
        }
    }
    // What closes sessions ends, too.
    let end = Instant::now() + Duration::from_secs(60);
    while threads() > before + 4 {
        assert!(Instant::now() < end, "{} threads, and {before} before", threads());
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn pinned_memory_is_counted() {
    all_devices().iter().for_each(|gpu| check_pinned(&**gpu));
}

fn check_pinned(gpu: &dyn Accelerator) {
    let kernel =
        Kernel::Fir { taps: vec![millstream_dsp::Sample::new(1.0, 0.0); 8], decimation: 4 };
    let opened = gpu.open(&kernel, 3, 1000).unwrap();
    let one = (7 + 4 * 1000) * 8 + 1000 * 8;
    let pinned = opened.session.pinned_bytes();
    assert!((3 * one..3 * (one + 1024)).contains(&pinned), "{pinned} bytes");
}
