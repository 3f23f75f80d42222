//! A placement that changes, and its cost.

use super::machine::LEVELS;
use super::problem::{PlacementProblem, Time};

/// Not placed.
pub(super) const NOWHERE: usize = usize::MAX;

/// The cost of a placement; less is better, compared in this order.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct PlacementCost {
    /// The bottleneck in steps of the resolution.
    pub(super) step: Time,
    /// All loads together.
    pub(super) total: Time,
    /// The load of the fullest CPU.
    pub(super) bottleneck: Time,
}

impl PlacementCost {
    pub(super) const WORST: Self =
        Self { step: Time::MAX, total: Time::MAX, bottleneck: Time::MAX };

    pub(super) fn new(problem: &PlacementProblem, bottleneck: Time, total: Time) -> Self {
        Self { step: bottleneck.div_ceil(problem.quantum), total, bottleneck }
    }
}

/// Units on CPUs.
#[derive(Clone, Debug)]
pub(super) struct Placement<'a> {
    pub(super) problem: &'a PlacementProblem,
    /// CPU of each unit, or [`NOWHERE`].
    pub(super) places: Vec<usize>,
    /// Work of each CPU's units.
    pub(super) work: Vec<Time>,
    /// The cost of each CPU's connections.
    pub(super) talk: Vec<Time>,
    /// Units on each CPU.
    pub(super) units: Vec<usize>,
    /// Those of them that spin.
    spinners: Vec<usize>,
    /// CPUs that have units.
    pub(super) used: Vec<usize>,
    /// Used CPUs of each group, by level.
    used_in: [Vec<usize>; LEVELS],
    /// Siblings of each CPU.
    siblings: Vec<Vec<usize>>,
}

impl<'a> Placement<'a> {
    pub(super) fn new(problem: &'a PlacementProblem) -> Self {
        let cpus = problem.machine.len();
        let siblings = (0..cpus).map(|cpu| problem.machine.siblings(cpu).collect());
        Self {
            problem,
            places: vec![NOWHERE; problem.units.len()],
            work: vec![0; cpus],
            talk: vec![0; cpus],
            units: vec![0; cpus],
            spinners: vec![0; cpus],
            used: Vec::new(),
            used_in: std::array::from_fn(|_| vec![0; cpus]),
            siblings: siblings.collect(),
        }
    }

    pub(super) fn with(problem: &'a PlacementProblem, places: &[usize]) -> Self {
        let mut state = Self::new(problem);
        for (unit, cpu) in places.iter().enumerate() {
            state.put(unit, *cpu);
        }
        state
    }

    /// Whether a unit may go to a CPU in the present placement.
    pub(super) fn fits(&self, unit: usize, cpu: usize) -> bool {
        let PlacementProblem { units, crowded, .. } = self.problem;
        match units[unit].pinned {
            Some(pinned) => pinned == cpu,
            None if *crowded => true,
            None => self.spinners[cpu] == 0 && (!units[unit].spins || self.units[cpu] == 0),
        }
    }

    pub(super) fn put(&mut self, unit: usize, cpu: usize) {
        debug_assert_eq!(self.places[unit], NOWHERE);
        let problem = self.problem;
        if self.units[cpu] == 0 {
            self.used.push(cpu);
            for (level, group) in problem.machine.cpus[cpu].groups.iter().enumerate() {
                self.used_in[level][*group] += 1;
            }
        }
        self.units[cpu] += 1;
        self.spinners[cpu] += usize::from(problem.units[unit].spins);
        self.work[cpu] += problem.units[unit].work_on[cpu];
        self.places[unit] = cpu;
        self.talk(unit, |talk, cost| *talk += cost);
    }

    pub(super) fn take(&mut self, unit: usize) {
        let problem = self.problem;
        let cpu = self.places[unit];
        self.talk(unit, |talk, cost| *talk -= cost);
        self.places[unit] = NOWHERE;
        self.work[cpu] -= problem.units[unit].work_on[cpu];
        self.spinners[cpu] -= usize::from(problem.units[unit].spins);
        self.units[cpu] -= 1;
        if self.units[cpu] == 0 {
            self.used.retain(|used| *used != cpu);
            for (level, group) in problem.machine.cpus[cpu].groups.iter().enumerate() {
                self.used_in[level][*group] -= 1;
            }
        }
    }

    /// Adds the cost of a placed unit's links, or subtracts it.
    fn talk(&mut self, unit: usize, change: impl Fn(&mut Time, Time)) {
        let problem = self.problem;
        for link in problem.links_of[unit].iter().map(|link| &problem.links[*link]) {
            let (from, to) = (self.places[link.from], self.places[link.to]);
            if from != NOWHERE && to != NOWHERE {
                let (writes, reads) = link.price(problem, from, to);
                change(&mut self.talk[from], writes);
                change(&mut self.talk[to], reads);
            }
        }
    }

    /// Returns the load of a CPU by itself.
    pub(super) fn own(&self, cpu: usize) -> Time {
        self.work[cpu] + self.talk[cpu]
    }

    /// Returns the loss of a CPU to the threads on its siblings.
    pub(super) fn smt(&self, cpu: usize) -> Time {
        let own = self.own(cpu);
        let beside = self.siblings[cpu].iter().map(|sibling| own.min(self.own(*sibling)));
        ((self.problem.smt - 1.0).max(0.0) * beside.sum::<Time>() as f64) as Time
    }

    pub(super) fn load(&self, cpu: usize) -> Time {
        self.own(cpu) + self.smt(cpu)
    }

    pub(super) fn score(&self) -> PlacementCost {
        let loads = self.used.iter().map(|cpu| self.load(*cpu));
        let (bottleneck, total) = loads.fold((0, 0), |(m, s): (Time, Time), l| (m.max(l), s + l));
        PlacementCost::new(self.problem, bottleneck, total)
    }

    /// Returns the CPUs where a unit may go: those in use, and, while fewer than `cpus` are in use,
    /// one of every kind of unused ones.
    pub(super) fn candidate_cpus(&self, unit: usize, cpus: usize) -> Vec<usize> {
        let mut candidates = match self.problem.units[unit].pinned {
            Some(cpu) => return vec![cpu],
            None => self.used.clone(),
        };
        if self.used.len() < cpus {
            candidates.extend(self.fresh());
        }
        candidates.retain(|cpu| self.fits(unit, *cpu));
        candidates
    }

    /// Returns one CPU of every kind among the unused ones: exchanging two of a kind would change
    /// nothing. CPUs are of a kind when they are built alike and have the same relation to the used
    /// ones.
    pub(super) fn fresh(&self) -> Vec<usize> {
        let mut kinds = Vec::new();
        let mut fresh = Vec::new();
        for (cpu, is) in self.problem.machine.cpus.iter().enumerate() {
            if self.units[cpu] > 0 {
                continue;
            }
            let kind: [(bool, usize); LEVELS] = std::array::from_fn(|level| {
                let group = is.groups[level];
                let used = self.used_in[level][group] > 0;
                (used, if used { group } else { is.shapes[level] })
            });
            if !kinds.contains(&(kind, is.kind)) {
                kinds.push((kind, is.kind));
                fresh.push(cpu);
            }
        }
        fresh
    }
}

impl super::problem::UnitTraffic {
    /// Returns the cost for writer and reader on these CPUs.
    pub(super) fn price(&self, problem: &PlacementProblem, from: usize, to: usize) -> (Time, Time) {
        let open = |unit: usize| !problem.units[unit].by_hand;
        if from == to && open(self.from) && open(self.to) {
            return (0, 0);
        }
        self.prices[problem.machine.distance(from, to) as usize]
    }
}
