//! Why a message does not arrive.

/// Why a message cannot be sent or connected.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MessageError {
    /// No such block.
    #[error("there is no block called `{name}`; there are: {}", known.join(", "))]
    UnknownBlock {
        /// The name asked for.
        name: String,
        /// The names there are.
        known: Vec<String>,
    },
    /// The block does not understand it.
    #[error("block `{block}` understands no message `{name}`; it understands: {}", list(known))]
    UnknownMessage {
        /// The block.
        block: String,
        /// The message.
        name: String,
        /// Its messages.
        known: Vec<String>,
    },
    /// The block does not send it.
    #[error("block `{block}` sends no messages `{name}`; it sends: {}", list(known))]
    UnknownEmitter {
        /// The block.
        block: String,
        /// The name.
        name: String,
        /// What it sends.
        known: Vec<String>,
    },
    /// A value of the wrong kind.
    #[error("`{block}.{message}` takes {expected}, found `{found}`")]
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
    /// What is sent is not what is taken.
    #[error("cannot connect `{from}` ({sends}) to `{to}` ({takes}): the kinds differ")]
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
    #[error("`{0}` names no message; write `BLOCK.MESSAGE`")]
    NoName(String),
    /// Too many are waiting.
    #[error(
        "block `{block}` has {waiting} messages waiting and takes no more now; \
         send again when it has come to them"
    )]
    Full {
        /// The block.
        block: String,
        /// How many wait.
        waiting: usize,
    },
    /// The block's work is over.
    #[error("block `{block}` has finished; it takes no more messages")]
    Finished {
        /// The block.
        block: String,
    },
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
