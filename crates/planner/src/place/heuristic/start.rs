//! Initial placements.

use crate::place::problem::{PlacementProblem, Time, Unit};
use crate::place::state::Placement;
use std::cmp::Reverse;

/// Places units by falling work, each where the score is best at that moment.
pub(super) fn greedy(problem: &PlacementProblem, cpus: usize) -> Option<Vec<usize>> {
    let mut state = Placement::new(problem);
    let mut order: Vec<usize> = (0..problem.units.len()).collect();
    order.sort_by_key(|unit| {
        let is = &problem.units[*unit];
        (is.pinned.is_none(), !is.spins, Reverse(is.work))
    });
    for unit in order {
        let best = state.candidate_cpus(unit, cpus).into_iter().min_by_key(|cpu| {
            state.put(unit, *cpu);
            let score = state.score();
            state.take(unit);
            score
        });
        state.put(unit, best?);
    }
    (state.used.len() <= cpus).then_some(state.places)
}

/// Cuts the units, in the order of `place_of`, into runs of equal work: few cuts where the graph is
/// a chain. Only for problems without fixed units.
pub(super) fn strips(
    problem: &PlacementProblem,
    cpus: usize,
    place_of: impl Fn(&Unit) -> f64,
) -> Option<Vec<usize>> {
    if problem.units.iter().any(|unit| unit.pinned.is_some() || unit.spins) {
        return None;
    }
    let mut order: Vec<usize> = (0..problem.units.len()).collect();
    let place = |unit: &usize| place_of(&problem.units[*unit]);
    order.sort_by(|a, b| place(a).total_cmp(&place(b)));
    let cpus: Vec<usize> = cpus_in_order(problem).into_iter().take(cpus).collect();
    let capacity = |cpu: usize| problem.machine.cpus[cpu].capacity;
    let mut spare: f64 = cpus.iter().map(|cpu| capacity(*cpu)).sum();
    let mut left: Time = problem.units.iter().map(|unit| unit.work).sum();
    let (mut on, mut load) = (0, 0);
    let mut places = vec![0; problem.units.len()];
    for unit in order {
        let work = problem.units[unit].work;
        let share = (left as f64 * capacity(cpus[on]) / spare) as Time;
        // More than half of the unit is beyond the share: the next CPU takes it.
        if load > 0 && load + work / 2 > share && on + 1 < cpus.len() {
            left -= load;
            spare -= capacity(cpus[on]);
            (on, load) = (on + 1, 0);
        }
        places[unit] = cpus[on];
        load += work;
    }
    Some(places)
}

/// Returns the CPUs in order: one thread of each core before the second ones, the strong before the
/// weak, and CPUs with a common cache next to each other.
fn cpus_in_order(problem: &PlacementProblem) -> Vec<usize> {
    let machine = &problem.machine;
    let mut cpus: Vec<usize> = (0..machine.len()).collect();
    cpus.sort_by_key(|cpu| {
        let is = &machine.cpus[*cpu];
        let thread = machine.siblings(*cpu).filter(|other| other < cpu).count();
        let [core, l2, l3, node] = is.groups;
        (thread, Reverse((is.capacity * 1e6) as u64), node, l3, l2, core)
    });
    cpus
}
