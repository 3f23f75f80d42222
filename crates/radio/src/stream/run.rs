//! What the radio was told: a run without an end or captures of a length, and the start whose
//! first packet has not come.

use std::collections::VecDeque;
use std::time::Instant;

use millstream_wire::regs::radio::RX_CMD_SLOTS;

use super::rate::StreamRate;
use crate::Cause;

/// The command that the device executes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Idle,
    /// A run without an end.
    Continuous,
    /// A capture, with the number of samples still to come.
    Finite {
        left: u64,
    },
    /// Stopped, with the time; the end of the burst, and of those in the queue, has not come yet.
    Stopping {
        since: Instant,
    },
}

/// A start behind an overrun or a new set-up of the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Restart {
    /// Start commands so far.
    pub attempts: u32,
    /// The device's time at the start command, and the commanded start time, ticks.
    pub told: u64,
    pub start: u64,
    /// The cause of the samples missing until then.
    pub cause: Cause,
    /// The clock was set since, so times do not show what is of the new run.
    pub clock_set: bool,
    /// The device discarded it as late.
    pub discarded: bool,
}

impl Restart {
    /// Returns whether a packet is of the new run: its time is not before the start, and the run
    /// before has `ended` with a packet that came, or with one that is missing (`may_have_ended`).
    /// Where the clock was set meanwhile, the time may be any behind such a packet that came.
    pub fn is_over(&self, ticks: Option<u64>, ended: bool, may_have_ended: bool) -> bool {
        let is_behind = ticks.is_some_and(|ticks| ticks.wrapping_sub(self.start) < 1 << 63);
        let any_time = self.clock_set || ticks.is_none();
        ended && (is_behind || any_time) || may_have_ended && is_behind
    }

    /// Returns whether it may have begun at the device's time `now`, ticks: a clock that was set
    /// back since leaves that open.
    pub fn may_have_begun(&self, now: u64) -> bool {
        now.wrapping_sub(self.start) < 1 << 63 || now.wrapping_sub(self.told) >= 1 << 63
    }
}

/// The start whose first packet has not come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AwaitedStart {
    /// None: packets flow, or there was no time.
    Nothing,
    /// The first start of a burst, at this time, ticks.
    First(u64),
    Again(Restart),
}

impl From<Option<u64>> for AwaitedStart {
    fn from(at: Option<u64>) -> Self {
        at.map_or(Self::Nothing, Self::First)
    }
}

/// A capture that waits in the radio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct QueuedCapture {
    pub samples: u64,
    /// The start time; `None` starts it when the capture before it has ended.
    pub at: Option<u64>,
}

/// The run of a stream.
#[derive(Debug)]
pub(super) struct Run {
    mode: Mode,
    awaited: AwaitedStart,
    /// Captures that the radio has queued after the current one.
    captures: VecDeque<QueuedCapture>,
    /// The first packet comes when the transmitter runs, whenever that is.
    with_transmitter: bool,
    /// The newest packet was the last one of a run.
    ended: bool,
    /// The device's time since which overruns belong to the current run, ticks.
    since: u64,
    /// The overrun of the current run is in the counter.
    overrun_counted: bool,
}

impl Run {
    /// Returns that of an idle stream.
    pub fn new() -> Self {
        Self {
            mode: Mode::Idle,
            awaited: AwaitedStart::Nothing,
            captures: VecDeque::with_capacity(RX_CMD_SLOTS as usize + 1),
            with_transmitter: false,
            ended: false,
            since: 0,
            overrun_counted: false,
        }
    }

    /// Begins a burst of `samples` samples, or without an end, at the device's time `at`.
    pub fn begin(&mut self, samples: Option<u64>, at: Option<u64>, with_transmitter: bool) {
        self.mode = samples.map_or(Mode::Continuous, |left| Mode::Finite { left });
        self.awaited = at.into();
        (self.with_transmitter, self.ended) = (with_transmitter, false);
        (self.since, self.overrun_counted) = (at.unwrap_or(0), false);
    }

    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Returns whether nothing runs.
    pub fn is_idle(&self) -> bool {
        self.mode == Mode::Idle
    }

    pub fn is_continuous(&self) -> bool {
        self.mode == Mode::Continuous
    }

    /// Returns whether the end of a stopped burst is awaited.
    pub fn is_stopping(&self) -> bool {
        matches!(self.mode, Mode::Stopping { .. })
    }

    /// Returns the samples of the current capture that are still to come.
    pub fn left(&self) -> Option<u64> {
        if let Mode::Finite { left } = self.mode { Some(left) } else { None }
    }

    /// Counts samples of the current capture, which came or are lost.
    pub fn take(&mut self, samples: u64) {
        if let Mode::Finite { left } = &mut self.mode {
            *left = left.saturating_sub(samples);
        }
    }

    /// Forgets what runs.
    pub fn end(&mut self) {
        (self.mode, self.awaited) = (Mode::Idle, AwaitedStart::Nothing);
        self.captures.clear();
    }

    /// Notes that the radio was stopped.
    pub fn stop(&mut self, since: Instant) {
        if !self.is_idle() {
            self.mode = Mode::Stopping { since };
        }
    }

    /// Notes whether the newest packet was the last one of a run.
    pub fn note_end(&mut self, ended: bool) {
        self.ended = ended;
    }

    /// Returns whether the newest packet was the last one of a run.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// Returns whether the run begins with the transmitter.
    pub fn is_with_transmitter(&self) -> bool {
        self.with_transmitter
    }

