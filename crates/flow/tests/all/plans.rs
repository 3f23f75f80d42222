//! Any plan gives the same output.

use crate::common::{Add, Nibble};
use millstream_flow::blocks::{VectorSink, VectorSource};
use millstream_flow::{Buffers, Graph, Partition, Plan, WaitMode};
use proptest::prelude::*;
use std::collections::BTreeMap;

const BLOCKS: [&str; 7] = ["source", "a", "b", "c", "add", "d", "sink"];

/// source ─▶ a ─▶ b ─▶ add ─▶ d ─▶ sink, with a second path a ─▶ c ─▶ add.
fn graph(items: Vec<u32>, seeds: &[u64], bites: &[usize]) -> (Graph, impl Fn() -> Vec<u32>) {
    let mut graph = Graph::new();
    let (sink, collected) = VectorSink::<u32>::new();
    graph.add("sink", sink).unwrap();
    graph.add("source", VectorSource::new(items)).unwrap();
    for (index, name) in ["d", "c", "b", "a"].into_iter().enumerate() {
        graph.add(name, Nibble::new(seeds[index], bites[index])).unwrap();
    }
    graph.add("add", Add::new()).unwrap();
    graph.chain(&["source", "a", "b", "add.a"]).unwrap();
    graph.chain(&["a", "c", "add.b"]).unwrap();
    graph.chain(&["add", "d", "sink"]).unwrap();
    (graph, move || collected.take())
}

/// Puts block i into partition `places[i]`; the last number means "left to the runtime".
fn plan(places: &[usize], inside_bytes: usize, between_bytes: usize) -> Plan {
    let mut partitions: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for (block, place) in BLOCKS.iter().zip(places).filter(|(_, place)| **place < 4) {
        partitions.entry(*place).or_default().push((*block).to_owned());
    }
    let partitions = partitions.into_iter().map(|(place, blocks)| Partition {
        name: format!("p{place}"),
        blocks,
        cpu: None,
        wait: WaitMode::Park,
    });
    Plan {
        partitions: partitions.collect(),
        buffers: Buffers { inside_bytes, between_bytes, ..Buffers::default() },
        ..Plan::default()
    }
}

fn config() -> ProptestConfig {
    ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn any_plan_gives_the_same_output(
        count in 0u32..30_000,
        seeds in prop::collection::vec(any::<u64>(), 4),
        bites in prop::collection::vec(1usize..3000, 4),
        places in prop::collection::vec(0usize..5, BLOCKS.len()),
        inside_bytes in 1usize..20_000,
        between_bytes in 1usize..20_000,
    ) {
        let items: Vec<u32> = (0..count).map(|i| i.wrapping_mul(2_654_435_761)).collect();
        let expected: Vec<u32> = items.iter().map(|x| x.wrapping_mul(2)).collect();
        let (graph, result) = graph(items, &seeds, &bites);
        graph.run(&plan(&places, inside_bytes, between_bytes)).unwrap();
        prop_assert_eq!(result(), expected);
    }
}
