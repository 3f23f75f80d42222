//! Receive streams through random mixes of faults: the received samples, the ledger and the actual
//! faults are compared packet by packet.

use std::time::Duration;

mod failed_once;
mod mix;
mod registers;
mod rig;
mod taken;
mod two;

use failed_once::FAILED_ONCE;
use mix::{Mix, PacketFault};
use rig::{Live, Rig, Simulated};
use taken::Taken;

use crate::common::draw::Draw;
use crate::common::shrink::{check_all, tell};
use crate::common::{PATIENCE, SPP, Seen, Whole};
use millstream_emulator::{CounterSnapshot, Faults};
use millstream_link::fault::RuleId;
use millstream_radio::{Cause, Ledger, RxCounters, RxError, RxStreamer};

/// The number of mixes; `MILLSTREAM_FAULT_MIXES` sets another number.
const MIXES: u64 = 100;

/// The same of simulated mixes.
const SIMULATED_MIXES: u64 = 20_000;

/// The first of their seeds; `MILLSTREAM_FAULT_SEED` sets another number, or `random`.
const SEED: u64 = 178_838_275_162_586;

const RATE_HZ: f64 = 2e6;

/// Runs a mix.
fn run(rig: &impl Rig, mix: &Mix) -> Outcome {
    let mut stream = rig.open();
    let path = rig.path();
    let before = rig.counters();
    for witness in [&path.sent, &path.arrived] {
        witness.take();
    }
    let mut taken = Taken::of(mix);
    let (finite, before_faults, behind) = (mix.finite, mix.before * SPP, mix.behind * SPP);
    let add = |received: bool| -> Vec<RuleId> {
        let switch = if received { &path.received } else { &path.given };
        let faults = mix.packets.iter().filter(|fault| fault.received == received);
        faults.map(|fault| switch.add(fault.rule()).unwrap()).collect()
    };
    let rules;
    if let Some(samples) = finite {
        stream.start_finite(samples, None).unwrap();
        rules = (add(true), add(false));
        taken.receive(rig, &mut stream, |stream| stream.is_running());
    } else {
        stream.start_continuous(None).unwrap();
        taken.receive(rig, &mut stream, |stream| stream.ledger().delivered < before_faults);
        path.answers.set(&mix.answers);
        rules = (add(true), add(false));
        let mut device = mix.device.clone();
        device.sort();
        for (after, text) in device {
            let goal = before_faults + after;
            taken.receive(rig, &mut stream, |stream| stream.ledger().delivered < goal);
            rig.with_faults(|faults| faults.add(&text)).unwrap();
        }
        rig.settle();
        let goal = stream.ledger().delivered + behind;
        taken.receive(rig, &mut stream, |stream| stream.ledger().delivered < goal);
    }
    path.answers.set(&[]);
    for (switch, rules) in [(&path.received, rules.0), (&path.given, rules.1)] {
        for rule in rules {
            switch.remove(rule);
        }
    }
    if finite.is_none() {
        let goal = stream.ledger().delivered + behind;
        taken.receive(rig, &mut stream, |stream| stream.ledger().delivered < goal);
        stream.stop().unwrap();
        taken.receive(rig, &mut stream, RxStreamer::is_running);
    }
    rig.with_faults(Faults::clear);
    let counters = *stream.counters();
    let drops = stream.queue_drops();
    let ledger = stream.finish();
    let (sent, arrived) = (path.sent.take(), path.arrived.take());
    // The radio counts a packet just after it is sent.
    let until = rig.now() + PATIENCE;
    let counted = || rig.counters().rx_packets - before.rx_packets;
    while counted() < sent.len() as u64 && rig.now() < until {
        rig.pause();
    }
    let after = rig.counters();
    Outcome { finite, taken, sent, arrived, ledger, counters, drops, before, after }
}

/// Runs a mix in which packets may also be corrupt: a stream may fail, and its ledger balances.
///
/// # Panics
/// When it does not, or when a sample is not of its time although nothing changes samples.
pub fn endure(bytes: &[u8]) {
    let mut draw = Draw::Bytes(bytes);
    let corrupt = draw.range(0, 3);
    let mut mix = Mix::draw(&mut draw);
    (0..corrupt).for_each(|_| mix.corrupt(&mut draw));
    let rig = Simulated::new();
    let mut stream = rig.open();
    let add = |fault: &PacketFault| {
        let path = rig.path();
        let switch = if fault.received { &path.received } else { &path.given };
        switch.add(fault.rule()).expect("there is room");
    };
    mix.packets.iter().for_each(add);
    for turn in 0..draw.range(1, 5) {
        let started = match mix.finite {
            Some(samples) => stream.start_finite(samples, None),
            None => stream.start_continuous(None),
        };
        let goal = stream.ledger().delivered + draw.range(1, 100) * SPP;
        for (index, (_, fault)) in mix.device.iter().enumerate() {
            if index as u64 % 4 == turn {
                rig.with_faults(|faults| faults.add(fault)).expect("a fault");
            }
        }
        let outcome = started.and_then(|()| endure_run(&mut stream, corrupt == 0, goal));
        stream.ledger().balance().expect("it balances");
        if outcome.is_err() {
            break;
        }
    }
    let ledger = stream.finish();
    ledger.balance().expect("it balances at the end");
    assert_eq!(ledger.held, 0);
}

