//! The causes of gaps in the ledger, and the reports of gaps.

use super::core::{Pending, RxCore};
use super::fates::PacketFate;
use super::losses::SetUpGap;
use super::lost_end::sent_before;
use super::meta::RxEvent;
use super::silence::Recovery;
use super::state::{AwaitedStart, NewestPacket};
use super::tracker::{Arrival, PacketGap};
use crate::Cause;

/// The state before a packet came.
pub(super) struct PriorState {
    /// The time that was due, and the number.
    due: Option<u64>,
    next_seq: u16,
    /// The sequence numbers were restarted, so they do not show how many packets are missing.
    restarted: bool,
    /// The packet before it was the last of a run, and only the newest run follows.
    ended: bool,
    run_ended: bool,
}

impl RxCore {
    /// Returns the current state.
    pub(super) fn before(&self) -> PriorState {
        PriorState {
            due: self.tracker.next_ticks(),
            next_seq: self.tracker.next_seq(),
            restarted: self.tracker.has_restarted(),
            ended: self.newest != NewestPacket::Inside,
            run_ended: self.newest == NewestPacket::EndOfLastRun,
        }
    }

    /// Enters a packet and the gap before it into the ledger, and reports the gap.
    pub(super) fn book(
        &mut self,
        arrival: &Arrival,
        mut gap: Option<PacketGap>,
        before: &PriorState,
    ) {
        let rate = self.path.rate;
        if let Some(gap) = gap.as_mut().filter(|gap| gap.jump != 0 && before.restarted) {
            // Only the old sequence numbers would show how many more packets were lost there.
            self.counters.unmeasured_gaps += 1;
            let more = self.losses.passed_over().saturating_sub(gap.in_packets);
            gap.in_packets += more;
            gap.packets = gap.in_packets.div_ceil(self.samples_per_packet.into());
            gap.jump = gap.jump.wrapping_sub(rate.ticks(more) as i64);
        }
        if let Some(gap) = gap.as_mut().filter(|gap| gap.jump != 0 && !before.restarted) {
            let is_known = self.shorten(gap, arrival, before);
            // A new run may have begun among the missing packets, behind a short one.
            let may_be_short = self.run.restarted().is_some() && gap.packets > 0 && !is_known;
            self.counters.unmeasured_gaps += u64::from(may_be_short);
        }
        let set_back = gap.as_mut().is_some_and(|gap| self.set_back(gap, arrival, before));
        let goes_on = self.is_of_the_run_before(gap.as_ref(), arrival, before);
        self.expectation.arrive(arrival, gap.as_ref(), rate);
        self.ledger.expected = self.expectation.total();
        self.ledger.hold(arrival.samples);
        let jumped = gap.is_some_and(|gap| gap.jump != 0);
        // The new run comes behind the end of the one before it, even if the clock was set
        // meanwhile; that end may be among the missing packets.
        let (ended, is_there) = (before.run_ended, gap.is_some());
        let may = before.restarted || gap.is_some_and(|gap| gap.packets > 0);
        // A time that no missing packets explain, but a start: the clock was set since the overrun.
        let full = rate.ticks(self.samples_per_packet.into());
        let begins = |recovery: &Recovery| {
            let gap = gap.filter(|gap| gap.unsent > 0).zip(arrival.ticks);
            gap.is_some_and(|(gap, ticks)| recovery.begins(ticks, gap.packets, full))
        };
        let awaited = self.run.restarted().copied();
        let unanswered = awaited.and_then(|recovery| recovery.since_unanswered(arrival.ticks));
        let recovered = awaited.filter(|recovery| {
            let over = recovery.is_over(arrival.ticks) || begins(recovery) || set_back;
            let over = over && !goes_on;
            // A run begins there whose overrun was reported before its packets came.
            let is_earlier = self.tracker.is_earlier_start(arrival.ticks);
            let may_be = over || is_there && unanswered.is_none() && !is_earlier;
            (ended && may_be) || (over && (may || arrival.ticks.is_none()))
        });
        match self.run.restarted_mut().filter(|_| recovered.is_none()) {
            Some(recovery) => {
                recovery.due = self.tracker.next_ticks();
                recovery.unanswered = recovery.unanswered.filter(|_| unanswered.is_none());
            }
            None => {
                self.run.await_start(AwaitedStart::Nothing);
                self.tracker.set_interrupted(None);
            }
        }
        if let Some(run) = recovered {
            self.ends_due = 0;
            self.stopped_again = run.stopped_again;
        }
        // Numbers that were restarted do not show a run whose start was not answered.
        let may_be_lost = before.restarted && recovered.is_some_and(|run| run.unanswered.is_some());
        let lost_run = self.lost_run || may_be_lost;
        self.lost_run &= recovered.is_none();
        let Some(gap) = gap else {
            self.losses.clear_malformed();
            if recovered.is_some() {
                // Without time the number of missing samples is unknown.
                self.counters.unmeasured_gaps += u64::from(arrival.ticks.is_none());
                self.report_gap(RxEvent::Overrun { samples: 0 }, RxEvent::None, arrival.ticks, 0);
            }
            return;
        };
        // A device continues at another time behind an end, which may be among the missing packets.
        let restart = recovered.or(self.run.restarted().map(|run| match unanswered {
            // What is missing is the end of the run before that start.
            Some(_) => Recovery { overrun: run.until, ..*run },
            None => *run,
        }));
        let restart = restart.as_ref();
        let missing = gap.packets > 0 || before.restarted;
        let is_before = recovered.is_none() && self.is_before_the_overrun(arrival);
        let goes_on = goes_on || is_before;
        let stopped = before.ended || (restart.is_some() && missing && !goes_on);
        // Where another run was lost, nothing shows of which one the packet is.
        let since = recovered.zip(arrival.ticks).map(|(new, at)| at.wrapping_sub(new.start));
        let since = rate.samples(since.or(unanswered).filter(|_| !lost_run).unwrap_or(0));
        let since = if since <= gap.samples() { since } else { 0 };
        let (gap, unknown) = match restart {
            Some(restart) => {
                // A run that was stopped for the other members of a group has an unknown end.
                let ended = before.restarted || before.run_ended || goes_on;
                let open = self.in_group && !ended && gap.packets > 0 && gap.unsent > 0;
                self.counters.unmeasured_gaps += u64::from(open);
                self.split(gap, before, restart, since, lost_run, goes_on)
            }
            None => (gap, 0),
        };
        let unsent = match restart {
            Some(restart) if stopped => restart.causes.next,
            None if stopped => Cause::DeviceOverrun,
            _ => Cause::ClockJump,
        };
        let drops = self.reports.queue_drops;
        let network = self.losses.book(&gap, unsent, drops, &mut self.ledger);
        self.ledger.lose(Cause::Unknown, unknown);
        if before.restarted {
            let (cause, unsent) = (unsent, gap.unsent);
            let begun = arrival.ticks.map(|at| at.wrapping_sub(rate.ticks(since)));
            let hidden = restart.and_then(|run| run.overrun).zip(begun);
            self.losses.note_set_up(SetUpGap { network, unknown, unsent, cause, hidden });
        }
        self.epoch += u64::from(jumped);

        let in_time = gap.unsent.saturating_mul(rate.ticks(1)) as i64;
        let jump = match gap.jump {
            0 if unsent == Cause::ClockJump && in_time > 0 => {
                RxEvent::ClockJump { ticks: in_time, samples: gap.unsent }
            }
            0 => RxEvent::None,
            ticks => RxEvent::ClockJump { ticks, samples: 0 },
        };
        self.counters.clock_jumps += u64::from(jump != RxEvent::None);
        let length = if jump == RxEvent::None { 0 } else { gap.jump.wrapping_add(in_time) };
        if let Some(recovery) = self.run.restarted_mut() {
            recovery.set = recovery.set.wrapping_add(length as u64);
            if stopped && gap.unsent > 0 {
                recovery.causes.pass();
            }
        }
        if recovered.is_some() || (stopped && in_time > 0) {
            let in_jump = if jump == RxEvent::None { 0 } else { gap.unsent };
            let samples = gap.samples().saturating_add(unknown) - in_jump;
            self.report_gap(RxEvent::Overrun { samples }, jump, arrival.ticks, length);
        } else if gap.in_packets > 0 || unknown > 0 {
            let samples = gap.in_packets + unknown;
            let packets = gap.packets.max(samples.div_ceil(self.samples_per_packet.into()));
            let event = RxEvent::SequenceGap { packets, samples };
            self.report_gap(event, jump, arrival.ticks, length);
        } else {
            self.report_gap(jump, RxEvent::None, arrival.ticks, 0);
        }
    }

