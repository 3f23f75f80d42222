//! The order in which items pass the blocks.

use super::{Graph, GraphError};

impl Graph {
    /// Returns the positions of the blocks, in the order they were added, with every upstream
    /// before every downstream.
    ///
    /// # Errors
    /// [`GraphError::Cycle`].
    pub fn topological_order(&self) -> Result<Vec<usize>, GraphError> {
        let mut order = Vec::with_capacity(self.nodes.len());
        let mut placed = vec![false; self.nodes.len()];
        while order.len() < self.nodes.len() {
            let ready = |node: usize| self.upstream(node).all(|from| placed[from]);
            let next = (0..self.nodes.len()).find(|node| !placed[*node] && ready(*node));
            let Some(next) = next else { return Err(self.cycle(&placed)) };
            placed[next] = true;
            order.push(next);
        }
        Ok(order)
    }

    fn upstream(&self, node: usize) -> impl Iterator<Item = usize> {
        self.edges.iter().filter(move |edge| edge.to.node == node).map(|edge| edge.from.node)
    }

    /// Walks upstream among the nodes that could not be placed until a node repeats.
    fn cycle(&self, placed: &[bool]) -> GraphError {
        let stuck = |node: &usize| !placed[*node];
        let mut path = vec![(0..placed.len()).find(stuck).expect("a node that was not placed")];
        loop {
            let last = path[path.len() - 1];
            let next = self.upstream(last).find(stuck).expect("what holds a stuck node back");
            if let Some(first) = path.iter().position(|node| *node == next) {
                let mut path = path.split_off(first);
                path.push(next);
                // The walk went upstream; items flow the other way.
                let names = path.iter().rev().map(|node| self.nodes[*node].name.clone());
                return GraphError::Cycle { blocks: names.collect() };
            }
            path.push(next);
        }
    }
}
