//! The best placement for each number of CPUs, and the choice between them.

use super::exact::{self, Found};
use super::heuristic;
use super::problem::Problem;
use super::state::Score;

/// Steps of the exact search, all numbers of CPUs together.
const BUDGET: u64 = 400_000;
/// More units are not tried: the search would only spend its budget.
const EXACT_UNITS: usize = 24;

/// The placement that was chosen, and what it was chosen from.
#[derive(Clone, Debug)]
pub(super) struct Solution {
    /// CPU of each unit, by position.
    pub(super) places: Vec<usize>,
    pub(super) score: Score,
    /// Proven to be the best of the model.
    pub(super) exact: bool,
    /// The best for each number of CPUs that was tried: how many it may use, its score.
    pub(super) ladder: Vec<(usize, Score)>,
}

/// Finds the best placement for 1, 2, … CPUs, and takes the one with the fewest that is not worse
/// than the best by more than what another CPU must bring.
pub(super) fn solve(problem: &Problem) -> Solution {
    let least = problem.least_cpus().min(problem.machine.len());
    let most = problem.max_cpus.min(problem.units.len()).max(least);
    let reachable = Score::new(problem, problem.least_bottleneck(), 0).step;
    let mut budget = BUDGET;
    let mut found: Vec<(usize, Found)> = Vec::new();
    for cpus in least..=most {
        let mut best = heuristic::search(problem, cpus, found.last().map(|(_, found)| found));
        if problem.units.len() <= EXACT_UNITS {
            best = exact::search(problem, cpus, best, &mut budget);
        }
        let done = best.score.step <= reachable;
        found.push((cpus, best));
        if done {
            break;
        }
    }
    choose(problem, &found)
}

fn choose(problem: &Problem, found: &[(usize, Found)]) -> Solution {
    let best = found.iter().map(|(_, found)| found.score).min().expect("one number was tried");
    let enough = (best.bottleneck as f64 * (1.0 + problem.worthwhile)) as u64;
    let good = |(_, found): &&(usize, Found)| {
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
