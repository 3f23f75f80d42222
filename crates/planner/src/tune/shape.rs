//! The outline of a graph for the tuner.

use millstream_flow::graph::{Graph, GraphError};

/// Blocks and connections, without the blocks' insides.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct GraphOutline {
    /// Names, every block after those it reads from, chains kept together as far as possible.
    pub blocks: Vec<String>,
    /// Connections, from writer to reader, by position in `blocks`.
    pub edges: Vec<(usize, usize)>,
}

impl GraphOutline {
    /// Returns the outline of a graph.
    ///
    /// # Errors
    /// [`GraphError::Cycle`].
    pub fn of(graph: &Graph) -> Result<Self, GraphError> {
        // Fails if there is a cycle.
        let order = graph.topological_order()?;
        let shape = millstream_flow::Shape::of(graph);
        let edges: Vec<_> = shape.edges.iter().map(|edge| (edge.from, edge.to)).collect();
        let order = depth_first(&order, &edges);
        let mut position = vec![0; order.len()];
        order.iter().enumerate().for_each(|(at, node)| position[*node] = at);
        let edges = edges.iter().map(|(from, to)| (position[*from], position[*to]));
        Ok(Self {
            edges: edges.collect(),
            blocks: order.iter().map(|node| shape.blocks[*node].name.clone()).collect(),
        })
    }

    /// Returns the groups of blocks without a connection between them, each in order.
    #[must_use]
    pub fn components(&self) -> Vec<Vec<usize>> {
        let mut group: Vec<usize> = (0..self.blocks.len()).collect();
        // A graph has few edges: as many rounds as the longest chain has blocks suffice.
        for _ in 0..self.blocks.len() {
            for &(from, to) in &self.edges {
                let least = group[from].min(group[to]);
                (group[from], group[to]) = (least, least);
            }
        }
        let members = |of: usize| (0..group.len()).filter(|node| group[*node] == of).collect();
        (0..group.len()).filter(|node| group[*node] == *node).map(members).collect()
    }
}

/// Returns a topological order that continues with a reader of the block before, where possible:
/// two parallel chains follow one another, not interleaved.
fn depth_first(order: &[usize], edges: &[(usize, usize)]) -> Vec<usize> {
    let mut placed = vec![false; order.len()];
    let mut result: Vec<usize> = Vec::with_capacity(order.len());
    while result.len() < order.len() {
        let is_ready = |node: usize| {
            let mut writers = edges.iter().filter(|(_, to)| *to == node).map(|(from, _)| *from);
            !placed[node] && writers.all(|from| placed[from])
        };
        // The latest block that still has a reader to place comes first.
        let next = result.iter().rev().find_map(|last| {
            edges
                .iter()
                .filter(|(from, _)| from == last)
                .map(|(_, to)| *to)
                .find(|to| is_ready(*to))
        });
        let next = next.or_else(|| order.iter().copied().find(|node| is_ready(*node)));
        let next = next.expect("a graph without cycle has a block that is ready");
        placed[next] = true;
        result.push(next);
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parallel_chains_stay_together() {
        // 0 and 1 feed 2 and 3, those 4 and 5; Kahn's order would be 0 to 5.
        let edges = [(0, 2), (2, 4), (1, 3), (3, 5)];
        assert_eq!(depth_first(&[0, 1, 2, 3, 4, 5], &edges), [0, 2, 4, 1, 3, 5]);
        let shape = GraphOutline {
            blocks: ["a", "b", "c", "d", "e", "f"].map(String::from).to_vec(),
            edges: edges.to_vec(),
        };
        assert_eq!(shape.components(), [vec![0, 2, 4], vec![1, 3, 5]]);
    }

    #[test]
    fn a_block_with_two_inputs_waits_for_both() {
        let edges = [(0, 2), (1, 2), (2, 3), (0, 3)];
        assert_eq!(depth_first(&[0, 1, 2, 3], &edges), [0, 1, 2, 3]);
    }
}
