use super::*;
use crate::time::SampleClock;
use proptest::prelude::*;
use std::collections::VecDeque;

fn keeper() -> DeviceClock {
    DeviceClock::new(SampleClock::new(0, 0, 1e6, 1.0))
}

/// The events, sample by sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    /// Sample `.1` of all queued ones was sent at tick `.0`.
    Sent(u64, u64),
    Ack(u64),
    Underflow(u64),
    Late(u64),
}

/// A channel with a buffer of packets, each with the number of its first sample.
struct Rig {
    channel: TxChannel,
    policy: LatePolicy,
    queue: VecDeque<(TxPacket, u64)>,
    queued: u64,
    told: Vec<Told>,
}

impl Rig {
    fn new(policy: LatePolicy) -> Self {
        let queue = VecDeque::new();
        Self { channel: TxChannel::new(), policy, queue, queued: 0, told: Vec::new() }
    }

    fn push(&mut self, packet: TxPacket) {
        self.queue.push_back((packet, self.queued));
        self.queued += packet.samples;
    }

    fn run(&mut self, now: u64) {
        loop {
            let head = self.queue.front().map(|(packet, _)| *packet);
            match self.channel.step(&keeper(), self.policy, head, now) {
                None => return,
                Some(TxStep::Send { tick, count, done, ack, .. }) => {
                    let (packet, first) = self.queue.front_mut().unwrap();
                    self.told.extend((0..count).map(|i| Told::Sent(tick + i, *first + i)));
                    packet.samples -= count;
                    packet.timestamp = None;
                    *first += count;
                    assert_eq!(done, packet.samples == 0);
                    if done {
                        self.queue.pop_front();
                    }
                    self.told.extend(ack.then(|| Told::Ack(tick + count - 1)));
                }
                Some(TxStep::Underflow { tick }) => self.told.push(Told::Underflow(tick)),
                Some(TxStep::Late { tick }) => {
                    self.queue.pop_front();
                    self.told.push(Told::Late(tick));
                }
                Some(TxStep::Skip) => drop(self.queue.pop_front()),
            }
        }
    }
}

/// Returns the reference: the radio's behaviour at each single tick.
fn reference(policy: LatePolicy, packets: &[TxPacket], ticks: u64) -> Vec<Told> {
    let mut queue: VecDeque<(TxPacket, u64)> = VecDeque::new();
    let (mut told, mut state, mut number, mut ready) = (Vec::new(), Phase::Idle, 0, 0);
    for packet in packets {
        queue.push_back((*packet, number));
        number += packet.samples;
    }
    let spoilt = if policy == LatePolicy::NextBurst { Phase::Skipping } else { Phase::Idle };
    for tick in 0..ticks {
        loop {
            let Some((head, first)) = queue.front_mut().filter(|(head, _)| head.arrived <= tick)
            else {
                if state == Phase::Burst {
                    told.push(Told::Underflow(tick));
                    state = Phase::Idle;
                }
                break;
            };
            if state == Phase::Skipping {
                state = if head.eob { Phase::Idle } else { state };
                queue.pop_front();
            } else if state != Phase::Burst
                && head.timestamp.is_some_and(|time| time < tick.max(ready))
            {
                told.push(Told::Late(tick));
                state = if head.eob { Phase::Idle } else { spoilt };
                queue.pop_front();
            } else if state != Phase::Burst && head.timestamp.is_some_and(|time| time > tick) {
                break;
            } else {
                told.push(Told::Sent(tick, *first));
                (head.samples, head.timestamp, *first) = (head.samples - 1, None, *first + 1);
                state = Phase::Burst;
                if head.samples == 0 {
                    if head.eob {
                        told.push(Told::Ack(tick));
                        (state, ready) = (Phase::Idle, tick + 1 + TURN_CYCLES);
                    }
                    queue.pop_front();
                }
                break;
            }
        }
    }
    told
}

