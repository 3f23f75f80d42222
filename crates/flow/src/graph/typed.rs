//! Connections whose items the compiler checks.

use super::{Graph, GraphError};
use crate::block::Block;
use crate::port::{OneInput, OneOutput};
use std::marker::PhantomData;

/// A block of a graph and its type, for [`Graph::join`].
#[derive(Debug)]
pub struct PlacedBlock<B> {
    name: String,
    block: PhantomData<fn() -> B>,
}

impl Graph {
    /// Adds a block as [`add`](Self::add) does, and returns it with its type.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn place<B: Block + 'static>(
        &mut self,
        name: &str,
        block: B,
    ) -> Result<PlacedBlock<B>, GraphError> {
        self.add(name, block)?;
        Ok(PlacedBlock { name: name.to_owned(), block: PhantomData })
    }

    /// Connects the only output of a block to the only input of another. Items of different types
    /// do not compile:
    ///
    /// ```compile_fail,E0271
    /// # use millstream_flow::{Graph, blocks::{NullSink, NullSource}};
    /// let mut graph = Graph::new();
    /// let zeros = graph.place("zeros", NullSource::<u8>::new()).unwrap();
    /// let sink = graph.place("sink", NullSink::<f32>::new()).unwrap();
    /// graph.join(&zeros, &sink).unwrap();
    /// ```
    ///
    /// ```
    /// use millstream_flow::blocks::{Head, NullSource, VectorSink};
    /// use millstream_flow::{Graph, Plan, map};
    ///
    /// let (sink, items) = VectorSink::new();
    /// let mut graph = Graph::new();
    /// let zeros = graph.place("zeros", NullSource::<f32>::new())?;
    /// let first = graph.place("first", Head::<f32>::new(3))?;
    /// let cosine = graph.place("cosine", map(f32::cos))?;
    /// let sink = graph.place("sink", sink)?;
    /// graph.join(&zeros, &first)?;
    /// graph.join(&first, &cosine)?;
    /// graph.join(&cosine, &sink)?;
    /// graph.run(&Plan::default())?;
    /// assert_eq!(items.take(), [1.0, 1.0, 1.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`connect`](Self::connect): the input is connected already, or a block is of another
    /// graph.
    pub fn join<A: OneOutput, B: OneInput<Item = A::Item>>(
        &mut self,
        from: &PlacedBlock<A>,
        to: &PlacedBlock<B>,
    ) -> Result<(), GraphError> {
        self.connect(&format!("{}.{}", from.name, A::OUTPUT), &format!("{}.{}", to.name, B::INPUT))
    }
}
