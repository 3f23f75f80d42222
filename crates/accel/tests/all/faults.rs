//! The fault matrix: nothing is lost, and the block says what the CPU calculated, and why.

use super::{assert_near, filter, noise, on_cpu};
use millstream_accel::{Kernel, OffloadBlock, OffloadSettings, StandIn, StandInFault};
use millstream_dsp::Sample;
use millstream_flow::{Block, Metric, Mock};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const BATCH: usize = 1000;
const BATCHES: usize = 40;

fn numbers(block: &impl Block) -> BTreeMap<&'static str, u64> {
    let value = |metric| match metric {
        Metric::Counter(counter) => counter.get(),
        Metric::Gauge(gauge) => gauge.get() as u64,
        _ => 0,
    };
    millstream_flow::BlockFacts::of(block)
        .metrics
        .into_iter()
        .map(|(name, metric)| (name, value(metric)))
        .collect()
}

fn run_to_end(mock: &mut Mock<impl Block>) {
    let begun = Instant::now();
    while !mock.is_finished() {
        assert!(begun.elapsed() < Duration::from_secs(100));
        mock.run().unwrap();
        std::thread::sleep(Duration::from_micros(50));
    }
}

/// Runs a stream over a device with faults; returns the block's numbers and the time.
fn run(
    faults: &[(u64, StandInFault)],
    change: impl Fn(&mut OffloadSettings),
) -> (BTreeMap<&'static str, u64>, Duration) {
    let kernel = filter(31, 1);
    let mut settings = OffloadSettings::for_batches(BATCH, &kernel);
    change(&mut settings);
    let device = StandIn {
        latency: Duration::from_micros(100),
        faults: faults.to_vec(),
        ..StandIn::default()
    };
    let samples = noise(5, BATCH * BATCHES);
    let mut mock = Mock::with_room(
        OffloadBlock::<Sample>::new(kernel.clone(), &device, settings).unwrap(),
        8192,
    );
    let (begun, mut out) = (Instant::now(), Vec::new());
    mock.feed("in", &samples);
    mock.end("in");
    while !mock.is_finished() {
        mock.run().unwrap();
        out.extend(mock.take::<Sample>("out"));
        std::thread::sleep(Duration::from_micros(50));
    }
    let (time, numbers) = (begun.elapsed(), numbers(&mock.block));
    assert_near(&out, &on_cpu::<Sample>(&kernel, &samples));
    let sum: u64 = ["device", "accelerator_stall", "accelerator_lost", "accelerator_wrong"]
        .iter()
        .map(|name| numbers[&*format!("{name}_items")])
        .sum();
    let sum = sum + numbers["tail_items"];
    assert_eq!(sum, samples.len() as u64, "every sample has its place: {numbers:?}");
    (numbers, time)
}

#[test]
fn a_device_without_faults_calculates_everything() {
    // A test machine may stop the stand-in's thread for a while.
    let (numbers, _) = run(&[], |settings| settings.stall_after = Duration::from_secs(60));
    assert_eq!(numbers["device_items"], (BATCH * BATCHES) as u64);
    assert_eq!(numbers["device_gone"], 0);
    let window = (BATCH + 30) * 8;
    assert_eq!(numbers["to_device_bytes"], (window * BATCHES) as u64);
    assert_eq!(numbers["from_device_bytes"], (BATCH * 8 * BATCHES) as u64);
}

#[test]
fn the_cpu_takes_over_during_a_stall_and_gives_back() {
    let kernel = filter(31, 1);
    let settings = OffloadSettings {
        stall_after: Duration::from_millis(100),
        ..OffloadSettings::for_batches(BATCH, &kernel)
    };
    let device = StandIn {
        faults: vec![(10, StandInFault::Stall(Duration::from_secs(2)))],
        ..StandIn::default()
    };
    let block = OffloadBlock::<Sample>::new(kernel.clone(), &device, settings).unwrap();
    let mut mock = Mock::with_room(block, 8192);
    let (samples, mut out) = (noise(5, 2 * BATCH * BATCHES), Vec::new());
    let mut run = |mock: &mut Mock<_>, samples: &[Sample], wanted: usize| {
        mock.feed("in", samples);
        let begun = Instant::now();
        while out.len() < wanted {
            assert!(begun.elapsed() < Duration::from_secs(100), "{} results", out.len());
            mock.run().unwrap();
            out.extend(mock.take::<Sample>("out"));
            std::thread::sleep(Duration::from_micros(50));
        }
    };
    let half = BATCH * BATCHES;
    run(&mut mock, &samples[..half], half);
    let before = numbers(&mock.block);
    assert!(before["accelerator_stall_items"] >= BATCH as u64, "{before:?}");
    assert!(before["device_items"] < half as u64, "{before:?}");
    // The device answers, and takes batches again.
    std::thread::sleep(Duration::from_secs(3));
    mock.run().unwrap();
    run(&mut mock, &samples[half..], 2 * half);
    let after = numbers(&mock.block);
    assert!(after["device_items"] > before["device_items"], "{before:?} {after:?}");
    assert_near(&out, &on_cpu::<Sample>(&kernel, &samples));
}

