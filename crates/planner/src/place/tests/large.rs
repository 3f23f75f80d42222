//! The heuristic: near the optimum where that is known, and within its work limit elsewhere.

use super::drawn::{graph, some_cpus};
use crate::place::case::PlacementCase;
use crate::place::exact::{self, ExactResult};
use crate::place::{Hints, heuristic, plan};
use millstream_cpu::RecordedMachine;
use millstream_stats::Random;

#[test]
fn the_heuristic_is_near_the_optimum_on_middling_graphs() {
    let base = 0x0ddb_a115;
    let mut gaps = Vec::new();
    let mut unproven = 0;
    for seed in base..base + 100 {
        let random = &mut Random::new(seed);
        let (shape, profile) = graph(random, 12);
        let topology = some_cpus(random, 8);
        let case = PlacementCase::new(&shape, &profile, &topology, &Hints::default()).unwrap();
        let cpus = 2 + random.below(3);
        let (mut some, mut many) = (50_000, 2_000_000);
        let guess = heuristic::search(&case.problem, cpus, &ExactResult::none(), &mut some);
        let best = exact::search(&case.problem, cpus, guess.clone(), &mut many);
        if best.proven {
            gaps.push(guess.score.bottleneck as f64 / best.score.bottleneck as f64 - 1.0);
        } else {
            unproven += 1;
        }
    }
    gaps.sort_by(f64::total_cmp);
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let worst = gaps[gaps.len() - 1];
    let optimal = gaps.iter().filter(|gap| **gap < 0.01).count();
    println!(
        "{} graphs of 12 blocks from seed {base:#x}: {optimal} optimal, mean gap {:.2} %, worst \
         {:.1} %; {unproven} without proof",
        gaps.len(),
        mean * 100.0,
        worst * 100.0,
    );
    assert!(gaps.len() >= 90, "{unproven} without proof");
    assert!(mean < 0.02 && worst < 0.25, "mean {mean}, worst {worst}");
}

#[test]
fn five_hundred_blocks_are_placed() {
    for name in ["i7-6950x", "2x-xeon-gold-6130"] {
        let (shape, profile) = graph(&mut Random::new(7), 500);
        let topology = RecordedMachine::named(name).unwrap().topology;
        let begin = std::time::Instant::now();
        let placed = plan(&shape, &profile, &topology, &Hints::default()).unwrap();
        let prediction = &placed.prediction;
        let gain = prediction.single_ns_per_item / prediction.ns_per_item;
        println!(
            "{name}: 500 blocks on {} CPUs in {:?}, {gain:.1} times one CPU; steps {:?}",
            placed.plan.partitions.len(),
            begin.elapsed(),
            prediction.ladder.iter().map(|s| (s.cpus, s.ns_per_item as u64)).collect::<Vec<_>>()
        );
        let blocks: usize = placed.plan.partitions.iter().map(|p| p.blocks.len()).sum();
        assert_eq!(blocks, 500);
        let heaviest = profile.blocks.iter().map(|block| block.busy_ns).max().unwrap() as f64;
        let total = profile.blocks.iter().map(|block| block.busy_ns).sum::<u64>() as f64;
        let ideal = (total / heaviest).min(topology.physical_cores() as f64);
        assert!(gain > 0.6 * ideal, "{name}: {gain} of {ideal}");
    }
}
