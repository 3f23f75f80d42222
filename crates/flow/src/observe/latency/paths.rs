//! Paths from a source to its sinks: the worth of an item anywhere on a path in items of the
//! source, and the items that the blocks need to have under way.

use crate::graph::Graph;
use crate::rate::ItemRatio;

/// Items of the source for one item somewhere, exactly, in lowest terms.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Weight {
    num: u64,
    den: u64,
}

impl Weight {
    const ONE: Self = Self { num: 1, den: 1 };

    /// Returns the weight behind a block of this rate.
    fn behind(self, rate: ItemRatio) -> Self {
        let num = u128::from(self.num) * u128::from(rate.decimation());
        let den = u128::from(self.den) * u128::from(rate.interpolation());
        let (mut divisor, mut rest) = (num, den);
        while rest > 0 {
            (divisor, rest) = (rest, divisor % rest);
        }
        let (mut num, mut den) = (num / divisor, den / divisor);
        // Beyond 64 bits the ratio is kept and the last digits are lost.
        while num.max(den) > u128::from(u64::MAX) {
            (num, den) = (num.div_ceil(2), (den / 2).max(1));
        }
        Self { num: num as u64, den: den as u64 }
    }

    /// Converts items here to items of the source, rounded up.
    pub(super) fn of(self, items: u64) -> u64 {
        let worth = (u128::from(items) * u128::from(self.num)).div_ceil(u128::from(self.den));
        u64::try_from(worth).unwrap_or(u64::MAX)
    }

    fn is_less_than(self, other: Self) -> bool {
        u128::from(self.num) * u128::from(other.den) < u128::from(other.num) * u128::from(self.den)
    }
}

/// A connection on a path, by position in [`Graph::edges`].
#[derive(Clone, Copy, Debug)]
pub(super) struct PathStep {
    pub(super) edge: usize,
    /// The worth of an item in its ring.
    pub(super) weight: Weight,
    /// The items that the block at its end keeps, in items of the source.
    pub(super) holds: u64,
    /// The items that this block needs in this ring to work, less one, in items of the source.
    pub(super) needs: u64,
}

/// Returns every connection downstream of `source`, upstream ones first.
pub(super) fn steps(graph: &Graph, order: &[usize], source: usize) -> Vec<PathStep> {
    let mut weights: Vec<Option<Weight>> = vec![None; graph.nodes.len()];
    weights[source] = Some(Weight::ONE);
    let mut steps = Vec::new();
    for node in order {
        let Some(weight) = weights[*node] else { continue };
        let edges = graph.edges.iter().enumerate().filter(|(_, edge)| edge.from.node == *node);
        for (edge, ends) in edges {
            let (to, facts) = (ends.to.node, &graph.nodes[ends.to.node].facts);
            let rate = facts.rate;
            let behind = weight.behind(rate);
            // Where paths of different rates meet, the larger weight counts.
            let known = weights[to].filter(|known| behind.is_less_than(*known));
            weights[to] = Some(known.unwrap_or(behind));
            let least = (graph.input(ends.to).min_items as u64).max(u64::from(rate.decimation()));
            steps.push(PathStep {
                edge,
                weight,
                holds: weight.of(facts.holds),
                needs: weight.of(least - 1),
            });
        }
    }
    steps
}

/// Returns the largest sum of `amount` on a path from `source` to its end; `steps` as from
/// [`steps`].
pub(super) fn longest(
    graph: &Graph,
    steps: &[PathStep],
    source: usize,
    amount: impl Fn(&PathStep) -> u64,
) -> u64 {
    let mut from: Vec<u64> = vec![0; graph.nodes.len()];
    for step in steps.iter().rev() {
        let edge = &graph.edges[step.edge];
        let here = amount(step).saturating_add(from[edge.to.node]);
        from[edge.from.node] = from[edge.from.node].max(here);
    }
    from[source]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_is_worth_what_it_was_made_of() {
        let weight = Weight::ONE.behind(ItemRatio::decimate(10)).behind(ItemRatio::new(3, 2));
        assert_eq!(weight, Weight { num: 20, den: 3 });
        assert_eq!([0, 1, 3, 4].map(|items| weight.of(items)), [0, 7, 20, 27]);
    }

    #[test]
    fn many_rates_in_a_row_keep_their_ratio() {
        let odd = ItemRatio::new(4_294_967_291, 4_294_967_279);
        let weight = (0..40).fold(Weight::ONE, |weight, _| weight.behind(odd));
        let exact = (4_294_967_279f64 / 4_294_967_291f64).powi(40);
        let found = weight.num as f64 / weight.den as f64;
        assert!((found / exact - 1.0).abs() < 1e-9, "{found} {exact}");
    }
}
