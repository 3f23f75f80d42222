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
    /// their number, or every counter of this host stood still that could explain them.
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

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossKind {
    /// Packets were lost on their way.
    Lost,
    /// Packets are missing, and our own capture missed at least as many: perhaps none was lost.
    NotCaptured,
    /// The sender left out samples.
    NotSent,
    /// The radio reported an overrun, and sent nothing behind it.
    Overrun,
    /// The radio had no samples to transmit.
    Underflow,
    /// Samples came to the radio after their time.
    LateData,
    /// A command came to the radio after its time.
    LateCommand,
}

/// What told of a loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossSource {
    /// A gap of the account, by its number.
    Gap(u64),
    /// A radio's message, by its number in the account.
    Message(u64),
    /// The kernel, which named each packet that it dropped.
    Dropped,
    /// The counter of a socket.
    Counter,
}

/// A loss and where it occurred.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgedLoss {
    /// What happened.
    pub kind: LossKind,
    /// What told of it. A gap whose packets were lost at several hops gives a loss for each.
    pub source: LossSource,
    /// The position of its flow in the account, where it is of one flow.
    pub flow: Option<usize>,
    /// When it was seen, nanoseconds; `None` where the capture has no times.
    pub at_ns: Option<u64>,
    /// Lost packets; 0 where none was lost on its way.
    pub packets: u64,
    /// Missing samples, where they are known.
    pub samples: Option<u64>,
    /// Where it occurred.
    pub verdict: HopVerdict,
}
