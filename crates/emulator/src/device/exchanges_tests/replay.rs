//! The recorded device, and the replay of a file to it.

use super::compare::{AnswerGroup, Statuses, compare_emitted, difference, group};
use crate::antenna::{Antenna, AntennaSource, Sc16};
use crate::device::test_bench::{SentTo, witness};
use crate::device::*;
use crate::personality::DeviceKind;
use crate::time::SampleClock;
use crate::tx_out::PlayedSamples;
use millstream_wire::chdr::{Packet, Width};
use millstream_wire::mgmt::{MgmtRepr, Op};
use millstream_wire::regs::sep;
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};

pub const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/exchanges");

/// A cycle of the recorded device.
const CYCLE_NS: u64 = 5;
const CYCLES_HZ: f64 = 200e6;

/// The most cycles by which an answer may come later than the recorded one, and those by which it
/// may come earlier.
const LATE_CYCLES: u64 = 1_000;
const EARLY_CYCLES: u64 = 6_000;

/// What the queues of the recorded device hold.
const BUFFER_SAMPLES: u64 = 8_710;

/// The cycles that a control request takes from the network to its block.
const CONTROL_CYCLES: u64 = 91;

/// The port of a host's socket 0.
const FIRST_PORT: u16 = 4_000;

/// A datagram from the device.
#[derive(Debug, Clone)]
pub struct TimedAnswer {
    pub cycle: u64,
    /// The host's socket; `None` for nobody's.
    pub socket: Option<u64>,
    pub bytes: Vec<u8>,
}

/// The antenna of a channel of the recorded device.
struct RecordedAntenna {
    swapped: bool,
}

/// Returns what that antenna hears at a tick.
pub fn heard(tick: u64, swapped: bool) -> Sc16 {
    let i = (tick % 16_384) as i16 - 8_192;
    let (i, q) = if swapped { (-i, i) } else { (i, -i) };
    let ([a, b], [c, d]) = (i.to_le_bytes(), q.to_le_bytes());
    [a, b, c, d]
}

impl Antenna for RecordedAntenna {
    fn prepare(&mut self, _: f64) {}

    fn fill(&mut self, tick: u64, out: &mut [Sc16]) {
        out.iter_mut().zip(tick..).for_each(|(out, tick)| *out = heard(tick, self.swapped));
    }
}

/// The emulated device, as the recorded one.
struct Replay {
    device: EmulatedDevice,
    sent: [SentTo; 2],
    cycle: u64,
    answers: Vec<TimedAnswer>,
    /// What its channels transmit.
    played: [PlayedSamples; 2],
}

impl Replay {
    fn new(cycles_per_tick: u64) -> Self {
        let sent = [SentTo::default(), SentTo::default()];
        let played = [PlayedSamples::default(), PlayedSamples::default()];
        let port = |sent: &SentTo| Box::new(witness(sent)) as Box<_>;
        let antenna =
            |swapped| AntennaSource::Signal(Box::new(RecordedAntenna { swapped }) as Box<_>);
        let mut queue = Capabilities::new(9000, 64);
        // Its buffers have no limit of packets.
        queue.recv_queue_bytes = 1 << 40;
        let rate_hz = CYCLES_HZ / cycles_per_tick as f64;
        let mut device = EmulatedDevice::new(DeviceParts {
            image: Image::recorded(cycles_per_tick as u32),
            front_end: DeviceKind::E320.personality().front_end,
            keeper: DeviceClock::new(SampleClock::new(0, 0, rate_hz, 1.0)),
            sources: vec![antenna(false), antenna(true)],
            scenes: Vec::new(),
            recorders: played.iter().map(|played| Box::new(played.clone()) as Box<_>).collect(),
            rx_buffer_samples: BUFFER_SAMPLES,
            tx_buffer_samples: 65_536,
            queue,
            links: sent.iter().map(port).collect(),
            counters: Arc::default(),
        });
        device.execute(DeviceCommand::DeviceId(1));
        device.senders.iter_mut().for_each(RxSender::gather_nothing);
        Self { device, sent, cycle: 0, answers: Vec::new(), played }
    }

    /// Advances the device to a cycle, waking at the requested instants.
    fn run(&mut self, cycle: u64) {
        let until_ns = Self::ns(cycle.max(self.cycle));
        let mut now_ns = Self::ns(self.cycle);
        loop {
            let deadline_ns = self.device.advance(now_ns);
            self.collect(now_ns);
            if now_ns >= until_ns {
                break;
            }
            now_ns = deadline_ns.clamp(now_ns + 1, until_ns);
        }
        self.cycle = self.cycle.max(cycle);
    }

    /// The radio's time at the end of a cycle is that of the next one's begin.
    fn ns(cycle: u64) -> u64 {
        (cycle + 1) * CYCLE_NS
    }

    fn receive(&mut self, line: &Line) {
        let is_control = line.bytes[6] >> 5 == 4;
        self.run(line.end + if is_control { CONTROL_CYCLES } else { 0 });
        let port = FIRST_PORT + line.socket.unwrap() as u16;
        let socket = SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
        let now_ns = Self::ns(self.cycle);
        self.device.receive(&line.bytes, HostAddress::new(0, socket), now_ns);
        self.collect(now_ns);
    }