    /// Returns the time of the start whose first packet has not come.
    pub fn awaited(&self) -> Option<u64> {
        match self.awaited {
            AwaitedStart::Nothing => None,
            AwaitedStart::First(ticks) => Some(ticks),
            AwaitedStart::Again(restart) => Some(restart.start),
        }
    }

    /// Returns the restart whose first packet has not come.
    pub fn restart(&self) -> Option<Restart> {
        if let AwaitedStart::Again(restart) = self.awaited { Some(restart) } else { None }
    }

    /// Notes that the device discarded the restart as late. Returns its attempts.
    pub fn discard_restart(&mut self) -> Option<u32> {
        let AwaitedStart::Again(restart) = &mut self.awaited else { return None };
        restart.discarded = true;
        Some(restart.attempts)
    }

    /// Notes that the clock was set.
    pub fn note_clock_set(&mut self) {
        if let AwaitedStart::Again(restart) = &mut self.awaited {
            restart.clock_set = true;
        }
    }

    /// Waits for a restart.
    pub fn await_restart(&mut self, restart: Restart) {
        self.awaited = AwaitedStart::Again(restart);
        (self.since, self.overrun_counted) = (restart.start, false);
    }

    /// Notes that the awaited start has come, or will not.
    pub fn await_nothing(&mut self) {
        self.awaited = AwaitedStart::Nothing;
    }

    /// Counts the overrun of the run. Returns false the second time.
    pub fn count_overrun(&mut self) -> bool {
        !std::mem::replace(&mut self.overrun_counted, true)
    }

    /// Returns whether an overrun that the radio reported, at this time, is of this run and has not
    /// been counted.
    pub fn is_new_overrun(&self, ticks: u64) -> bool {
        !self.overrun_counted && self.restart().is_none() && ticks >= self.since
    }

    /// Returns whether an overrun at this time is behind the last start.
    pub fn is_since_start(&self, ticks: u64) -> bool {
        ticks >= self.since
    }

    /// Adds a capture that the radio has queued.
    pub fn queue_capture(&mut self, capture: QueuedCapture) {
        self.captures.push_back(capture);
    }

    pub fn has_queued_captures(&self) -> bool {
        !self.captures.is_empty()
    }

    /// Forgets the captures that the radio had queued, which will not come any more.
    pub fn forget_queued_captures(&mut self) {
        self.captures.clear();
    }

    /// Returns the number of captures that have not begun at the time `now`, if all their times are
    /// known.
    pub fn waiting_from(&self, now: u64) -> Option<u32> {
        let ahead = |at: u64| at.wrapping_sub(now).wrapping_sub(1) < 1 << 63;
        let mut waiting = u32::from(self.awaited().is_some_and(ahead));
        for capture in &self.captures {
            waiting += u32::from(ahead(capture.at?));
        }
        Some(waiting)
    }

    /// Removes the captures and the restart that had not begun at `now`, when the radio was
    /// stopped, with the next sample due at `due`. The others are still to come, each burst with
    /// its own end.
    pub fn forget_what_has_not_begun(&mut self, now: u64, due: Option<u64>, rate: StreamRate) {
        if self.restart().is_some_and(|restart| !restart.may_have_begun(now)) {
            self.await_nothing();
        }
        let has_begun = |at: u64| now.wrapping_sub(at) < 1 << 63;
        let end = |at: u64, samples: u64| at.wrapping_add(rate.ticks(samples));
        let mut joint = due.map(|due| end(due, self.left().unwrap_or(0)));
        let mut begun = 0;
        for QueuedCapture { samples, at } in &self.captures {
            let at = at.or(joint);
            // In doubt it has: then the wait for its end is in vain, but short.
            if !at.is_none_or(has_begun) {
                break;
            }
            begun += 1;
            joint = at.map(|at| end(at, *samples));
        }
        self.captures.truncate(begun);
    }

    /// Ends the burst. The next capture in the queue begins, which is returned.
    pub fn next(&mut self) -> Option<QueuedCapture> {
        (self.ended, self.with_transmitter) = (false, false);
        let next = self.captures.pop_front();
        self.awaited = next.and_then(|capture| capture.at).into();
        self.mode = match (next, self.mode) {
            (None, _) => Mode::Idle,
            (Some(_), Mode::Stopping { since }) => Mode::Stopping { since },
            (Some(capture), _) => Mode::Finite { left: capture.samples },
        };
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn over(restart: Restart, ticks: u64, ended: bool, may_have_ended: bool) -> bool {
        restart.is_over(Some(ticks), ended, may_have_ended)
    }

    #[test]
    fn a_new_run_begins_at_its_start_behind_the_end_of_the_one_before() {
        let cause = Cause::DeviceOverrun;
        let (attempts, told, start) = (1, 1990, 2000);
        let restart = Restart { attempts, told, start, cause, clock_set: false, discarded: false };
        assert!(over(restart, 2000, true, false) && over(restart, 9000, false, true));
        assert!(!over(restart, 1999, true, false) && !over(restart, 1000, false, true));
        assert!(!over(restart, 2000, false, false), "the clock was set before that start");
        assert!(restart.is_over(None, true, false) && !restart.is_over(None, false, true));
        let restart = Restart { clock_set: true, ..restart };
        assert!(over(restart, 1000, true, false) && !over(restart, 1000, false, true));
        assert!(restart.may_have_begun(2000) && restart.may_have_begun(1900));
        assert!(!restart.may_have_begun(1995));
    }
}
