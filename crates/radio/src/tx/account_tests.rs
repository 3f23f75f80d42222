//! The books against a simulated device behind a network that loses, repeats and reorders.

use std::collections::VecDeque;

use millstream_wire::stream::{PACKETS_UNLIMITED, StatusRepr};
use proptest::prelude::*;

use super::*;

const FULL: u64 = 100;
const COMMAND: u64 = 24;
const CAPACITY: u64 = 8192;
const PERIOD: u64 = CAPACITY / 8;

#[derive(Debug, Clone, Copy)]
enum Packet {
    Data { flow_bytes: u64, samples: u64 },
    Ping,
    Resync(Totals),
}

/// What the network does to the packet at its head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Pass,
    Lose,
    Twice,
    Behind,
}

#[derive(Debug, Clone, Copy)]
enum Step {
    /// So many packets of samples, the last one shorter by so much.
    Send {
        packets: u64,
        short: u64,
    },
    Audit,
    Deliver(Fate),
    Consume(u8),
    Answer(Fate),
}

/// A device that counts and reports as section 8 of the facts page says, and its network.
struct World {
    account: Account,
    on_way: VecDeque<Packet>,
    buffer: VecDeque<Packet>,
    answers: VecDeque<StatusRepr>,
    counted: Totals,
    reported: u64,
    status_seq: u16,
    /// Samples that the device has taken.
    taken: u64,
    accepted: u64,
    /// Nothing has come twice or in another order.
    in_order: bool,
    /// Only packets of samples have been lost.
    only_data_lost: bool,
    certain: bool,
}

impl World {
    fn new() -> Self {
        let window = Window::new(CAPACITY, PACKETS_UNLIMITED, COMMAND);
        Self {
            account: Account::new(Opened { window, status_seq: u16::MAX }, FULL),
            on_way: VecDeque::new(),
            buffer: VecDeque::new(),
            answers: VecDeque::new(),
            counted: Totals::default(),
            reported: 0,
            status_seq: 0,
            taken: 0,
            accepted: 0,
            in_order: true,
            only_data_lost: true,
            certain: true,
        }
    }

    fn send(&mut self, packets: u64, short: u64) {
        for index in 0..packets {
            let samples = if index + 1 == packets { FULL - short } else { FULL };
            if self.account.room_packets(flow(FULL)) == 0 {
                return;
            }
            self.account.ledger.accept(samples);
            self.accepted += samples;
            self.account.send(flow(samples), samples, None, index + 1 == packets);
            self.on_way.push_back(Packet::Data { flow_bytes: flow(samples), samples });
        }
    }

    fn audit(&mut self) {
        if self.account.window.has_room_for_commands(3, 0) {
            for _ in 0..2 {
                self.account.send_command(false);
                self.on_way.push_back(Packet::Ping);
            }
            let totals = self.account.send_command(true);
            self.on_way.push_back(Packet::Resync(totals));
        }
    }

    fn deliver(&mut self, fate: Fate) {
        let Some(packet) = self.on_way.pop_front() else { return };
        match fate {
            Fate::Pass => self.buffer.push_back(packet),
            Fate::Lose => self.only_data_lost &= matches!(packet, Packet::Data { .. }),
            Fate::Twice => {
                self.in_order = false;
                self.buffer.extend([packet, packet]);
            }
            Fate::Behind => {
                self.in_order &= self.on_way.is_empty();
                self.buffer.extend(self.on_way.pop_front());
                self.buffer.push_back(packet);
            }
        }
        let held: u64 = self.buffer.iter().map(Packet::flow_bytes).sum();
        assert!(!self.in_order || held <= CAPACITY, "{held} bytes in the device's buffer");
    }

    fn consume(&mut self) {
        let Some(packet) = self.buffer.pop_front() else { return };
        if let Packet::Resync(totals) = packet {
            self.counted = totals;
        }
        self.counted = self.counted.plus(1, packet.flow_bytes());
        match packet {
            Packet::Data { samples, .. } => {
                self.taken += samples;
                if self.counted.bytes.wrapping_sub(self.reported) >= PERIOD {
                    self.status();
                }
            }
            Packet::Ping | Packet::Resync(_) => self.status(),
        }
    }

    fn status(&mut self) {
        self.reported = self.counted.bytes;
        self.answers.push_back(StatusRepr {
            seq: self.status_seq,
            count_packets: self.counted.packets & PACKETS_MASK,
            count_bytes: self.counted.bytes,
            ..StatusRepr::default()
        });
        self.status_seq = self.status_seq.wrapping_add(1);
    }

    fn answer(&mut self, fate: Fate) {
        let Some(status) = self.answers.pop_front() else { return };
        match fate {
            Fate::Pass => self.hear(&status),
            Fate::Lose => self.only_data_lost = false,
            Fate::Twice => {
                self.hear(&status);
                self.hear(&status);
            }
            Fate::Behind => {
                self.only_data_lost &= self.answers.is_empty();
                if let Some(next) = self.answers.pop_front() {
                    self.hear(&next);
                }
                self.hear(&status);
            }
        }
    }