    fn collect(&mut self, now_ns: u64) {
        let [first, second] = &self.sent;
        assert!(second.lock().unwrap().is_empty(), "no host is behind the second transport");
        for (to, bytes) in first.lock().unwrap().drain(..) {
            let socket = Some(u64::from(to.port() - FIRST_PORT));
            self.answers.push(TimedAnswer { cycle: now_ns / CYCLE_NS, socket, bytes });
        }
    }
}

/// A line with a datagram.
struct Line {
    end: u64,
    to_device: bool,
    socket: Option<u64>,
    bytes: Vec<u8>,
}

impl Line {
    fn parse(line: &Value) -> Option<Self> {
        let to_device = match line["dir"].as_str()? {
            "to" => true,
            "from" => false,
            _ => return None,
        };
        let hex = line["hex"].as_str()?.as_bytes();
        let digit = |digit: u8| (digit as char).to_digit(16).unwrap() as u8;
        let bytes = hex.chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect();
        let (end, socket) = (line["end"].as_u64()?, line["sock"].as_u64());
        Some(Self { end, to_device, socket, bytes })
    }
}

/// Replays a file; returns where the answers differ.
pub fn differences(file: &str, statuses: Statuses) -> Vec<String> {
    let text = std::fs::read_to_string(format!("{FOLDER}/{file}.jsonl")).unwrap();
    let mut lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let header = lines.next().unwrap();
    let mut replay = Replay::new(header["cycles_per_tick"].as_u64().unwrap());
    let mut wanted = Vec::new();
    let mut found = Vec::new();
    let mut emitted = Vec::new();
    let mut last = 0;
    let mut resets = Vec::new();
    for line in lines {
        last = last.max(line["t"].as_u64().unwrap_or(0));
        if line["what"] == "radio_tx_samples" {
            emitted.push(line.clone());
        }
        let Some(line) = Line::parse(&line) else { continue };
        if line.to_device {
            if resets_output(&line.bytes) {
                resets.push(line.end);
            }
            replay.receive(&line);
        } else {
            replay.run(line.end);
            let Line { end: cycle, socket, bytes, .. } = line;
            wanted.push(TimedAnswer { cycle, socket, bytes });
        }
    }
    replay.run(last.max(replay.cycle) + LATE_CYCLES);
    let mut groups: BTreeMap<_, [Vec<TimedAnswer>; 2]> = BTreeMap::new();
    let begins: Vec<_> = wanted.iter().filter(|it| group(it, statuses).1 == "commands").collect();
    let begins: Vec<_> = begins.into_iter().map(|it| (it.socket, it.cycle)).collect();
    let latest =
        |cycles: &mut dyn Iterator<Item = u64>, cycle| cycles.filter(|it| *it <= cycle).max();
    // How much of a stream leaves behind the reset of its endpoint is not determined.
    let is_stale = |answer: &TimedAnswer| {
        let mut begins = begins.iter().filter(|it| it.0 == answer.socket).map(|it| it.1);
        let begun = latest(&mut begins, answer.cycle + LATE_CYCLES);
        group(answer, statuses).1 == "data"
            && latest(&mut resets.iter().copied(), answer.cycle) > begun
    };
    // What leaves for nobody must not be sent.
    for (side, answers) in [wanted, std::mem::take(&mut replay.answers)].into_iter().enumerate() {
        for answer in
            answers.into_iter().filter(|answer| answer.socket.is_some() && !is_stale(answer))
        {
            groups.entry(group(&answer, statuses)).or_default()[side].push(answer);
        }
    }
    for (name, [wanted, answers]) in groups {
        compare_group(&name, &wanted, &answers, statuses, &mut found);
    }
    found.extend(compare_emitted(&emitted, &replay.played));
    found
}

/// Returns whether a datagram resets the output stream of an endpoint.
fn resets_output(datagram: &[u8]) -> bool {
    let packet = Packet::parse(datagram, Width::W64);
    let Some(request) = packet.ok().and_then(|packet| MgmtRepr::parse(&packet).ok()) else {
        return false;
    };
    request.hops().flatten().any(|op| {
        let reset = |value| value & sep::RESET_OSTRM != 0;
        matches!(op, Op::CfgWrite { address: sep::RESET_AND_FLUSH, value } if reset(*value))
    })
}

fn compare_group(
    name: &AnswerGroup,
    wanted: &[TimedAnswer],
    answers: &[TimedAnswer],
    statuses: Statuses,
    found: &mut Vec<String>,
) {
    let (_, kind, _) = name;
    let timed = matches!(*kind, "management" | "acknowledgements");
    for (index, (want, have)) in wanted.iter().zip(answers).enumerate() {
        let at = want.cycle;
        if let Some(what) = difference(want, have, statuses) {
            found.push(format!("{name:?} #{index} at {at}: {what}"));
            continue;
        }
        let (early, late) =
            (want.cycle > have.cycle + EARLY_CYCLES, have.cycle > want.cycle + LATE_CYCLES);
        if timed && (early || late) {
            found.push(format!("{name:?} #{index} at {at}: came at {}", have.cycle));
        }
    }
    for (index, missing) in wanted.iter().enumerate().skip(answers.len()) {
        found.push(format!(
            "{name:?} #{index} at {}: missing {:02x?}",
            missing.cycle, missing.bytes
        ));
    }
    for (index, extra) in answers.iter().enumerate().skip(wanted.len()) {
        found.push(format!(
            "{name:?} #{index} came at {}: not recorded {:02x?}",
            extra.cycle, extra.bytes
        ));
    }
}
