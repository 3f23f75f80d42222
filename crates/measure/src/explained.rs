//! Why single answers were late, as a record keeps it.

use serde::{Deserialize, Serialize};

/// Why a thread was late.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum LateCause {
    /// Interrupts of devices or of other processors.
    Interrupt,
    /// The work behind interrupts: the network as a rule.
    SoftInterrupt,
    /// Another thread had the CPU.
    Rival,
    /// The timer was due and the CPU did nothing: it was not there.
    HypervisorSteal,
    /// The same on a machine without a hypervisor: firmware, or a kernel with interrupts off.
    Silence,
    /// Its own pages were missing.
    PageFault,
    /// It waited for something that cannot be interrupted.
    Blocked,
    /// It was stopped by a signal or a debugger.
    Stopped,
    /// It ran, while the clock of its CPU was being changed.
    Frequency,
    /// Its timer fired on another CPU, which had to pass it on.
    TimerMigration,
    /// It ran: its own work took that long.
    OwnWork,
    /// The trace does not reach back.
    Unknown,
}

impl LateCause {
    /// For people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Interrupt => "interrupt",
            Self::SoftInterrupt => "soft interrupt",
            Self::Rival => "rival thread",
            Self::HypervisorSteal => "hypervisor steal",
            Self::Silence => "silence",
            Self::PageFault => "page fault",
            Self::Blocked => "blocked",
            Self::Stopped => "stopped",
            Self::Frequency => "frequency",
            Self::TimerMigration => "timer migration",
            Self::OwnWork => "own work",
            Self::Unknown => "unknown",
        }
    }
}

/// What one cause took.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Share {
    /// The cause.
    pub cause: LateCause,
    /// Who: a thread, an interrupt.
    pub who: String,
    /// How long, microseconds.
    pub us: f64,
}

/// Why a thread was late.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Explanation {
    /// From the deadline until it was done, microseconds.
    pub late_us: f64,
    /// What took most of it.
    pub cause: LateCause,
    /// Who, of that cause, took most.
    pub who: String,
    /// All that took part of it, the largest first; their sum is `late_us`.
    pub shares: Vec<Share>,
    /// What else the trace shows.
    pub evidence: Vec<String>,
}

/// An outlier of a measurement, and why it was one.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Explained {
    /// When the answer came, nanoseconds from the beginning of the sample.
    pub at_ns: u64,
    /// The cause, and what it is read from.
    pub why: Explanation,
}
