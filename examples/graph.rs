//! A flowgraph in Rust with a block of its own, which counts the items above a limit.

use millstream::prelude::*;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Passes items on and counts those above a limit.
struct CountAbove {
    limit: f32,
    count: Arc<AtomicU64>,
}

impl Process for CountAbove {
    type Input = f32;
    type Output = f32;

    fn process(&mut self, input: &[f32], output: &mut [f32]) -> (usize, usize) {
        let items = input.len().min(output.len());
        output[..items].copy_from_slice(&input[..items]);
        let above = input[..items].iter().filter(|item| **item > self.limit).count();
        self.count.fetch_add(above as u64, Ordering::Relaxed);
        (items, items)
    }
}

/// Returns the number of items, and how many of them were above the limit.
fn run() -> Result<(usize, u64), Box<dyn Error + Send + Sync>> {
    let count = Arc::new(AtomicU64::new(0));
    let (sink, collected) = VectorSink::new();
    let mut graph = Graph::new();
    graph.add("tone", SignalSource::<f32>::new(Waveform::Cosine, 1000.0, 48e3)?)?;
    graph.add("count", Through::new(CountAbove { limit: 0.0, count: Arc::clone(&count) }))?;
    graph.add("second", Head::<f32>::new(48_000))?;
    graph.add("sink", sink)?;
    graph.chain(&["tone", "second", "count", "sink"])?;
    graph.run(&Plan::default())?;
    let items: Vec<f32> = collected.take();
    Ok((items.len(), count.load(Ordering::Relaxed)))
}

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let (items, above) = run()?;
    println!("{items} items, {above} above zero");
    Ok(())
}

#[test]
fn about_half_of_a_cosine_is_above_zero() {
    let (items, above) = run().unwrap();
    assert_eq!(items, 48_000);
    assert!((22_000..=26_000).contains(&above), "{above}");
}
