//! Blocks by name, and their connections.

mod error;
mod messages;
mod order;
mod pull;
mod typed;

pub use error::GraphError;
pub(crate) use messages::MessageEdge;
pub use pull::{PullError, PullRead, PullReader};
pub use typed::PlacedBlock;

use crate::Ports;
use crate::block::{Block, BlockError, Context, Work};
use crate::facts::BlockFacts;
use crate::item::ItemType;
use crate::port::each_port;
use std::fmt;

/// Blocks and connections, checked as they are added.
///
/// ```
/// use millstream_flow::{Graph, Plan, blocks};
///
/// let mut graph = Graph::new();
/// graph.add("zeros", blocks::NullSource::<f32>::new())?;
/// graph.add("head", blocks::Head::<f32>::new(1000))?;
/// graph.add("sink", blocks::NullSink::<f32>::new())?;
/// graph.chain(&["zeros", "head", "sink"])?;
/// let summary = graph.run(&Plan::default())?;
/// assert_eq!(summary.block("sink").unwrap().items_in, 1000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Default)]
pub struct Graph {
    pub(crate) nodes: Vec<Node>,
    pub(crate) edges: Vec<Edge>,
    pub(crate) messages: Vec<MessageEdge>,
    /// Nodes that wait for the progress of a node without a ring between them: (node, waiting
    /// node).
    pub(crate) wakes: Vec<(usize, usize)>,
    /// The cost model reads no clock.
    pub(crate) untimed: bool,
}

/// A block in its graph.
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) block: Box<dyn Block>,
    pub(crate) facts: BlockFacts,
    pub(crate) inputs: Vec<PortInfo>,
    pub(crate) outputs: Vec<PortInfo>,
}

/// The properties of a port when its block was added.
#[derive(Clone, Debug)]
pub(crate) struct PortInfo {
    pub(crate) name: String,
    pub(crate) item: ItemType,
    pub(crate) min_items: usize,
}

/// A port of a block, by position in [`Graph::nodes`] and in its inputs or outputs.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct PortId {
    pub(crate) node: usize,
    pub(crate) port: usize,
}

/// A connection from an output to an input.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    pub(crate) from: PortId,
    pub(crate) to: PortId,
}

/// Which side of a block a port is on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PortDirection {
    /// Items come in.
    Input,
    /// Items go out.
    Output,
}

impl fmt::Display for PortDirection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Input => "input",
            Self::Output => "output",
        })
    }
}

impl Graph {
    /// Makes a graph without blocks.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a block under a name: letters, digits, `_` and `-`.
    ///
    /// # Errors
    /// [`GraphError`] for a name that is taken or malformed.
    pub fn add(&mut self, name: &str, block: impl Block + 'static) -> Result<(), GraphError> {
        self.add_boxed(name, Box::new(block))
    }

