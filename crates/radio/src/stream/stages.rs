//! The stages of a recovery: what the device is asked for, and what follows from its answers.
//!
//! Without a port or a clock: a request goes out, and its outcome comes in.
//! ```text
//! silence ─▶ sign of life ─▶ arrivals ─▶ due time ─▶ (begin time) ─▶ stop ─▶ new set-up ─┐
//!                               └─ some: over ◀─ early                                   │
//! overrun ─▶ time ─▶ stop ─▶ time ─▶ start time ─▶ start ─▶ a restart is awaited         │
//!             ▲                          ▲ stop ◀────┘ no answer                         │
//!             └──────────────────────────┴───────────────────────────────────────────────┘
//! ```
//! A member of a group waits behind the second time until all members are there.

use std::time::{Duration, Instant};

use super::core::{RxCore, Step};
use super::gap_causes::GapCauses;
use super::meta::RxError;
use super::opening::RxOpening;
use super::passed_over::SkippedPackets;
use super::silence::Recovery;
use super::state::StreamState;
use crate::channel::{RxRequest, TimeRead};
use crate::{Cause, RadioError};

/// The start commands after one overrun.
const RESTART_TRIES: u32 = 9;

/// Attempts of a start command. It is not simply repeated, because it may have taken effect.
pub(super) const START_TRIES: u32 = 5;

/// What a recovery waits for. No packet is taken meanwhile.
#[derive(Debug)]
pub(super) enum RecoveryStage {
    /// A sign of life, asked for after a silence.
    SignOfLife { silent: Duration, asked: Instant },
    /// It came: packets that the device sent before it are looked for.
    Arrivals,
    /// The time that shows whether a packet was due.
    DueTime(TimeRead),
    /// The time that shows whether the awaited run has begun, before a new set-up.
    BeginTime(TimeRead),
    /// The radio's stop before the new set-up.
    StopBefore,
    /// The new set-up, with the time of the last look at the port.
    SetUp(Box<RxOpening>, Instant),
    /// The time before the stop of a restart, which follows so many attempts.
    TimeBefore { attempts: u32, time: TimeRead },
    /// That stop.
    Stop { attempts: u32, before: u64 },
    /// The time behind it.
    TimeBehind { attempts: u32, before: u64, time: TimeRead },
    /// The start.
    Start(StartCommand),
    /// The stop behind a start that failed, so that nothing runs unknown to this host.
    StopFailed { recovery: Recovery, failure: RadioError },
}

/// A stop for the common restart of a group: the device's times before and behind it, ticks, and
/// whether the start before had begun a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Halt {
    pub before: u64,
    pub behind: u64,
    pub began: bool,
}

/// A start command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StartCommand {
    recovery: Recovery,
    /// Its attempts, with this one.
    attempts: u32,
    part: StartPart,
    /// The start itself was sent, in this attempt or in one before.
    written: bool,
    before: BeforeStart,
}

/// What is true again if a start is given up before it was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct BeforeStart {
    run_settled: bool,
    late_commands_seen: u64,
    overruns_seen: u64,
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

impl RxCore {
    /// Begins what `step` asks for.
    ///
    /// # Errors
    /// [`RxError::NotRestarted`].
    pub fn begin_step(&mut self, step: Step, now: Instant) -> Result<(), RxError> {
        match step {
            Step::Restart { attempts } => self.begin_restart(attempts)?,
            Step::Ask { silent } => {
                self.stage = Some(RecoveryStage::SignOfLife { silent, asked: now });
            }
            Step::SetUp => {
                self.counters.stalls += 1;
                let awaits = self.run.restarted().is_some();
                let time = RecoveryStage::BeginTime(TimeRead::default());
                self.stage = Some(if awaits { time } else { RecoveryStage::StopBefore });
            }
        }
        Ok(())
    }

    /// Begins a restart after `attempts` attempts; a member of a group waits for the others.
    fn begin_restart(&mut self, attempts: u32) -> Result<(), RxError> {
        if self.in_group {
            self.run.want(attempts);
            return Ok(());
        }
        check_attempts(attempts).inspect_err(|_| self.run = StreamState::Idle)?;
        self.halt(attempts);
        Ok(())
    }

    /// Stops the radio for a restart after `attempts` attempts.
    pub fn halt(&mut self, attempts: u32) {
        self.stage = Some(RecoveryStage::TimeBefore { attempts, time: TimeRead::default() });
    }

    /// Begins the start of a restart, told at the device's time `told`; samples missing until
    /// `start` have the causes `causes`.
    pub fn begin_start(&mut self, told: u64, start: u64, attempts: u32, causes: GapCauses) {
        let recovery = self.recovery(attempts, told, start, causes);
        if self.in_group && self.new_overrun().is_some_and(|ticks| ticks >= self.run_ticks) {
            // It is restarted for another member, before it takes the end of its run.
            self.count_overrun();
        }
        let before = BeforeStart {
            run_settled: self.run_settled,
            late_commands_seen: self.late_commands_seen,
            overruns_seen: self.overruns_seen,
        };
        self.run_settled = false;
        self.see_reports();
        let (attempts, part, written) = (1, StartPart::High, false);
        self.attempt_start(StartCommand { recovery, attempts, part, written, before });
    }

