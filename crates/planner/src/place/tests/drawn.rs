//! Random graphs with costs, from a seed.

use millstream_cpu::{CpuSet, RecordedMachine, Topology};
use millstream_flow::Shape;
use millstream_flow::observe::{BlockCost, EdgeCost, Profile};
use millstream_stats::Random;

/// Makes a connected graph of `blocks` blocks: light and heavy ones, thin and thick connections.
pub fn graph(random: &mut Random, blocks: usize) -> (Shape, Profile) {
    let mut profile = Profile { elapsed_s: 1.0, ..Profile::default() };
    for block in 0..blocks {
        // Over three decades, and some that cost nothing (not all: that would mean no measurement).
        let scale = 10u64.pow(3 + random.below(4) as u32);
        let busy_ns = if block > 0 && random.chance(0.05) {
            0
        } else {
            scale * (1 + random.below(99) as u64)
        };
        profile.blocks.push(BlockCost {
            name: format!("b{block}"),
            calls: 1 + random.below(2000) as u64,
            items_in: 1000,
            items_out: 1000,
            busy_ns,
            working_set_bytes: 1 << (10 + random.below(8)),
        });
        // Mostly a chain, with branches and joins.
        let inputs = usize::from(block > 0) + usize::from(block > 1 && random.chance(0.3));
        for input in 0..inputs {
            let near = random.chance(0.7) && input == 0;
            let from = if near { block - 1 } else { random.below(block) };
            let items = 10u64.pow(2 + random.below(5) as u32) * (1 + random.below(50) as u64);
            profile.edges.push(EdgeCost {
                from: format!("b{from}.out"),
                to: format!("b{block}.in{input}"),
                item_bytes: [1, 4, 8][random.below(3)],
                items,
                ..EdgeCost::default()
            });
        }
    }
    (Shape::of_profile(&profile), profile)
}

/// Returns some CPUs of one of the recorded machines.
pub fn some_cpus(random: &mut Random, count: usize) -> Topology {
    let names: Vec<&str> = RecordedMachine::names().collect();
    let topology = RecordedMachine::named(names[random.below(names.len())]).unwrap().topology;
    let mut cpus: Vec<usize> = topology.cpus().iter().collect();
    while cpus.len() > count {
        // Often neighbours, otherwise any.
        let index = if random.chance(0.5) { cpus.len() - 1 } else { random.below(cpus.len()) };
        cpus.remove(index);
    }
    topology.only(&CpuSet::from_iter(cpus))
}
