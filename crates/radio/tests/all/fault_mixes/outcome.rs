//! The comparison of a ledger with the packets that the radio sent, and those that arrived.

use millstream_emulator::CounterSnapshot;
use millstream_radio::{Cause, Ledger, RxCounters};

use super::mix::Mix;
use super::taken::Taken;
use crate::common::shrink::tell;
use crate::common::{SPP, Seen, Whole};

/// What a mix has done.
pub struct Outcome {
    pub finite: Option<u64>,
    pub taken: Taken,
    pub sent: Vec<Seen>,
    pub arrived: Vec<Seen>,
    pub ledger: Ledger,
    pub counters: RxCounters,
    pub drops: u64,
    pub before: CounterSnapshot,
    pub after: CounterSnapshot,
}

/// What really happened between two packets that were handed out, samples.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Gap {
    /// In packets that the network lost, or that came after they were given up.
    lost: u64,
    damaged: u64,
    /// Never sent, behind the end of a run.
    stopped: u64,
    /// Not there by a clock that was set forward.
    jumped: u64,
    /// The ticks by which it was set back.
    back: u64,
    /// A run ended within.
    ended: bool,
    /// The numbers of the packets were restarted within, or nothing shows what was sent.
    renumbered: bool,
    /// A damaged packet came behind later ones, when its gap was in the ledger, or another packet
    /// of its number may have been damaged.
    unclear: bool,
}

impl Gap {
    /// Returns the samples that are missing.
    fn missing(&self) -> u64 {
        self.lost + self.damaged + self.stopped + self.jumped
    }

    /// Returns the cause, where exactly one thing happened.
    fn cause(&self) -> Option<Cause> {
        let Self { lost, damaged, stopped, jumped, back, ended, renumbered, unclear } = *self;
        let among_ends = ended && lost + damaged > 0;
        match [lost, damaged, stopped, jumped].map(|samples| samples > 0) {
            _ if renumbered || unclear || back > 0 || among_ends => None,
            [true, false, false, false] => Some(Cause::NetworkLoss),
            [false, true, false, false] => Some(Cause::Malformed),
            [false, false, true, false] => Some(Cause::DeviceOverrun),
            [false, false, false, true] => Some(Cause::ClockJump),
            _ => None,
        }
    }
}

/// The actual outcome of the samples.
#[derive(Debug, Default)]
struct Truth {
    delivered: u64,
    /// The gaps before packets that were handed out.
    gaps: Vec<Gap>,
    /// What happened behind the last of them.
    end: Gap,
}

impl Outcome {
    /// Tracks every packet that the radio sent.
    fn truth(&self) -> Truth {
        let mut truth = Truth::default();
        let mut runs = self.taken.runs.iter().copied();
        let mut run = runs.next();
        let mut before: Option<(u16, Whole)> = None;
        let ticks_of = |seen: &Seen| seen.whole.map(|whole| whole.ticks);
        let came_back = self.sent.windows(2).any(|pair| ticks_of(&pair[1]) < ticks_of(&pair[0]));
        let again =
            |ticks, at| self.sent[at + 1..].iter().any(|seen| ticks_of(seen) == Some(ticks));
        let mut gap = Gap::default();
        for (at, seen) in self.sent.iter().enumerate() {
            let packet = seen.whole.expect("nothing damages packets before the faults do");
            let Whole { ticks, samples, .. } = packet;
            if let Some((seq, before)) = before {
                let ahead = ticks.wrapping_sub(before.ticks + before.samples) as i64;
                let way = match (ahead < 0, before.eob) {
                    (true, _) => &mut gap.back,
                    (false, true) => &mut gap.stopped,
                    (false, false) => &mut gap.jumped,
                };
                *way += ahead.unsigned_abs();
                gap.ended |= before.eob;
                gap.renumbered |= seq.wrapping_add(1) != seen.seq;
            }
            before = Some((seen.seq, packet));
            let came = |whole| self.arrived.contains(&Seen { seq: seen.seq, whole });
            // Where the clock is set back, a later packet may have the time of one that was lost.
            let is_other = |ticks| came_back && again(ticks, at) && !came(seen.whole);
            match &mut run {
                Some((from, left)) if *from == ticks && !is_other(ticks) => {
                    assert!(*left >= samples, "packets are handed out whole");
                    truth.gaps.push(std::mem::take(&mut gap));
                    truth.delivered += samples;
                    (*from, *left) = (*from + samples, *left - samples);
                    if *left == 0 {
                        run = runs.next();
                    }
                    continue;
                }
                _ => {}
            }
            let came_damaged = !came(seen.whole) && came(None);
            let comes = |seen: &Seen, whole| {
                self.arrived.iter().position(|other| *other == Seen { seq: seen.seq, whole })
            };
            let overtakes = |next: &Seen| {
                let next = comes(next, next.whole);
                next.is_some() && next < comes(seen, None)
            };
            // Only the number of a damaged packet is known, which may be that of another one.
            let is_unclear = self.sent[at + 1..].iter().take(100).any(overtakes)
                || self.sent.iter().filter(|other| other.seq == seen.seq).count() > 1;
            gap.unclear |= came_damaged && is_unclear;
            *(if came_damaged { &mut gap.damaged } else { &mut gap.lost }) += samples;
        }
        assert_eq!(run, None, "all that was handed out was sent, in this order");
        truth.end = gap;
        truth.gaps.retain(|gap| *gap != Gap::default());
        truth
    }