    /// Adds a boxed block, as from a factory.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn add_boxed(&mut self, name: &str, mut block: Box<dyn Block>) -> Result<(), GraphError> {
        let good = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || !name.chars().all(good) {
            return Err(GraphError::BlockName { name: name.to_owned() });
        }
        if self.nodes.iter().any(|node| node.name == name) {
            return Err(GraphError::DuplicateBlock { name: name.to_owned() });
        }
        let info =
            |name: &str, item, min_items| PortInfo { name: name.to_owned(), item, min_items };
        let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
        each_port(
            &mut *block,
            |name, port| inputs.push(info(name, port.item_type(), port.min_items())),
            |name, port| outputs.push(info(name, port.item_type(), port.min_items())),
        );
        let facts = BlockFacts::of(&block);
        self.nodes.push(Node { name: name.to_owned(), block, facts, inputs, outputs });
        Ok(())
    }

    /// Connects an output to an input, each as `block.port`, or as `block` if the block has one
    /// such port. An output may be connected several times.
    ///
    /// # Errors
    /// [`GraphError`] for an end that does not exist, item types that differ, or an input that is
    /// connected already.
    pub fn connect(&mut self, output: &str, input: &str) -> Result<(), GraphError> {
        let from = self.find(output, PortDirection::Output)?;
        let to = self.find(input, PortDirection::Input)?;
        let (source, sink) = (self.output(from), self.input(to));
        if source.item != sink.item {
            return Err(GraphError::ItemTypes {
                output: self.output_name(from),
                output_type: source.item.to_string(),
                input: self.input_name(to),
                input_type: sink.item.to_string(),
            });
        }
        if let Some(edge) = self.edges.iter().find(|edge| edge.to == to) {
            return Err(GraphError::InputTaken {
                input: self.input_name(to),
                output: self.output_name(edge.from),
            });
        }
        self.edges.push(Edge { from, to });
        Ok(())
    }

    /// Connects each block to the next; those in the middle need one input and one output.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub fn chain(&mut self, ends: &[&str]) -> Result<(), GraphError> {
        ends.windows(2).try_for_each(|pair| self.connect(pair[0], pair[1]))
    }

    /// Sets whether blocks are timed for [`Profile::blocks`](crate::Profile::blocks). On by
    /// default; off only to measure the cost of timing.
    pub fn set_timed(&mut self, timed: bool) {
        self.untimed = !timed;
    }

    /// Returns the names of the blocks, in the order they were added.
    pub fn block_names(&self) -> impl Iterator<Item = &str> {
        self.nodes.iter().map(|node| node.name.as_str())
    }

    /// Checks the properties of the complete graph.
    ///
    /// # Errors
    /// [`GraphError`] for an empty graph, an input that is not connected, or a cycle.
    pub fn check(&self) -> Result<(), GraphError> {
        if self.nodes.is_empty() {
            return Err(GraphError::Empty);
        }
        for (node, port) in self.ends(|node| node.inputs.len()) {
            let end = PortId { node, port };
            if !self.edges.iter().any(|edge| edge.to == end) {
                let (input, item) = (self.input_name(end), self.input(end).item.to_string());
                return Err(GraphError::Unconnected { input, item });
            }
        }
        self.topological_order().map(|_| ())
    }

    /// Takes the blocks out and leaves their names, ports and connections.
    pub(crate) fn take_blocks(&mut self) -> Vec<Box<dyn Block>> {
        let take = |node: &mut Node| std::mem::replace(&mut node.block, Box::new(RemovedBlock));
        self.nodes.iter_mut().map(take).collect()
    }

    pub(crate) fn node_index(&self, name: &str) -> Option<usize> {
        self.nodes.iter().position(|node| node.name == name)
    }

    pub(crate) fn output(&self, end: PortId) -> &PortInfo {
        &self.nodes[end.node].outputs[end.port]
    }

    pub(crate) fn input(&self, end: PortId) -> &PortInfo {
        &self.nodes[end.node].inputs[end.port]
    }

    pub(crate) fn output_name(&self, end: PortId) -> String {
        format!("{}.{}", self.nodes[end.node].name, self.output(end).name)
    }

    pub(crate) fn input_name(&self, end: PortId) -> String {
        format!("{}.{}", self.nodes[end.node].name, self.input(end).name)
    }

    /// Returns every (node, port), where `ports` gives the number of ports of a node.
    pub(crate) fn ends(
        &self,
        ports: impl Fn(&Node) -> usize,
    ) -> impl Iterator<Item = (usize, usize)> {
        let ends = self.nodes.iter().enumerate().map(move |(index, node)| (index, ports(node)));
        ends.flat_map(|(node, ports)| (0..ports).map(move |port| (node, port)))
    }

    /// Resolves `block.port` or `block`.
    pub(crate) fn find(&self, text: &str, direction: PortDirection) -> Result<PortId, GraphError> {
        let (block, port_name) = match text.split_once('.') {
            Some((block, port)) => (block, Some(port)),
            None => (text, None),
        };
        let node = self.node_index(block).ok_or_else(|| GraphError::UnknownBlock {
            name: block.to_owned(),
            known: self.block_names().map(str::to_owned).collect(),
        })?;
        let ports = match direction {
            PortDirection::Input => &self.nodes[node].inputs,
            PortDirection::Output => &self.nodes[node].outputs,
        };
        let known = || ports.iter().map(|port| port.name.clone()).collect();
        let block = block.to_owned();
        match (port_name, ports.len()) {
            (None, 1) => Ok(PortId { node, port: 0 }),
            (None, 0) => Err(GraphError::NoPort { block, direction }),
            (None, _) => Err(GraphError::AmbiguousPort { block, direction, known: known() }),
            (Some(name), _) => match ports.iter().position(|port| port.name == name) {
                Some(port) => Ok(PortId { node, port }),
                None => {
                    let name = name.to_owned();
                    Err(GraphError::UnknownPort { block, direction, name, known: known() })
                }
            },
        }
    }
}

/// Takes the place of a block that was taken out; it is never called.
#[derive(Ports)]
struct RemovedBlock;

impl Block for RemovedBlock {
    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        Ok(Work::Finished)
    }
}
