//! What follows from time: the end of waits, and the recovery from silence.
//!
//! Without a port or a clock: times come in, and the next step goes out.

use std::time::{Duration, Instant};

use super::core::{Pending, RxCore, Step};
use super::gap_causes::GapCauses;
use super::meta::RxEvent;
use super::passed_over::SkippedPackets;
use super::rate::next_on_grid;
use super::state::{AwaitedStart, NewestPacket, StreamState};
use crate::Cause;

/// How far ahead of the device's time a stream is restarted, at least and at most, before the
/// doubling for each start that was too late: milliseconds of the device's time.
const RESTART_LEAD_MS: (f64, f64) = (5.0, 50.0);

/// The lead in units of the stop command's duration: several writes, on a machine under load.
const RESTART_LEAD_STOPS: u64 = 16;

/// The time limit for the end of a stopped burst.
const STOP_TIMEOUT: Duration = Duration::from_millis(300);

/// The interval of credit reports while no packet comes: the last report may be lost.
const REPORT_AGAIN: Duration = Duration::from_millis(50);

/// The restart of a continuous stream that has not received samples yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Recovery {
    /// Start commands so far.
    pub attempts: u32,
    /// The device's time at the start command, and the commanded start time, ticks.
    pub told: u64,
    pub start: u64,
    /// The causes of the samples missing until then.
    pub causes: GapCauses,
    /// The time at which the run before it overran, ticks, if the device reported it.
    pub overrun: Option<u64>,
    /// The next time of the run before it, and its end, ticks, if the device reported it.
    pub due: Option<u64>,
    pub until: Option<u64>,
    /// The first start between the two that may have begun a run, which was stopped again, ticks:
    /// it was not answered, or still ahead when the stream was set up.
    pub unanswered: Option<u64>,
    /// This start itself was not answered, stopped, and commanded again.
    pub stopped_again: bool,
    /// This start was still ahead then.
    pub was_ahead: bool,
    /// The changes of the clock since, as they show in the run before it, ticks.
    pub set: u64,
}

impl Recovery {
    /// Returns whether a packet of this time belongs to the new run and not to the one before.
    pub fn is_over(&self, ticks: Option<u64>) -> bool {
        let Some(ticks) = ticks else { return true };
        let is_before = |time: u64, other: u64| (1..1 << 63).contains(&other.wrapping_sub(time));
        let is_in_store = self.due.is_some_and(|due| {
            // Where the clock was set back, the new start lies before the end of the device's
            // buffered samples.
            let until = self.until.filter(|until| is_before(due, *until));
            let is_stored = until.is_some_and(|until| is_before(ticks, until));
            let set_back = is_before(self.start, due);
            let may = set_back || until.is_some_and(|until| is_before(self.start, until));
            may && !is_before(ticks, due) && (set_back || is_stored)
        });
        !is_before(ticks, self.start) && !is_in_store
    }

    /// Returns whether a packet behind `lost` missing ones begins the new run, as its time says: a
    /// start, and full packets of `full` ticks since. If the clock was set meanwhile, the start may
    /// have come before or behind that.
    pub fn begins(&self, ticks: u64, lost: u64, full: u64) -> bool {
        [0, self.set].into_iter().any(|set| {
            let since = ticks.wrapping_sub(self.start.wrapping_add(set));
            since % full == 0 && since / full <= lost
        })
    }

    /// Returns how long after a start that was not answered a packet of this time is, ticks, if it
    /// is of the run behind that.
    pub fn since_unanswered(&self, ticks: Option<u64>) -> Option<u64> {
        let (start, ticks) = self.unanswered.zip(ticks)?;
        let (since, all) = (ticks.wrapping_sub(start), self.start.wrapping_sub(start));
        (since < all && all < 1 << 63).then_some(since)
    }
}

