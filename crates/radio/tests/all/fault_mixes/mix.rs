//! Mixes of faults, drawn from a seed.

use millstream_link::fault::{FaultEffect, FaultRule, Select};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use crate::common::SPP;

/// Random numbers from a seed.
pub struct Draw(SplitMix64);

impl Draw {
    pub fn new(seed: u64) -> Self {
        Self(SplitMix64::seed_from_u64(seed))
    }

    fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    fn range(&mut self, from: u64, to: u64) -> u64 {
        from + self.next() % (to - from)
    }

    /// Returns a number from a half to all of `most`, evenly in its logarithm below that.
    fn chance(&mut self, most: f64) -> f64 {
        most * 0.5f64.powf(self.range(0, 500) as f64 / 100.0)
    }

    fn select(&mut self, most: f64) -> Select {
        let (probability, seed) = (self.chance(most), self.next());
        Select { probability, seed, ..Select::default() }
    }
}

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

/// The faults of a mix.
pub struct Mix {
    /// Rules for packets from the radio; the next field has those for packets to it.
    pub received: Vec<FaultRule>,
    pub given: Vec<FaultRule>,
    /// Faults of the device, and the number of samples before each.
    pub device: Vec<(u64, String)>,
    pub told: Vec<String>,
    /// The length of the capture; `None` without an end.
    pub finite: Option<u64>,
    /// Commands that may still be lost.
    commands: u64,
}

impl Mix {
    pub fn draw(draw: &mut Draw) -> Self {
        let (received, given, device) = (Vec::new(), Vec::new(), Vec::new());
        let (told, commands) = (Vec::new(), COMMANDS_LOST_MAX);
        let mut mix = Self { received, given, device, told, finite: None, commands };
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

    fn rule(&mut self, received: bool, of: u8, effect: FaultEffect, select: Select) {
        let way = if received { "received" } else { "given" };
        self.told.push(format!("{way} {of} {effect:?} p={}", select.probability));
        let rule = FaultRule::new(move |bytes| kind(bytes) == of, effect).select(select);
        if received { self.received.push(rule) } else { self.given.push(rule) }
    }

    fn data(&mut self, draw: &mut Draw) {
        let effect = match draw.range(0, 5) {
            0 => FaultEffect::Lose,
            1 => FaultEffect::Duplicate { copies: draw.range(1, 4) as u32 },
            2 => FaultEffect::Reorder { datagrams: draw.range(1, 60) as u32 },
            3 => FaultEffect::Delay { ns: draw.range(100_000, 25_000_000) },
            _ => FaultEffect::Truncate { bytes: draw.range(8, 400) as usize },
        };
        let select = draw.select(0.3);
        self.rule(true, TIMED_DATA, effect, select);
    }

    /// Loses all packets of the stream for a while, perhaps for more than the credit.
    fn cut(&mut self, draw: &mut Draw) {
        let (skip, count) = (draw.range(0, 100), Some(draw.range(20, 600)));
        self.told.push(format!("cut {count:?}"));
        self.rule(true, TIMED_DATA, FaultEffect::Lose, Select { skip, count, ..Select::default() });
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

    fn credit(&mut self, draw: &mut Draw) {
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

    fn resync(&mut self, draw: &mut Draw) {
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

    fn control(&mut self, draw: &mut Draw) {
        let received = draw.range(0, 2) == 0;
        let effect = match draw.range(0, 3) {
            0 => FaultEffect::Lose,
            1 if received => FaultEffect::Duplicate { copies: 1 },
            _ => FaultEffect::Delay { ns: draw.range(100_000, 5_000_000) },
        };
        let select = draw.select(0.05);
        self.rule(received, CONTROL, effect, select);
    }

    fn device(&mut self, draw: &mut Draw) {
        let after = draw.range(1, 120) * SPP;
        let text = match draw.range(0, 3) {
            // Not a multiple of whole packets, so that no two packets have the same time.
            0 => format!("clock_jump ticks={}", draw.range(1, 2000) * SPP + 7),
            1 => format!("clock_jump ticks=-{}", draw.range(1, 2000) * SPP + 11),
            _ => format!("stall ms={}", draw.range(5, 120)),
        };
        self.told.push(format!("{text} behind {after}"));
        self.device.push((after, text));
    }
}
