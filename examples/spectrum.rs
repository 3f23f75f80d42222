//! The spectrum of a radio's samples, as a flowgraph, and the frequency of its highest line.

use millstream::prelude::*;
use std::error::Error;

const RATE_HZ: f64 = 1e6;
const LINES: usize = 1000;
const AVERAGE: u32 = 50;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Returns the power at each of the lines, dB of full scale, frequency 0 in the middle.
fn spectrum(args: DeviceArgs) -> Outcome<Vec<f32>> {
    let mut device = Device::open(args)?;
    device.set_rate(RATE_HZ)?;
    let stream = device.rx_stream(RxArgs::new(0))?;
    let samples = LINES as u64 * u64::from(AVERAGE);
    let (source, _segments) = RadioSource::<Complex32>::new(device, stream, Some(samples));
    let (sink, lines) = VectorSink::<f32>::new();
    let mut graph = Graph::new();
    graph.add("radio", source)?;
    graph.add("spectrum", Through::new(PowerSpectrum::new(vec![1.0; LINES], AVERAGE)))?;
    graph.add("lines", sink)?;
    graph.chain(&["radio", "spectrum", "lines"])?;
    graph.run(&Plan::default())?;
    Ok(lines.take())
}

/// Returns frequency and power of the highest line.
fn peak(lines: &[f32]) -> Option<(f64, f32)> {
    let (line, power) = lines.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1))?;
    Some(((line as f64 - LINES as f64 / 2.0) * RATE_HZ / LINES as f64, *power))
}

fn tone_of_an_emulated_radio() -> Outcome<Vec<f32>> {
    let (_radio, args) = millstream::emulated_radio(RadioConfig {
        // Half of full scale: -6 dB.
        rx_antennas: vec!["tone:-123e3,0.5".to_owned()],
        // A busy machine that fetches samples late loses none.
        rx_buffer_samples: 1 << 24,
        ..RadioConfig::default()
    })?;
    spectrum(args)
}

fn main() -> Outcome<()> {
    let lines = tone_of_an_emulated_radio()?;
    let (frequency_hz, power_db) = peak(&lines).ok_or("no samples came")?;
    println!("{} kHz: {power_db:.1} dB", frequency_hz / 1e3);
    Ok(())
}

#[test]
fn the_tone_is_one_line_of_minus_six_decibels() {
    let lines = tone_of_an_emulated_radio().unwrap();
    let (frequency_hz, power_db) = peak(&lines).unwrap();
    assert_eq!((lines.len(), frequency_hz), (LINES, -123e3));
    assert!((power_db + 6.02).abs() < 0.1, "{power_db} dB");
    assert_eq!(lines.iter().filter(|power| **power > -60.0).count(), 1);
}
