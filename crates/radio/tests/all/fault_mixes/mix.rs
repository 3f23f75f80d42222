//! Mixes of faults, drawn from a seed.

use millstream_link::fault::{FaultEffect, FaultRule, Select};

use super::registers::{FalseAnswer, ack};
use crate::common::SPP;
use crate::common::draw::Draw;
use crate::common::shrink::{Shrink, Variants};

/// Packet type, bits 55 to 53 of the header.
fn kind(packet: &[u8]) -> u8 {
    packet.get(6).map_or(0, |byte| byte >> 5)
}

const STATUS: u8 = 1;
const COMMAND: u8 = 2;
const CONTROL: u8 = 4;
const TIMED_DATA: u8 = 7;

/// The most commands that a mix may lose: a stream is given up after eight unanswered openings.
const COMMANDS_LOST_MAX: u64 = 7;

/// A fault of packets of one kind.
#[derive(Debug, Clone)]
pub struct PacketFault {
    /// Of the packets from the radio, or of those to it.
    pub received: bool,
    of: u8,
    /// Only of acknowledgements.
    acks: bool,
    effect: FaultEffect,
    select: Select,
}

impl PacketFault {
    /// Returns its rule.
    pub fn rule(&self) -> FaultRule {
        let (of, acks) = (self.of, self.acks);
        let matches = move |bytes: &[u8]| kind(bytes) == of && (!acks || ack(bytes).is_some());
        FaultRule::new(matches, self.effect.clone()).select(self.select.clone())
    }

    /// Returns a fault of packets of samples.
    pub fn of_data(draw: &mut Draw<'_>) -> Self {
        let effect = match draw.range(0, 5) {
            0 => FaultEffect::Lose,
            1 => FaultEffect::Duplicate { copies: draw.range(1, 4) as u32 },
            2 => FaultEffect::Reorder { datagrams: draw.range(1, 60) as u32 },
            3 => FaultEffect::Delay { ns: draw.range(100_000, 25_000_000) },
            _ => FaultEffect::Truncate { bytes: draw.range(8, 400) as usize },
        };
        Self { received: true, of: TIMED_DATA, acks: false, effect, select: draw.select(0.3) }
    }

    /// Returns the loss of `count` packets of samples behind `skip` others.
    pub fn cut(skip: u64, count: u64) -> Self {
        let (effect, count) = (FaultEffect::Lose, Some(count));
        let select = Select { skip, count, ..Select::default() };
        Self { received: true, of: TIMED_DATA, acks: false, effect, select }
    }

    /// Returns a fault of the answers to register accesses.
    pub fn of_answers(effect: FaultEffect, select: Select) -> Self {
        Self { received: true, of: CONTROL, acks: true, effect, select }
    }
}

/// The faults of a mix.
#[derive(Debug, Clone)]
pub struct Mix {
    pub packets: Vec<PacketFault>,
    /// Faults of the device, and the number of samples before each.
    pub device: Vec<(u64, String)>,
    /// False answers to register accesses, of a simulated device.
    pub answers: Vec<FalseAnswer>,
    /// The length of the capture; `None` without an end.
    pub finite: Option<u64>,
    /// Packets before the faults, and behind each step of them, in a capture without an end.
    pub before: u64,
    pub behind: u64,
    /// Commands that may still be lost.
    commands: u64,
}

impl Mix {
    pub fn draw(draw: &mut Draw<'_>) -> Self {
        let (packets, device, answers) = (Vec::new(), Vec::new(), Vec::new());
        let (finite, before, behind, commands) = (None, 10, 80, COMMANDS_LOST_MAX);
        let mut mix = Self { packets, device, answers, finite, before, behind, commands };
        if draw.range(0, 4) == 0 {
            mix.finite = Some(draw.range(1, 200) * SPP - draw.range(0, SPP));
        }
        for _ in 0..draw.range(1, 6) {
            match draw.range(0, 16) {
                0..6 => mix.data(draw),
                6 => mix.credit(draw),
                7 => mix.resync(draw),
                8 => mix.control(draw),
                9 => mix.cut(draw),
                _ if mix.finite.is_none() => mix.device(draw),
                _ => mix.data(draw),
            }
        }
        mix
    }

    /// Adds a fault that flips bits of any kind of packets, in either direction.
    pub fn corrupt(&mut self, draw: &mut Draw<'_>) {
        let (received, of) = (draw.one_in(2), draw.range(0, 8) as u8);
        let bytes = 0..draw.range(1, 65) as usize;
        let effect = FaultEffect::Corrupt { bits: draw.range(1, 9) as u32, bytes };
        let select = draw.select(0.6);
        self.rule(received, of, effect, select);
    }

    fn rule(&mut self, received: bool, of: u8, effect: FaultEffect, select: Select) {
        self.packets.push(PacketFault { received, of, acks: false, effect, select });
    }

