//! Machines whose best plan is known, with the noise of real ones.

use super::shape::GraphOutline;
use super::*;
use millstream_flow::plan::Pins;
use millstream_flow::plan::{Partition, Plan, WaitMode};
use millstream_stats::Random;
use std::collections::BTreeMap;
use std::time::Duration;

/// A chain of blocks on a machine.
struct Simulated {
    costs: BTreeMap<String, f64>,
    /// Ring sizes at which it is fastest, as powers of two, and the cost of an octave's difference.
    inside: (f64, f64),
    between: (f64, f64),
    /// The cost of passing items to another partition.
    handing_on: f64,
    adaptive: f64,
    pinned: f64,
    random: Random,
    /// Standard deviation of a measurement.
    noise: f64,
    /// Share of measurements that are disturbed.
    spikes: f64,
    /// Speed of the machine, which drifts.
    speed: f64,
    /// Drift from one measurement to the next, standard deviation.
    wander: f64,
    measured: usize,
}

impl Simulated {
    fn new(seed: u64, blocks: &[String]) -> Self {
        let mut random = Random::new(seed);
        let mut between = |low: f64, high: f64| low + (high - low) * random.uniform();
        Self {
            costs: blocks.iter().map(|name| (name.clone(), between(0.3, 3.0))).collect(),
            inside: (between(14.0, 19.0), between(0.01, 0.06)),
            between: (between(17.0, 21.0), between(0.005, 0.03)),
            handing_on: between(0.05, 0.6),
            adaptive: between(0.97, 1.03),
            pinned: between(0.97, 1.03),
            random,
            noise: 0.02,
            spikes: 0.05,
            speed: 1.0,
            wander: 0.01,
            measured: 0,
        }
    }

    /// Returns the items per second without noise.
    fn truth(&self, plan: &Plan) -> f64 {
        let octaves = |bytes: usize, (best, slope): (f64, f64)| {
            1.0 + slope * ((bytes as f64).log2() - best).abs()
        };
        let load = |partition: &Partition| {
            let own: f64 = partition.blocks.iter().map(|name| self.costs[name]).sum();
            let wait = if partition.wait == WaitMode::Adaptive { self.adaptive } else { 1.0 };
            let pinned = if partition.cpu.is_some() { self.pinned } else { 1.0 };
            own * wait * pinned * octaves(plan.buffers.inside_bytes, self.inside)
        };
        let cuts = plan.partitions.len() - 1;
        let ring = octaves(plan.buffers.between_bytes, self.between);
        let handing_on = if cuts == 0 { 0.0 } else { self.handing_on * ring };
        // Threads beyond the number of its four cores share them.
        let crowd = (plan.partitions.len() as f64 / 4.0).max(1.0);
        1.0 / (plan.partitions.iter().map(load).fold(0.0, f64::max) * crowd + handing_on)
    }
}

impl PlanMeasurer for Simulated {
    fn measure(&mut self, plan: &Plan) -> Result<PlanMeasurement, TrialError> {
        self.measured += 1;
        self.speed *= (self.wander * self.random.normal()).exp();
        let is_disturbed = self.random.uniform() < self.spikes;
        let spike = if is_disturbed { 0.5 + 0.5 * self.random.uniform() } else { 1.0 };
        let noise = (self.noise * self.random.normal()).exp();
        let figure = self.truth(plan) * self.speed * noise * spike;
        Ok(PlanMeasurement { figure, spent: Duration::from_millis(200) })
    }
}

fn chain(length: usize) -> (GraphOutline, Plan) {
    let blocks: Vec<String> = (0..length).map(|at| format!("block_{at}")).collect();
    let edges = (1..length).map(|to| (to - 1, to)).collect();
    let halves = blocks.chunks(length.div_ceil(4)).map(|half| Partition {
        name: half[0].clone(),
        blocks: half.to_vec(),
        cpu: None,
        wait: WaitMode::Park,
    });
    let default = Plan { partitions: halves.collect(), ..Plan::default() };
    (GraphOutline { blocks, edges }, default)
}

fn space(shape: &GraphOutline, pins: Pins) -> Space {
    let cpus = (0..4).collect();
    let space = Space::of_shape(shape, pins, |_| 1.0, None, &cpus);
    // These machines have no cache of their own to batch for.
    Space { batch_bytes: Vec::new(), ..space }
}

