//! Restarts all members at one time, because one of them had to stop.
//!
//! ```text
//! member 0: time ─▶ stop ─▶ time ─┐                  ┌─▶ start ─▶ samples
//! member 1: time ─▶ stop ─▶ time ─┴─ one start time ─┴─▶ start ─▶ samples
//! ```
//! Each member runs these as stages of its own recovery, so no call waits longer than its time-out.

use super::RxGroup;
use crate::Cause;
use crate::stream::gap_causes::GapCauses;
use crate::stream::meta::RxError;
use crate::stream::stages::check_attempts;
use crate::stream::state::StreamState;

impl RxGroup {
    /// Goes on with the restart of all members if one of them wants it; the recovery of each member
    /// is completed before that.
    pub(super) fn restart_if_wanted(&mut self) -> Result<(), RxError> {
        if self.members.iter().any(|member| member.core.is_recovering()) {
            return Ok(());
        }
        let wanted = self.members.iter().filter_map(|member| member.core.run.wanted()).max();
        match wanted.max(self.restarting) {
            Some(attempts) => self.restart(attempts),
            None => Ok(()),
        }
    }

    fn restart(&mut self, attempts: u32) -> Result<(), RxError> {
        // A member that is not halted by now could not be: another attempt.
        let again = self.restarting.is_some()
            && self.members.iter().any(|member| member.core.halted.is_none());
        let attempts = attempts + u32::from(again);
        self.restarting = None;
        if self.members.iter().any(|member| !member.core.run.is_continuous()) {
            // The burst ends anyway, and no member may wait for a start.
            let mut stopped = Ok(());
            for member in &mut self.members {
                let halted = member.core.halted.take().is_some();
                if member.core.run.take_wanted().is_some() || halted {
                    stopped = stopped.and(member.stop());
                }
            }
            return stopped;
        }
        if let Err(error) = check_attempts(attempts) {
            self.members.iter_mut().for_each(|member| member.core.run = StreamState::Idle);
            return Err(error);
        }
        self.restarting = Some(attempts);
        let mut halted = true;
        for member in self.members.iter_mut().filter(|member| member.core.halted.is_none()) {
            member.core.halt(attempts);
            halted = false;
        }
        if halted {
            self.start_again(attempts);
        }
        Ok(())
    }

    /// Begins the start of all members, which have stopped.
    fn start_again(&mut self, attempts: u32) {
        self.restarting = None;
        let halts = || self.members.iter().filter_map(|member| member.core.halted);
        let before = halts().map(|halt| halt.before).reduce(earlier);
        let now = halts().map(|halt| halt.behind).reduce(later);
        let (Some(first), Some(before), Some(now)) = (halts().next(), before, now) else { return };
        let core = &self.members[0].core;
        let lead = core.restart_lead(now.wrapping_sub(before), attempts);
        // All members have samples at the same times.
        let start = core.aligned(now.wrapping_add(lead), first.behind);
        for member in &mut self.members {
            // A member that overran by itself has reported that before it acknowledged the stop.
            let overran = member.channel.events().overruns() != member.core.overruns_seen;
            let stopped = member.core.was_stopped_again();
            let ended = member.core.run.take_wanted().is_some() && !stopped;
            let own = ended || overran;
            let cause = if own { Cause::DeviceOverrun } else { Cause::Alignment };
            let halt = member.core.halted.take();
            // A member without data since an earlier start keeps its cause, up to that run; that it
            // overran shows that it has run, although a later attempt of the start was late.
            let began = overran || halt.is_some_and(|halt| halt.began);
            let causes = match member.core.run.restarted() {
                None => GapCauses::of(cause),
                Some(run) if began => run.causes.and(cause),
                // A start without an answer may have begun a run, though it was late when repeated.
                Some(run) if run.unanswered == Some(run.start) => run.causes.and(Cause::Alignment),
                Some(run) => run.causes,
            };
            let told = halt.map_or(now, |halt| halt.behind);
            member.look();
            member.core.begin_start(told, start, attempts + 1, causes);
        }
    }

    /// Returns the time of the device that is furthest ahead, ticks.
    pub(super) fn latest_ticks(&self) -> Result<u64, RxError> {
        let mut latest = self.members[0].channel.time_ticks()?;
        for member in &self.members[1..] {
            if member.path.device != self.members[0].path.device {
                latest = latest.max(member.channel.time_ticks()?);
            }
        }
        Ok(latest)
    }
}

/// Returns the earlier one of two times, which wrap modulo 2⁶⁴.
fn earlier(one: u64, other: u64) -> u64 {
    if other.wrapping_sub(one) < 1 << 63 { one } else { other }
}

/// Returns the later one.
fn later(one: u64, other: u64) -> u64 {
    if other.wrapping_sub(one) < 1 << 63 { other } else { one }
}
