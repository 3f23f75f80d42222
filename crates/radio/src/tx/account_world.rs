//! A simulated device behind a network that loses, repeats and reorders.

use std::collections::VecDeque;

use millstream_wire::stream::PACKETS_UNLIMITED;

use super::super::*;
use crate::stream::StreamRate;
use crate::tx::ledger::TxUnknown;
use crate::tx::window::usual_ping;

pub const FULL: u64 = 100;
pub const COMMAND: u64 = 24;
pub const CAPACITY: u64 = 8192;
pub const PERIOD: u64 = CAPACITY / 8;

#[derive(Debug, Clone, Copy)]
pub enum Packet {
    Data { number: usize, flow_bytes: u64 },
    Command { seq: u16 },
}

/// The network's fault at the packet at its head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Pass,
    Lose,
    Twice,
    /// It comes behind this number of later packets.
    Behind(u8),
}

#[derive(Debug, Clone, Copy)]
pub enum Step {
    /// Sends packets of samples, the last one shorter than the others.
    Send {
        packets: u64,
        short: u64,
    },
    Audit,
    Deliver(Fate),
    Consume(u8),
    Answer(Fate),
}

/// A device that counts and reports as the protocol says, and its network.
pub struct World {
    pub account: TxAccounting,
    /// No count query is sent while another is open.
    pub patient: bool,
    pub on_way: VecDeque<Packet>,
    pub buffer: VecDeque<Packet>,
    pub answers: VecDeque<StatusRepr>,
    pub command_seq: u16,
    pub counted: Totals,
    pub reported: u64,
    pub status_seq: u16,
    pub numbered: bool,
    /// How much it counts for a PING.
    pub ping: Totals,
    pub due: u16,
    pub command_due: Option<u16>,
    /// The samples of each packet, and how often the device has taken it.
    pub sizes: Vec<u64>,
    pub taken: Vec<u64>,
    pub accepted: u64,
    /// Packets of samples that the network lost, and those that did not fit the device's buffer.
    pub lost: u64,
    pub overflows: u64,
}

impl World {
    pub fn new() -> Self {
        Self::of(true)
    }

    /// Returns a world whose device numbers its reports, or gives all of them one number.
    pub fn of(numbered: bool) -> Self {
        Self::counting(usual_ping(COMMAND), numbered)
    }

    /// Returns a world whose device counts no PING.
    pub fn without_commands() -> Self {
        Self::counting(Totals::default(), true)
    }

    fn counting(ping: Totals, numbered: bool) -> Self {
        let window = CreditWindow::new(CAPACITY, PACKETS_UNLIMITED, COMMAND).counting(ping);
        let status_seq = if numbered { u16::MAX } else { 0 };
        let mut world = Self {
            account: TxAccounting::new(
                Opened { window, status_seq, tells_place: numbered },
                FULL,
                StreamRate::of_radio(1e6),
            ),
            numbered,
            ping,
            patient: false,
            on_way: VecDeque::new(),
            buffer: VecDeque::new(),
            answers: VecDeque::new(),
            command_seq: 0,
            counted: Totals::default(),
            reported: 0,
            status_seq: 0,
            due: 0,
            command_due: None,
            sizes: Vec::new(),
            taken: Vec::new(),
            accepted: 0,
            lost: 0,
            overflows: 0,
        };
        world.audit();
        world.deliver(Fate::Pass);
        world.consume();
        world.answer(Fate::Pass);
        world
    }

    pub fn send(&mut self, packets: u64, short: u64) {
        for index in 0..packets {
            let samples = if index + 1 == packets { FULL - short } else { FULL };
            if self.account.room_packets(flow(FULL)) == 0 {
                return;
            }
            self.account.accept(samples);
            self.accepted += samples;
            self.account.send(flow(samples), samples, None, index + 1 == packets);
            let (number, flow_bytes) = (self.sizes.len(), flow(samples));
            self.on_way.push_back(Packet::Data { number, flow_bytes });
            self.sizes.push(samples);
            self.taken.push(0);
        }
    }