#[test]
fn nobody_waits_for_a_device_that_never_answers() {
    let stall = (7, StandInFault::Stall(Duration::from_secs(1000)));
    let (numbers, time) = run(&[stall], |_| {});
    assert!(time < Duration::from_secs(100), "{time:?}");
    assert_eq!(numbers["device_items"] + numbers["accelerator_stall_items"], 40_000);
    assert!(numbers["accelerator_stall_items"] >= 33_000, "{numbers:?}");
}

#[test]
fn a_lost_device_costs_no_sample() {
    for batch in [0, 1, 20, 39] {
        let (numbers, _) = run(&[(batch, StandInFault::Lose)], |settings| {
            settings.stall_after = Duration::from_secs(60);
        });
        assert_eq!(numbers["device_gone"], 1);
        // Batches that were ready when the device was lost count as the CPU's: it calculates them.
        let lost = numbers["accelerator_lost_items"];
        assert!(lost >= (40 - batch) * BATCH as u64, "{batch}: {numbers:?}");
        assert!(lost <= (40 - batch + 4) * BATCH as u64, "{batch}: {numbers:?}");
    }
}

#[test]
fn a_wrong_result_is_found_and_ends_the_trust() {
    let (numbers, _) = run(&[(12, StandInFault::Wrong)], |settings| {
        settings.stall_after = Duration::from_secs(60);
        settings.check_every = 1;
    });
    assert_eq!(numbers["device_items"], 12 * BATCH as u64, "{numbers:?}");
    assert_eq!(numbers["accelerator_wrong_items"], 28 * BATCH as u64, "{numbers:?}");
    assert_eq!(numbers["device_checked_items"], 12 * BATCH as u64);
}

#[test]
fn only_every_fourth_batch_is_checked() {
    let (numbers, _) = run(&[], |settings| {
        settings.stall_after = Duration::from_secs(60);
        settings.check_every = 4;
    });
    assert_eq!(numbers["device_checked_items"], 10 * BATCH as u64);
}

#[test]
fn drawn_faults_lose_nothing() {
    let mut state = 1u64;
    let mut draw = |below: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for _ in 0..30 {
        let faults: Vec<_> = (0..draw(4))
            .map(|_| {
                let fault = match draw(4) {
                    0 => StandInFault::Lose,
                    1 => StandInFault::Wrong,
                    _ => StandInFault::Stall(Duration::from_millis(draw(12))),
                };
                (draw(40), fault)
            })
            .collect();
        let slots = 1 + draw(5) as usize;
        run(&faults, |settings| {
            settings.slots = slots;
            settings.stall_after = Duration::from_millis(3);
            // Without it a wrong result is nobody's to find.
            settings.check_every = 1;
        });
    }
}

#[test]
fn a_session_that_is_dropped_in_a_stall_ends_at_once() {
    let kernel = Kernel::PowerSpectrum { window: vec![1.0; 64], average: 1 };
    let device = StandIn {
        faults: vec![(0, StandInFault::Stall(Duration::from_secs(1000)))],
        ..StandIn::default()
    };
    let settings = OffloadSettings::for_batches(64, &kernel);
    let mut mock = Mock::new(OffloadBlock::<f32>::new(kernel, &device, settings).unwrap());
    mock.feed("in", &noise(1, 640));
    mock.run().unwrap();
    let begun = Instant::now();
    drop(mock);
    assert!(begun.elapsed() < Duration::from_secs(100));
}

#[test]
fn the_ledger_counts_samples_of_the_stream_only() {
    for (kernel, tail) in
        [(filter(9, 7), 0), (Kernel::Channelizer { channels: 8, hop: 4, taps: vec![1.0; 20] }, 3)]
    {
        let settings = OffloadSettings {
            stall_after: Duration::from_secs(60),
            ..OffloadSettings::for_batches(100, &kernel)
        };
        let block = OffloadBlock::<Sample>::new(kernel, &StandIn::default(), settings).unwrap();
        let mut mock = Mock::new(block);
        mock.feed("in", &noise(1, 1003));
        mock.end("in");
        run_to_end(&mut mock);
        let numbers = numbers(&mock.block);
        assert_eq!((numbers["device_items"], numbers["tail_items"]), (1003 - tail, tail));
    }
}

#[test]
fn a_check_accepts_what_rounding_and_odd_samples_make() {
    // A filter that leaves nothing of a strong carrier, silence behind a burst, and no numbers.
    let taps = (0..300).map(|n| Sample::new(if n % 2 == 0 { 1.0 } else { -1.0 }, 0.0)).collect();
    let kernel = Kernel::Fir { taps, decimation: 1 };
    let settings = OffloadSettings {
        check_every: 1,
        stall_after: Duration::from_secs(60),
        ..OffloadSettings::for_batches(1000, &kernel)
    };
    // The stand-in calculates whole batches, the check parts of them: they round differently.
    let block = OffloadBlock::<Sample>::new(kernel, &StandIn::default(), settings).unwrap();
    let mut mock = Mock::with_room(block, 512);
    let mut samples = vec![Sample::new(1000.0, 3.0); 4000];
    samples.extend(vec![Sample::default(); 3000]);
    samples.push(Sample::new(f32::NAN, 1.0));
    samples.extend(noise(1, 3999));
    mock.feed("in", &samples);
    mock.end("in");
    run_to_end(&mut mock);
    let numbers = numbers(&mock.block);
    assert_eq!((numbers["device_items"], numbers["device_gone"]), (11_000, 0), "{numbers:?}");
}