/// Returns the best of all plans of the space, by brute force.
fn optimum(machine: &Simulated, space: &Space, default: &Plan) -> f64 {
    let all = space.combinations(default);
    all.iter().map(|candidate| machine.truth(&candidate.plan)).fold(0.0, f64::max)
}

#[test]
fn it_is_never_worse_than_the_default_and_finds_the_optimum() {
    let (shape, default) = chain(8);
    let space = space(&shape, Pins::default());
    let (mut near, mut covered, mut better) = (0, 0, 0);
    let seeds = 40;
    for seed in 0..seeds {
        let mut machine = Simulated::new(seed, &shape.blocks);
        let settings = Settings { seed, budget: Duration::from_secs(120), ..Settings::default() };
        let tuned = tune(&mut machine, &space, &default, None, settings, &mut |_| true).unwrap();
        let truth = machine.truth(&tuned.plan) / machine.truth(&default);
        assert!(truth >= 0.999, "seed {seed}: {truth} with {}", tuned.what);
        let best = optimum(&machine, &space, &default) / machine.truth(&default);
        let within = truth >= 0.97 * best || tuned.gain.high >= best;
        near += u64::from(within);
        if tuned.is_better {
            better += 1;
            covered += u64::from(tuned.gain.low <= truth && truth <= tuned.gain.high);
        }
        assert!(tuned.spent <= Duration::from_secs(121), "seed {seed}: {:?}", tuned.spent);
    }
    println!("of {seeds}: {better} better, {near} near the optimum, {covered} inside the interval");
    assert!(near * 10 >= seeds * 9, "{near} of {seeds}");
    assert!(better * 10 >= seeds * 6 && covered * 10 >= better * 9, "{covered} of {better}");
}

#[test]
fn on_a_machine_that_does_not_care_the_default_stays() {
    let (shape, default) = chain(6);
    let space = space(&shape, Pins::default());
    let mut changed = 0;
    for seed in 0..40 {
        let mut machine = Simulated::new(seed, &shape.blocks);
        let flat = Flat(&mut machine);
        let settings = Settings { seed, ..Settings::default() };
        let tuned = tune(&mut { flat }, &space, &default, None, settings, &mut |_| true).unwrap();
        changed += u32::from(tuned.is_better);
    }
    // By chance in 2.5 % of all last paired tests; and most searches do not even come to one.
    assert!(changed <= 2, "{changed} of 40");
}

/// All plans are equally fast.
struct Flat<'a>(&'a mut Simulated);

impl PlanMeasurer for Flat<'_> {
    fn measure(&mut self, plan: &Plan) -> Result<PlanMeasurement, TrialError> {
        let truth = self.0.truth(plan);
        let measured = self.0.measure(plan)?;
        Ok(PlanMeasurement { figure: measured.figure / truth, ..measured })
    }
}

#[test]
fn what_was_written_by_hand_is_never_changed() {
    let (shape, default) = chain(8);
    let written = "[[partition]]\nname = \"mine\"\nblocks = [\"block_0\", \"block_5\"]\ncpu = 2\n\
                   wait = \"park\"\n[buffers]\nbetween_bytes = 65536\n";
    let pins = Pins::of(written.parse().unwrap());
    let space = space(&shape, pins.clone());
    let mut start = Plan::from_toml(written).unwrap();
    let others = default.partitions.iter().cloned().map(|mut partition| {
        partition.blocks.retain(|name| !["block_0", "block_5"].contains(&name.as_str()));
        partition.name += "_";
        partition
    });
    start.partitions.extend(others.filter(|partition| !partition.blocks.is_empty()));
    for seed in 0..5 {
        let mut machine = Simulated::new(seed, &shape.blocks);
        let settings = Settings { seed, ..Settings::default() };
        let tuned = tune(&mut machine, &space, &start, None, settings, &mut |_| true).unwrap();
        for attempt in &tuned.attempts {
            assert_eq!(pins.broken_by(&attempt.plan), None, "{}", attempt.what);
            assert_ne!(attempt.stage, TuningStage::Between);
        }
        assert!(tuned.attempts.iter().any(|attempt| attempt.stage == TuningStage::Layout));
    }
}

