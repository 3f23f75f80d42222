//! Good placements in bounded time: coarsened, cut, refined level by level (the multilevel scheme
//! of Karypis and Kumar, SIAM J. Sci. Comput. 20, 1998, with the objective of this model).

mod coarsen;
mod refine;
mod start;

use super::exact::ExactResult;
use super::problem::PlacementProblem;
use super::state::{Placement, PlacementCost};

/// Units of a graph that is cut without further coarsening.
const COARSEST: usize = 32;

/// Finds a good placement on at most `cpus` CPUs; `known` is a placement, or [`ExactResult::none`].
/// Every CPU of a placement that is evaluated takes one from `budget`.
pub(super) fn search(
    problem: &PlacementProblem,
    cpus: usize,
    known: &ExactResult,
    budget: &mut u64,
) -> ExactResult {
    let mut best = known.clone();
    let levels = coarsen::levels(problem, cpus, COARSEST);
    let coarsest = levels.last().map_or(problem, |level| &level.problem);
    let starts = [
        start::strips(coarsest, cpus, |unit| unit.line),
        start::strips(coarsest, cpus, |unit| unit.rank),
        start::greedy(coarsest, cpus),
    ];
    for places in starts.into_iter().flatten() {
        let mut places = refine::refined(coarsest, cpus, places, budget);
        for index in (0..levels.len()).rev() {
            let finer = index.checked_sub(1).map_or(problem, |above| &levels[above].problem);
            let inside = &levels[index].unit_of;
            places = inside.iter().map(|unit| places[*unit]).collect();
            places = refine::refined(finer, cpus, places, budget);
        }
        best.improve(problem, places);
    }
    if known.score < PlacementCost::WORST {
        best.improve(problem, refine::refined(problem, cpus, known.places.clone(), budget));
    }
    best
}

impl ExactResult {
    /// Returns a result without a placement.
    pub(super) fn none() -> Self {
        Self { score: PlacementCost::WORST, places: Vec::new(), proven: false }
    }

    /// Keeps the better of two placements.
    fn improve(&mut self, problem: &PlacementProblem, places: Vec<usize>) {
        let score = Placement::with(problem, &places).score();
        if score < self.score {
            *self = Self { score, places, proven: false };
        }
    }
}
