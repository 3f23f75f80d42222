//! The exact search compared with all placements, evaluated by the model as the documentation
//! describes it: from the profile and the topology, in floating point, without any of its code.

use super::drawn::{graph, some_cpus};
use crate::place::case::PlacementCase;
use crate::place::exact::{self, ExactResult};
use crate::place::{Costs, Distance, Hints, solve};
use millstream_cpu::{Core, Topology};
use millstream_flow::Shape;
use millstream_flow::observe::Profile;
use millstream_flow::plan::{Partition, Plan, WaitMode};
use millstream_stats::Random;

const GRAPHS: u64 = 1000;
/// The most placements of one graph that are all evaluated.
const PLACEMENTS: usize = 20_000;

fn distance(a: &Core, b: &Core) -> Distance {
    let cache = |level| a.cache(level).is_some_and(|cache| cache.shared_by.contains(b.cpu));
    match () {
        () if a.cpu == b.cpu => Distance::SameCpu,
        () if a.smt_siblings.contains(b.cpu) => Distance::Sibling,
        () if cache(2) => Distance::SharedL2,
        () if cache(3) => Distance::SharedL3,
        () if (a.package, a.node) == (b.package, b.node) => Distance::SameNode,
        () => Distance::OtherNode,
    }
}

/// The input, as the test sees it.
struct Question {
    shape: Shape,
    profile: Profile,
    topology: Topology,
    hints: Hints,
}

impl Question {
    fn random(random: &mut Random) -> Self {
        let cpus = 1 + random.below(6);
        let topology = some_cpus(random, cpus);
        let cpus = topology.cores.len();
        let mut blocks = 1 + random.below(9);
        while cpus.pow(blocks as u32) > PLACEMENTS {
            blocks -= 1;
        }
        let (shape, profile) = graph(random, blocks);
        let mut hints = Hints::default();
        hints.costs.resolution = 0.0;
        if random.chance(0.3) {
            let block = random.below(blocks);
            let cpu = topology.cores[random.below(cpus)].cpu;
            hints.pins.insert(format!("b{block}"), cpu);
        }
        if random.chance(0.3) && blocks > 2 {
            let blocks = ["b0", "b2"].map(str::to_owned).to_vec();
            let cpu = random.chance(0.5).then(|| topology.cores[random.below(cpus)].cpu);
            let (name, wait) = ("hand".to_owned(), WaitMode::Park);
            hints.plan =
                Plan { partitions: vec![Partition { name, blocks, cpu, wait }], ..Plan::default() };
        }
        Self { shape, profile, topology, hints }
    }

    fn by_hand(&self, block: usize) -> bool {
        let name = &self.shape.blocks[block].name;
        self.hints.plan.partitions.iter().any(|partition| partition.blocks.contains(name))
    }

    /// Whether pins are respected and the partition by hand is on one CPU.
    fn allows(&self, places: &[usize]) -> bool {
        let number = |block: usize| self.topology.cores[places[block]].cpu;
        (0..places.len()).all(|block| {
            let pin = self.hints.pins.get(&self.shape.blocks[block].name);
            self.by_hand(block) || pin.is_none_or(|cpu| *cpu == number(block))
        }) && self.hints.plan.partitions.iter().all(|partition| {
            let mut cpus =
                partition.blocks.iter().map(|name| number(self.shape.position(name).unwrap()));
            let first = cpus.next().unwrap();
            partition.cpu.is_none_or(|cpu| cpu == first) && cpus.all(|cpu| cpu == first)
        })
    }

    /// Returns the bottleneck and the sum of loads, nanoseconds, by the described model.
    fn loads(&self, places: &[usize]) -> (f64, f64) {
        let cores = &self.topology.cores;
        let Costs { batch_ns, smt, .. } = self.hints.costs;
        let mut loads = vec![0.0; cores.len()];
        for (block, cpu) in places.iter().enumerate() {
            // Capacities count in sixteenths.
            let capacity = (f64::from(cores[*cpu].capacity) / 64.0).round() / 16.0;
            loads[*cpu] += self.profile.blocks[block].busy_ns as f64 / capacity;
        }
        for (edge, passes) in self.shape.edges.iter().zip(&self.profile.edges) {
            let (from, to) = (places[edge.from], places[edge.to]);
            let hands = (self.by_hand(edge.from), self.by_hand(edge.to));
            let together = from == to && hands.0 == hands.1;
            if !together {
                let price = self.hints.costs.price(distance(&cores[from], &cores[to]));
                let bytes = (passes.items * passes.item_bytes) as f64;
                let calls = self.profile.blocks[edge.from].calls.min(passes.items) as f64;
                loads[from] += bytes * price.write_ns + calls * batch_ns;
                loads[to] += bytes * price.read_ns + calls * batch_ns;
            }
        }
        let full = |cpu: usize| {
            let sibling = |other: &usize| {
                *other != cpu && cores[cpu].smt_siblings.contains(cores[*other].cpu)
            };
            let beside = (0..cores.len()).filter(sibling).map(|other| loads[other].min(loads[cpu]));
            loads[cpu] + (smt - 1.0) * beside.sum::<f64>()
        };
        let full: Vec<f64> = (0..cores.len()).map(full).collect();
        (full.iter().copied().fold(0.0, f64::max), full.iter().sum())
    }