    /// Returns what the radio sent, as stretches of packets that follow each other and have one
    /// fate.
    fn story(&self) -> String {
        let mut story = String::new();
        let (mut due, mut last) = (None, ' ');
        for seen in &self.sent {
            let Some(whole) = seen.whole else { continue };
            let came = |whole| self.arrived.contains(&Seen { seq: seen.seq, whole });
            let fate = match (came(seen.whole), came(None)) {
                (true, _) => '+',
                (false, true) => 'x',
                (false, false) => '-',
            };
            if due == Some(whole.ticks) {
                if fate != last {
                    story += &format!(" {fate}{}", seen.seq);
                }
            } else {
                story += &format!("\n  {} at {}: {fate}", seen.seq, whole.ticks % 10_000_000);
            }
            if whole.eob || whole.samples != SPP {
                let end = if whole.eob { " ends" } else { "" };
                story += &format!(
                    " {}: {}{end} at {}",
                    seen.seq,
                    whole.samples,
                    (whole.ticks + whole.samples) % 10_000_000
                );
            }
            (due, last) = (Some(whole.ticks + whole.samples), fate);
        }
        story
    }

    /// Compares the ledger with what really became of the samples.
    ///
    /// # Panics
    /// With what is wrong.
    pub fn check(&self, mix: &Mix) {
        let Self { ledger, counters, before, after, .. } = self;
        let lost = |cause| ledger.lost(cause);
        assert_eq!(self.drops, 0, "the credit keeps the queue from overflowing");
        // It goes on behind an end that the stream took for that of the stopped run.
        let unseen = (after.rx_packets - before.rx_packets).checked_sub(self.sent.len() as u64);
        // A device that refused its stop falsely goes on, too.
        let may_go_on = counters.stray > 0 || !mix.answers.is_empty();
        assert!(unseen.is_some_and(|unseen| unseen == 0 || may_go_on), "{unseen:?} more");
        tell(self.story());
        let truth = self.truth();
        let overruns = after.rx_overruns - before.rx_overruns;
        tell(format_args!("  {truth:?}, {overruns} overruns"));
        assert_eq!(ledger.balance(), Ok(()));
        assert_eq!((ledger.held, ledger.delivered), (0, truth.delivered));
        assert_eq!(ledger.lost_total(), self.taken.missing, "the events say what is missing");

        let mut gaps = truth.gaps.clone();
        if let Some(samples) = self.finite {
            let sent: u64 = self.sent.iter().filter_map(|seen| Some(seen.whole?.samples)).sum();
            // The device had no credit for the rest. Nothing shows what it had sent.
            let renumbered = lost(Cause::Unknown) > 0;
            gaps.push(Gap { stopped: samples - sent, renumbered, ..truth.end });
        }
        let really: u64 = gaps.iter().map(Gap::missing).sum();
        let unclear = gaps.iter().filter(|gap| gap.cause().is_none());
        let (unclear, back) =
            unclear.fold((0, 0), |(missing, back), gap| (missing + gap.missing(), back + gap.back));
        if self.taken.errors == 0 {
            // Totals are exact, except where a clock was set back and hides some.
            let slack = (counters.unmeasured_gaps + counters.stalls) * SPP;
            let slack = if back + counters.unmeasured_gaps > 0 { slack } else { 0 };
            let total = ledger.lost_total();
            let bounds = really.saturating_sub(back + slack)..=really + slack;
            assert!(bounds.contains(&total), "{total} of {really} missing, {back} hidden");
            for cause in Cause::ALL {
                let of_it = gaps.iter().filter(|gap| gap.cause() == Some(cause));
                let sure: u64 = of_it.map(Gap::missing).sum();
                let booked = lost(cause);
                let bounds = sure..=sure + unclear + slack;
                assert!(bounds.contains(&booked), "{cause}: {booked} of {sure}, {unclear} unclear");
            }
        }
        let overrun = lost(Cause::DeviceOverrun);
        assert_eq!(lost(Cause::HostQueueDrop) + lost(Cause::LateCommand), 0);
        assert_eq!(lost(Cause::Alignment) + lost(Cause::ConsumerFull), 0);

        // No cause contradicts the radio's own counters.
        assert!(overrun == 0 || overruns + counters.stalls > 0, "{overruns} overruns");
        let again = counters.stalls + self.taken.errors;
        // Behind a clock that was set, the end of a stopped run may count as one.
        let may = overruns + again + counters.unmeasured_gaps + counters.clock_jumps;
        // So may that of a run whose start was not answered, behind which the next start was late.
        let may = may + (after.rx_late_commands - before.rx_late_commands);
        assert!(counters.overruns <= may, "{overruns} overruns");
        // A report from before a new set-up may come behind it.
        let invalid = after.rx_status_invalid - before.rx_status_invalid;
        let may = counters.stalls > 0 && mix.delays_reports();
        assert!(invalid == 0 || may, "{invalid} invalid reports");
    }
}
