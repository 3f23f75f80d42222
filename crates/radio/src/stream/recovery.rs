//! The recovery of a stream: what the device is asked for, and what follows from its answers.
//!
//! Without a port or a clock: a request goes out, and its outcome comes in.
//! ```text
//! silence ─▶ sign of life ─▶ arrivals ─▶ due time ─▶ stop ─▶ new set-up ─┐
//!                               └─ some: over ◀─ early                   │
//! overrun ─▶ time ─▶ stop ─▶ time ─▶ start time ─▶ start ─▶ a restart is awaited
//!             ▲                          ▲ stop ◀────┘ no answer         │
//!             └──────────────────────────┴───────────────────────────────┘
//! ```
//! A member of a group waits behind the second time until all members are there.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::{Duration, Instant};

use super::meta::RxError;
use super::opening::RxOpening;
use super::rate::StreamRate;
use super::run::Restart;
use crate::RadioError;
use crate::channel::{RxRequest, TimeRead};

/// The start commands after one overrun.
const RESTART_TRIES: u32 = 9;

/// How far ahead of the device's time a stream is restarted, at least and at most, before the
/// doubling for each start that was too late: milliseconds of the device's time.
const RESTART_LEAD_MS: (f64, f64) = (5.0, 50.0);

/// The lead in units of the stop command's duration: several writes, on a machine under load.
const RESTART_LEAD_STOPS: u64 = 16;

/// Attempts of a start command. It is not simply repeated, because it may have taken effect.
pub(super) const START_TRIES: u32 = 5;

/// What follows from a packet or from time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Start again at a later time, after so many attempts.
    Restart { attempts: u32 },
    /// Ask the device for a sign of life.
    Ask { silent: Duration },
    /// Set the stream up again.
    SetUp,
}

/// What a stream waits for besides packets. No packet is taken while it asks for something.
#[derive(Debug, Default)]
pub(super) enum Recovery {
    /// Nothing: packets flow, or a start is awaited.
    #[default]
    Running,
    /// A member of a group wants a restart of all members, after so many attempts.
    Wanted { attempts: u32 },
    /// A sign of life, asked for after a silence.
    SignOfLife { silent: Duration, asked: Instant },
    /// It came: packets that the device sent before it are looked for.
    Arrivals,
    /// The time that shows whether a packet was due.
    DueTime(TimeRead),
    /// The radio's stop before the new set-up.
    StopBefore,
    /// The new set-up, with the time of the last look at the port.
    SetUp(Box<RxOpening>, Instant),
    /// The time before the stop of a restart.
    TimeBefore { halt: Halt, time: TimeRead },
    /// That stop.
    Stopping { halt: Halt },
    /// The time behind it.
    TimeBehind { halt: Halt, time: TimeRead },
    /// A member of a group has stopped, and waits for the others.
    Halted(Halt),
    /// The start.
    Starting(StartCommand),
    /// The stop behind a start that failed, so that nothing runs unknown to this host.
    StopFailed { restart: Restart, failure: RadioError },
}

/// A stop for a restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Halt {
    /// The starts before it.
    pub attempts: u32,
    /// The stream itself wanted it, and not another member of its group.
    pub own: bool,
    /// The device's times before and behind it, ticks.
    pub before: u64,
    pub behind: u64,
}

/// A start command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StartCommand {
    restart: Restart,
    /// Its attempts, with this one.
    attempts: u32,
    part: StartPart,
    /// The start itself was sent, in this attempt or in one before.
    written: bool,
}

/// The part of a start command that is being written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StartPart {
    High,
    Low,
    Start,
    /// It is unknown whether the radio runs.
    StopAgain,
}

/// What a recovery needs next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RecoveryNeed {
    /// The outcome of this request.
    Register(RxRequest),
    /// Whether packets have come.
    Arrivals,
    /// The new set-up of the stream.
    SetUp,
}

