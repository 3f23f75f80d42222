//! Costs of other plans: the reasons for this one.

use super::case::PlacementCase;
use super::problem::Scale;
use super::state::{Placement, PlacementCost};
use millstream_flow::EdgeShape;
use serde::Serialize;

/// The same plan with one block elsewhere.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Alternative {
    /// The block.
    pub block: String,
    /// The CPU to which it would move.
    pub cpu: usize,
    /// CPUs in use then.
    pub cpus: usize,
    /// Time an item then, by the fullest CPU.
    pub ns_per_item: f64,
    /// CPU time an item then, all CPUs together.
    pub cpu_ns_per_item: f64,
}

/// Returns the move of a block that costs least.
pub(super) fn next_best(
    case: &PlacementCase,
    state: &mut Placement<'_>,
    scale: &Scale,
) -> Option<Alternative> {
    let cpus = state.used.len();
    let all: Vec<(usize, usize)> = (0..case.problem.units.len())
        .flat_map(|unit| {
            state.candidate_cpus(unit, cpus + 1).into_iter().map(move |cpu| (unit, cpu))
        })
        .collect();
    best_of(case, state, scale, &all)
}

/// Returns the prediction with both ends of a connection on one CPU, that of the writer or of the
/// reader, whichever is better.
pub(super) fn without(
    case: &PlacementCase,
    state: &mut Placement<'_>,
    edge: &EdgeShape,
    scale: &Scale,
) -> Option<Alternative> {
    let (writer, reader) = (case.unit_of[edge.from], case.unit_of[edge.to]);
    let ways = [(writer, state.places[reader]), (reader, state.places[writer])];
    best_of(case, state, scale, &ways)
}

fn best_of(
    case: &PlacementCase,
    state: &mut Placement<'_>,
    scale: &Scale,
    ways: &[(usize, usize)],
) -> Option<Alternative> {
    let mut best: Option<(PlacementCost, usize, usize, usize)> = None;
    for (unit, cpu) in ways.iter().copied() {
        let from = state.places[unit];
        let fixed = case.problem.units[unit].pinned.is_some() || case.problem.units[unit].by_hand;
        // Alone to an unused CPU: the same plan with other numbers.
        let same = state.units[from] == 1 && state.units[cpu] == 0;
        if from == cpu || fixed || same {
            continue;
        }
        state.take(unit);
        if state.fits(unit, cpu) {
            state.put(unit, cpu);
            let score = state.score();
            if best.is_none_or(|(least, ..)| score < least) {
                best = Some((score, unit, cpu, state.used.len()));
            }
            state.take(unit);
        }
        state.put(unit, from);
    }
    best.map(|(score, unit, cpu, cpus)| Alternative {
        block: case.name_of(unit),
        cpu: case.problem.machine.cpus[cpu].number,
        cpus,
        ns_per_item: scale.ns(score.bottleneck),
        cpu_ns_per_item: scale.ns(score.total),
    })
}
