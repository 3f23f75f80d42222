//! Errors of messages.

/// The reason why a message cannot be sent or connected.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MessageError {
    /// No such block.
    #[error("there is no block with the name `{name}`; there are: {}", known.join(", "))]
    UnknownBlock {
        /// The name that was given.
        name: String,
        /// The blocks of the graph.
        known: Vec<String>,
    },
    /// The block does not take it.
    #[error("block `{block}` has no message `{name}`; its messages are: {}", list(known))]
    UnknownMessage {
        /// The block.
        block: String,
        /// The message.
        name: String,
        /// Its messages.
        known: Vec<String>,
    },
    /// The block does not send it.
    #[error("block `{block}` does not send a message `{name}`; it sends: {}", list(known))]
    UnknownEmitter {
        /// The block.
        block: String,
        /// The name.
        name: String,
        /// Its emitters.
        known: Vec<String>,
    },
    /// A value of the wrong kind.
    #[error("the message `{block}.{message}` takes {expected}, but `{found}` was given")]
    WrongKind {
        /// The block.
        block: String,
        /// The message.
        message: String,
        /// The right kind.
        expected: String,
        /// The value.
        found: String,
    },
    /// The kinds of emitter and message differ.
    #[error(
        "`{from}` ({sends}) cannot be connected to `{to}` ({takes}), because their kinds of value \
         differ"
    )]
    KindsDiffer {
        /// The sending end.
        from: String,
        /// Its kind.
        sends: String,
        /// The taking end.
        to: String,
        /// Its kind.
        takes: String,
    },
    /// Text that does not name a message.
    #[error("`{0}` is not the name of a message: write `BLOCK.MESSAGE`")]
    NoName(String),
    /// The queue is full.
    #[error(
        "block `{block}` already has {waiting} waiting messages, which is the limit: send again \
         when it has handled them"
    )]
    Full {
        /// The block.
        block: String,
        /// The number of waiting messages.
        waiting: usize,
    },
    /// The block has finished.
    #[error("block `{block}` has finished and takes no more messages")]
    Finished {
        /// The block.
        block: String,
    },
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