/// What follows from an outcome.
#[derive(Debug)]
pub(super) enum Turn {
    /// The next request.
    GoOn,
    /// The device is alive.
    Alive,
    /// Its time, ticks, shows whether a packet was due.
    Due(u64),
    /// The stream can be set up again.
    Stopped,
    /// The restart can be commanded.
    Halted(Halt),
    /// The start is sent now; `again`: once more.
    Sending { again: bool },
    /// A restart is awaited.
    Started(Restart),
    /// It is over: a run that may have begun is awaited.
    Failed { error: RxError, begun: Option<Restart> },
}

impl Recovery {
    /// Stops the radio for a restart behind so many attempts; `own`: the stream itself wants it.
    pub fn halt(attempts: u32, own: bool) -> Self {
        let halt = Halt { attempts, own, before: 0, behind: 0 };
        Self::TimeBefore { halt, time: TimeRead::default() }
    }

    /// Commands a restart.
    pub fn start(restart: Restart) -> Self {
        let (attempts, part, written) = (1, StartPart::High, false);
        Self::Starting(StartCommand { restart, attempts, part, written })
    }

    /// Returns whether it asks for something.
    pub fn is_under_way(&self) -> bool {
        self.need().is_some()
    }

    /// Returns the attempts after which a member of a group wants a restart of all.
    pub fn wanted(&self) -> Option<u32> {
        if let Self::Wanted { attempts } = self { Some(*attempts) } else { None }
    }

    /// Returns the stop of a member that waits for the others.
    pub fn halted(&self) -> Option<Halt> {
        if let Self::Halted(halt) = self { Some(*halt) } else { None }
    }

    /// Returns whether it goes on although the stream is stopped: a new set-up is decided, without
    /// which the device could send nothing later, or a start was sent (`is_asked`), which could
    /// overtake the stop.
    pub fn has_to_be_completed(&self, is_asked: bool) -> bool {
        match self {
            Self::StopBefore | Self::SetUp(..) => true,
            Self::Starting(start) => is_asked && start.part == StartPart::Start,
            _ => false,
        }
    }

    /// Returns what it needs.
    pub fn need(&self) -> Option<RecoveryNeed> {
        let request = match self {
            Self::Running | Self::Wanted { .. } | Self::Halted(_) => return None,
            Self::Arrivals => return Some(RecoveryNeed::Arrivals),
            Self::SetUp(..) => return Some(RecoveryNeed::SetUp),
            Self::SignOfLife { .. } => RxRequest::SignOfLife,
            Self::DueTime(time) | Self::TimeBefore { time, .. } | Self::TimeBehind { time, .. } => {
                time.request()
            }
            Self::StopBefore | Self::Stopping { .. } | Self::StopFailed { .. } => RxRequest::Stop,
            Self::Starting(StartCommand { restart, part, .. }) => match part {
                StartPart::High => RxRequest::StartHigh((restart.start >> 32) as u32),
                StartPart::Low => RxRequest::StartLow(restart.start as u32),
                StartPart::Start => RxRequest::Start,
                StartPart::StopAgain => RxRequest::Stop,
            },
        };
        Some(RecoveryNeed::Register(request))
    }

    /// Takes the outcome of the request that it needs.
    pub fn take(&mut self, outcome: Result<u32, RadioError>, device: Ipv4Addr) -> Turn {
        match self.turn(outcome, device) {
            Ok(turn) => turn,
            Err(error) => Turn::Failed { error: error.into(), begun: None },
        }
    }

