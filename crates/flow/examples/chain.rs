//! Measures the items per second through a chain of copy blocks, by plan.
//!
//! `cargo run --release -p millstream-flow --example chain -- [BLOCKS] [ITEMS]` prints one line for
//! each plan: items (complex samples) per second through the chain, CPU time per item and block,
//! and items per call.

use millstream_cpu::usage::process_cpu_time;
use millstream_flow::blocks::{Copy, Head, NullSink, NullSource};
use millstream_flow::{Buffers, Graph, Partition, Plan, RunError, WaitMode};
use num_complex::Complex;
use std::time::Instant;

type Sample = Complex<f32>;

fn chain(blocks: usize, items: u64) -> Result<Graph, RunError> {
    let mut graph = Graph::new();
    graph.add("source", NullSource::<Sample>::new())?;
    graph.add("head", Head::<Sample>::new(items))?;
    let mut names = vec!["source".to_owned(), "head".to_owned()];
    for index in 0..blocks {
        let name = format!("copy{index}");
        graph.add(&name, Copy::<Sample>::new())?;
        names.push(name);
    }
    graph.add("sink", NullSink::<Sample>::new())?;
    names.push("sink".to_owned());
    graph.chain(&names.iter().map(String::as_str).collect::<Vec<_>>())?;
    Ok(graph)
}

fn split(graph: &Graph, parts: usize, wait: WaitMode) -> Vec<Partition> {
    let names: Vec<String> = graph.block_names().map(str::to_owned).collect();
    let runs = names.chunks(names.len().div_ceil(parts)).enumerate();
    let partition = |(index, run): (usize, &[String])| Partition {
        name: format!("p{index}"),
        blocks: run.to_vec(),
        cpu: None,
        wait,
    };
    runs.map(partition).collect()
}

fn measure(
    label: &str,
    blocks: usize,
    items: u64,
    plan: impl Fn(&Graph) -> Plan,
) -> Result<(), RunError> {
    let graph = chain(blocks, items)?;
    let plan = plan(&graph);
    let (start, cpu) = (Instant::now(), process_cpu_time());
    let snapshot = graph.run(&plan)?;
    let (seconds, cpu) = (start.elapsed().as_secs_f64(), process_cpu_time() - cpu);
    let calls: u64 = snapshot.blocks.iter().map(|block| block.calls).sum();
    let waits: u64 = snapshot.partitions.iter().map(|partition| partition.waits).sum();
    let hops = items as f64 * (blocks + 3) as f64;
    println!(
        "{label:24} {:8.1} Mitem/s  {:6.3} ns CPU per item and block  \
         {:7.0} items per call  {waits} waits",
        items as f64 / seconds / 1e6,
        cpu.as_secs_f64() * 1e9 / hops,
        hops / calls as f64,
    );
    Ok(())
}

fn main() -> Result<(), RunError> {
    let mut arguments = std::env::args().skip(1).map_while(|text| text.parse::<u64>().ok());
    let blocks = arguments.next().unwrap_or(8) as usize;
    let items = arguments.next().unwrap_or(400_000_000);
    println!("{items} complex samples through {blocks} copy blocks (and source, head, sink)");
    for kib in [8, 16, 32, 64, 128, 256] {
        measure(&format!("1 thread, {kib} KiB"), blocks, items, |graph| Plan {
            partitions: split(graph, 1, WaitMode::Park),
            buffers: Buffers { inside_bytes: kib << 10, ..Buffers::default() },
            ..Plan::default()
        })?;
    }
    for (kib, wait) in [
        (64, WaitMode::Park),
        (256, WaitMode::Park),
        (1024, WaitMode::Park),
        (64, WaitMode::Spin),
        (256, WaitMode::Spin),
    ] {
        measure(&format!("2 threads, {kib} KiB, {wait:?}"), blocks, items, |graph| Plan {
            partitions: split(graph, 2, wait),
            buffers: Buffers { between_bytes: kib << 10, ..Buffers::default() },
            ..Plan::default()
        })?;
    }
    measure("thread per block, Park", blocks, items / 4, |graph| Plan {
        partitions: split(graph, blocks + 3, WaitMode::Park),
        ..Plan::default()
    })
}
