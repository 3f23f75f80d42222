//! Measurement of the cost of connections between two CPUs of this machine.

use super::costs::{Costs, Price};
use millstream_flow::blocks::{Copy, NullSink, NullSource};
use millstream_flow::plan::{Partition, Plan, WaitMode};
use millstream_flow::{Graph, RunError};
use std::thread::sleep;
use std::time::{Duration, Instant};

type Sample = millstream_flow::Complex<f32>;

/// Number of runs, of which the median counts.
const RUNS: u32 = 3;
const NAMES: [&str; 4] = ["source", "give", "take", "sink"];

/// Returns prices for a machine of two CPUs: the defaults, with the measured price of bytes from
/// the CPU `from` to the CPU `to`. The measurement takes `time` and runs copies on both CPUs and
/// then on one. Polls and wake-ups are in the price of the bytes.
///
/// # Errors
/// [`RunError`] when a graph cannot run on these CPUs.
pub fn measure(from: usize, to: usize, time: Duration) -> Result<Costs, RunError> {
    let each = time / (2 * RUNS);
    let mut prices = Vec::new();
    for _ in 0..RUNS {
        let together = ns_per_byte(&[(from, &NAMES)], each)?;
        let (give, take) = NAMES.split_at(2);
        let apart = ns_per_byte(&[(from, give), (to, take)], each)?;
        // Together, one thread does the work of both.
        prices.push((apart - together / 2.0).max(0.0));
    }
    prices.sort_by(f64::total_cmp);
    let ns = prices[prices.len() / 2];
    let price = Price { read_ns: ns, write_ns: ns };
    let [sibling, shared_l2, shared_l3, same_node, other_node] = [price; 5];
    let defaults = Costs::default();
    let prices = Costs { sibling, shared_l2, shared_l3, same_node, other_node, ..defaults };
    Ok(Costs { batch_ns: 0.0, ..prices })
}

/// Returns the nanoseconds per byte of a graph with this assignment to CPUs.
fn ns_per_byte(parts: &[(usize, &[&str])], time: Duration) -> Result<f64, RunError> {
    let mut graph = Graph::new();
    graph.add(NAMES[0], NullSource::<Sample>::new())?;
    graph.add(NAMES[1], Copy::<Sample>::new())?;
    graph.add(NAMES[2], Copy::<Sample>::new())?;
    graph.add(NAMES[3], NullSink::<Sample>::new())?;
    graph.chain(&NAMES)?;
    let partitions = parts.iter().map(|(cpu, blocks)| Partition {
        name: format!("cpu{cpu}"),
        blocks: blocks.iter().map(|block| (*block).to_owned()).collect(),
        cpu: Some(*cpu),
        wait: WaitMode::Park,
    });
    let running = graph.start(&Plan { partitions: partitions.collect(), ..Plan::default() })?;
    let items = || running.snapshot().block(NAMES[3]).map_or(0, |sink| sink.items_in);
    sleep(time / 4);
    let (start, before) = (Instant::now(), items());
    sleep(time * 3 / 4);
    let bytes = (items() - before) * size_of::<Sample>() as u64;
    let ns = start.elapsed().as_nanos() as f64 / bytes.max(1) as f64;
    running.stopper().stop();
    running.wait()?;
    Ok(ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crossing_has_a_price() {
        let cpus: Vec<usize> = millstream_cpu::thread::allowed_cpus().unwrap().iter().collect();
        let (from, to) = (cpus[0], cpus[cpus.len() - 1]);
        if from == to {
            println!("one CPU: nothing to cross");
            return;
        }
        let costs = measure(from, to, Duration::from_millis(60)).unwrap();
        assert!(costs.shared_l3.read_ns.is_finite() && costs.shared_l3.read_ns >= 0.0);
        assert!(measure(from, 1 << 20, Duration::from_millis(1)).is_err());
    }
}