    pub fn audit(&mut self) {
        if self.account.window.has_room_for_commands(1, 0) {
            self.account.send_audit(self.command_seq);
            self.on_way.push_back(Packet::Command { seq: self.command_seq });
            self.command_seq = self.command_seq.wrapping_add(1);
        }
    }

    pub fn deliver(&mut self, fate: Fate) {
        let Some(packet) = self.on_way.pop_front() else { return };
        match fate {
            Fate::Pass => self.arrive(packet),
            Fate::Lose => self.lost += u64::from(matches!(packet, Packet::Data { .. })),
            Fate::Twice => {
                self.arrive(packet);
                self.arrive(packet);
            }
            Fate::Behind(packets) => {
                for _ in 0..packets {
                    let next = self.on_way.pop_front();
                    next.into_iter().for_each(|next| self.arrive(next));
                }
                self.arrive(packet);
            }
        }
    }

    pub fn arrive(&mut self, packet: Packet) {
        let held: u64 = self.buffer.iter().map(Packet::flow_bytes).sum();
        if held + packet.flow_bytes() > CAPACITY {
            self.overflows += 1;
        } else {
            self.buffer.push_back(packet);
        }
    }

    pub fn consume(&mut self) {
        let Some(packet) = self.buffer.pop_front() else { return };
        let gap = |kind, expected, actual| SequenceGap { kind, expected, actual };
        match packet {
            Packet::Data { number, flow_bytes } => {
                let due = std::mem::replace(&mut self.due, (number as u16).wrapping_add(1));
                if due != number as u16 {
                    self.status(Some(gap(PacketType::Data, due, number as u16)));
                }
                self.taken[number] += 1;
                self.counted = self.counted.plus(1, flow_bytes);
                if self.counted.bytes.wrapping_sub(self.reported) >= PERIOD {
                    self.status(None);
                }
            }
            Packet::Command { seq } => {
                let due = self.command_due.replace(seq.wrapping_add(1));
                if let Some(due) = due.filter(|&due| due != seq) {
                    self.status(Some(gap(PacketType::StreamCommand, due, seq)));
                }
                self.counted = self.counted.and(self.ping);
                let (place, mut shown) = (self.place(), self.counted);
                // The next packet may pass before the answer leaves, or before half of it does.
                if let Some(&Packet::Data { number, flow_bytes }) = self.buffer.front() {
                    if self.numbered && number as u16 == self.due && number % 3 > 0 {
                        self.buffer.pop_front();
                        self.due = self.due.wrapping_add(1);
                        self.taken[number] += 1;
                        self.counted = self.counted.plus(1, flow_bytes);
                        shown.bytes = self.counted.bytes;
                        shown.packets += number as u64 % 3 - 1;
                    }
                }
                self.reported = self.counted.bytes;
                self.status_of(place, shown, None);
            }
        }
    }

    pub fn status(&mut self, gap: Option<SequenceGap>) {
        self.reported = self.counted.bytes;
        let (place, shown) = (self.place(), self.counted);
        self.status_of(place, shown, gap);
    }

    fn place(&self) -> StreamPlace {
        let command = self.command_due.map_or(0, |due| due.wrapping_sub(1));
        StreamPlace { period: false, expected: self.due, command }
    }

    fn status_of(&mut self, place: StreamPlace, shown: Totals, gap: Option<SequenceGap>) {
        self.answers.push_back(StatusRepr {
            seq: self.status_seq,
            status: if gap.is_some() {
                StreamCondition::SequenceError
            } else {
                StreamCondition::Ok
            },
            error_info: gap.map_or(place.to_info(), SequenceGap::to_info),
            count_packets: shown.packets & PACKETS_MASK,
            count_bytes: shown.bytes,
            ..StatusRepr::default()
        });
        self.status_seq = self.status_seq.wrapping_add(self.numbered.into());
    }

