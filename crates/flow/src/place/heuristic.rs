//! Good placements in bounded time: greedy, then refined.

use super::exact::Found;
use super::problem::Problem;
use super::state::{NOWHERE, Score, State};

/// A good placement on at most `cpus` CPUs, or one that does not exist ([`Score::WORST`]).
pub(super) fn search(problem: &Problem, cpus: usize, start: Option<&Found>) -> Found {
    let mut best = match start {
        Some(found) => found.clone(),
        None => Found { score: Score::WORST, places: Vec::new(), proven: false },
    };
    for places in [Some(greedy(problem, cpus)), start.map(|found| Some(found.places.clone()))] {
        let Some(places) = places.flatten() else { continue };
        let mut state = State::with(problem, &places);
        refine(&mut state, cpus);
        let score = state.score();
        if score < best.score {
            best = Found { score, places: state.places.clone(), proven: false };
        }
    }
    best
}

/// Units by falling work, each where the score is best at that moment.
fn greedy(problem: &Problem, cpus: usize) -> Option<Vec<usize>> {
    let mut state = State::new(problem);
    let mut order: Vec<usize> = (0..problem.units.len()).collect();
    order.sort_by_key(|unit| {
        let is = &problem.units[*unit];
        (is.pinned.is_none(), !is.spins, std::cmp::Reverse(is.work))
    });
    for unit in order {
        let mut ways = match problem.units[unit].pinned {
            Some(cpu) => vec![cpu],
            None => state.used.clone(),
        };
        if problem.units[unit].pinned.is_none() && state.used.len() < cpus {
            ways.extend(state.fresh());
        }
        ways.retain(|cpu| state.fits(unit, *cpu));
        let best = ways.into_iter().min_by_key(|cpu| {
            state.put(unit, *cpu);
            let score = state.score();
            state.take(unit);
            score
        });
        state.put(unit, best?);
    }
    (state.used.len() <= cpus).then_some(state.places)
}

/// Moves single units as long as that helps.
fn refine(state: &mut State<'_>, cpus: usize) {
    let mut score = state.score();
    loop {
        let mut better = None;
        for unit in 0..state.places.len() {
            let from = state.places[unit];
            if from == NOWHERE || state.problem.units[unit].pinned.is_some() {
                continue;
            }
            state.take(unit);
            let mut ways = state.used.clone();
            if state.used.len() < cpus {
                ways.extend(state.fresh());
            }
            for cpu in ways.into_iter().filter(|cpu| *cpu != from) {
                if state.fits(unit, cpu) {
                    state.put(unit, cpu);
                    let now = state.score();
                    if now < score {
                        (score, better) = (now, Some((unit, cpu)));
                    }
                    state.take(unit);
                }
            }
            state.put(unit, from);
        }
        let Some((unit, cpu)) = better else { return };
        state.take(unit);
        state.put(unit, cpu);
    }
}
