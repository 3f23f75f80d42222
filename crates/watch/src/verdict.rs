//! For each loss the hop at which it occurred, by the packets and by what the hops say.

/// A place on the way of samples where some can be lost, in the order of the receive direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Hop {
    /// The radio: it did not send, because of an overrun, a late command or its own fault.
    Radio,
    /// Cables, switches and the far end's card.
    Wire,
    /// The ring of this host's card.
    Card,
    /// The backlog of a CPU (`net.core.netdev_max_backlog`).
    Backlog,
    /// The kernel's IPv4 and UDP layers, with its packet filters.
    Stack,
    /// The buffer of the program's socket.
    Socket,
    /// The program: it read, wrote or answered too late.
    Program,
    /// The queueing discipline or the driver on the way out.
    SendQueue,
}

/// How well the hop is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Certainty {
    /// The kernel or the radio named these packets, or a counter of just this hop grew by just
    /// their number.
    Sure,
    /// The evidence points there, and something else could explain it.
    Perhaps,
    /// It lies anywhere from this hop to [`HopVerdict::until`].
    Between,
}

/// What one gap, late packet or underflow comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HopVerdict {
    /// The hop, or the first of those between which the loss lies.
    pub hop: Hop,
    /// The last of those between which the loss lies; `hop` itself where it is known.
    pub until: Hop,
    /// How well it is known.
    pub certainty: Certainty,
    /// What shows it, a sentence each, with values.
    pub evidence: Vec<String>,
    /// What to do, a sentence or a command each; the most promising first.
    pub remedies: Vec<String>,
}
