//! Tests on a simulated clock, with a cost model that knows two loads.

use super::*;
use millstream_flow::observe::BlockCost;
use millstream_flow::plan::WaitMode;

fn plan(cut: usize) -> Plan {
    let part = |name: &str, blocks: std::ops::Range<usize>| Partition {
        name: name.to_owned(),
        blocks: blocks.map(|block| block.to_string()).collect(),
        cpu: None,
        wait: WaitMode::Park,
    };
    let partitions = vec![part("front", 0..cut), part("back", cut..10)];
    Plan { partitions, ..Plan::default() }
}

/// Ten blocks in a chain, each with a cost; the slower half sets the rate.
struct Chain;

fn times(load: &Profile) -> Vec<f64> {
    load.blocks.iter().map(|block| block.busy_ns as f64).collect()
}

impl CostModel for Chain {
    fn cost(&mut self, load: &Profile, plan: &Plan) -> Option<f64> {
        let (times, cut) = (times(load), plan.partitions[0].blocks.len());
        Some(times[..cut].iter().sum::<f64>().max(times[cut..].iter().sum()))
    }

    fn propose(&mut self, load: &Profile) -> Option<Plan> {
        let best = |a: &Plan, b: &Plan| {
            Chain.cost(load, a).unwrap().total_cmp(&Chain.cost(load, b).unwrap())
        };
        (1..10).map(plan).min_by(best)
    }
}

/// A load with its work at the front or at the back.
fn load(front: bool, noise: u64) -> Profile {
    let busy = |block: u64| 1000 + noise * (block % 3) + 9000 * u64::from((block < 2) == front);
    let blocks = (0..10).map(|block| BlockCost {
        name: block.to_string(),
        busy_ns: busy(block),
        ..BlockCost::default()
    });
    Profile { elapsed_s: 0.5, blocks: blocks.collect(), edges: Vec::new() }
}

struct Simulation {
    start: Instant,
    window: u32,
    adaptation: Adaptation,
    plan: Plan,
    moves: Vec<u32>,
}

impl Simulation {
    fn new(policy: AdaptPolicy) -> Self {
        let plan = Chain.propose(&load(true, 0)).unwrap();
        let adaptation = Adaptation::new(policy);
        Self { start: Instant::now(), window: 0, adaptation, plan, moves: Vec::new() }
    }

    fn window(&mut self, load: &Profile) -> Option<Proposal> {
        self.window += 1;
        let now = self.start + self.adaptation.policy.window * self.window;
        let proposal = self.adaptation.observe(now, load, &self.plan, &mut Chain)?;
        self.adaptation.moved(now, &self.plan, &proposal.plan);
        self.plan.clone_from(&proposal.plan);
        self.moves.push(self.window);
        Some(proposal)
    }
}

#[test]
fn a_load_that_stays_is_left_alone() {
    let mut simulation = Simulation::new(AdaptPolicy::default());
    for noise in 0..1000 {
        assert_eq!(simulation.window(&load(true, noise % 7 * 10)), None);
    }
}

#[test]
fn a_load_that_has_shifted_is_followed_once_and_not_at_once() {
    let policy = AdaptPolicy::default();
    let mut simulation = Simulation::new(policy.clone());
    for _ in 0..10 {
        assert_eq!(simulation.window(&load(true, 0)), None);
    }
    let gains: Vec<_> = (0..100).filter_map(|_| simulation.window(&load(false, 0))).collect();
    assert_eq!(simulation.moves, [10 + policy.windows]);
    assert!(gains[0].gain > 0.3, "{gains:?}");
}

#[test]
fn a_load_that_alternates_faster_than_the_windows_never_moves_the_graph() {
    let mut simulation = Simulation::new(AdaptPolicy::default());
    for window in 0..10_000 {
        simulation.window(&load(window % 6 < 3, 0));
    }
    assert!(simulation.moves.is_empty(), "{:?}", simulation.moves);
}

#[test]
fn a_load_that_goes_to_and_fro_is_left_alone_more_and_more() {
    let policy = AdaptPolicy::default();
    let mut simulation = Simulation::new(policy.clone());
    for window in 0..20_000 {
        simulation.window(&load(window % 80 < 40, 0));
    }
    let distances: Vec<_> = simulation.moves.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let least = (policy.interval.as_secs_f64() / policy.window.as_secs_f64()) as u32;
    assert!(distances.iter().all(|distance| *distance >= least), "{distances:?}");
    let most = (policy.interval_max.as_secs_f64() / policy.window.as_secs_f64()) as usize;
    let last = &distances[distances.len() - 3..];
    assert!(last.iter().all(|distance| *distance as usize >= most), "{distances:?}");
    assert!(distances.len() < 20_000 / most + 10, "{distances:?}");
}

#[test]
fn a_gain_below_the_threshold_is_no_reason() {
    let mut simulation = Simulation::new(AdaptPolicy { gain_min: 0.6, ..AdaptPolicy::default() });
    for _ in 0..100 {
        assert_eq!(simulation.window(&load(false, 0)), None, "it would save half at most");
    }
}

#[test]
fn windows_in_which_nothing_passed_say_nothing() {
    let mut simulation = Simulation::new(AdaptPolicy { windows: 3, ..AdaptPolicy::default() });
    let idle = || {
        let mut idle = load(false, 0);
        idle.blocks.iter_mut().for_each(|block| block.busy_ns = 0);
        idle
    };
    for _ in 0..2 {
        assert_eq!(simulation.window(&load(false, 0)), None);
        assert_eq!(simulation.window(&idle()), None);
    }
    assert!(simulation.window(&load(false, 0)).is_some(), "the third that speaks");
}

#[test]
fn names_make_no_difference_to_a_plan() {
    let (one, mut other) = (plan(4), plan(4));
    other.partitions.reverse();
    other.partitions[0].name = "else".into();
    other.partitions[0].blocks.reverse();
    assert!(is_same(&one, &other));
    other.partitions[0].cpu = Some(1);
    assert!(!is_same(&one, &other) && !is_same(&one, &plan(5)));
}

#[test]
fn a_load_that_goes_in_circles_is_left_alone_more_and_more() {
    let policy = AdaptPolicy::default();
    let mut adaptation = Adaptation::new(policy.clone());
    let (start, mut now) = (Instant::now(), Instant::now());
    for turn in 0..30 {
        adaptation.moved(now, &plan(3 + turn % 3), &plan(3 + (turn + 1) % 3));
        now = start + policy.interval * turn as u32;
    }
    assert_eq!(adaptation.interval, policy.interval_max);
    adaptation.moved(now, &plan(3), &plan(8));
    assert_eq!(adaptation.interval, policy.interval_max / 2, "somewhere new");
}

#[test]
fn refused_moves_are_tried_less_and_less() {
    let policy = AdaptPolicy::default();
    let (mut adaptation, start) = (Adaptation::new(policy.clone()), Instant::now());
    let current = Chain.propose(&load(true, 0)).unwrap();
    let mut tries = Vec::new();
    for window in 0..4000 {
        let now = start + policy.window * window;
        if adaptation.observe(now, &load(false, 0), &current, &mut Chain).is_some() {
            adaptation.refused(now);
            tries.push(now - start);
        }
    }
    let pauses: Vec<_> = tries.windows(2).map(|pair| (pair[1] - pair[0]).as_secs()).collect();
    assert_eq!(pauses[..7], [10, 20, 40, 80, 160, 320, 320], "{pauses:?}");
}