fn packet(arrived: u64, timestamp: Option<u64>, samples: u64, eob: bool) -> TxPacket {
    TxPacket { arrived, timestamp, samples, eob }
}

proptest! {
    /// Any packets, processed in any steps: tick by tick the same as the reference.
    #[test]
    fn it_does_what_the_reference_does(
        packets in prop::collection::vec(
            (0u64..40, prop::option::of(-20i64..60), 1u64..30, any::<bool>()), 1..20),
        steps in prop::collection::vec(1u64..100, 1..60),
        next_burst in any::<bool>(),
    ) {
        let policy = if next_burst { LatePolicy::NextBurst } else { LatePolicy::NextPacket };
        let mut arrived = 0;
        let packets: Vec<_> = packets.iter().map(|&(wait, ahead, samples, eob)| {
            arrived += wait;
            let time = ahead.map(|ahead| arrived.saturating_add_signed(ahead));
            packet(arrived, time, samples, eob)
        }).collect();
        let mut rig = Rig::new(policy);
        let mut waiting = packets.iter().peekable();
        let mut now = 0;
        for step in steps.iter().copied().chain([5_000]) {
            now += step;
            while let Some(packet) = waiting.next_if(|packet| packet.arrived <= now) {
                rig.push(*packet);
            }
            rig.run(now);
        }
        prop_assert_eq!(rig.told, reference(policy, &packets, now));
    }

    /// A stall longer than the buffer is one underflow of exactly the difference, and a shorter one
    /// causes none (D06).
    #[test]
    fn a_stall_is_an_underflow_only_beyond_the_buffer(
        buffered in 1u64..2_000,
        stall in 1u64..4_000,
    ) {
        let mut rig = Rig::new(LatePolicy::NextPacket);
        rig.push(packet(1_000, None, buffered, false));
        rig.run(1_000 + stall - 1);
        rig.push(packet(1_000 + stall, None, 100, true));
        rig.run(10_000);
        let dry = stall.saturating_sub(buffered);
        let underflows: Vec<_> =
            rig.told.iter().filter(|told| matches!(told, Told::Underflow(_))).collect();
        if dry > 0 {
            prop_assert_eq!(underflows, [&Told::Underflow(1_000 + buffered)]);
        } else {
            prop_assert!(underflows.is_empty());
        }
        prop_assert_eq!(rig.channel.gap_samples(), dry);
        prop_assert_eq!(rig.queued, buffered + 100);
        let last = rig.told.last().copied();
        prop_assert_eq!(last, Some(Told::Ack(1_000 + buffered + dry + 99)));
    }
}

#[test]
fn waking_up_late_is_no_reason_for_a_late_packet() {
    let mut rig = Rig::new(LatePolicy::NextPacket);
    rig.push(packet(100, Some(500), 2, true));
    assert_eq!(rig.channel.next_event(&keeper(), Some(rig.queue[0].0), 0), Some(502));
    rig.run(9_000);
    assert_eq!(rig.told, [Told::Sent(500, 0), Told::Sent(501, 1), Told::Ack(501)]);
}

#[test]
fn each_late_packet_is_told_and_the_next_one_is_looked_at_anew() {
    let mut rig = Rig::new(LatePolicy::NextPacket);
    for (time, eob) in [(Some(50), false), (Some(60), false), (None, true)] {
        rig.push(packet(100, time, 1, eob));
    }
    rig.run(200);
    let late = Told::Late(100);
    assert_eq!(rig.told, [late, late, Told::Sent(100, 2), Told::Ack(100)]);
}

#[test]
fn by_policy_two_a_late_burst_is_told_once_and_the_next_burst_goes_out() {
    let mut rig = Rig::new(LatePolicy::NextBurst);
    for (time, eob) in [(Some(50), false), (None, false), (None, true), (Some(150), true)] {
        rig.push(packet(100, time, 1, eob));
    }
    rig.run(200);
    assert_eq!(rig.told, [Told::Late(100), Told::Sent(150, 3), Told::Ack(150)]);
}