    fn data(&mut self, draw: &mut Draw<'_>) {
        self.packets.push(PacketFault::of_data(draw));
    }

    /// Returns whether reports of the host may come behind later ones.
    pub fn delays_reports(&self) -> bool {
        self.packets.iter().any(|fault| {
            let delays =
                matches!(fault.effect, FaultEffect::Reorder { .. } | FaultEffect::Delay { .. });
            !fault.received && fault.of == STATUS && delays
        })
    }

    /// Returns the length of the longest stall of the device.
    pub fn stall_ms(&self) -> u64 {
        let stalls = self.device.iter().filter_map(|(_, fault)| fault.strip_prefix("stall ms="));
        stalls.map(|ms| ms.parse().expect("a number")).max().unwrap_or(0)
    }

    /// Removes the faults of register accesses that may take an answer away.
    pub fn answer_all(&mut self) {
        let harmless = |fault: &PacketFault| matches!(fault.effect, FaultEffect::Duplicate { .. });
        self.packets.retain(|fault| fault.of != CONTROL || harmless(fault));
    }

    /// Returns whether control packets may be lost that are no answers to register accesses.
    pub fn loses_control(&self) -> bool {
        let lost = |fault: &PacketFault| {
            let takes = matches!(fault.effect, FaultEffect::Lose | FaultEffect::Truncate { .. });
            fault.of == CONTROL && takes
        };
        self.packets.iter().any(lost)
    }

    /// Loses all packets of the stream for a while, perhaps for more than the credit.
    fn cut(&mut self, draw: &mut Draw<'_>) {
        let (skip, count) = (draw.range(0, 100), draw.range(20, 600));
        self.packets.push(PacketFault::cut(skip, count));
        let count = draw.range(1, 4);
        self.lose_commands(count, Select::default());
    }

    fn lose_commands(&mut self, most: u64, select: Select) {
        let count = most.min(self.commands);
        self.commands -= count;
        if count > 0 {
            let select = Select { count: Some(count), ..select };
            self.rule(true, COMMAND, FaultEffect::Lose, select);
        }
    }

    fn credit(&mut self, draw: &mut Draw<'_>) {
        let effect = match draw.range(0, 5) {
            0 => FaultEffect::Lose,
            1 => FaultEffect::Duplicate { copies: 2 },
            2 => FaultEffect::Reorder { datagrams: 3 },
            3 => FaultEffect::Delay { ns: draw.range(100_000, 5_000_000) },
            _ => FaultEffect::Truncate { bytes: draw.range(0, 40) as usize },
        };
        let select = draw.select(0.6);
        self.rule(false, STATUS, effect, select);
    }

    fn resync(&mut self, draw: &mut Draw<'_>) {
        let effect = match draw.range(0, 4) {
            0 => FaultEffect::Lose,
            1 => FaultEffect::Duplicate { copies: 1 },
            2 => FaultEffect::Reorder { datagrams: 1 },
            _ => FaultEffect::Delay { ns: draw.range(100_000, 5_000_000) },
        };
        let select = draw.select(0.6);
        match effect {
            FaultEffect::Lose => self.lose_commands(COMMANDS_LOST_MAX, select),
            _ => self.rule(true, COMMAND, effect, select),
        }
    }

    fn control(&mut self, draw: &mut Draw<'_>) {
        let received = draw.range(0, 2) == 0;
        let effect = match draw.range(0, 3) {
            0 => FaultEffect::Lose,
            1 if received => FaultEffect::Duplicate { copies: 1 },
            _ => FaultEffect::Delay { ns: draw.range(100_000, 5_000_000) },
        };
        let select = draw.select(0.05);
        self.rule(received, CONTROL, effect, select);
    }

    fn device(&mut self, draw: &mut Draw<'_>) {
        let after = draw.range(1, 120) * SPP;
        let text = match draw.range(0, 3) {
            // Not a multiple of whole packets, so that no two packets have the same time.
            0 => format!("clock_jump ticks={}", draw.range(1, 2000) * SPP + 7),
            1 => format!("clock_jump ticks=-{}", draw.range(1, 2000) * SPP + 11),
            _ => format!("stall ms={}", draw.range(5, 120)),
        };
        self.device.push((after, text));
    }
}

impl Shrink for Mix {
    fn smaller(&self) -> Vec<Self> {
        let mut all = Variants::of(self);
        all.without_each(|mix| &mut mix.packets);
        all.without_each(|mix| &mut mix.device);
        all.without_each(|mix| &mut mix.answers);
        all.shorter(|mix| &mut mix.finite);
        all.half(|mix| &mut mix.behind);
        for index in (0..self.device.len()).filter(|index| self.device[*index].0 > SPP) {
            all.put(|mix| mix.device[index].0 /= 2);
        }
        all.into_vec()
    }
}