    /// Returns whether a packet belongs to the run whose overrun was reported, and lies before that
    /// overrun: the end of the run is then still to come. After several runs nothing is certain.
    fn is_before_the_overrun(&self, arrival: &Arrival) -> bool {
        self.overrun_of_the_run().zip(arrival.ticks).is_some_and(|(overrun, ticks)| {
            let end = ticks.wrapping_add(self.path.rate.ticks(arrival.samples));
            (1..1 << 63).contains(&overrun.wrapping_sub(end))
        })
    }

    /// Returns the time of the overrun of the newest run before a restart, ticks, if it is known.
    fn overrun_of_the_run(&self) -> Option<u64> {
        let run = self.run.restarted().filter(|run| run.attempts == 1 && !self.lost_run)?;
        run.overrun.filter(|_| run.until == run.overrun)
    }

    /// Returns whether a packet belongs to the run before a restart: the missing packets explain
    /// the time since, so that nothing else happened. Or fewer packets are missing than that run
    /// still had to send, and than the new run would have sent, whose start may still be ahead:
    /// the clock then was set within the run before.
    fn is_of_the_run_before(
        &self,
        gap: Option<&PacketGap>,
        arrival: &Arrival,
        before: &PriorState,
    ) -> bool {
        let restart = self.run.restarted();
        let Some(recovery) = restart.filter(|_| !before.restarted && !before.run_ended) else {
            return false;
        };
        let spp = u64::from(self.samples_per_packet);
        let is_whole =
            |gap: &PacketGap| gap.samples() == gap.packets.saturating_mul(spp) && gap.jump == 0;
        if gap.is_some_and(is_whole) {
            return true;
        }
        let times = self.overrun_of_the_run().zip(before.due).zip(arrival.ticks).zip(gap);
        times.is_some_and(|(((overrun, due), at), gap)| {
            let full = self.path.rate.ticks(self.samples_per_packet.into());
            let is_more = |from: u64, to: u64| {
                let ticks = to.wrapping_sub(from);
                ticks < 1 << 63 && ticks.div_ceil(full) > gap.packets
            };
            let is_ahead = (1..1 << 63).contains(&recovery.start.wrapping_sub(at));
            is_more(due, overrun) && (is_ahead || is_more(recovery.start, at))
        })
    }