    pub fn answer(&mut self, fate: Fate) {
        let Some(status) = self.answers.pop_front() else { return };
        match fate {
            Fate::Pass => self.hear(&status),
            Fate::Lose => {}
            Fate::Twice => {
                self.hear(&status);
                self.hear(&status);
            }
            Fate::Behind(reports) => {
                for _ in 0..reports {
                    let next = self.answers.pop_front();
                    next.into_iter().for_each(|next| self.hear(&next));
                }
                self.hear(&status);
            }
        }
    }

    pub fn hear(&mut self, status: &StatusRepr) {
        self.account.take(status);
    }

    pub fn step(&mut self, step: Step) {
        match step {
            Step::Send { packets, short } => self.send(packets, short),
            Step::Audit if self.patient && self.account.audits.is_open() => {}
            Step::Audit => self.audit(),
            Step::Deliver(fate) => self.deliver(fate),
            Step::Consume(packets) => (0..packets).for_each(|_| self.consume()),
            Step::Answer(fate) => self.answer(fate),
        }
        self.check();
    }

    pub fn check(&self) {
        let TxAccounting { window, .. } = &self.account;
        let ledger = self.account.ledger();
        assert!(window.in_flight().bytes <= CAPACITY);
        assert_eq!((ledger.accepted, ledger.balance()), (self.accepted, Ok(())));
        assert_eq!(self.account.samples_in_flight(), ledger.in_flight);
        let TxUnknown { samples, lost_min, lost_max } = ledger.unknown;
        assert!(lost_min <= lost_max && lost_max <= samples, "{ledger:?}");
        assert!(ledger.repeated.min <= ledger.repeated.max, "{ledger:?}");
    }

    /// Stops all faults; after a few count queries every sample must be resolved.
    pub fn settle(&mut self) {
        for round in 0..10 {
            while !self.on_way.is_empty() {
                self.deliver(Fate::Pass);
            }
            while !self.buffer.is_empty() {
                self.consume();
            }
            while !self.answers.is_empty() {
                self.answer(Fate::Pass);
            }
            self.check();
            // What seems lost may have come behind the first query.
            if self.account.is_settled() && round > 0 {
                break;
            }
            self.audit();
        }
        assert!(self.account.is_settled(), "{:?}", self.account);
    }

    /// Compares the ledger with the device's own counts.
    pub fn compare(&mut self) {
        self.account.close(0);
        let ledger = self.account.ledger();
        let sum = |times: fn(u64) -> u64| -> u64 {
            self.sizes.iter().zip(&self.taken).map(|(size, &taken)| size * times(taken)).sum()
        };
        let lost = self.accepted - sum(|taken| taken.min(1));
        let (known, unknown) = (ledger.lost_total(), ledger.unknown);
        let bounds = known + unknown.lost_min..=known + unknown.lost_max;
        assert!(bounds.contains(&lost), "{lost} of {bounds:?} were lost\n{ledger}");
        let again = sum(|taken| taken.saturating_sub(1));
        let bounds = ledger.repeated.min..=ledger.repeated.max;
        assert!(bounds.contains(&again), "{again} of {bounds:?} came again\n{ledger}");
        if self.lost == 0 {
            assert_eq!(ledger.lost(TxCause::NetworkLoss), 0, "{} overflows", self.overflows);
        }
    }

    /// Compares the ledger with the device's own counts, to the sample.
    pub fn compare_exactly(&mut self) {
        self.compare();
        let ledger = self.account.ledger();
        assert_eq!((ledger.unknown.samples, ledger.repeated.min), (0, ledger.repeated.max));
    }
}

impl Packet {
    pub fn flow_bytes(&self) -> u64 {
        match self {
            Self::Data { flow_bytes, .. } => *flow_bytes,
            Self::Command { .. } => COMMAND,
        }
    }
}

pub fn flow(samples: u64) -> u64 {
    (8 + 4 * samples).next_multiple_of(8)
}