/// Receives until `goal` samples were delivered in all, then to the end of the burst.
fn endure_run(stream: &mut RxStreamer, intact: bool, goal: u64) -> Result<(), RxError> {
    let mut block = vec![[0i16; 2]; 4099];
    let mut stopped = false;
    for _ in 0..2000 {
        if !stopped && stream.ledger().delivered >= goal {
            stream.stop()?;
            stopped = true;
        }
        let meta = stream.recv_sc16(&mut block, Duration::from_millis(20))?;
        stream.ledger().balance().expect("it balances at any time");
        if let Some(ticks) = meta.time_ticks.filter(|_| intact) {
            for (at, [low, high]) in (ticks..).zip(&block[..meta.samples]) {
                let ramp = u32::from(*high as u16) << 16 | u32::from(*low as u16);
                assert_eq!(ramp, at as u32, "a sample of another time");
            }
        }
        if !stream.is_running() {
            return Ok(());
        }
    }
    stream.stop()
}

struct Outcome {
    finite: Option<u64>,
    taken: Taken,
    sent: Vec<Seen>,
    arrived: Vec<Seen>,
    ledger: Ledger,
    counters: RxCounters,
    drops: u64,
    before: CounterSnapshot,
    after: CounterSnapshot,
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

    fn check(&self, mix: &Mix) {
        let Self { ledger, counters, before, after, .. } = self;
        let lost = |cause| ledger.lost(cause);
        assert_eq!(self.drops, 0, "the credit keeps the queue from overflowing");
        // It goes on behind an end that the stream took for that of the stopped run.
        let unseen = (after.rx_packets - before.rx_packets).checked_sub(self.sent.len() as u64);
        assert!(unseen.is_some_and(|unseen| unseen == 0 || counters.stray > 0), "{unseen:?} more");
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
            // More than one, with losses around a jump.
            assert!(suspects <= counters.clock_jumps * 8 * SPP, "malformed");
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
        assert!(counters.overruns <= may, "{overruns} overruns");
        // A report from before a new set-up may come behind it.
        let invalid = after.rx_status_invalid - before.rx_status_invalid;
        let may = counters.stalls > 0 && mix.delays_reports();
        assert!(invalid == 0 || may, "{invalid} invalid reports");
    }
}

/// Returns the seeds of the mixes.
fn seeds(mixes: u64) -> std::ops::Range<u64> {
    let asked = |name| std::env::var(name).ok();
    let number = |text: String| text.parse::<u64>().unwrap();
    let mixes = asked("MILLSTREAM_FAULT_MIXES").map_or(mixes, number);
    let first = match asked("MILLSTREAM_FAULT_SEED") {
        Some(text) if text == "random" => {
            std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64 & 0xFFFF_FFFF_0000
        }
        text => text.map_or(SEED, number),
    };
    first..first + mixes
}

fn mix_of(seed: u64) -> Mix {
    Mix::draw(&mut Draw::new(seed))
}

/// Runs a mix and checks its ledger.
fn check(rig: &impl Rig, mix: &Mix) {
    let outcome = run(rig, mix);
    tell(format_args!("  {:?}\n{}", outcome.counters, outcome.ledger));
    outcome.check(mix);
}

#[test]
fn mixes_of_faults_leave_every_packet_under_its_cause() {
    let rig = Live::new();
    for seed in seeds(MIXES) {
        // Printed for a failing test.
        println!("MILLSTREAM_FAULT_MIXES=1 MILLSTREAM_FAULT_SEED={seed}: {:?}", mix_of(seed));
        check(&rig, &mix_of(seed));
    }
}

#[test]
fn mixes_that_failed_once_leave_every_packet_under_its_cause() {
    check_all(FAILED_ONCE.into_iter(), mix_of, |mix| check(&Simulated::new(), mix));
}

/// Every mix has a radio of its own, so that a seed alone repeats it.
#[test]
fn simulated_mixes_of_faults_leave_every_packet_under_its_cause() {
    check_all(seeds(SIMULATED_MIXES), mix_of, |mix| check(&Simulated::new(), mix));
}