#[test]
fn a_second_search_starts_from_what_the_first_found() {
    let (shape, default) = chain(8);
    let space = space(&shape, Pins::default());
    let mut machine = Simulated::new(10, &shape.blocks);
    let settings = Settings::default();
    let first = tune(&mut machine, &space, &default, None, settings, &mut |_| true).unwrap();
    assert!(first.is_better);
    let start = Some(&first.plan);
    let second = tune(&mut machine, &space, &default, start, settings, &mut |_| true).unwrap();
    let stored = &second.attempts.iter().find(|one| one.what == "the stored plan").unwrap();
    assert!(matches!(stored.verdict, AttemptResult::Kept { .. }), "{}", stored.verdict);
    assert!(machine.truth(&second.plan) >= 0.98 * machine.truth(&first.plan));
}

#[test]
fn a_stored_plan_gets_another_chance_when_its_first_race_says_nothing() {
    /// The disturbances of the first figures of one plan.
    struct Shaken(Simulated, Plan, Vec<f64>);
    impl PlanMeasurer for Shaken {
        fn measure(&mut self, plan: &Plan) -> Result<PlanMeasurement, TrialError> {
            let measured = self.0.measure(plan)?;
            let factor = if *plan == self.1 { self.2.pop() } else { None };
            Ok(PlanMeasurement { figure: measured.figure * factor.unwrap_or(1.0), ..measured })
        }
    }
    let (shape, default) = chain(8);
    let space = space(&shape, Pins::default());
    let mut machine = Simulated::new(10, &shape.blocks);
    let settings = Settings::default();
    let first = tune(&mut machine, &space, &default, None, settings, &mut |_| true).unwrap();
    let stored = first.plan;
    let mut machine = Shaken(machine, stored.clone(), vec![0.2, 1.5]);
    let start = Some(&stored);
    let second = tune(&mut machine, &space, &default, start, settings, &mut |_| true).unwrap();
    let of_stored: Vec<_> =
        second.attempts.iter().filter(|one| one.what == "the stored plan").collect();
    assert_eq!(of_stored[0].verdict.to_string(), "no faster than what is kept");
    assert_eq!(of_stored[1].stage, TuningStage::Together);
    assert!(machine.0.truth(&second.plan) >= 0.98 * machine.0.truth(&stored));
}

#[test]
fn a_plan_that_fails_is_dropped_and_a_default_that_fails_is_told() {
    struct Picky(Plan, bool);
    impl PlanMeasurer for Picky {
        fn measure(&mut self, plan: &Plan) -> Result<PlanMeasurement, TrialError> {
            if (*plan == self.0) == self.1 {
                return Err("no such memory".into());
            }
            Ok(PlanMeasurement { figure: 1.0, spent: Duration::from_millis(100) })
        }
    }
    let (shape, default) = chain(3);
    let space = space(&shape, Pins::default());
    let settings = Settings::default();
    let mut trial = Picky(default.clone(), false);
    let tuned = tune(&mut trial, &space, &default, None, settings, &mut |_| true).unwrap();
    assert_eq!(tuned.plan, default);
    let failed = |one: &PlanAttempt| one.verdict.to_string() == "failed: no such memory";
    assert!(tuned.attempts.iter().any(failed));
    let mut trial = Picky(default.clone(), true);
    let error = tune(&mut trial, &space, &default, None, settings, &mut |_| true).unwrap_err();
    assert_eq!(error.to_string(), "cannot measure the default plan: no such memory");
}

#[test]
fn the_budget_bounds_the_search_and_too_small_a_one_is_refused() {
    let (shape, default) = chain(8);
    let space = space(&shape, Pins::default());
    let run = |budget_s, watch: &mut dyn FnMut(&TuningProgress) -> bool| {
        let mut machine = Simulated::new(1, &shape.blocks);
        let budget = Duration::from_secs(budget_s);
        let settings = Settings { budget, ..Settings::default() };
        tune(&mut machine, &space, &default, None, settings, watch)
    };
    let error = run(5, &mut |_| true).unwrap_err().to_string();
    assert_eq!(
        error,
        "the search has 5.0 s left, which is too short: one measurement takes 0.20 s and the final \
         comparison needs 20; give a --duration of at least 9 s"
    );
    assert!(run(12, &mut |_| true).unwrap().spent <= Duration::from_millis(12_200));
    let mut left = 30;
    let tuned = run(60, &mut |_| {
        left -= 1;
        left > 0
    });
    let tuned = tuned.unwrap();
    assert!(tuned.is_interrupted && !tuned.is_better && tuned.measured == 29);
}

