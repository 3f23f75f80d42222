//! Restarts all members at one time, because one of them had to stop.

use super::RxGroup;
use crate::Cause;
use crate::stream::meta::RxError;
use crate::stream::stages::check_attempts;
use crate::stream::state::StreamState;

impl RxGroup {
    /// Restarts all members if one of them requests it; the recovery of another member is completed
    /// before that.
    pub(super) fn restart_if_wanted(&mut self) -> Result<(), RxError> {
        if self.members.iter().any(|member| member.core.is_recovering()) {
            return Ok(());
        }
        match self.members.iter().filter_map(|member| member.core.run.wanted()).max() {
            Some(attempts) => self.restart(attempts),
            None => Ok(()),
        }
    }

    fn restart(&mut self, attempts: u32) -> Result<(), RxError> {
        if self.members.iter().any(|member| !member.core.run.is_continuous()) {
            // The burst ends anyway, and no member may wait for a start.
            for member in &mut self.members {
                if member.core.run.take_wanted().is_some() {
                    member.stop()?;
                }
            }
            return Ok(());
        }
        if let Err(error) = check_attempts(attempts) {
            self.members.iter_mut().for_each(|member| member.core.run = StreamState::Idle);
            return Err(error);
        }
        let before = self.latest_ticks()?;
        for member in &self.members {
            member.channel.stop()?;
        }
        let now = self.latest_ticks()?;
        let lead = self.members[0].core.restart_lead(now.wrapping_sub(before), attempts);
        // All members have samples at the same times.
        let first = &self.members[0];
        let cycles = first.core.cycle.get() > 1;
        let phase = if cycles { first.channel.time_ticks()? } else { now };
        let start = first.core.aligned(now.wrapping_add(lead), phase);
        for member in &mut self.members {
            // A member that overran by itself has reported that before it acknowledged the stop.
            let own = member.core.run.take_wanted().is_some()
                || member.channel.events().overruns() != member.core.overruns_seen;
            let cause = if own { Cause::DeviceOverrun } else { Cause::Alignment };
            // A member without data since an earlier start keeps its cause.
            let cause = member.core.run.restarted().map_or(cause, |recovery| recovery.cause);
            member.start_again(now, start, attempts + 1, cause)?;
        }
        Ok(())
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