impl RxCore {
    /// Checks the stream at `now`, after a wait without packets. Returns what is to be done.
    pub(crate) fn idle(&mut self, now: Instant) -> Option<Step> {
        if self.run.is_idle() {
            return None;
        }
        // A capture further down the chain is not yet awaited.
        let concerned = self.run.awaited().is_some() || self.chain.is_empty();
        if concerned && self.reports.late_commands != self.late_commands_seen {
            return self.late_command();
        }
        if now.duration_since(self.last_idle) >= REPORT_AGAIN {
            self.last_idle = now;
            self.report_unless_over();
            let quiet = now.duration_since(self.last_heard) >= REPORT_AGAIN;
            if quiet && self.lost_the_end_of_an_overrun() {
                self.overran();
                return self.step.take();
            }
        }
        if let StreamState::Stopping { since, .. } = self.run {
            if now.duration_since(since) >= STOP_TIMEOUT
                && now.duration_since(self.last_heard) >= STOP_TIMEOUT
            {
                // The end of the burst is lost, or the device had stopped by itself.
                let lost = self.lost_before_an_overrun();
                self.chain.clear();
                self.run.await_start(self.run.awaited().into());
                match lost {
                    Some(samples) => self.lose_tail(samples),
                    None => self.end_burst(RxEvent::None),
                }
                return None;
            }
        }
        let silent = now.duration_since(self.last_heard);
        (silent > self.silence_limit()).then_some(Step::Ask { silent })
    }

    /// Returns the time at which the current run overran, ticks, if the device reported it.
    pub(super) fn new_overrun(&self) -> Option<u64> {
        let reports = &self.reports;
        (reports.overruns != self.overruns_seen).then_some(reports.overrun_ticks)
    }

    /// Returns whether a restarted run has begun by `now`: by the clock, or because it has overrun
    /// already, even if the clock was set since.
    pub(super) fn has_begun(&self, run: &Recovery, now: u64) -> bool {
        self.new_overrun().is_some() || now.wrapping_sub(run.start) < 1 << 63
    }

    /// Returns whether it may have begun: a clock that was set back since leaves that open.
    pub(super) fn may_have_begun(&self, run: &Recovery, now: u64) -> bool {
        self.has_begun(run, now) || now.wrapping_sub(run.told) >= 1 << 63
    }

    /// Returns whether an overrun was reported, but the packet that ended its burst has not come.
    fn lost_the_end_of_an_overrun(&self) -> bool {
        self.run.is_continuous()
            && self.run.restarted().is_none()
            && !self.overrun_counted
            && self.reports.overruns != self.overruns_seen
            && self.reports.overrun_ticks >= self.run_ticks
    }

    /// Returns the samples that have not come of a run that overran before it was stopped. Where
    /// its clock was set since, their number is unknown.
    fn lost_before_an_overrun(&mut self) -> Option<u64> {
        let is_inside = self.newest == NewestPacket::Inside;
        let is_of_it = is_inside && self.run.restarted().is_none() && self.chain.is_empty();
        let is_of_it = is_of_it && self.reports.overrun_ticks >= self.run_ticks;
        let overrun = self.new_overrun().filter(|_| is_of_it)?;
        let samples = self.path.rate.samples(overrun.wrapping_sub(self.tracker.next_ticks()?));
        let is_known = samples <= self.window_samples();
        self.counters.unmeasured_gaps += u64::from(!is_known);
        (is_known && samples > 0).then_some(samples)
    }

    /// Handles a timed start that the device discarded.
    fn late_command(&mut self) -> Option<Step> {
        self.late_commands_seen += 1;
        match self.run {
            StreamState::Continuous { awaited: AwaitedStart::Restart(recovery), .. } => {
                self.run_settled = true;
                return Some(Step::Restart { attempts: recovery.attempts });
            }
            StreamState::Finite { left, awaited: Some(_) } => {
                self.lose_rest(left, Cause::LateCommand);
                self.end_burst(RxEvent::LateCommand);
            }
            StreamState::Continuous { awaited: AwaitedStart::First(_), .. } => {
                self.end_burst(RxEvent::LateCommand);
            }
            _ => {}
        }
        None
    }

    pub(super) fn end_burst(&mut self, event: RxEvent) {
        self.burst_over();
        self.pending = Some(Pending::new(event, None, true));
    }

    /// Returns the longest normal silence: slow streams have long packets.
    pub(super) fn silence_limit(&self) -> Duration {
        let packet_s = f64::from(self.samples_per_packet) / self.path.rate.samples_hz();
        let packets = Duration::try_from_secs_f64(4.0 * packet_s).unwrap_or(Duration::MAX);
        self.silence_max.max(packets)
    }

