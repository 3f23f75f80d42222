//! Samples of a flowgraph in a loop of the program: no block, no callback.

use millstream::prelude::*;
use std::error::Error;
use std::time::Duration;

/// Returns the number of samples that came, and their mean power.
fn run() -> Result<(usize, f64), Box<dyn Error + Send + Sync>> {
    let mut graph = Graph::new();
    graph.add("tone", SignalSource::<Complex<f32>>::new(Waveform::Cosine, 1000.0, 48e3)?)?;
    graph.add("second", Head::<Complex<f32>>::new(48_000))?;
    graph.chain(&["tone", "second"])?;
    let mut samples = graph.pull::<Complex<f32>>("second")?;
    let running = graph.start(&Plan::default())?;
    let mut buffer = vec![Complex::default(); 4096];
    let (mut count, mut missing, mut power) = (0, 0, 0.0);
    loop {
        let read = samples.recv(&mut buffer, Duration::from_secs(5))?;
        if read.missing > 0 {
            let position = count as u64 + missing;
            println!("{} samples are missing from position {position} on", read.missing);
            missing += read.missing;
        }
        power += buffer[..read.items].iter().map(|x| f64::from(x.norm_sqr())).sum::<f64>();
        count += read.items;
        if read.is_ended {
            break;
        }
        if read.items == 0 {
            return Err("no sample came for five seconds".into());
        }
    }
    running.wait()?;
    Ok((count, power / count as f64))
}

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let (count, power) = run()?;
    println!("{count} samples, mean power {power:.3}");
    Ok(())
}

#[test]
fn every_sample_of_the_tone_arrives() {
    let (count, power) = run().unwrap();
    assert_eq!(count, 48_000);
    assert!((power - 1.0).abs() < 1e-6, "{power}");
}
