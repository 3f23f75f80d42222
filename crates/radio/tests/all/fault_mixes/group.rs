//! Groups of channels of one simulated radio, each with faults of its own: what is handed out is
//! what all channels have, and each ledger has each missing sample under its cause.

use std::time::Duration;

use millstream_emulator::RadioConfig;
use millstream_link::fault::{FaultSwitch, Select};
use millstream_link::port::Port;
use millstream_radio::{RxCounters, RxEvent, RxMember, RxStreamer};

mod truth;

use truth::{Overruns, Truth, check, note_overrun, sum};

use super::mix::PacketFault;
use super::registers::answer_effect;
use super::rig::{BUFFER_SAMPLES, QUEUE_BYTES, SILENCE, TIME};
use super::taken::{check_ramp, note_run};
use super::{RATE_HZ, seeds};
use crate::common::draw::Draw;
use crate::common::group::finish_rx;
use crate::common::shrink::{Shrink, Variants, check_all, tell};
use crate::common::simulated::{self, Host};
use crate::common::{Action, Meddler, PATIENCE, SPP, Witness, args, watch};

/// The number of mixes; `MILLSTREAM_FAULT_MIXES` sets another number.
const MIXES: u64 = 1_000;

const CHANNELS: usize = 2;

/// The local port of the first channel's stream: the first one is that of control.
const FIRST_PORT: u16 = simulated::CONTROL_PORT + 1;

/// The time-out of each call, and how much longer one may take.
const TIMEOUT: Duration = Duration::from_millis(20);
const EXCESS_MAX: Duration = Duration::from_micros(200);

/// The most answers to register accesses that come too late or never: with one more, one fails.
const LOST_MAX: u64 = 4;

/// The most packets that a channel loses in a row: fewer than its credit.
const CUT_MAX: u64 = 120;

/// The faults of a group.
#[derive(Debug, Clone)]
struct GroupMix {
    /// The channel, and a fault of its packets of samples.
    packets: Vec<(usize, PacketFault)>,
    /// Faults of the answers to register accesses.
    answers: Vec<PacketFault>,
    /// Whole packets before a stall of the device, and its length, ms.
    stalls: Vec<(u64, u64)>,
    /// The same of pauses of the caller.
    pauses: Vec<(u64, u64)>,
    /// The length of the capture; `None` without an end.
    finite: Option<u64>,
    /// Packets behind the faults.
    behind: u64,
}

impl GroupMix {
    fn draw(seed: u64) -> Self {
        let mut draw = Draw::new(seed);
        let finite = draw.one_in(3).then(|| draw.range(1, 300) * SPP - draw.range(0, SPP));
        let (packets, answers, stalls, pauses) = (vec![], vec![], vec![], vec![]);
        let mut mix = Self { packets, answers, stalls, pauses, finite, behind: 40 };
        for _ in 0..draw.range(1, 5) {
            let channel = draw.range(0, CHANNELS as u64) as usize;
            let fault = match draw.range(0, 5) {
                0 => PacketFault::cut(draw.range(0, 100), draw.range(1, CUT_MAX)),
                _ => PacketFault::of_data(&mut draw),
            };
            mix.packets.push((channel, fault));
        }
        if draw.one_in(3) {
            mix.pauses.push((draw.range(1, 60), draw.range(20, 250)));
        }
        if finite.is_some() {
            return mix;
        }
        for _ in 0..draw.range(0, 3) {
            mix.stalls.push((draw.range(1, 60), draw.range(20, 150)));
        }
        let mut lost = LOST_MAX;
        for _ in 0..draw.range(0, 3) {
            let effect = answer_effect(&mut draw);
            let (skip, count) = (draw.range(0, 40), draw.range(1, 5).min(lost));
            lost -= count;
            let select = Select { skip, count: Some(count), ..draw.select(1.0) };
            if count > 0 {
                mix.answers.push(PacketFault::of_answers(effect, select));
            }
        }
        mix
    }
}

