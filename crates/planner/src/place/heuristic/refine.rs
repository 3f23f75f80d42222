//! Improves a placement by moves: single units (Fiduccia and Mattheyses, DAC 1982), and all units
//! of one CPU with those of another.

use crate::place::problem::{PlacementProblem, Time};
use crate::place::state::{NOWHERE, Placement};

/// Moves in a row without improvement before a pass ends.
const PATIENCE: usize = 24;
/// CPUs without neighbours of a unit that are tried for it.
const STRANGERS: usize = 4;

/// The quality of an intermediate placement: among equal bottlenecks, fewer CPUs with that load.
type Key = (Time, usize, Time);

/// Refines until a pass brings no improvement, or the budget is spent.
pub(super) fn refined(
    problem: &PlacementProblem,
    cpus: usize,
    places: Vec<usize>,
    budget: &mut u64,
) -> Vec<usize> {
    let mut refine = Refine { state: Placement::with(problem, &places), cpus, budget };
    while *refine.budget > 0 {
        let moved = refine.pass();
        let exchanged = refine.exchange();
        if !moved && !exchanged {
            break;
        }
    }
    refine.state.places
}

struct Refine<'a, 'b> {
    state: Placement<'a>,
    cpus: usize,
    budget: &'b mut u64,
}

impl Refine<'_, '_> {
    fn key(&mut self) -> Key {
        *self.budget = self.budget.saturating_sub(self.state.used.len() as u64);
        let score = self.state.score();
        let step = |cpu: &&usize| {
            self.state.load(**cpu).div_ceil(self.state.problem.quantum) == score.step
        };
        let fullest = self.state.used.iter().filter(step).count();
        (score.step, fullest, score.total)
    }

    /// Moves every unit at most once, each time by the best move, good or bad; then returns to the
    /// best state. Returns whether that is better than the beginning.
    fn pass(&mut self) -> bool {
        let begin = self.key();
        let (mut best, mut best_moves) = (begin, 0);
        let mut moves: Vec<(usize, usize)> = Vec::new();
        let mut locked = vec![false; self.state.places.len()];
        while moves.len() < best_moves + PATIENCE && *self.budget > 0 {
            let Some((key, unit, to)) = self.best_move(&locked) else { break };
            moves.push((unit, self.state.places[unit]));
            self.shift(unit, to);
            locked[unit] = true;
            if key < best {
                (best, best_moves) = (key, moves.len());
            }
        }
        for (unit, back) in moves.drain(best_moves..).rev() {
            self.shift(unit, back);
        }
        best < begin
    }

    fn shift(&mut self, unit: usize, to: usize) {
        self.state.take(unit);
        self.state.put(unit, to);
    }

    /// Returns the best move of a unit that is on the fullest CPU or has a neighbour elsewhere.
    fn best_move(&mut self, locked: &[bool]) -> Option<(Key, usize, usize)> {
        let fullest = self.state.used.iter().copied().max_by_key(|cpu| self.state.load(*cpu))?;
        let mut best: Option<(Key, usize, usize)> = None;
        for unit in (0..locked.len()).filter(|unit| !locked[*unit]) {
            let from = self.state.places[unit];
            if self.state.problem.units[unit].pinned.is_some() || from == NOWHERE {
                continue;
            }
            for to in self.targets(unit, from, from == fullest) {
                self.state.take(unit);
                if self.state.fits(unit, to) {
                    self.state.put(unit, to);
                    let key = self.key();
                    if best.is_none_or(|(least, ..)| key < least) {
                        best = Some((key, unit, to));
                    }
                    self.state.take(unit);
                }
                self.state.put(unit, from);
            }
        }
        best
    }

    /// Returns the CPUs of its neighbours; for the fullest CPU also the emptiest and unused ones.
    fn targets(&self, unit: usize, from: usize, crowded: bool) -> Vec<usize> {
        let problem = self.state.problem;
        let links = problem.links_of[unit].iter().map(|link| &problem.links[*link]);
        let mut targets: Vec<usize> = links
            .map(|link| self.state.places[if link.from == unit { link.to } else { link.from }])
            .collect();
        if crowded {
            let mut others = self.state.used.clone();
            others.sort_by_key(|cpu| self.state.load(*cpu));
            targets.extend(others.into_iter().take(STRANGERS));
            if self.state.used.len() < self.cpus {
                targets.extend(self.state.fresh());
            }
        }
        targets.sort_unstable();
        targets.dedup();
        targets.retain(|cpu| *cpu != from);
        targets
    }

    /// Exchanges all units of two CPUs, or moves them to an unused one, as long as that helps.
    fn exchange(&mut self) -> bool {
        let mut key = self.key();
        let mut helped = false;
        for a in self.state.used.clone() {
            let mut targets = self.state.used.clone();
            targets.extend(self.state.fresh());
            for b in targets {
                if a == b || self.state.units[a] == 0 || *self.budget == 0 {
                    continue;
                }
                let Some(moved) = self.swap(a, b) else { continue };
                let now = self.key();
                if now < key {
                    (key, helped) = (now, true);
                } else {
                    self.put_back(&moved);
                }
            }
        }
        helped
    }

    /// Swaps the units of two CPUs; returns the earlier CPUs of the moved units. Moves none if one
    /// of them may not move.
    fn swap(&mut self, a: usize, b: usize) -> Option<Vec<(usize, usize)>> {
        let on = |unit: &usize| [a, b].contains(&self.state.places[*unit]);
        let units: Vec<usize> = (0..self.state.places.len()).filter(on).collect();
        if units.iter().any(|unit| self.state.problem.units[*unit].pinned.is_some()) {
            return None;
        }
        let moved: Vec<_> = units.iter().map(|unit| (*unit, self.state.places[*unit])).collect();
        units.iter().for_each(|unit| self.state.take(*unit));
        for (unit, was) in &moved {
            self.state.put(*unit, if *was == a { b } else { a });
        }
        Some(moved)
    }

    fn put_back(&mut self, moved: &[(usize, usize)]) {
        moved.iter().for_each(|(unit, _)| self.state.take(*unit));
        moved.iter().for_each(|(unit, was)| self.state.put(*unit, *was));
    }
}
