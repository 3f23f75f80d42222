//! Errors of graphs, with the facts that are needed to correct them.

use crate::graph::PortDirection;

/// The reason why a graph cannot be built or started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GraphError {
    /// A block's name has characters that connections and plans could not tell apart.
    #[error("`{name}` cannot be the name of a block: use letters, digits, `_` and `-`")]
    BlockName {
        /// The name.
        name: String,
    },
    /// Two blocks of one name.
    #[error("two blocks have the name `{name}`: give each block its own name")]
    DuplicateBlock {
        /// The name.
        name: String,
    },
    /// No such block.
    #[error("there is no block with the name `{name}`; there are: {}", known.join(", "))]
    UnknownBlock {
        /// The name that was given.
        name: String,
        /// The blocks of the graph.
        known: Vec<String>,
    },
    /// No port of that name on that side.
    #[error(
        "block `{block}` has no {direction} with the name `{name}`; its {direction}s are: {}",
        list(known)
    )]
    UnknownPort {
        /// The block.
        block: String,
        /// The side.
        direction: PortDirection,
        /// The port that was given.
        name: String,
        /// The ports on that side.
        known: Vec<String>,
    },
    /// No port at all on that side.
    #[error("block `{block}` has no {direction}s")]
    NoPort {
        /// The block.
        block: String,
        /// The side.
        direction: PortDirection,
    },
    /// Several ports, and none named.
    #[error(
        "block `{block}` has several {direction}s ({}): write for example `{block}.{}`",
        list(known),
        known[0]
    )]
    AmbiguousPort {
        /// The block.
        block: String,
        /// The side.
        direction: PortDirection,
        /// The ports on that side.
        known: Vec<String>,
    },
    /// Ports of different item types.
    #[error(
        "the output `{output}` ({output_type}) cannot be connected to the input `{input}` \
         ({input_type}), because their item types differ"
    )]
    ItemTypes {
        /// The output.
        output: String,
        /// Type of its items.
        output_type: String,
        /// The input.
        input: String,
        /// Type of its items.
        input_type: String,
    },
    /// A second connection to an input.
    #[error(
        "the input `{input}` is already connected to `{output}`; an input can have only one \
         connection"
    )]
    InputTaken {
        /// The input.
        input: String,
        /// The output that it reads.
        output: String,
    },
    /// An input without connection.
    #[error("the input `{input}` is not connected: connect an output of type {item} to it")]
    Unconnected {
        /// The input.
        input: String,
        /// Type of its items.
        item: String,
    },
    /// A loop.
    #[error("the connections between blocks form a cycle ({}), which a graph does not allow: \
         remove one of them", blocks.join(" -> "))]
    Cycle {
        /// The blocks of the loop, the first one also last.
        blocks: Vec<String>,
    },
    /// Nothing to run.
    #[error("the graph has no blocks: add at least a source and a sink")]
    Empty,
    /// An invalid connection of messages.
    #[error(transparent)]
    Message(#[from] crate::message::MessageError),
    /// The plan does not fit the graph or the machine.
    #[error(transparent)]
    Plan(#[from] crate::plan::PlanError),
    /// A latency bound that cannot be kept.
    #[error(transparent)]
    Latency(#[from] crate::plan::LatencyError),
    /// A ring could not be made.
    #[error("cannot make the ring for the output `{output}`: {source}")]
    Ring {
        /// The output of the ring.
        output: String,
        /// The cause.
        source: millstream_ring::RingError,
    },
    /// A program cannot wait for items of this graph.
    #[error("cannot make the wake-up for items of the output `{output}`: {source}")]
    Pull {
        /// The output.
        output: String,
        /// The cause.
        source: std::io::Error,
    },
    /// A thread could not be started.
    #[error("cannot start the thread for partition `{partition}`: {source}")]
    Thread {
        /// The partition.
        partition: String,
        /// The cause.
        source: std::io::Error,
    },
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