    fn turn(
        &mut self,
        outcome: Result<u32, RadioError>,
        device: Ipv4Addr,
    ) -> Result<Turn, RadioError> {
        Ok(match std::mem::take(self) {
            Self::SignOfLife { .. } => {
                outcome?;
                *self = Self::Arrivals;
                Turn::Alive
            }
            Self::DueTime(mut time) => match time.take(outcome?, device)? {
                Some(ticks) => Turn::Due(ticks),
                None => {
                    *self = Self::DueTime(time);
                    Turn::GoOn
                }
            },
            Self::StopBefore => {
                outcome?;
                Turn::Stopped
            }
            Self::TimeBefore { halt, mut time } => {
                *self = match time.take(outcome?, device)? {
                    None => Self::TimeBefore { halt, time },
                    Some(before) => Self::Stopping { halt: Halt { before, ..halt } },
                };
                Turn::GoOn
            }
            Self::Stopping { halt } => {
                outcome?;
                *self = Self::TimeBehind { halt, time: TimeRead::default() };
                Turn::GoOn
            }
            Self::TimeBehind { halt, mut time } => match time.take(outcome?, device)? {
                Some(behind) => Turn::Halted(Halt { behind, ..halt }),
                None => {
                    *self = Self::TimeBehind { halt, time };
                    Turn::GoOn
                }
            },
            Self::Starting(start) => self.started(start, outcome),
            // Whatever the answers were, the run may have begun.
            Self::StopFailed { restart, failure } => {
                Turn::Failed { error: failure.into(), begun: Some(restart) }
            }
            // They need no request.
            other => {
                *self = other;
                Turn::GoOn
            }
        })
    }

    /// Takes the outcome of a part of a start command.
    fn started(&mut self, start: StartCommand, outcome: Result<u32, RadioError>) -> Turn {
        let StartCommand { restart, attempts, part, written } = start;
        let (next, turn) = match (part, outcome) {
            (StartPart::StopAgain, Ok(_)) => {
                let (attempts, part) = (attempts + 1, StartPart::High);
                (StartCommand { attempts, part, ..start }, Turn::GoOn)
            }
            // It is unknown whether the radio runs: stop it, then try again.
            (part, Err(RadioError::Silent { .. }))
                if part != StartPart::StopAgain && attempts < START_TRIES =>
            {
                (StartCommand { part: StartPart::StopAgain, ..start }, Turn::GoOn)
            }
            (StartPart::Start, Err(failure)) => {
                *self = Self::StopFailed { restart, failure };
                return Turn::GoOn;
            }
            (_, Err(error)) => {
                return Turn::Failed { error: error.into(), begun: written.then_some(restart) };
            }
            (StartPart::High, Ok(_)) => {
                (StartCommand { part: StartPart::Low, ..start }, Turn::GoOn)
            }
            (StartPart::Low, Ok(_)) => {
                let (part, again) = (StartPart::Start, written);
                (StartCommand { part, written: true, ..start }, Turn::Sending { again })
            }
            (StartPart::Start, Ok(_)) => return Turn::Started(restart),
        };
        *self = Self::Starting(next);
        turn
    }

    /// Gives it up, because the stream is stopped. Returns the restart that may have been started.
    pub fn give_up(&mut self) -> Option<Restart> {
        match std::mem::take(self) {
            Self::Starting(start) => start.written.then_some(start.restart),
            Self::StopFailed { restart, .. } => Some(restart),
            _ => None,
        }
    }
}

/// Checks that another attempt to restart is left.
///
/// # Errors
/// [`RxError::NotRestarted`].
pub(super) fn check_attempts(attempts: u32) -> Result<(), RxError> {
    if attempts < RESTART_TRIES { Ok(()) } else { Err(RxError::NotRestarted { attempts }) }
}

/// Returns how far ahead of the device's time the next start lies, ticks, when stopping took
/// `stop_ticks`.
pub(super) fn restart_lead(rate: StreamRate, stop_ticks: u64, attempts: u32) -> u64 {
    let ticks = |ms: f64| (rate.ticks_hz * ms / 1e3).ceil() as u64;
    let (least, most) = RESTART_LEAD_MS;
    let lead = stop_ticks.saturating_mul(RESTART_LEAD_STOPS).clamp(ticks(least), ticks(most));
    lead << attempts
}

/// Returns the error of a device that gave no sign of life for so long.
pub(super) fn silence_of(error: RxError, silent: Duration, address: SocketAddrV4) -> RxError {
    match error {
        RxError::Radio(RadioError::Silent { .. } | RadioError::Io { .. }) => {
            let silent_ms = silent.as_millis() as u64;
            RxError::DeviceSilent { address, silent_ms, claim_lost: None }
        }
        error => error,
    }
}
