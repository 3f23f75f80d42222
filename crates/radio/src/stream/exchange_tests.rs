//! Recorded exchanges with the logic of a real device, whose datagrams the core takes.

use millstream_wire::chdr::Packet;
use millstream_wire::ctrl::{CtrlRepr, Op};
use millstream_wire::regs::radio::async_msg::Event;
use millstream_wire::regs::radio::{
    RX_CMD, RX_NUM_WORDS_LO, RX_TIME_LO, RX_WORDS_PER_PKT, channel_register,
};
use millstream_wire::stream::{CommandOp, CommandRepr};

use super::*;
use crate::testing::recorded;

/// The host's id, and the control port of the radio, in all recordings.
const HOST: Epid = Epid(20);
const RADIO: u16 = 4;

/// The core of a stream whose commands are those of the recording.
struct Replay {
    bench: Bench,
    samples: u64,
    at: u64,
    /// What the stream gave, in order: the events and the times of samples.
    results: Vec<(RxEvent, Option<u64>)>,
}

impl Replay {
    /// Replays the first stream of a recording, up to a capture of 0 samples, which this host never
    /// asks for, another set-up, or a step that the core asks for.
    fn of(name: &str) -> Self {
        Self::stream(name, 0, |_| false)
    }

    /// Replays the stream of this number, without the data packets that are `lost` by their number.
    fn stream(name: &str, number: usize, lost: impl Fn(u16) -> bool) -> Self {
        let mut exchange = recorded(name).into_iter().peekable();
        let mut streams = 0;
        let parse = |bytes: &[u8]| {
            let packet = Packet::parse(bytes, Width::W64).ok()?;
            CtrlRepr::parse(&packet).ok().filter(|repr| repr.dst_port == RADIO)
        };
        let words = channel_register(0, RX_WORDS_PER_PKT);
        let mut spp = 0;
        while spp == 0 {
            let request = exchange.next().expect("it sets the length of packets");
            let request = parse(&request.bytes).filter(|repr| repr.address == words);
            spp = request.map_or(0, |repr| repr.data.first());
        }
        let bench = Bench::idle_of(HOST, spp);
        let mut replay = Self { bench, samples: 0, at: 0, results: Vec::new() };
        for datagram in exchange {
            let packet = Packet::parse(&datagram.bytes, Width::W64).expect("a packet");
            let is_init = |command: CommandRepr| command.op == CommandOp::Init;
            streams += usize::from(CommandRepr::parse(&packet).is_ok_and(is_init));
            if streams <= number || DataRepr::parse(&packet).is_ok_and(|data| lost(data.seq)) {
                continue;
            } else if streams > number + 1 {
                break;
            }
            let control =
                parse(&datagram.bytes).filter(|repr| !repr.is_ack && repr.op == Op::Write);
            match control {
                Some(repr) if datagram.from_device => replay.message(&repr),
                // The core asks for a restart now, and commands nothing before it.
                Some(_) if replay.bench.core.reports.overruns > 0 => {}
                Some(repr) if !replay.command(&repr, datagram.ticks) => break,
                Some(_) => {}
                None if datagram.from_device => {
                    while replay.bench.take(&datagram.bytes) == Intake::Again {
                        replay.collect();
                    }
                    replay.collect();
                }
                None => {}
            }
            if replay.bench.core.step.is_some() {
                break;
            }
        }
        // A packet that is missing is waited for.
        replay.bench.pass_time(1000);
        replay.bench.core.look(replay.bench.now);
        if replay.bench.core.give_up_waiting() {
            replay.collect();
        }
        replay
    }

    fn collect(&mut self) {
        self.results.extend(self.bench.results());
    }

    /// Takes a message of the radio, as a streamer does.
    fn message(&mut self, repr: &CtrlRepr) {
        let core = &mut self.bench.core;
        match Event::from_message(repr.address, repr.data.first()) {
            Some((Event::RxLateCommand, 0)) if core.reports.overruns > 0 => return,
            Some((Event::RxLateCommand, 0)) => core.reports.late_commands += 1,
            Some((Event::RxOverrun, 0)) => {
                core.reports.overruns += 1;
                core.reports.overrun_ticks = repr.timestamp.expect("it has a time") + 1;
            }
            other => panic!("{other:?}"),
        }
        core.idle(self.bench.now);
        self.collect();
    }

    /// Lets time pass until the end of a stopped burst is no longer awaited.
    fn settle(&mut self) {
        while self.bench.core.run.is_stopping() {
            self.bench.pass_time(100);
            assert_eq!(self.bench.core.idle(self.bench.now), None);
            self.collect();
        }
    }

    /// Does what the host's write does at the device's time `now`; returns false at the end.
    fn command(&mut self, repr: &CtrlRepr, now: u64) -> bool {
        let (address, value) = (repr.address, repr.data.first());
        let is = |register| address == channel_register(0, register);
        if is(RX_NUM_WORDS_LO) {
            self.samples = value.into();
        } else if is(RX_TIME_LO) {
            self.at = value.into();
        } else if is(RX_CMD) {
            let at = (value >> 31 == 1).then_some(self.at);
            if value & 3 != 0 {
                self.settle();
            }
            let core = &mut self.bench.core;
            match value & 3 {
                0 if !core.run.is_idle() => {
                    core.forget_what_has_not_begun(now);
                    core.run.stop(self.bench.now);
                }
                0 => {}
                1 if self.samples == 0 => return false,
                1 if core.run.is_idle() => core.begin(Some(self.samples), at, false),
                1 => core.run.queue_capture(QueuedCapture { samples: self.samples, at }),
                _ => core.begin(None, at, false),
            }
        }
        true
    }

