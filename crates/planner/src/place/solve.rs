//! The best placement for each number of CPUs, and the choice between them.

use super::exact::{self, ExactResult};
use super::heuristic;
use super::problem::PlacementProblem;
use super::state::PlacementCost;

/// Steps of the exact search, all numbers of CPUs together.
const EXACT_STEPS: u64 = 400_000;
/// The most units for the exact search: with more it would only spend its budget.
const EXACT_UNITS: usize = 24;
/// CPUs of placements that the heuristic evaluates, all numbers of CPUs together: about a second.
const HEURISTIC_STEPS: u64 = 10_000_000;
/// Up to this number every number of CPUs is tried, above it about each that is a quarter larger.
const FINE_CPUS: usize = 4;

/// The chosen placement and the alternatives.
#[derive(Clone, Debug)]
pub(super) struct Solution {
    /// CPU of each unit, by position.
    pub(super) places: Vec<usize>,
    pub(super) score: PlacementCost,
    /// Whether it is optimal in the model.
    pub(super) exact: bool,
    /// The best for each number of CPUs that was tried: the number and the cost.
    pub(super) ladder: Vec<(usize, PlacementCost)>,
}

/// Finds the best placement for 1, 2, … CPUs, and takes the one with the fewest CPUs that is worse
/// than the best by at most the gain that another CPU must bring.
pub(super) fn solve(problem: &PlacementProblem) -> Solution {
    let small = problem.units.len() <= EXACT_UNITS;
    let numbers = numbers(problem, small);
    let reachable = PlacementCost::new(problem, problem.least_bottleneck(), 0).step;
    let mut exact_steps = EXACT_STEPS;
    let mut found: Vec<(usize, ExactResult)> = Vec::new();
    for (index, cpus) in numbers.iter().copied().enumerate() {
        let known = found.last().map_or_else(ExactResult::none, |(_, found)| found.clone());
        let mut steps = HEURISTIC_STEPS / (numbers.len() - index).max(4) as u64;
        let mut best = heuristic::search(problem, cpus, &known, &mut steps);
        if small {
            best = exact::search(problem, cpus, best, &mut exact_steps);
        }
        if best.score == PlacementCost::WORST {
            continue;
        }
        let done = best.score.step <= reachable;
        found.push((cpus, best));
        if done {
            break;
        }
    }
    choose(problem, &found)
}

/// Returns the numbers of CPUs to try.
fn numbers(problem: &PlacementProblem, small: bool) -> Vec<usize> {
    let least = problem.least_cpus().min(problem.machine.len());
    let most = problem.max_cpus.min(problem.units.len()).max(least);
    let mut numbers = vec![least];
    while let Some(last) = numbers.last().copied().filter(|last| *last < most) {
        let more = if small { 1 } else { (last / FINE_CPUS).max(1) };
        numbers.push((last + more).min(most));
    }
    // At one thread per core the gain of more CPUs changes.
    let cores = (0..problem.machine.len()).filter(|cpu| problem.machine.is_first(*cpu)).count();
    numbers.push(cores.clamp(least, most));
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

fn choose(problem: &PlacementProblem, found: &[(usize, ExactResult)]) -> Solution {
    let best = found.iter().map(|(_, found)| found.score).min().expect("one number was tried");
    let enough = (best.bottleneck as f64 * (1.0 + problem.worthwhile)) as u64;
    let good = |(_, found): &&(usize, ExactResult)| {
        found.score.bottleneck <= enough || found.score.step <= best.step
    };
    let (_, chosen) = found.iter().find(good).expect("the best is good enough");
    Solution {
        places: chosen.places.clone(),
        score: chosen.score,
        exact: found.iter().all(|(_, found)| found.proven),
        ladder: found.iter().map(|(cpus, found)| (*cpus, found.score)).collect(),
    }
}