    /// Returns whether no packet was due yet at the device's time `now`, ticks: the start lies
    /// ahead, or the radio is slow and the next packet is not complete.
    pub(crate) fn is_early(&mut self, now: u64) -> bool {
        let is_first = self.run.restarted().is_none() && !self.tracker.has_begun();
        if self.with_transmitter && is_first {
            return true;
        }
        if let Some(start) = self.run.awaited().filter(|start| now < *start) {
            // Only a start whose clock was set back lies further ahead than any start of this host.
            let restart = self.run.restarted();
            let lead = restart.map(|recovery| self.restart_lead(u64::MAX, recovery.attempts));
            return lead.is_none_or(|lead| start - now <= lead);
        }
        if self.silence_ticks.replace(now) == Some(now) {
            // A radio whose time does not advance gives no estimate of the next packet.
            return false;
        }
        // The silence before a start is not the device's: it began with the start.
        let limit_ticks = self.silence_limit().as_secs_f64() * self.path.rate.ticks_hz;
        if self.run.awaited().is_some_and(|start| ((now - start) as f64) < limit_ticks) {
            return true;
        }
        // After an immediate start, the first packet is due a packet's time after the first check.
        let due = self.tracker.next_ticks().unwrap_or(*self.first_silence.get_or_insert(now));
        let packet_ticks = self.path.rate.ticks(self.samples_per_packet.into());
        let left = due.wrapping_add(packet_ticks).wrapping_sub(now);
        // A packet further ahead means a clock that was set back.
        (1..=2 * packet_ticks).contains(&left)
    }

    /// Restarts after the device ended the burst because it could not send. The gap shows, exactly,
    /// in the time of the first packet that comes.
    pub(super) fn overran(&mut self) {
        if !self.was_stopped_again() {
            self.count_overrun();
        }
        self.step = Some(Step::Restart { attempts: 0 });
    }

    /// Returns whether this host ended the current run of a group's member: its start was not
    /// answered, and when it was commanded again, it was too late. The device has not reported an
    /// overrun of it.
    pub(super) fn was_stopped_again(&self) -> bool {
        let is_late = self.reports.late_commands != self.late_commands_seen;
        let overran = self.new_overrun().is_some_and(|ticks| ticks >= self.run_ticks);
        self.in_group && self.stopped_again && is_late && !overran
    }

    /// Counts the overrun of the current run, once.
    pub(super) fn count_overrun(&mut self) {
        self.counters.overruns += u64::from(!self.overrun_counted);
        self.overrun_counted = true;
    }

    /// Concludes from a silence that the device has outlived. Returns what is to be done.
    pub(crate) fn outlived_silence(&mut self) -> Option<Step> {
        match self.run {
            StreamState::Continuous { .. } => Some(Step::SetUp),
            StreamState::Finite { left, .. } => {
                self.lose_tail(left);
                None
            }
            StreamState::Idle | StreamState::Stopping { .. } => None,
        }
    }

    /// Begins anew with the numbers, because the stream was set up again. The packets that came
    /// meanwhile are lost.
    pub(crate) fn set_up_again(&mut self, passed_over: SkippedPackets) {
        self.losses.begin_set_up(passed_over.samples);
        let full = u64::from(self.samples_per_packet).saturating_mul(passed_over.damaged);
        self.losses.pass_over_damaged(passed_over.damaged_samples.min(full));
        let due = Some(self.tracker.next_seq()).zip(self.tracker.next_ticks());
        // Without a packet since the set-up before, it is that one.
        let due = if self.tracker.has_restarted() { self.passed_over.due } else { due };
        self.passed_over = passed_over;
        self.passed_over.due = due;
        self.setups += 1;
        self.aside.clear();
        self.counters.malformed += passed_over.damaged;
        self.tracker.restart_before(passed_over.next_seq());
    }

    /// Returns how far ahead of the device's time the next start lies, ticks, when stopping took
    /// `stop_ticks`.
    pub(super) fn restart_lead(&self, stop_ticks: u64, attempts: u32) -> u64 {
        let ticks = |ms: f64| (self.path.rate.ticks_hz * ms / 1e3).ceil() as u64;
        let (least, most) = RESTART_LEAD_MS;
        let lead = stop_ticks.saturating_mul(RESTART_LEAD_STOPS).clamp(ticks(least), ticks(most));
        lead << attempts
    }