    fn hear(&mut self, status: &StatusRepr) {
        if let Taken::Audit { certain, .. } = self.account.take(status) {
            self.certain &= certain;
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Send { packets, short } => self.send(packets, short),
            Step::Audit => self.audit(),
            Step::Deliver(fate) => self.deliver(fate),
            Step::Consume(packets) => (0..packets).for_each(|_| self.consume()),
            Step::Answer(fate) => self.answer(fate),
        }
        self.check();
    }

    fn check(&self) {
        let Account { window, flight, ledger, .. } = &self.account;
        assert!(window.in_flight().bytes <= CAPACITY);
        assert_eq!((ledger.accepted, ledger.balance()), (self.accepted, Ok(())));
        assert_eq!(flight.samples(), ledger.in_flight);
    }

    /// From here on nothing is lost: everything must become known, after so many audits.
    fn settle(&mut self) {
        for _ in 0..3 {
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
            self.audit();
        }
    }
}

impl Packet {
    fn flow_bytes(&self) -> u64 {
        match self {
            Self::Data { flow_bytes, .. } => *flow_bytes,
            Self::Ping | Self::Resync(_) => COMMAND,
        }
    }
}

fn flow(samples: u64) -> u64 {
    (8 + 4 * samples).next_multiple_of(8)
}

fn fate(faults: bool) -> BoxedStrategy<Fate> {
    let lossy = prop_oneof![8 => Just(Fate::Pass), 1 => Just(Fate::Lose)];
    if !faults {
        return lossy.boxed();
    }
    prop_oneof![20 => lossy, 1 => Just(Fate::Twice), 1 => Just(Fate::Behind)].boxed()
}

fn steps(faults: bool) -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (1u64..8, 0u64..FULL).prop_map(|(packets, short)| Step::Send { packets, short }),
        1 => Just(Step::Audit),
        8 => fate(faults).prop_map(Step::Deliver),
        4 => (1u8..6).prop_map(Step::Consume),
        6 => fate(faults).prop_map(Step::Answer),
    ];
    prop::collection::vec(step, 1..400)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn whatever_the_network_does_the_books_balance_and_the_window_opens(steps in steps(true)) {
        let mut world = World::new();
        steps.into_iter().for_each(|step| world.step(step));
        world.settle();
        prop_assert_eq!(world.account.flight.samples(), 0);
        prop_assert!(world.account.room_packets(flow(FULL)) > 10);
    }

    #[test]
    fn lost_packets_of_samples_are_known_to_the_sample(steps in steps(false)) {
        let mut world = World::new();
        for step in steps {
            let lossless = match (step, world.on_way.front()) {
                (Step::Answer(_), _) => Step::Answer(Fate::Pass),
                (Step::Deliver(_), Some(Packet::Ping | Packet::Resync(_))) => {
                    Step::Deliver(Fate::Pass)
                }
                _ => step,
            };
            world.step(lossless);
        }
        world.settle();
        prop_assert!(world.only_data_lost);
        // Packets of different sizes may leave a range: then, and only then, it is uncertain.
        if world.certain {
            prop_assert_eq!(world.account.ledger.transmitted, world.taken);
        }
        let lost = world.account.ledger.lost(TxCause::NetworkLoss);
        prop_assert!(lost >= world.accepted - world.taken);
    }

    #[test]
    fn lost_answers_lose_no_samples(steps in steps(false)) {
        let mut world = World::new();
        for step in steps {
            let is_delivery = matches!(step, Step::Deliver(_));
            world.step(if is_delivery { Step::Deliver(Fate::Pass) } else { step });
        }
        world.settle();
        prop_assert_eq!(world.account.ledger.transmitted, world.accepted);
        prop_assert_eq!(world.taken, world.accepted);
    }

    #[test]
    fn a_device_that_says_anything_breaks_nothing(
        steps in steps(true),
        said in prop::collection::vec((any::<u16>(), any::<u64>(), any::<u64>(), 0..5u8), 400),
    ) {
        let mut world = World::new();
        for (step, (seq, packets, bytes, kind)) in steps.into_iter().zip(said) {
            world.step(step);
            let sent = world.account.window.sent();
            // Nonsense, and what is nearly right.
            let near = |count: u64, by: u64, span: u64| count.wrapping_add(by % span) - span / 2;
            let (packets, bytes) = match kind {
                0 => (packets, bytes),
                _ => (near(sent.packets + 5, packets, 10), near(sent.bytes + 5000, bytes, 10_000)),
            };
            let status = StatusRepr {
                seq: if kind % 2 == 0 { seq } else { world.status_seq.wrapping_add(seq % 5) },
                count_packets: packets & PACKETS_MASK,
                count_bytes: bytes,
                ..StatusRepr::default()
            };
            world.in_order = false;
            world.hear(&status);
            if kind == 3 {
                world.account.late();
                world.account.acknowledge(bytes);
            }
            world.check();
        }
        world.account.close();
        let ledger = &world.account.ledger;
        prop_assert_eq!((ledger.in_flight, ledger.balance()), (0, Ok(())));
    }
}