    /// Reports a gap, and then a jump of time if `then` is one; the time behind it is `ticks`.
    fn report_gap(&mut self, event: RxEvent, then: RxEvent, ticks: Option<u64>, length: i64) {
        let ticks = ticks.map(|ticks| ticks.wrapping_sub(length as u64));
        self.pending = Some(Pending { then, ..Pending::new(event, ticks, false) });
    }

    /// Takes the next report.
    pub(super) fn take_pending(&mut self) -> Option<Pending> {
        let pending = self.pending.take()?;
        if pending.then != RxEvent::None {
            let ticks = match pending.then {
                RxEvent::ClockJump { ticks: length, .. } => {
                    pending.ticks.map(|ticks| ticks.wrapping_add(length as u64))
                }
                _ => pending.ticks,
            };
            self.pending = Some(Pending::new(pending.then, ticks, pending.ends_burst));
        }
        Some(pending)
    }

    /// Corrects a gap that counts by time alone, where a clock was set back between two runs: the
    /// new run passed the time at which the first one is due. Returns whether it was, because the
    /// missing packets are exactly the end of the first run and the start of the new one.
    fn set_back(&self, gap: &mut PacketGap, arrival: &Arrival, before: &PriorState) -> bool {
        let usable = gap.jump == 0 && !before.restarted && !self.lost_run;
        let run = self.run.restarted().filter(|_| usable);
        let Some((run, at)) = run.zip(arrival.ticks) else { return false };
        let (rate, spp) = (self.path.rate, u64::from(self.samples_per_packet));
        let full = gap.packets.saturating_mul(spp);
        let since = rate.samples(at.wrapping_sub(run.start));
        let sent = match before.run_ended {
            true => Some(0),
            false => sent_before(run.overrun, before.due, full, rate),
        };
        let Some(sent) = sent.filter(|_| since <= full && since % spp == 0) else {
            return false;
        };
        let samples = sent + since;
        if sent.div_ceil(spp) + since / spp != gap.packets || samples <= gap.samples() {
            return false;
        }
        gap.jump = rate.ticks(gap.samples()).wrapping_sub(rate.ticks(samples)) as i64;
        (gap.in_packets, gap.unsent) = (samples, 0);
        gap.damaged = self.damaged(gap, before, sent);
        true
    }

    /// Shortens a gap where the clock was set back between two runs; packets are counted by their
    /// numbers. The time at which the first run overran gives the length of its last packet.
    /// Returns whether the length of each packet is known.
    fn shorten(&self, gap: &mut PacketGap, arrival: &Arrival, before: &PriorState) -> bool {
        let (rate, spp) = (self.path.rate, u64::from(self.samples_per_packet));
        if self.lost_run && !before.run_ended {
            // The end of the first run, behind which others are lost.
            let until = self.run.restarted().and_then(|run| run.until);
            let sent = sent_before(until, before.due, gap.in_packets, rate).unwrap_or(0);
            let less = sent.next_multiple_of(spp) - sent;
            gap.in_packets -= less;
            gap.jump = gap.jump.wrapping_add(rate.ticks(less) as i64);
            gap.damaged = self.damaged(gap, before, sent);
        }
        let run = self.run.restarted();
        let run = run.filter(|run| !self.lost_run && run.is_over(arrival.ticks));
        let Some((run, at)) = run.zip(arrival.ticks) else { return before.run_ended };
        let since = rate.samples(at.wrapping_sub(run.start));
        let sent = sent_before(run.overrun, before.due, gap.in_packets, rate);
        let Some(sent) = sent else { return false };
        let samples = sent.saturating_add(since);
        let fits =
            sent.div_ceil(spp) + since.div_ceil(spp) == gap.packets && samples <= gap.in_packets;
        if fits {
            let less = rate.ticks(gap.in_packets - samples);
            (gap.in_packets, gap.jump) = (samples, gap.jump.wrapping_add(less as i64));
            gap.damaged = self.damaged(gap, before, sent);
        }
        fits
    }