    fn attempt_start(&mut self, start: StartCommand) {
        // An overrun since the first attempt is one of the run that it began.
        self.late_commands_seen = self.reports.late_commands;
        self.stage = Some(RecoveryStage::Start(start));
    }

    /// Gives a start up: the run is awaited if it may have begun.
    fn give_up_start(&mut self, start: StartCommand) {
        let StartCommand { recovery, written, before, .. } = start;
        if written {
            return self.await_restart(recovery);
        }
        let BeforeStart { run_settled, late_commands_seen, overruns_seen } = before;
        self.run_settled = run_settled;
        (self.late_commands_seen, self.overruns_seen) = (late_commands_seen, overruns_seen);
    }

    /// Takes the reports so far as those before the next start.
    pub fn see_reports(&mut self) {
        self.late_commands_seen = self.reports.late_commands;
        self.overruns_seen = self.reports.overruns;
    }

    /// Returns whether a recovery is under way.
    pub fn is_recovering(&self) -> bool {
        self.stage.is_some()
    }

    /// Returns whether the recovery goes on although the stream is stopped: a new set-up is
    /// decided, or a start is on its way; `is_asked`: the request was sent.
    pub fn has_to_be_completed(&self, is_asked: bool) -> bool {
        match &self.stage {
            Some(
                RecoveryStage::BeginTime(_) | RecoveryStage::StopBefore | RecoveryStage::SetUp(..),
            ) => true,
            Some(RecoveryStage::Start(start)) => is_asked && start.part == StartPart::Start,
            _ => false,
        }
    }

    /// Returns what the recovery needs, if one is under way.
    pub fn need(&self) -> Option<RecoveryNeed> {
        let request = match self.stage.as_ref()? {
            RecoveryStage::Arrivals => return Some(RecoveryNeed::Arrivals),
            RecoveryStage::SetUp(..) => return Some(RecoveryNeed::SetUp),
            RecoveryStage::SignOfLife { .. } => RxRequest::SignOfLife,
            RecoveryStage::DueTime(time)
            | RecoveryStage::BeginTime(time)
            | RecoveryStage::TimeBefore { time, .. }
            | RecoveryStage::TimeBehind { time, .. } => time.request(),
            RecoveryStage::StopBefore
            | RecoveryStage::Stop { .. }
            | RecoveryStage::StopFailed { .. } => RxRequest::Stop,
            RecoveryStage::Start(StartCommand { recovery, part, .. }) => match part {
                StartPart::High => RxRequest::StartHigh((recovery.start >> 32) as u32),
                StartPart::Low => RxRequest::StartLow(recovery.start as u32),
                StartPart::Start => RxRequest::Start,
                StartPart::StopAgain => RxRequest::Stop,
            },
        };
        Some(RecoveryNeed::Register(request))
    }

    /// Takes the outcome of the request that the recovery needs, at `now`. An error ends the
    /// recovery.
    ///
    /// # Errors
    /// [`RxError::DeviceSilent`], [`RxError::NotRestarted`], [`RxError::Radio`].
    pub fn take_outcome(
        &mut self,
        outcome: Result<u32, RadioError>,
        now: Instant,
    ) -> Result<(), RxError> {
        let address = *self.path.device.ip();
        match self.stage.take() {
            None => {}
            Some(RecoveryStage::SignOfLife { silent, asked }) => {
                outcome.map_err(|error| self.silence_of(error, silent + (now - asked)))?;
                self.last_heard = now;
                self.stage = Some(RecoveryStage::Arrivals);
            }
            Some(RecoveryStage::DueTime(mut time)) => match time.take(outcome?, address)? {
                None => self.stage = Some(RecoveryStage::DueTime(time)),
                Some(ticks) if self.is_waiting(ticks, now) => {}
                Some(_) => {
                    let step = self.outlived_silence();
                    step.map_or(Ok(()), |step| self.begin_step(step, now))?;
                }
            },
            Some(RecoveryStage::BeginTime(mut time)) => match time.take(outcome?, address)? {
                None => self.stage = Some(RecoveryStage::BeginTime(time)),
                Some(ticks) => {
                    self.note_start_ahead(ticks);
                    self.lose_run(ticks);
                    self.stage = Some(RecoveryStage::StopBefore);
                }
            },
            Some(RecoveryStage::StopBefore) => {
                outcome?;
                self.run_settled = true;
                let opening = RxOpening::new(self.path, self.credit.clone());
                self.stage = Some(RecoveryStage::SetUp(Box::new(opening), now));
            }
            Some(RecoveryStage::TimeBefore { attempts, mut time }) => {
                self.stage = Some(match time.take(outcome?, address)? {
                    None => RecoveryStage::TimeBefore { attempts, time },
                    Some(before) => RecoveryStage::Stop { attempts, before },
                });
            }
            Some(RecoveryStage::Stop { attempts, before }) => {
                outcome?;
                let time = TimeRead::default();
                self.stage = Some(RecoveryStage::TimeBehind { attempts, before, time });
            }
            Some(RecoveryStage::TimeBehind { attempts, before, mut time }) => {
                match time.take(outcome?, address)? {
                    None => self.stage = Some(RecoveryStage::TimeBehind { attempts, before, time }),
                    Some(behind) if self.in_group => {
                        // The start before may have begun a run, which has an end of its own.
                        let began = self.lose_run(behind);
                        self.halted = Some(Halt { before, behind, began });
                    }
                    Some(ticks) => {
                        let lead = self.restart_lead(ticks.wrapping_sub(before), attempts);
                        let start = self.aligned(ticks.wrapping_add(lead), ticks);
                        let causes = GapCauses::of(Cause::DeviceOverrun);
                        self.begin_start(ticks, start, attempts + 1, causes);
                    }
                }
            }
            Some(RecoveryStage::Start(start)) => self.take_started(start, outcome, now)?,
            Some(RecoveryStage::StopFailed { recovery, failure }) => {
                // Whatever the answers were, the run may have begun.
                self.await_restart(recovery);
                return Err(failure.into());
            }
            // They need no request.
            Some(stage @ (RecoveryStage::Arrivals | RecoveryStage::SetUp(..))) => {
                self.stage = Some(stage);
            }
        }
        Ok(())
    }

