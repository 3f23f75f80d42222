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

/// The actual outcome of the samples.
#[derive(Debug, Default, PartialEq, Eq)]
struct Truth {
    delivered: u64,
    lost: u64,
    damaged: u64,
    late: u64,
    overrun: u64,
    jumped: u64,
    /// The ticks by which its clock was set back.
    set_back: u64,
}

impl Outcome {
    /// Tracks every packet that the radio sent.
    fn truth(&self) -> Truth {
        let mut truth = Truth::default();
        let mut runs = self.taken.runs.iter().copied();
        let mut run = runs.next();
        let mut before: Option<Whole> = None;
        // The changes of the clock since the newest delivered packet, and past an end.
        let (mut hops, mut stopped) = (0i64, false);
        let ticks_of = |seen: &Seen| seen.whole.map(|whole| whole.ticks);
        let came_back = self.sent.windows(2).any(|pair| ticks_of(&pair[1]) < ticks_of(&pair[0]));
        let again =
            |ticks, at| self.sent[at + 1..].iter().any(|seen| ticks_of(seen) == Some(ticks));
        for (at, seen) in self.sent.iter().enumerate() {
            let packet = seen.whole.expect("nothing damages packets before the faults do");
            let Whole { ticks, samples, .. } = packet;
            if let Some(before) = before {
                let ahead = ticks.wrapping_sub(before.ticks + before.samples);
                hops = hops.wrapping_add(ahead as i64);
                stopped |= before.eob;
            }
            before = Some(packet);
            let came = |whole| self.arrived.contains(&Seen { seq: seen.seq, whole });
            // Where the clock is set back, a later packet may have the time of one that was lost.
            let is_other = |ticks| came_back && again(ticks, at) && !came(seen.whole);
            match &mut run {
                Some((from, left)) if *from == ticks && !is_other(ticks) => {
                    assert!(*left >= samples, "packets are handed out whole");
                    let way = match (hops < 0, stopped) {
                        (true, _) => &mut truth.set_back,
                        (false, true) => &mut truth.overrun,
                        (false, false) => &mut truth.jumped,
                    };
                    *way += hops.unsigned_abs();
                    (hops, stopped) = (0, false);
                    truth.delivered += samples;
                    (*from, *left) = (*from + samples, *left - samples);
                    if *left == 0 {
                        run = runs.next();
                    }
                    continue;
                }
                _ => {}
            }
            let fate = if came(seen.whole) {
                &mut truth.late
            } else if came(None) {
                &mut truth.damaged
            } else {
                &mut truth.lost
            };
            *fate += samples;
        }
        assert_eq!(run, None, "all that was handed out was sent, in this order");
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

        // A packet whose time a clock jump had made implausible until another confirmed it.
        let suspects = lost(Cause::Malformed).wrapping_sub(truth.damaged);
        let (late, jumped) = (lost(Cause::Late), lost(Cause::ClockJump));
        let (network, overrun) = (lost(Cause::NetworkLoss), lost(Cause::DeviceOverrun));
        let unknown = lost(Cause::Unknown);
        if let Some(samples) = self.finite.filter(|_| unknown > 0) {
            // The end of the capture was given up: nothing showed how much of it had been sent.
            let sent: u64 = self.sent.iter().filter_map(|seen| Some(seen.whole?.samples)).sum();
            assert_eq!((late, jumped, overrun), (truth.late, 0, 0));
            assert!(network <= truth.lost, "more than really");
            let damaged = lost(Cause::Malformed);
            assert!(damaged <= truth.damaged);
            let really = samples - sent + truth.lost + truth.damaged;
            assert_eq!(network + damaged + unknown, really);
        } else if counters.stalls + self.taken.errors == 0 && counters.unmeasured_gaps > 0 {
            // A clock was set while a restart was awaited, and packets were lost: nothing shows
            // where the run before ended, and how long its last packet was.
            let really = truth.late + truth.damaged + truth.lost + truth.overrun + truth.jumped;
            let slack = counters.unmeasured_gaps * SPP;
            assert!(truth.jumped + truth.set_back > 0, "the clock was not set");
            let booked = ledger.lost_total();
            assert!(booked <= really + slack, "more than really: {booked} of {really}");
            let hidden = truth.set_back + slack;
            assert!(booked + hidden >= really, "less: {booked} of {really}");
        } else if counters.stalls + self.taken.errors == 0 {
            // At the end of a stream up to a window of samples counts as lost in the network, also
            // if the device kept them because the network took its credit: nothing shows that.
            let sent: u64 = self.sent.iter().filter_map(|seen| Some(seen.whole?.samples)).sum();
            let no_time = truth.overrun + truth.jumped + truth.set_back == 0;
            let kept = ledger.expected.saturating_sub(sent);
            let kept = if no_time && mix.loses_credit() { kept } else { 0 };
            let network = network - if network == truth.lost + kept { kept } else { 0 };
            // More than one, with losses around a jump.
            assert!(suspects <= mix.clock_sets() * 8 * SPP, "malformed");
            // The length of a lost end of an overrun run follows only from the time of the overrun,
            // which a later jump makes useless.
            let ends = if counters.clock_jumps > 0 { counters.overruns * (SPP - 1) } else { 0 };
            let short = network.saturating_sub(truth.lost).min(ends);
            let (network, more) = (network - short, truth.overrun.saturating_sub(overrun));
            let overrun = overrun + more.min(short);
            // The same of an end that came damaged.
            let cut = suspects.min(truth.overrun.saturating_sub(overrun)).min(ends);
            let (suspects, overrun) = (suspects - cut, overrun + cut);
            // And of one before a clock that was set back, behind which no time counts.
            let cut = (late + suspects).saturating_sub(truth.late).min(ends).min(truth.set_back);
            let suspects = suspects.saturating_sub(cut);
            // A run whose start was not answered, and that was stopped again: nothing shows what it
            // sent.
            let open = if mix.delays_answers() { unknown } else { 0 };
            let sent = truth.lost.saturating_sub(network).min(open);
            let (network, overrun, unknown) =
                (network + sent, overrun + open - sent, unknown - open);
            let booked = [late + suspects, jumped, network, overrun, unknown];
            let really = [truth.late, truth.jumped, truth.lost, truth.overrun, 0];
            assert_eq!(booked, really, "late, clock_jump, network_loss, device_overrun, unknown");
            assert_eq!((counters.unmeasured_gaps, counters.late * SPP >= late), (0, true));
        } else {
            // The numbers were restarted: packets that cannot be distinguished by time are unknown,
            // and the last packet before that has an unknown length if it was lost. A clock that
            // was set back during silence hides as much.
            let slack = (counters.stalls + overruns) * SPP;
            assert!(late <= truth.late, "late");
            let missing = truth.lost + truth.late + truth.damaged;
            assert!(network + late <= missing + slack, "network_loss");
            // Jumps of a stopped device's clock stay unseen until it continues.
            assert!(overrun <= truth.overrun + truth.jumped + slack, "device_overrun");
            // Behind a clock that was set back, the end of an overrun looks like another jump.
            let both = jumped + overrun <= truth.jumped + truth.overrun + slack;
            assert!(jumped <= truth.jumped + slack || truth.set_back > 0 && both, "clock_jump");
            let really = truth.late + truth.damaged + truth.lost + truth.overrun + truth.jumped;
            let booked = ledger.lost_total();
            let known = counters.unmeasured_gaps == 0;
            // What the device kept for want of credit was not sent.
            assert!(booked - unknown <= really, "more than really: {booked} of {really}");
            // Packets behind an end that was given up are counted apart.
            let hidden = truth.set_back + counters.stray * SPP;
            assert!(!known || booked + hidden >= really, "less: {booked} of {really}");
        }
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