    /// Returns the first time not before `start` at which the stream before would have had a
    /// sample and the radio begins a cycle, as it did at its time `now`: then whole samples are
    /// missing.
    pub(super) fn aligned(&self, start: u64, now: u64) -> u64 {
        let rate = self.path.rate;
        let start = self.tracker.next_ticks().map_or(start, |due| rate.align(start, due));
        let cycle = self.cycle.get();
        let mut starts = (0..cycle).map(|n| start.wrapping_add(rate.ticks(n.into())));
        let begins = |at: &u64| next_on_grid(*at, now, self.cycle) == *at;
        // There is none where the clock was set meanwhile.
        starts.find(begins).unwrap_or_else(|| next_on_grid(start, now, self.cycle))
    }

    /// Prepares a restart at `start`, before its command at the device's time `told`; samples
    /// missing until then have the causes `causes`.
    pub(crate) fn recovery(
        &self,
        attempts: u32,
        told: u64,
        start: u64,
        causes: GapCauses,
    ) -> Recovery {
        let (end, before) = (self.new_overrun(), self.run.restarted());
        let overrun = end.or(before.and_then(|before| before.overrun));
        // Of several starts, the first one came behind the device's buffered samples.
        let until = before.map_or(end, |before| before.until);
        let unanswered = before.and_then(|before| {
            let is_passed = before.was_ahead && start.wrapping_sub(before.start) < 1 << 63;
            before.unanswered.or(is_passed.then_some(before.start))
        });
        Recovery {
            attempts,
            told,
            start,
            causes,
            overrun,
            due: self.tracker.next_ticks(),
            until,
            unanswered,
            stopped_again: false,
            was_ahead: false,
            set: 0,
        }
    }

    /// Waits for the first samples of a restart, which was commanded.
    pub(crate) fn await_restart(&mut self, recovery: Recovery) {
        let recovery = Recovery { due: self.tracker.next_ticks(), ..recovery };
        self.run.await_start(AwaitedStart::Restart(recovery));
        self.tracker.set_interrupted(Some(recovery.start));
        (self.run_ticks, self.overrun_counted) = (recovery.start, false);
        self.stopped_again = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> Recovery {
        Recovery {
            attempts: 1,
            told: 1990,
            start: 2000,
            causes: GapCauses::of(Cause::DeviceOverrun),
            overrun: None,
            due: Some(1000),
            until: None,
            unanswered: None,
            stopped_again: false,
            was_ahead: false,
            set: 0,
        }
    }

    fn over(start: u64, until: Option<u64>, ticks: u64) -> bool {
        let run = Recovery { start, overrun: until, until, ..run() };
        run.is_over(Some(ticks))
    }

    #[test]
    fn a_new_run_begins_at_its_start_by_the_clock_before_or_behind_its_change() {
        let run = Recovery { set: 7077, ..run() };
        assert!(run.begins(2300, 3, 100) && run.begins(2000 + 7077 + 200, 2, 100));
        assert!(!run.begins(2300, 2, 100) && !run.begins(2000 + 7077 - 100, 2, 100));
        assert!(!run.begins(2000 + 7077 + 1, 2, 100));
    }

    #[test]
    fn a_new_run_begins_at_its_start() {
        for until in [None, Some(1500)] {
            assert!(!over(2000, until, 1000) && !over(2000, until, 1999));
            assert!(over(2000, until, 2000) && over(2000, until, 9999));
        }
    }

    #[test]
    fn what_is_in_store_is_not_of_the_new_run_though_the_clock_was_set_back() {
        // Before the next sample, or within the buffered ones.
        for until in [None, Some(1500)] {
            assert!(over(700, until, 700) && over(700, until, 999));
            assert!(!over(700, until, 1000) && !over(700, until, 1400) && !over(700, until, 600));
        }
        assert!(!over(1200, Some(1500), 1200) && !over(1200, Some(1500), 1499));
        assert!(over(1200, Some(1500), 1500) && !over(1200, Some(1500), 1100));
        // An end from before the clock was set has no meaning.
        assert!(over(1200, Some(900), 1200));
    }
}