impl Shrink for GroupMix {
    fn smaller(&self) -> Vec<Self> {
        let mut all = Variants::of(self);
        all.without_each(|mix| &mut mix.packets);
        all.without_each(|mix| &mut mix.answers);
        all.without_each(|mix| &mut mix.stalls);
        all.without_each(|mix| &mut mix.pauses);
        all.shorter(|mix| &mut mix.finite);
        all.half(|mix| &mut mix.behind);
        all.into_vec()
    }
}

/// The path of a channel's packets.
#[derive(Clone)]
struct Path {
    sent: Witness,
    arrived: Witness,
    received: FaultSwitch,
}

/// What a group has handed out.
#[derive(Default)]
struct Taken {
    /// Stretches of contiguous time, of all channels.
    runs: Vec<(u64, u64)>,
    missing: u64,
    due: Option<u64>,
}

impl Taken {
    fn samples(&self) -> u64 {
        sum(&self.runs)
    }

    /// Receives while `more`, and checks each sample of each channel against its time.
    fn receive(&mut self, group: &mut RxStreamer, more: impl Fn(&Self, &RxStreamer) -> bool) {
        let mut buffers = vec![vec![[0i16; 2]; 4099]; CHANNELS];
        let until = simulated::CLOCK.now() + PATIENCE;
        while more(self, group) {
            let now = simulated::CLOCK.now();
            assert!(now < until, "it hangs: {group:?}");
            let mut outs: Vec<_> = buffers.iter_mut().map(|buffer| &mut buffer[..]).collect();
            let meta = group.recv_all(&mut outs, TIMEOUT).expect("the device lives");
            let took = simulated::CLOCK.now() - now;
            assert!(took <= TIMEOUT + EXCESS_MAX, "a call took {took:?}");
            if !matches!(meta.event, RxEvent::None | RxEvent::Timeout) {
                tell(format_args!("  {:?} then {:?}", meta.event, meta.time_ticks));
            }
            self.missing += meta.event.missing();
            self.due = self.due.map(|due| due + meta.event.missing());
            let Some(ticks) = meta.time_ticks.filter(|_| meta.samples > 0) else { continue };
            assert_eq!(ticks, self.due.unwrap_or(ticks), "the events tell how time goes on");
            for buffer in &buffers {
                check_ramp(ticks, &buffer[..meta.samples]);
            }
            let end = ticks + meta.samples as u64;
            self.due = Some(end);
            note_run(&mut self.runs, ticks, end);
        }
    }

    /// Receives so many more packets of each channel.
    fn receive_packets(&mut self, group: &mut RxStreamer, packets: u64) {
        let goal = self.samples() + packets * SPP;
        self.receive(group, |taken, _| taken.samples() < goal);
    }
}

