//! The causes of single late answers, in the form that a record stores.

use serde::{Deserialize, Serialize};

/// The cause of a thread's lateness.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum LateCause {
    /// Interrupts of devices or of other processors.
    Interrupt,
    /// Deferred interrupt work: the network as a rule.
    SoftInterrupt,
    /// Another thread had the CPU.
    Rival,
    /// The timer was due and the hypervisor did not run the CPU.
    HypervisorSteal,
    /// The same without a hypervisor: firmware, or a kernel with interrupts off.
    Silence,
    /// The thread's own pages were missing.
    PageFault,
    /// The thread was in an uninterruptible wait.
    Blocked,
    /// A signal or a debugger stopped the thread.
    Stopped,
    /// The thread ran while the clock of its CPU was being changed.
    Frequency,
    /// The timer fired on another CPU, which had to pass it on.
    TimerMigration,
    /// The thread ran: its own work took that long.
    OwnWork,
    /// The trace does not reach back.
    Unknown,
}

impl LateCause {
    /// Returns the description in reports.
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

/// The time that one cause took.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Share {
    /// The cause.
    pub cause: LateCause,
    /// The responsible thread or interrupt.
    pub who: String,
    /// The time, microseconds.
    pub us: f64,
}

/// The causes of a thread's lateness.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Explanation {
    /// The time from the deadline until the thread was done, microseconds.
    pub late_us: f64,
    /// The cause with the largest part.
    pub cause: LateCause,
    /// The thread or interrupt, of that cause, with the largest part.
    pub who: String,
    /// All parts, the largest first; their sum is `late_us`.
    pub shares: Vec<Share>,
    /// Other evidence in the trace.
    pub evidence: Vec<String>,
}

impl Explanation {
    /// Joins the parts of equal cause and origin. The cause is the one with the largest part of
    /// all; unknown without any part.
    #[must_use]
    pub fn of(late_us: f64, parts: Vec<Share>, evidence: Vec<String>) -> Self {
        let mut shares: Vec<Share> = Vec::new();
        for part in parts {
            match shares.iter_mut().find(|one| one.cause == part.cause && one.who == part.who) {
                Some(share) => share.us += part.us,
                None => shares.push(part),
            }
        }
        shares.sort_by(|one, two| two.us.total_cmp(&one.us));
        let total = |cause| -> f64 {
            shares.iter().filter(|share| share.cause == cause).map(|share| share.us).sum()
        };
        let causes = shares.iter().map(|share| share.cause);
        let cause = causes.max_by(|one, two| total(*one).total_cmp(&total(*two)));
        let cause = cause.unwrap_or(LateCause::Unknown);
        let who = shares.iter().find(|share| share.cause == cause);
        let who = who.map(|share| share.who.clone()).unwrap_or_default();
        Self { late_us, cause, who, shares, evidence }
    }
}

/// An outlier of a measurement, with its cause.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Explained {
    /// The time of the answer, nanoseconds from the beginning of the sample.
    pub at_ns: u64,
    /// The cause, and the evidence for it.
    pub why: Explanation,
}
