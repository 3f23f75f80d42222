//! Recorded exchanges with the logic of a real device, whose datagrams the core takes.

use millstream_wire::chdr::Packet;
use millstream_wire::ctrl::{CtrlRepr, Op};
use millstream_wire::regs::radio::async_msg::Event;
use millstream_wire::regs::radio::{
    RX_CMD, RX_NUM_WORDS_LO, RX_TIME_LO, RX_WORDS_PER_PKT, channel_register,
};

use super::*;
use crate::stream::chain::PendingCommand;
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
    /// Replays the first stream of a recording, up to what `ends` says: a capture of 0 samples,
    /// which this host never asks for, or another set-up.
    fn of(name: &str) -> Self {
        let mut exchange = recorded(name).into_iter().peekable();
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
            let control =
                parse(&datagram.bytes).filter(|repr| !repr.is_ack && repr.op == Op::Write);
            match control {
                Some(repr) if datagram.from_device => replay.message(&repr),
                Some(repr) if !replay.command(repr.address, repr.data.first()) => break,
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
        replay
    }

    fn collect(&mut self) {
        self.results.extend(self.bench.results());
    }

    /// Takes a message of the radio, as a streamer does.
    fn message(&mut self, repr: &CtrlRepr) {
        let core = &mut self.bench.core;
        match Event::from_message(repr.address, repr.data.first()) {
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

    /// Does what the host's write does; returns false at the end.
    fn command(&mut self, address: u32, value: u32) -> bool {
        let is = |register| address == channel_register(0, register);
        if is(RX_NUM_WORDS_LO) {
            self.samples = value.into();
        } else if is(RX_TIME_LO) {
            self.at = value.into();
        } else if is(RX_CMD) {
            let at = (value >> 31 == 1).then_some(self.at);
            let core = &mut self.bench.core;
            match value & 3 {
                0 if !core.run.is_idle() => core.run = core.run.stopped(self.bench.now),
                0 => {}
                1 if self.samples == 0 => return false,
                1 if core.run.is_idle() => core.begin(Some(self.samples), at),
                1 => core.chain.push_back(PendingCommand { samples: self.samples, at }),
                _ => core.begin(None, at),
            }
        }
        true
    }

    fn received(&self) -> u64 {
        self.bench.core.ledger.delivered
    }

    fn events(&self) -> Vec<RxEvent> {
        let events = self.results.iter().map(|(event, _)| *event);
        events.filter(|event| *event != RxEvent::None).collect()
    }

    fn lost(&self) -> u64 {
        Cause::ALL.iter().map(|cause| self.bench.core.ledger.lost(*cause)).sum()
    }
}

#[test]
fn finite_captures_of_the_logic_are_whole() {
    let replay = Replay::of("40-receive-finite");
    assert_eq!((replay.received(), replay.lost()), (120 + 50 + 51 + 2 + 3 + 100 + 70 + 100, 0));
    assert_eq!((replay.events(), replay.bench.core.run), (vec![], StreamState::Idle));
}

#[test]
fn captures_behind_each_other_begin_after_the_pause_that_the_logic_makes() {
    // One cycle in four has a sample, or each.
    for (name, pause) in [("42-receive-queued", 1), ("43-receive-queued-one-cycle-a-sample", 3)] {
        let replay = Replay::of(name);
        let ledger = &replay.bench.core.ledger;
        let late = ledger.lost(Cause::LateCommand);
        assert!(late > 0, "{name}: those timed at the end of the one before are late");
        assert_eq!(replay.lost(), late, "{name}: nothing else is missing");
        assert_eq!(ledger.expected, replay.received() + late, "{name}");
        let times: Vec<_> = replay.results.iter().filter_map(|(_, ticks)| *ticks).collect();
        assert_eq!(times[2] - times[1], 50 + pause, "{name}");
    }
}

#[test]
fn an_overrun_of_the_logic_ends_in_a_restart() {
    let mut replay = Replay::of("45-receive-overrun");
    let core = &mut replay.bench.core;
    assert_eq!((core.counters.overruns, core.reports.overrun_ticks), (1, 13_070));
    assert!(matches!(core.step.take(), Some(Step::Restart { attempts: 0 })));
    // All samples up to it came.
    assert_eq!(core.tracker.next_ticks(), Some(13_070));
    assert_eq!((replay.received(), replay.lost()), (13_070 - 1560, 0));
}
