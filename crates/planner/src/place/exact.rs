//! The optimum, by branch and bound.
//!
//! Units are placed one after the other, the heavy and well connected first: on every CPU in use,
//! and on one unused CPU of every kind. A branch ends where even the best continuation is not
//! better than the best known placement: the fullest CPU only gets fuller, the remaining work must
//! go somewhere, and every link between two CPUs costs at least the price of the nearest CPUs.

use super::problem::{PlacementProblem, Time};
use super::state::{Placement, PlacementCost};

/// The result of a search.
#[derive(Clone, Debug)]
pub(super) struct ExactResult {
    pub(super) score: PlacementCost,
    pub(super) places: Vec<usize>,
    /// The result is optimal: the search was complete.
    pub(super) proven: bool,
}

/// Improves on `known` with at most `cpus` CPUs, with at most `budget` steps, which are subtracted
/// from it.
pub(super) fn search(
    problem: &PlacementProblem,
    cpus: usize,
    known: ExactResult,
    budget: &mut u64,
) -> ExactResult {
    let order = order(problem);
    let mut left = vec![0; order.len() + 1];
    let least = |unit: usize| problem.units[unit].work_on.iter().copied().min().unwrap_or(0);
    for depth in (0..order.len()).rev() {
        left[depth] = left[depth + 1] + least(order[depth]);
    }
    let most = problem.machine.cpus.iter().map(|cpu| cpu.capacity).fold(0.0, f64::max);
    let best = ExactResult { proven: false, ..known };
    let mut search = Search {
        state: Placement::new(problem),
        order,
        left,
        cpus,
        most,
        best,
        budget,
        cut: false,
    };
    search.descend(0);
    let proven = !search.cut;
    ExactResult { proven, ..search.best }
}

struct Search<'a, 'b> {
    state: Placement<'a>,
    order: Vec<usize>,
    /// The least work of the units from each depth on.
    left: Vec<Time>,
    cpus: usize,
    /// The highest capacity.
    most: f64,
    best: ExactResult,
    budget: &'b mut u64,
    /// The budget was spent.
    cut: bool,
}

impl Search<'_, '_> {
    fn descend(&mut self, depth: usize) {
        if depth == self.order.len() {
            let score = self.state.score();
            if score < self.best.score {
                self.best.score = score;
                self.best.places.clone_from(&self.state.places);
            }
            return;
        }
        let unit = self.order[depth];
        let mut candidates: Vec<(PlacementCost, usize)> = Vec::new();
        for cpu in self.state.candidate_cpus(unit, self.cpus) {
            self.state.put(unit, cpu);
            let bound = self.bound(depth + 1);
            self.state.take(unit);
            if bound < self.best.score {
                candidates.push((bound, cpu));
            }
        }
        candidates.sort_unstable();
        for (bound, cpu) in candidates {
            if self.cut || bound >= self.best.score {
                return;
            }
            if *self.budget == 0 {
                self.cut = true;
                return;
            }
            *self.budget -= 1;
            self.state.put(unit, cpu);
            self.descend(depth + 1);
            self.state.take(unit);
        }
    }

    /// Returns a lower bound of the cost of every placement that continues the present one.
    fn bound(&self, depth: usize) -> PlacementCost {
        let state = &self.state;
        let now = state.score();
        let cpus = &state.problem.machine.cpus;
        let spare = self.cpus.saturating_sub(state.used.len()) as f64;
        let (mut done, mut capacity) = (self.left[depth] as f64 * self.most, spare * self.most);
        for cpu in &state.used {
            done += state.own(*cpu) as f64 * cpus[*cpu].capacity;
            capacity += cpus[*cpu].capacity;
        }
        // A little less, because of rounding.
        let evenly = (done / capacity * (1.0 - 1e-9)) as Time;
        let total = now.total + self.left[depth];
        PlacementCost::new(state.problem, now.bottleneck.max(evenly), total)
    }
}

/// Returns the order of placing: pinned units, then each time the unit with the most work and links
/// to those before it.
fn order(problem: &PlacementProblem) -> Vec<usize> {
    let mut order: Vec<usize> = Vec::new();
    let mut weight: Vec<Time> = problem.units.iter().map(|unit| unit.work).collect();
    let mut left: Vec<usize> = (0..problem.units.len()).collect();
    while !left.is_empty() {
        let key = |unit: &usize| (problem.units[*unit].pinned.is_some(), weight[*unit]);
        let next = (0..left.len()).max_by_key(|index| (key(&left[*index]), usize::MAX - index));
        let unit = left.remove(next.expect("some are left"));
        for link in problem.links_of[unit].iter().map(|link| &problem.links[*link]) {
            let other = if link.from == unit { link.to } else { link.from };
            let (writes, reads) = link.prices[super::Distance::SharedL3 as usize];
            weight[other] += writes + reads;
        }
        order.push(unit);
    }
    order
}
