//! Flowgraphs of FutureSDR on the emulated radio.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futuresdr::blocks::seify::Builder;
use futuresdr::blocks::{Apply, Fft, FftDirection, FiniteSource, FirBuilder, Head, NullSink};
use futuresdr::prelude::*;
use millstream_seify::MillstreamDevice;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// The samples that a flowgraph has seen.
type Seen<T> = Arc<Mutex<Vec<T>>>;

/// Runs a receiver like FutureSDR's own example `spectrum`, and returns the power of each bin.
fn spectrum<const BINS: usize>(
    device: &MillstreamDevice,
    hz: f64,
    rate_hz: f64,
) -> Outcome<Vec<f32>> {
    let source = Builder::from_device(device.clone().into_seify())
        .frequency(hz)
        .sample_rate(rate_hz)
        .gain(40.0)
        .build_source()
        .unwrap();
    let seen = Seen::<f32>::default();
    let keep = Arc::clone(&seen);
    let head = Head::<Complex32>::new(64 * BINS as u64);
    let fft = Fft::with_options(BINS, FftDirection::Forward, true, None);
    let power = Apply::new(move |bin: &Complex32| -> f32 {
        keep.lock().unwrap().push(bin.norm_sqr());
        bin.norm_sqr()
    });
    let sink = NullSink::<f32>::new();
    let mut graph = Flowgraph::new();
    connect!(graph, source.outputs[0] > head > fft > power > sink);
    Runtime::new().run(graph).unwrap();
    let all = seen.lock().unwrap();
    Ok((0..BINS).map(|bin| all.iter().skip(bin).step_by(BINS).sum()).collect())
}

/// Returns the frequency of the strongest bin.
fn strongest(powers: &[f32], hz: f64, rate_hz: f64) -> f64 {
    let bin = (0..powers.len()).max_by(|a, b| powers[*a].total_cmp(&powers[*b])).unwrap();
    hz + (bin as f64 / powers.len() as f64 - 0.5) * rate_hz
}

#[test]
fn tone_and_station_are_where_they_belong() -> Outcome<()> {
    let device = MillstreamDevice::open("radio=emulated").unwrap();
    for (hz, rate_hz, station_hz, width_hz) in
        [(433.9e6, 1e6, 433.92e6, 2e3), (1.0002e9, 2e6, 1e9, 2e3), (98e6, 1e6, 98.1e6, 80e3)]
    {
        let found = strongest(&spectrum::<1024>(&device, hz, rate_hz)?, hz, rate_hz);
        assert!((found - station_hz).abs() < width_hz, "{found} in place of {station_hz}");
    }
    Ok(())
}

/// The receiver of FutureSDR's own example `fm-receiver`, up to its loudspeaker.
#[test]
fn an_fm_station_is_heard() -> Outcome<()> {
    let (rate_hz, offset_hz, audio_hz, tone_hz) = (1e6, 250e3, 240e3, 1e3);
    let device = MillstreamDevice::open("radio=emulated").unwrap();
    let source = Builder::from_device(device.into_seify())
        .frequency(98.1e6 + offset_hz)
        .sample_rate(rate_hz)
        .gain(40.0)
        .build_source()
        .unwrap();
    let (mut turn, step) = (Complex32::new(1.0, 0.0), turn_of(offset_hz / rate_hz));
    let shift = Apply::new(move |sample: &Complex32| -> Complex32 {
        turn *= step;
        turn * sample
    });
    let resample = FirBuilder::resampling::<Complex32, Complex32>(6, 25);
    let (seen, mut last) = (Seen::<f32>::default(), Complex32::default());
    let keep = Arc::clone(&seen);
    let demodulate = Apply::new(move |sample: &Complex32| -> f32 {
        let angle = (sample * last.conj()).arg();
        last = *sample;
        keep.lock().unwrap().push(angle);
        angle
    });
    let (head, sink) = (Head::<f32>::new(120_000), NullSink::<f32>::new());
    let mut graph = Flowgraph::new();
    connect!(graph, source.outputs[0] > shift > resample > demodulate > head > sink);
    Runtime::new().run(graph).unwrap();
    let seen = seen.lock().unwrap();
    let level = |hz: f64| -> f32 {
        let turns = (0..).map(|n| turn_of(-hz * f64::from(n) / audio_hz));
        seen.iter().zip(turns).map(|(angle, turn)| turn * angle).sum::<Complex32>().norm()
    };
    let loudest = (3..50)
        .map(|tenths| f64::from(tenths) * 100.0)
        .max_by(|a, b| level(*a).total_cmp(&level(*b)));
    assert_eq!(loudest, Some(tone_hz));
    Ok(())
}

/// Returns the sample that has turned so often.
fn turn_of(turns: f64) -> Complex32 {
    Complex32::from_polar(1.0, (turns.fract() * std::f64::consts::TAU) as f32)
}

#[test]
fn every_gap_of_a_flowgraph_is_counted() -> Outcome<()> {
    let device = MillstreamDevice::open(
        "radio=emulated,rx_buffer_samples=67108864,\
         fault='lose to_host data skip=20 every=50 count=5'",
    )
    .unwrap();
    let source =
        Builder::from_device(device.clone().into_seify()).sample_rate(1e6).build_source().unwrap();
    let sink = NullSink::<Complex32>::new();
    let mut graph = Flowgraph::new();
    connect!(graph, source.outputs[0] > sink);
    let running = Runtime::new().start(graph).unwrap();
    let handle = running.handle();
    let (mut gaps, mut overflows) = (Vec::new(), 0);
    while overflows < 5 {
        std::thread::sleep(Duration::from_millis(20));
        gaps.extend(device.take_gaps());
        let answer = futuresdr::runtime::block_on(handle.call(source, "overflows", Pmt::Null));
        let Ok(Pmt::U64(count)) = answer else { panic!("{answer:?}") };
        overflows = count;
    }
    gaps.extend(device.take_gaps());
    let lost: u64 = gaps.iter().map(|gap| gap.gap.samples).sum();
    assert_eq!((gaps.len(), overflows), (5, 5));
    let ledger = device.radio().rx(0).ledger().unwrap();
    assert_eq!(ledger.lost_total(), lost);
    Ok(())
}

#[test]
fn a_transmitted_tone_comes_back_where_it_belongs() -> Outcome<()> {
    let device = MillstreamDevice::open(
        "radio=emulated,antenna='loopback:0;delay=100',rx_buffer_samples=67108864",
    )
    .unwrap();
    let (rate_hz, tone_hz) = (1e6, 125e3);
    let mut count = 0_u32;
    let samples = FiniteSource::new(move || {
        count += 1;
        (count <= 2_000_000).then(|| turn_of(tone_hz / rate_hz * f64::from(count)) * 0.5)
    });
    let output = Builder::from_device(device.clone().into_seify())
        .sample_rate(rate_hz)
        .build_sink()
        .unwrap();
    let mut graph = Flowgraph::new();
    connect!(graph, samples > inputs[0].output);
    let _running = Runtime::new().start(graph).unwrap();
    let powers = spectrum::<1024>(&device, 1e9, rate_hz)?;
    let found = strongest(&powers, 0.0, rate_hz);
    assert!((found - tone_hz).abs() < 2e3, "{found}");
    Ok(())
}