    /// Returns the best with at most 1, 2, … CPUs: bottleneck, then sum.
    fn best(&self) -> Vec<(f64, f64)> {
        let (cpus, blocks) = (self.topology.cores.len(), self.shape.blocks.len());
        let mut best = vec![(f64::INFINITY, f64::INFINITY); cpus + 1];
        for number in 0..cpus.pow(blocks as u32) {
            let places: Vec<usize> =
                (0..blocks).map(|block| number / cpus.pow(block as u32) % cpus).collect();
            if !self.allows(&places) {
                continue;
            }
            let mut used = places.clone();
            used.sort_unstable();
            used.dedup();
            let loads = self.loads(&places);
            for least in &mut best[used.len()..] {
                if better(loads, *least) {
                    *least = loads;
                }
            }
        }
        best
    }
}

/// Compares within the rounding of picoseconds.
fn less(a: f64, b: f64) -> bool {
    a.is_finite() && (b.is_infinite() || a < b - (1e-9 * b).max(0.01))
}

fn better(a: (f64, f64), b: (f64, f64)) -> bool {
    less(a.0, b.0) || (!less(b.0, a.0) && less(a.1, b.1))
}

#[test]
fn nothing_is_better_than_the_exact_search_finds() {
    let base = 0x005e_ed00;
    let (mut steps, mut most) = (0, 0);
    for seed in base..base + GRAPHS {
        let question = Question::random(&mut Random::new(seed));
        let Question { shape, profile, topology, hints } = &question;
        let case = PlacementCase::new(shape, profile, topology, hints).unwrap();
        let least = case.problem.least_cpus();
        for (cpus, best) in question.best().into_iter().enumerate().skip(least) {
            let mut budget = u64::MAX;
            let found = exact::search(&case.problem, cpus, ExactResult::none(), &mut budget);
            assert!(found.proven, "seed {seed}");
            let places: Vec<usize> = case.unit_of.iter().map(|unit| found.places[*unit]).collect();
            let loads = question.loads(&places);
            assert!(question.allows(&places), "seed {seed}");
            assert!(!better(best, loads), "seed {seed}, {cpus} CPUs: {loads:?}, not {best:?}");
            let told = found.score.bottleneck as f64 / 1e3;
            assert!((told - loads.0).abs() < 1e-6 * loads.0 + 1.0, "seed {seed}: told {told}");
            let taken = u64::MAX - budget;
            (steps, most) = (steps + taken, most.max(taken));
        }
    }
    println!("{GRAPHS} graphs from seed {base:#x}: {steps} steps, {most} for the hardest");
}

#[test]
fn the_plan_that_is_chosen_is_the_smallest_good_one() {
    let base = 0x00c0_ffee;
    for seed in base..base + 200 {
        let question = Question::random(&mut Random::new(seed));
        let Question { shape, profile, topology, hints } = &question;
        let case = PlacementCase::new(shape, profile, topology, hints).unwrap();
        let solution = solve::solve(&case.problem);
        assert!(solution.exact, "seed {seed}");
        let best = question.best();
        let least = best.iter().map(|loads| loads.0).fold(f64::INFINITY, f64::min);
        let mut used: Vec<usize> = solution.places.clone();
        used.sort_unstable();
        used.dedup();
        let bottleneck = solution.score.bottleneck as f64 / 1e3;
        let enough = least * (1.0 + hints.costs.worthwhile);
        assert!(!less(enough + 1.0, bottleneck), "seed {seed}: {bottleneck} of {least}");
        let fewer = best[used.len() - 1].0;
        assert!(less(enough - 1.0, fewer), "seed {seed}: {fewer} would do, {least} is best");
    }
}
