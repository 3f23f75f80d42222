//! The state of a receive stream: what the device executes, and which start is awaited.

use std::time::Instant;

use super::silence::Recovery;

/// The command that the device executes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamState {
    Idle,
    /// A run without an end. A member of a group may want a restart of all members, after so many
    /// attempts.
    Continuous {
        awaited: AwaitedStart,
        wanted: Option<u32>,
    },
    /// A capture, with the number of samples still to come, and the time of its start if its first
    /// packet has not come.
    Finite {
        left: u64,
        awaited: Option<u64>,
    },
    /// Stopped, with the time; the end of the burst, and of those in the chain, has not come yet.
    Stopping {
        since: Instant,
        awaited: AwaitedStart,
    },
}

/// The start whose first packet has not come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AwaitedStart {
    /// None: packets flow, or there was no time.
    Nothing,
    /// The first start of a burst, at this time, ticks.
    First(u64),
    /// A start behind an overrun or a new set-up of the stream.
    Restart(Recovery),
}

impl AwaitedStart {
    fn ticks(&self) -> Option<u64> {
        match self {
            Self::Nothing => None,
            Self::First(ticks) => Some(*ticks),
            Self::Restart(recovery) => Some(recovery.start),
        }
    }
}

impl From<Option<u64>> for AwaitedStart {
    fn from(at: Option<u64>) -> Self {
        at.map_or(Self::Nothing, Self::First)
    }
}

/// The newest packet, as an end of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NewestPacket {
    /// More of its run follows.
    Inside,
    /// It was the last of a run, behind which others were started.
    EndOfRun,
    /// It was the last of a run, and only the newest run follows.
    EndOfLastRun,
}

impl StreamState {
    /// Returns the state behind the start of `samples` samples, or of a run without an end.
    pub fn started(samples: Option<u64>, awaited: Option<u64>) -> Self {
        match samples {
            Some(left) => Self::Finite { left, awaited },
            None => Self::Continuous { awaited: awaited.into(), wanted: None },
        }
    }

    /// Returns the state behind a stop; a restart is no longer wanted.
    pub fn stopped(self, since: Instant) -> Self {
        match self {
            Self::Idle => Self::Idle,
            Self::Continuous { awaited, .. } | Self::Stopping { awaited, .. } => {
                Self::Stopping { since, awaited }
            }
            Self::Finite { awaited, .. } => Self::Stopping { since, awaited: awaited.into() },
        }
    }

    /// Returns whether nothing runs.
    pub fn is_idle(&self) -> bool {
        matches!(self, Self::Idle)
    }

    /// Returns whether a run without an end runs.
    pub fn is_continuous(&self) -> bool {
        matches!(self, Self::Continuous { .. })
    }

    /// Returns whether the end of a stopped burst is awaited.
    pub fn is_stopping(&self) -> bool {
        matches!(self, Self::Stopping { .. })
    }

    /// Returns the time of a start whose first packet has not come.
    pub fn awaited(&self) -> Option<u64> {
        match self {
            Self::Idle => None,
            Self::Finite { awaited, .. } => *awaited,
            Self::Continuous { awaited, .. } | Self::Stopping { awaited, .. } => awaited.ticks(),
        }
    }

    /// Returns the restart whose first packet has not come.
    pub fn restarted(&self) -> Option<&Recovery> {
        match self {
            Self::Continuous { awaited: AwaitedStart::Restart(recovery), .. }
            | Self::Stopping { awaited: AwaitedStart::Restart(recovery), .. } => Some(recovery),
            _ => None,
        }
    }

    /// Returns the same, to change it.
    pub fn restarted_mut(&mut self) -> Option<&mut Recovery> {
        match self {
            Self::Continuous { awaited: AwaitedStart::Restart(recovery), .. }
            | Self::Stopping { awaited: AwaitedStart::Restart(recovery), .. } => Some(recovery),
            _ => None,
        }
    }

    /// Awaits `start` from now on; a capture is never started again.
    pub fn await_start(&mut self, start: AwaitedStart) {
        match self {
            Self::Idle => {}
            Self::Finite { awaited, .. } => *awaited = start.ticks(),
            Self::Continuous { awaited, .. } | Self::Stopping { awaited, .. } => *awaited = start,
        }
    }

    /// Returns the number of attempts after which a member of a group wants a restart of all.
    pub fn wanted(&self) -> Option<u32> {
        match self {
            Self::Continuous { wanted, .. } => *wanted,
            _ => None,
        }
    }

    /// Takes that number: the wish is fulfilled, or void.
    pub fn take_wanted(&mut self) -> Option<u32> {
        match self {
            Self::Continuous { wanted, .. } => wanted.take(),
            _ => None,
        }
    }

    /// Wants a restart of all members of the group, after so many attempts.
    pub fn want(&mut self, attempts: u32) {
        if let Self::Continuous { wanted, .. } = self {
            *wanted = Some(attempts);
        }
    }
}