    /// Takes the outcome of a part of a start command.
    fn take_started(
        &mut self,
        start: StartCommand,
        outcome: Result<u32, RadioError>,
        now: Instant,
    ) -> Result<(), RxError> {
        let StartCommand { mut recovery, attempts, part, .. } = start;
        let written = start.written || part == StartPart::Start;
        let next = match (part, outcome) {
            (StartPart::StopAgain, Ok(_)) => {
                let (attempts, part) = (attempts + 1, StartPart::High);
                self.attempt_start(StartCommand { attempts, part, ..start });
                return Ok(());
            }
            // It is unknown whether the radio runs: stop it, then try again.
            (part, Err(RadioError::Silent { .. }))
                if part != StartPart::StopAgain && attempts < START_TRIES =>
            {
                if part == StartPart::Start {
                    recovery.unanswered.get_or_insert(recovery.start);
                    recovery.stopped_again = true;
                }
                StartPart::StopAgain
            }
            (StartPart::Start, Err(failure)) => {
                self.stage = Some(RecoveryStage::StopFailed { recovery, failure });
                return Ok(());
            }
            (_, Err(error)) => {
                self.give_up_start(start);
                return Err(error.into());
            }
            (StartPart::High, Ok(_)) => StartPart::Low,
            (StartPart::Low, Ok(_)) => StartPart::Start,
            (StartPart::Start, Ok(_)) => {
                self.last_heard = now;
                self.await_restart(recovery);
                return Ok(());
            }
        };
        let start = StartCommand { recovery, part: next, written, ..start };
        self.stage = Some(RecoveryStage::Start(start));
        Ok(())
    }

    /// Returns the error of a device that gave no sign of life for so long.
    fn silence_of(&self, error: RadioError, silent: Duration) -> RxError {
        match error {
            RadioError::Silent { .. } | RadioError::Io { .. } => {
                let (address, silent_ms) = (self.path.device, silent.as_millis() as u64);
                RxError::DeviceSilent { address, silent_ms, claim_lost: None }
            }
            error => error.into(),
        }
    }

    /// Takes whether packets came that the device had sent before its sign of life.
    pub fn take_arrivals(&mut self, some: bool) {
        if !some {
            self.stage = Some(RecoveryStage::DueTime(TimeRead::default()));
        }
    }

    /// Takes the end of the new set-up, with the packets that came meanwhile.
    ///
    /// # Errors
    /// [`RxError::NotRestarted`].
    pub fn take_set_up(&mut self, passed_over: SkippedPackets) -> Result<(), RxError> {
        self.stage = None;
        self.set_up_again(passed_over);
        self.begin_restart(0)
    }

    /// Gives up the recovery, because the stream is stopped. A run that may have been started is
    /// awaited.
    pub fn give_up_recovery(&mut self) {
        self.halted = None;
        match self.stage.take() {
            Some(RecoveryStage::Start(start)) => {
                let written = start.written || start.part == StartPart::Start;
                self.give_up_start(StartCommand { written, ..start });
            }
            Some(RecoveryStage::StopFailed { recovery, .. }) => self.await_restart(recovery),
            _ => {}
        }
    }
}

/// Checks that another attempt to restart is left.
pub(super) fn check_attempts(attempts: u32) -> Result<(), RxError> {
    if attempts < RESTART_TRIES { Ok(()) } else { Err(RxError::NotRestarted { attempts }) }
}