#[test]
fn a_sweep_of_everything_finds_the_optimum_and_how_far_the_tuner_is_from_it() {
    let (shape, default) = chain(6);
    let space = space(&shape, Pins::default());
    let mut machine = Simulated::new(22, &shape.blocks);
    (machine.noise, machine.wander, machine.spikes) = (0.003, 0.001, 0.0);
    (machine.inside.1, machine.between.1) = (0.005, 0.005);
    let settings = Settings::default();
    let tuned = tune(&mut machine, &space, &default, None, settings, &mut |_| true).unwrap().plan;
    let plans = (&default, &tuned);
    let found = sweep(&mut machine, &space, plans, settings, &mut |_| true).unwrap().unwrap();
    let best = optimum(&machine, &space, &default);
    assert!(machine.truth(&found.best) >= 0.98 * best, "{}", found.what);
    let truth = machine.truth(&tuned) / machine.truth(&found.best);
    let RatioEstimate { low, high, .. } = found.tuned_to_best;
    assert!(truth >= 0.97 && (low..=high).contains(&truth), "{truth}: {:?}", found.tuned_to_best);
}

/// A machine on which larger rings between partitions and spinning are better only together.
#[derive(Default)]
struct Joint {
    measured: std::collections::HashSet<String>,
}

impl PlanMeasurer for Joint {
    fn measure(&mut self, plan: &Plan) -> Result<PlanMeasurement, TrialError> {
        self.measured.insert(plan.to_toml());
        let is_large = plan.buffers.between_bytes == 512 << 10;
        let spins = plan.partitions.iter().all(|one| one.wait == WaitMode::Adaptive);
        let figure = match (is_large, spins) {
            (true, true) => 1.1,
            (false, false) => 1.0,
            _ => 0.95,
        };
        Ok(PlanMeasurement { figure, spent: Duration::from_millis(100) })
    }
}

#[test]
fn changes_that_pay_only_together_are_found() {
    let (shape, default) = chain(4);
    let space = space(&shape, Pins::default());
    let (mut trial, settings) = (Joint::default(), Settings::default());
    let tuned = tune(&mut trial, &space, &default, None, settings, &mut |_| true).unwrap();
    assert!((tuned.gain.estimate - 1.1).abs() < 1e-9 && tuned.is_better, "{}", tuned.what);
    let (looked, there) = tuned.together;
    assert!(looked > 0 && looked < there, "{looked} of {there}: a sample was enough");
}

/// A machine that is five times slower from the tenth measurement on, as if another program had
/// started.
#[derive(Default)]
struct Slowed {
    joint: Joint,
    looks: usize,
}

impl PlanMeasurer for Slowed {
    fn measure(&mut self, plan: &Plan) -> Result<PlanMeasurement, TrialError> {
        self.looks += 1;
        let slower = if self.looks < 10 { 1 } else { 5 };
        let PlanMeasurement { figure, spent } = self.joint.measure(plan)?;
        Ok(PlanMeasurement { figure: figure / f64::from(slower), spent: slower * spent / 4 })
    }
}

#[test]
fn a_machine_that_becomes_slower_leaves_time_to_find_something() {
    let (shape, default) = chain(4);
    let space = space(&shape, Pins::default());
    let (mut trial, settings) = (Slowed::default(), Settings::default());
    let tuned = tune(&mut trial, &space, &default, None, settings, &mut |_| true).unwrap();
    assert!((tuned.gain.estimate - 1.1).abs() < 1e-9 && tuned.is_better, "{}", tuned.what);
    let (looked, there) = tuned.together;
    assert!(looked > 0 && looked < there / 2, "{looked} of {there}");
}

#[test]
fn a_sweep_leaves_no_plan_out() {
    let (shape, default) = chain(4);
    let space = space(&shape, Pins::default());
    let (mut trial, settings) = (Joint::default(), Settings::default());
    let plans = (&default, &default);
    let found = sweep(&mut trial, &space, plans, settings, &mut |_| true).unwrap().unwrap();
    assert_eq!(trial.measured.len(), found.plans);
    assert!(found.plans > 100 && found.measured < 4 * found.plans, "{found:?}");
    assert!((found.to_default.estimate - 1.1).abs() < 1e-9, "{}", found.what);
    assert_eq!(found.tuned_to_default, RatioEstimate::SAME);
}