/// Runs a mix and checks its ledgers.
fn run(mix: &GroupMix) {
    let new = || Path {
        sent: Witness::default(),
        arrived: Witness::default(),
        received: FaultSwitch::new(simulated::now_ns),
    };
    let paths: [Path; CHANNELS] = std::array::from_fn(|_| new());
    let (to_control, given) = (new(), FaultSwitch::new(simulated::now_ns));
    let (of_channels, of_control) = (paths.clone(), to_control.clone());
    let overruns = Overruns::default();
    let reported = overruns.clone();
    let wrap = move |port: Port| {
        let channel = port.local.port().checked_sub(FIRST_PORT).map(usize::from);
        let path = channel.and_then(|channel| of_channels.get(channel)).unwrap_or(&of_control);
        let mut port = watch(port, &path.sent, &path.arrived, &path.received, &given);
        if port.local.port() == simulated::CONTROL_PORT {
            let reported = reported.clone();
            let noted = Meddler::new(move |bytes| {
                note_overrun(bytes, &reported);
                Action::Pass
            });
            port.rx = noted.wrap_rx(port.rx);
        }
        port
    };
    let config = RadioConfig {
        rx_buffer_samples: BUFFER_SAMPLES,
        master_clock_rate_hz: RATE_HZ,
        rx_antennas: vec!["ramp".to_owned(); CHANNELS],
        ..RadioConfig::default()
    };
    let host = Host::open(&config, TIME, wrap);
    let open = |channel| {
        let (port, path, channel) = host.rx(channel, QUEUE_BYTES);
        RxMember::open(port, path, channel, &args(), SILENCE).expect("the stream opens")
    };
    let members = (0..CHANNELS).map(open).collect();
    let mut group = RxStreamer::new(members).expect("they have one rate");
    let mut taken = Taken::default();
    let add = || {
        for (channel, fault) in &mix.packets {
            paths[*channel].received.add(fault.rule()).expect("there is room");
        }
        for fault in &mix.answers {
            to_control.received.add(fault.rule()).expect("there is room");
        }
    };
    if let Some(samples) = mix.finite {
        group.start_finite(samples, None).expect("it starts");
        add();
        for (packets, ms) in &mix.pauses {
            let goal = packets * SPP;
            taken.receive(&mut group, |taken, group| {
                group.is_running() && taken.samples() + taken.missing < goal
            });
            simulated::pass(Duration::from_millis(*ms));
        }
        taken.receive(&mut group, |_, group| group.is_running());
        assert_eq!(taken.samples() + taken.missing, samples, "the events say what is missing");
    } else {
        group.start_continuous(None).expect("it starts");
        taken.receive_packets(&mut group, 10);
        add();
        for (packets, ms) in &mix.stalls {
            taken.receive_packets(&mut group, *packets);
            let stall = format!("stall ms={ms}");
            simulated::with_radio(|radio| radio.faults().add(&stall)).expect("a fault");
        }
        for (packets, ms) in &mix.pauses {
            taken.receive_packets(&mut group, *packets);
            simulated::pass(Duration::from_millis(*ms));
        }
        let is_steady = mix.stalls.is_empty() && mix.pauses.is_empty();
        let stored = if is_steady { 0 } else { BUFFER_SAMPLES / SPP };
        taken.receive_packets(&mut group, stored + mix.behind);
        paths.iter().chain([&to_control]).for_each(|path| path.received.clear());
        taken.receive_packets(&mut group, 2 * mix.behind);
        group.stop().expect("the device lives");
        taken.receive(&mut group, |_, group| group.is_running());
    }
    simulated::with_radio(|radio| radio.faults().clear());
    let counters: Vec<RxCounters> =
        group.members().iter().map(|member| *member.counters()).collect();
    let ledgers = finish_rx(group);
    let overruns = overruns.lock().unwrap();
    let truths: [Truth; CHANNELS] = std::array::from_fn(|channel| {
        let Path { sent, arrived, .. } = &paths[channel];
        Truth::of(&sent.take(), &arrived.take(), &overruns[channel])
    });
    // A channel may be restarted several times before a packet of it comes.
    let is_calm = mix.answers.is_empty() && mix.stalls.len() < 2;
    check(&taken.runs, mix.finite, is_calm, &counters, &ledgers, &truths);
}

#[test]
fn simulated_groups_leave_every_packet_under_its_cause() {
    check_all(seeds(MIXES), GroupMix::draw, run);
}

/// Mixes that left a wrong ledger once.
const FAILED_ONCE: [u64; 5] = [
    // The overrun of a run of one sample was reported before its packet came, which was taken for
    // that of the next start.
    190_000_000_069_361,
    // A start was not answered, and its second attempt was too late: what the channel did not send
    // behind the run of the first one counted as the gap before that run.
    191_000_000_090_573,
    // A start was not answered. The end of its run, which was stopped again, counted as an overrun.
    194_000_000_033_301,
    197_000_000_106_727,
    // Of an end, only a run of one sample was missing, and its length is not known.
    194_000_000_002_515,
];

#[test]
fn groups_that_failed_once_leave_every_packet_under_its_cause() {
    for seed in FAILED_ONCE {
        run(&GroupMix::draw(seed));
    }
}