    fn received(&self) -> u64 {
        self.bench.core.books.ledger().delivered
    }

    fn events(&self) -> Vec<RxEvent> {
        let events = self.results.iter().map(|(event, _)| *event);
        events.filter(|event| *event != RxEvent::None).collect()
    }

    fn lost(&self) -> u64 {
        Cause::ALL.iter().map(|cause| self.bench.core.books.ledger().lost(*cause)).sum()
    }
}

#[test]
fn finite_captures_of_the_logic_are_whole() {
    let replay = Replay::of("40-receive-finite");
    assert_eq!((replay.received(), replay.lost()), (120 + 50 + 51 + 2 + 3 + 100 + 70 + 100, 0));
    assert_eq!((replay.events(), replay.bench.core.run.mode()), (vec![], Mode::Idle));
}

#[test]
fn captures_behind_each_other_begin_after_the_pause_that_the_logic_makes() {
    // One cycle in four has a sample, or each.
    for (name, pause) in [("42-receive-queued", 1), ("43-receive-queued-one-cycle-a-sample", 3)] {
        let replay = Replay::of(name);
        let ledger = replay.bench.core.books.ledger();
        let late = ledger.lost(Cause::LateCommand);
        assert!(late > 0, "{name}: those timed at the end of the one before are late");
        assert_eq!(replay.lost(), late, "{name}: nothing else is missing");
        assert_eq!(ledger.expected, replay.received() + late, "{name}");
        let times: Vec<_> = replay.results.iter().filter_map(|(_, ticks)| *ticks).collect();
        assert_eq!(times[2] - times[1], 50 + pause, "{name}");
    }
}

#[test]
fn stops_of_the_logic_end_captures_and_runs_wherever_they_are() {
    let mut replay = Replay::of("41-receive-continuous");
    // A run, stopped within a packet; a capture of 500, stopped; a run that a timed stop, which
    // acts at once, has cancelled before its start.
    assert_eq!((replay.received(), replay.lost()), (800 + 155, 0));
    assert!(replay.bench.core.run.is_stopping(), "no burst ends, because none began");
    replay.settle();
    assert_eq!((replay.bench.core.run.mode(), replay.events()), (Mode::Idle, vec![]));
    assert_eq!((replay.received(), replay.lost()), (800 + 155, 0));
}

#[test]
fn each_late_command_of_the_logic_is_lost_and_nothing_else() {
    let replay = Replay::of("44-receive-late");
    let ledger = replay.bench.core.books.ledger();
    assert_eq!(replay.received(), 100 + 100);
    // One at first; three that wait for one another; one whose successors a stop removes.
    assert_eq!(replay.events(), [RxEvent::LateCommand; 5]);
    assert_eq!(ledger.lost(Cause::LateCommand), 100 + (100 + 100 + 60) + 100);
    assert_eq!((replay.lost(), replay.bench.core.run.mode()), (460, Mode::Idle));
}

#[test]
fn captures_in_all_slots_of_the_logic_and_beyond_come_one_after_the_other() {
    let replay = Replay::of("47-receive-command-slots");
    let times: Vec<_> = replay.results.iter().filter_map(|(_, ticks)| *ticks).collect();
    let want: Vec<_> = (0..35).map(|capture| 21_010 + 11 * capture).collect();
    assert_eq!((times, replay.received(), replay.lost()), (want, 350, 0));
    assert_eq!((replay.events(), replay.bench.core.run.mode()), (vec![], Mode::Idle));
}

#[test]
fn a_small_window_of_the_logic_moves_by_its_totals_which_count_what_was_lost() {
    // A window of bytes, the same with a packet that is lost, and a window of packets.
    for (stream, samples, lost, counts) in
        [(0, 1500, None, (32, 6528)), (1, 1500, Some(1), (32, 6528)), (2, 600, None, (14, 2640))]
    {
        let mut replay = Replay::stream("48-receive-small-window", stream, |seq| {
            lost.is_some_and(|lost| seq == lost)
        });
        let missing = if lost.is_some() { 50 } else { 0 };
        assert_eq!((replay.received(), replay.lost()), (samples - missing, missing), "{stream}");
        let network = replay.bench.core.books.ledger().lost(Cause::NetworkLoss);
        assert_eq!((network, replay.bench.core.run.mode()), (missing, Mode::Idle), "{stream}");
        // What the recording's own host reported at the end.
        let report = replay.bench.core.credit.report(Epid(2), HOST);
        assert_eq!((report.count_packets, report.count_bytes), counts, "{stream}");
    }
}

#[test]
fn an_overrun_of_the_logic_ends_in_a_restart() {
    // Its message is acknowledged at once, or 40 000 cycles later.
    for name in ["45-receive-overrun", "46-receive-overrun-acknowledgement-withheld"] {
        let mut replay = Replay::of(name);
        let core = &mut replay.bench.core;
        assert_eq!(
            (core.books.counters().overruns, core.reports.overrun_ticks),
            (1, 13_070),
            "{name}"
        );
        assert!(matches!(core.step.take(), Some(Step::Restart { attempts: 0 })), "{name}");
        // All samples up to it came.
        assert_eq!(core.numbers.next_ticks(), Some(13_070), "{name}");
        assert_eq!((replay.received(), replay.lost()), (13_070 - 1560, 0), "{name}");
    }
}