/// F7: the logic looks at times between bursts only.
#[test]
fn a_time_ahead_within_a_burst_is_not_used() {
    let mut rig = Rig::new(LatePolicy::NextPacket);
    rig.push(packet(10, None, 2, false));
    rig.push(packet(10, Some(20), 1, true));
    assert_eq!(rig.channel.next_event(&keeper(), Some(rig.queue[0].0), 0), Some(12));
    rig.run(12);
    assert_eq!(rig.channel.next_event(&keeper(), Some(rig.queue[0].0), 0), Some(13));
    rig.run(100);
    let want = [Told::Sent(10, 0), Told::Sent(11, 1), Told::Sent(12, 2), Told::Ack(12)];
    assert_eq!(rig.told, want);
}

/// As in the recorded exchange 50.
#[test]
fn a_burst_that_begins_where_the_last_one_ended_loses_its_first_packet() {
    for (gap, late) in [(0, true), (2, true), (3, false)] {
        let mut rig = Rig::new(LatePolicy::NextPacket);
        rig.push(packet(10, Some(100), 2, true));
        rig.push(packet(10, Some(102 + gap), 10, false));
        rig.push(packet(10, Some(112 + gap), 1, true));
        rig.run(1000);
        assert_eq!(rig.told[2], Told::Ack(101));
        let next = if late {
            [Told::Late(102), Told::Sent(114.min(112 + gap), 12)]
        } else {
            [Told::Sent(105, 2), Told::Sent(106, 3)]
        };
        assert_eq!(rig.told[3..5], next);
        assert_eq!(rig.told.last(), Some(&Told::Ack(112 + gap)));
    }
    let mut rig = Rig::new(LatePolicy::NextPacket);
    rig.push(packet(10, Some(100), 2, true));
    rig.push(packet(10, None, 1, true));
    rig.run(1000);
    assert_eq!(rig.told[3..], [Told::Sent(102, 2), Told::Ack(102)], "without a time it follows");
}

#[test]
fn a_time_passed_within_a_burst_is_no_reason_to_drop_what_came_in_time() {
    let mut rig = Rig::new(LatePolicy::NextPacket);
    rig.push(packet(10, Some(20), 2, false));
    rig.push(packet(10, Some(21), 1, true));
    rig.run(100);
    let want = [Told::Sent(20, 0), Told::Sent(21, 1), Told::Sent(22, 2), Told::Ack(22)];
    assert_eq!(rig.told, want);
}

#[test]
fn an_event_is_due_when_the_data_end_or_patience_does() {
    let mut channel = TxChannel::new();
    let head = packet(10, None, 5, false);
    assert_eq!(channel.next_event(&keeper(), None, 0), None, "idle");
    assert_eq!(channel.next_event(&keeper(), Some(head), 0), Some(15));
    assert_eq!(channel.next_event(&keeper(), Some(head), 100), Some(110));
    assert!(channel.step(&keeper(), LatePolicy::NextPacket, Some(head), 15).is_some());
    assert_eq!(channel.next_event(&keeper(), None, 0), Some(16), "the underflow");
}

#[test]
fn a_radio_with_cycles_takes_whole_ones_from_each_packet() {
    let mut rig = Rig::new(LatePolicy::NextPacket);
    rig.channel = TxChannel::new().with_cycle(4);
    let packet = |timestamp, samples, eob| TxPacket { arrived: 0, timestamp, samples, eob };
    rig.push(packet(Some(101), 5, false));
    rig.push(packet(None, 2, true));
    rig.push(packet(None, 1, true));
    rig.run(1_000);
    let sent = |tick: u64, first: u64, count: u64| {
        (0..count).map(move |n| Told::Sent(tick + n, first + n))
    };
    let want: Vec<_> = sent(104, 0, 5)
        .chain(sent(112, 5, 2))
        .chain([Told::Ack(113)])
        .chain(sent(116, 7, 1))
        .chain([Told::Ack(116)])
        .collect();
    assert_eq!(rig.told, want);
}