    /// Returns how many samples of a gap came damaged, behind a run of which `sent` are missing:
    /// its last packet may be a short one.
    fn damaged(&self, gap: &PacketGap, before: &PriorState, sent: u64) -> u64 {
        let spp = u64::from(self.samples_per_packet);
        let packets = gap.damaged.div_ceil(spp);
        let last = before.next_seq.wrapping_add((sent / spp) as u16);
        let fate = self.tracker.fates.get(last, self.tracker.next_seq());
        let is_short = !before.restarted && sent % spp != 0 && fate == PacketFate::Damaged;
        let less = if is_short { spp - sent % spp } else { 0 };
        (packets * spp).saturating_sub(less)
    }

    /// Divides the gap before a restarted run, `since` samples after its start, into samples that
    /// the device had sent and those that it never sent. Also returns the samples that may be
    /// either. Of a `lost_run` in between, the sent part is unknown; `goes_on`: the packet is of
    /// the run before, so all samples before it were sent.
    fn split(
        &self,
        gap: PacketGap,
        before: &PriorState,
        restart: &Recovery,
        since: u64,
        lost_run: bool,
        goes_on: bool,
    ) -> (PacketGap, u64) {
        let rate = self.path.rate;
        let samples = gap.samples();
        if gap.jump != 0 || (goes_on && !before.restarted) {
            return (gap, 0);
        }
        // Such numbers do not show the packets of a run whose start was not answered.
        let hidden = restart.unanswered.filter(|_| lost_run && before.restarted);
        let sent = match before.run_ended {
            true if hidden.is_none() => Some(0),
            // More than the missing packets held: the overrun's time is of a clock set since.
            _ => {
                let overrun = restart.overrun.filter(|_| !lost_run);
                sent_before(overrun, before.due, gap.in_packets, rate)
            }
        };
        if let Some(sent) = sent {
            let spp = u64::from(self.samples_per_packet);
            // The numbers show the packets of the new run, which are full ones. Without an answer
            // to a start, another run may be among them, whose length nothing shows.
            let others = gap.packets.saturating_sub(sent.div_ceil(spp)).saturating_mul(spp);
            let (of_new, unknown) = match (before.restarted, restart.unanswered) {
                (true, _) => (since, 0),
                (false, None) => (others, 0),
                (false, Some(_)) => (since.min(others), others.saturating_sub(since)),
            };
            // What came while the stream was set up was sent, whatever the times say.
            let came = if before.restarted { self.losses.passed_over() } else { 0 };
            let in_packets = sent.saturating_add(of_new).max(came).min(samples);
            let unknown = unknown.min(samples - in_packets);
            let (packets, unsent) = (in_packets.div_ceil(spp), samples - in_packets - unknown);
            let mut gap = PacketGap { packets, in_packets, unsent, ..gap };
            gap.damaged = self.damaged(&gap, before, sent);
            return (gap, unknown);
        }
        // Samples from the device's buffer continue where the lost packets ended, unless these were
        // not whole packets: then the clock jumped, or the device did not send all.
        let whole = samples % u64::from(self.samples_per_packet) == 0;
        let is_old = self.run.restarted().is_some() && !lost_run;
        let stored = is_old && whole && (goes_on || samples <= self.window_samples());
        if !before.restarted || stored {
            return (gap, 0);
        }
        let in_packets = self.losses.passed_over().max(since).min(samples);
        let not_sent = sent_before(hidden, before.due, samples, rate).unwrap_or(0);
        let most = match lost_run {
            // Before that start nothing was sent.
            true if before.run_ended => samples - not_sent,
            // While several are lost in sequence, the device's own totals may reopen the window.
            true => u64::MAX,
            false => self.window_samples(),
        };
        let unknown = (samples - in_packets).min(most);
        let packets = in_packets.div_ceil(self.samples_per_packet.into());
        (PacketGap { packets, in_packets, unsent: samples - in_packets - unknown, ..gap }, unknown)
    }
}
