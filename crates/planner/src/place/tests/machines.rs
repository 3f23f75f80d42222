//! Plans for recorded machines: each must be plausible by itself.

use crate::place::{Distance, Hints, Placed, plan};
use millstream_cpu::{Core, RecordedMachine, Topology};
use millstream_flow::Shape;
use millstream_flow::observe::{BlockCost, EdgeCost, Profile};
use std::collections::BTreeSet;

/// The ATSC receiver of `graphs/atsc-rx.toml`, measured by `millstream --json graph plan` on two
/// shared CPUs of a virtual machine.
fn atsc() -> Profile {
    toml::from_str(include_str!("atsc-rx.toml")).unwrap()
}

/// `pipes` chains of `stages` blocks, each block 20 ns an item of 8 bytes.
fn pipes(pipes: usize, stages: usize) -> Profile {
    let items = 1_000_000;
    let mut profile = Profile { elapsed_s: 1.0, ..Profile::default() };
    for pipe in 0..pipes {
        for stage in 0..stages {
            profile.blocks.push(BlockCost {
                name: format!("p{pipe}s{stage}"),
                calls: 250,
                items_in: if stage > 0 { items } else { 0 },
                items_out: items,
                busy_ns: 20 * items,
                working_set_bytes: 64 << 10,
            });
            if stage > 0 {
                profile.edges.push(EdgeCost {
                    from: format!("p{pipe}s{}.out", stage - 1),
                    to: format!("p{pipe}s{stage}.in"),
                    item_bytes: 8,
                    items,
                    ..EdgeCost::default()
                });
            }
        }
    }
    profile
}

fn on(machine: &str, profile: &Profile) -> (Topology, Placed) {
    let topology = RecordedMachine::named(machine).unwrap().topology;
    let shape = Shape::of_profile(profile);
    let placed = plan(&shape, profile, &topology, &Hints::default()).unwrap();
    (topology, placed)
}

fn core_of<'a>(topology: &'a Topology, placed: &Placed, block: &str) -> &'a Core {
    let holds =
        |partition: &&millstream_flow::Partition| partition.blocks.iter().any(|name| name == block);
    let cpu = placed.plan.partitions.iter().find(holds).unwrap().cpu.unwrap();
    topology.cores.iter().find(|core| core.cpu == cpu).unwrap()
}

fn furthest(placed: &Placed) -> Option<Distance> {
    let cuts = placed.prediction.edges.iter().filter_map(|edge| edge.cut.as_ref());
    cuts.map(|cut| cut.distance).max()
}

#[test]
fn a_receiver_gets_another_plan_on_each_machine() {
    let profile = atsc();
    let mut plans = BTreeSet::new();
    for name in RecordedMachine::names() {
        let (topology, placed) = on(name, &profile);
        println!("{name}\n{}", placed.words());
        assert!(placed.prediction.exact, "{name}");
        assert!(placed.plan.partitions.len() >= 2, "{name}: {:?}", placed.plan);
        // All partitions within one shared cache.
        let cache = if name == "cortex-a53" || name == "apple-m1" {
            Distance::SharedL2
        } else {
            Distance::SharedL3
        };
        assert!(furthest(&placed).unwrap() <= cache, "{name}: {:?}", placed.plan);
        // The heaviest block has a CPU that is as fast as any, and no busy sibling.
        let heaviest = profile.blocks.iter().max_by_key(|block| block.busy_ns).unwrap();
        let core = core_of(&topology, &placed, &heaviest.name);
        assert_eq!(core.capacity, 1024, "{name}");
        let cpus: Vec<usize> = placed.plan.partitions.iter().filter_map(|p| p.cpu).collect();
        let beside = cpus.iter().filter(|cpu| core.smt_siblings.contains(**cpu)).count();
        assert_eq!(beside, 1, "{name}: {cpus:?}");
        plans.insert(placed.plan.to_toml());
    }
    assert!(plans.len() >= 6, "{} different plans", plans.len());
}

#[test]
fn pipes_stay_whole_within_a_ccx() {
    let (topology, placed) = on("ryzen-7-1700", &pipes(8, 6));
    for pipe in 0..8 {
        let l3 = |stage: usize| {
            let core = core_of(&topology, &placed, &format!("p{pipe}s{stage}"));
            core.cache(3).unwrap().shared_by.clone()
        };
        assert!((1..6).all(|stage| l3(stage) == l3(0)), "pipe {pipe}");
    }
    // One pipe per core, cut only between the two threads that share the core's caches.
    assert!(furthest(&placed) <= Some(Distance::Sibling), "{:?}", placed.plan);
}

#[test]
fn a_second_node_is_used_only_when_the_first_is_full() {
    let nodes = |placed: &Placed, topology: &Topology| {
        let of = |load: &crate::place::PartitionLoad| {
            topology.cores.iter().find(|core| core.cpu == load.cpu).unwrap().node
        };
        placed.prediction.partitions.iter().map(of).collect::<BTreeSet<_>>()
    };
    let (topology, placed) = on("2x-xeon-gold-6130", &pipes(2, 6));
    assert_eq!(nodes(&placed, &topology).len(), 1, "two pipes");
    let (topology, placed) = on("2x-xeon-gold-6130", &pipes(32, 3));
    assert_eq!(nodes(&placed, &topology).len(), 2, "a pipe for each core");
    assert!(furthest(&placed).is_none_or(|far| far < Distance::OtherNode), "no pipe crosses");
}

#[test]
fn work_goes_to_small_cores_by_what_they_can_do() {
    let (topology, placed) = on("i9-12900k", &pipes(16, 1));
    let mut loads = [0, 0];
    for partition in &placed.plan.partitions {
        let core = topology.cores.iter().find(|core| Some(core.cpu) == partition.cpu).unwrap();
        loads[usize::from(core.capacity < 1024)] += partition.blocks.len();
    }
    assert!(loads[0] >= 8 && loads[0] > loads[1], "fast and small: {loads:?}");
}

#[test]
fn rings_fit_the_caches() {
    // 256 KiB of L2: half for the rings inside, so a chain on one core gets small ones.
    let chain = pipes(1, 16);
    let topology = RecordedMachine::named("i7-6950x").unwrap().topology;
    let hints = Hints { max_cpus: Some(1), ..Hints::default() };
    let placed = plan(&Shape::of_profile(&chain), &chain, &topology, &hints).unwrap();
    assert_eq!(placed.plan.buffers.inside_bytes, 8 << 10, "128 KiB over 15 rings");
    // Four cores on 512 KiB: rings between them too.
    let (_, placed) = on("cortex-a53", &pipes(1, 16));
    let cuts = placed.prediction.edges.iter().filter(|edge| edge.cut.is_some()).count();
    assert_eq!((placed.plan.partitions.len(), cuts), (4, 3));
    assert!(placed.plan.buffers.between_bytes * cuts <= 256 << 10, "{:?}", placed.plan.buffers);
    // The user's decision stays.
    let mut hints = Hints::default();
    hints.plan.buffers.inside_bytes = 1 << 20;
    let placed = plan(&Shape::of_profile(&chain), &chain, &topology, &hints).unwrap();
    assert_eq!(placed.plan.buffers.inside_bytes, 1 << 20);
}
