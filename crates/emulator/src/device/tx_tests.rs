//! Tests of the transmit side of the whole device on simulated time, with a host in the test.

use super::test_bench::*;
use millstream_wire::chdr::{DataRepr, Packet, PacketType};
use millstream_wire::stream::{CommandOp, SequenceGap, StatusRepr, StreamCondition};
use proptest::prelude::*;
use std::collections::VecDeque;

/// Periods of packets that are never over.
const NO_PACKETS: u64 = 0xff_ffff;

const UNDERRUN: u32 = 1;
const LATE: u32 = 2;
const BURST_ACK: u32 = 3;
/// Bytes of header and time of a packet.
const HEADER_BYTES: u64 = 16;

fn emit(op: CommandOp, counts: (u64, u64)) -> Vec<u8> {
    stream_command(op, counts.0, counts.1)
}

fn numbered(mut packet: Vec<u8>, seq: u16) -> Vec<u8> {
    packet[4..6].copy_from_slice(&seq.to_le_bytes());
    packet
}

fn samples(seq: u16, timestamp: Option<u64>, count: usize, eob: bool) -> Vec<u8> {
    let payload_len = 4 * count;
    samples_from(0, DataRepr { seq, timestamp, eob, payload_len, ..DataRepr::default() })
}

fn statuses(sent: &[Vec<u8>]) -> Vec<StatusRepr> {
    let parse = |packet: &Vec<u8>| StatusRepr::parse(&Packet::parse(packet, Width::W64).ok()?).ok();
    sent.iter().filter_map(parse).collect()
}

/// Returns event code and time of the asynchronous messages among `sent`.
fn told(sent: &[Vec<u8>]) -> Vec<(u32, u64)> {
    let pair = |message: CtrlRepr| (message.data.first(), message.timestamp.unwrap());
    messages(sent).into_iter().map(pair).collect()
}

/// Returns a radio with a transmit stream that reports every `period` bytes.
fn bench(period: u64) -> Bench {
    let mut bench = Bench::new();
    bench.connect();
    let sent = bench.receive(&emit(CommandOp::Init, (period, NO_PACKETS)));
    let status = statuses(&sent)[0];
    assert_eq!((status.dst_epid, status.status), (Epid(STREAM), StreamCondition::Ok));
    assert_eq!(status.capacity_bytes, 4 * TX_BUFFER_SAMPLES - 1);
    bench
}

/// The bytes of packets behind the endpoint's buffer, in the radio block.
const BEHIND: u64 = 8192;

#[test]
fn credit_comes_back_when_samples_have_left_the_endpoint_for_the_radios_own_buffer() {
    let mut bench = bench(1_000);
    let packet = HEADER_BYTES + 400;
    // Only the first packet has a time; the others are a word shorter.
    let room = 1 + (BEHIND - packet) / (packet - 8);
    let mut credited = Vec::new();
    for seq in 0..room + 10 {
        let packet = samples(seq as u16, (seq == 0).then_some(500), 100, seq == room + 9);
        credited.extend(statuses(&bench.receive(&packet)));
    }
    assert_eq!(credited.len() as u64, room / 3, "one report per period");
    // The period is over in the third packet, of which a part has left then.
    let bytes = (credited[0].count_packets, credited[0].count_bytes);
    assert_eq!(bytes, (2, 1_000 + 80));
    assert!(statuses(&bench.run(599)).is_empty(), "no packet has left the radio");
    let rest = bench.run(500 + 100 * (room + 11));
    assert_eq!(statuses(&rest).len() as u64, (room + 10) / 3 - room / 3);
    assert_eq!(told(&rest), [(BURST_ACK, 499 + 100 * (room + 10) + 2)]);
    let counters = bench.counters.snapshot();
    assert_eq!((counters.tx_samples, counters.tx_bursts), (100 * (room + 10), 1));
    assert_eq!((counters.tx_burst_acks, counters.tx_underflows), (1, 0));
}

#[test]
fn transmitting_allocates_nothing() {
    let mut bench = bench(1_000);
    bench.send_by(passing(|_, _| {}));
    let packets: Vec<_> = (0..10_000).map(|seq| samples(seq, None, 100, false)).collect();
    let before = millstream_testkit::allocations();
    for packet in &packets {
        bench.device.receive(packet, HOST, bench.now_ns);
        bench.device.advance(bench.now_ns);
        bench.now_ns += 100 * US;
    }
    assert_eq!(millstream_testkit::allocations(), before);
    let counters = bench.counters.snapshot();
    assert_eq!((counters.tx_samples, counters.tx_underflows), (999_900, 0));
}

/// Returns a radio whose own buffer is full, and the number of the next packet.
fn full(period: u64) -> (Bench, u16) {
    let mut bench = bench(period);
    let packets = (BEHIND / (HEADER_BYTES + 400)) as u16;
    (0..=packets).for_each(|seq| drop(bench.receive(&samples(seq, Some(500), 100, false))));
    (bench, packets + 1)
}

#[test]
fn commands_are_answered_when_they_come_out_of_the_endpoints_buffer() {
    let (mut bench, packets) = full(1 << 30);
    assert!(bench.receive(&emit(CommandOp::Ping, (0, 0))).is_empty());
    let resync = numbered(emit(CommandOp::Resync, (5_000, 9)), 1);
    assert!(bench.receive(&resync).is_empty());
    assert!(statuses(&bench.run(599)).is_empty());
    let sent = statuses(&bench.run(600));
    let counts: Vec<_> = sent.iter().map(|one| (one.count_packets, one.count_bytes)).collect();
    let packets = u64::from(packets);
    assert_eq!(counts, [(packets + 1, 416 * packets + 24), (9, 5_000)]);
}

/// Returns count, kind, expected number and received number of the sequence errors in `sent`.
fn gaps(sent: &[Vec<u8>]) -> Vec<(u64, u8, u16, u16)> {
    let errors = statuses(sent).into_iter().filter(|s| s.status == StreamCondition::SequenceError);
    let detail = |status: StatusRepr| {
        let gap = SequenceGap::from_info(status.error_info).unwrap();
        (status.count_packets, gap.kind.code(), gap.expected, gap.actual)
    };
    errors.map(detail).collect()
}

#[test]
fn a_sequence_error_is_reported_when_its_packet_comes_out_of_the_endpoints_buffer() {
    let (mut bench, next) = full(1 << 30);
    assert!(bench.receive(&samples(next + 2, None, 100, true)).is_empty());
    assert!(statuses(&bench.run(599)).is_empty());
    // Without a period, nothing else makes the device look before the data end.
    assert_eq!(gaps(&bench.run(2_600)), [(next.into(), 6, next, next + 2)]);
    assert_eq!(bench.counters.snapshot().tx_sequence_errors, 1);
    bench.run(3_000);
    assert_eq!(bench.counters.snapshot().tx_samples, 100 * (u64::from(next) + 1));
}

#[test]
fn what_comes_twice_is_transmitted_twice_and_reported() {
    let mut bench = bench(1 << 30);
    let mut send = |seqs: &[u16], last| {
        let send = |&seq| gaps(&bench.receive(&samples(seq, None, 100, seq == last)));
        seqs.iter().flat_map(send).collect::<Vec<_>>()
    };
    assert_eq!(send(&[0, 1, 1, 2], 2), [(2, 6, 2, 1)]);
    // A late copy of the first makes a gap before it and one behind it.
    assert_eq!(send(&[3, 0, 4], 4), [(5, 6, 4, 0), (6, 6, 1, 4)]);
    bench.run(2_000);
    assert_eq!(bench.counters.snapshot().tx_samples, 700);
}

#[test]
fn commands_that_are_missing_or_come_twice_are_reported_too() {
    let mut bench = bench(1 << 30);
    let command = |seq| numbered(emit(CommandOp::Ping, (0, 0)), seq);
    let found = [5, 6, 6, 8].map(|seq| gaps(&bench.receive(&command(seq)))).concat();
    assert_eq!(found, [(3, 2, 7, 6), (4, 2, 7, 8)]);
}

#[test]
fn what_exceeds_the_buffer_is_lost_and_the_next_packet_shows_it() {
    let mut bench = bench(1 << 30);
    let packet = HEADER_BYTES + 400;
    let fit = 4 * TX_BUFFER_SAMPLES / packet + BEHIND / packet;
    for seq in 0..fit + 2 {
        assert!(bench.receive(&samples(seq as u16, Some(500), 100, false)).is_empty());
    }
    let counters = bench.counters.snapshot();
    assert_eq!((counters.tx_overflow_packets, counters.tx_overflow_samples), (2, 200));
    bench.receive(&samples(fit as u16 + 2, None, 1, true));
    assert_eq!(gaps(&bench.run(10_000)), [(fit + 1, 6, fit as u16, fit as u16 + 2)]);
}

#[test]
fn late_packets_are_dropped_by_policy_and_told() {
    for (policy, want) in [(1, vec![LATE, LATE, BURST_ACK]), (2, vec![LATE, BURST_ACK])] {
        let mut bench = bench(1 << 30);
        bench.write(0x1044, policy, None);
        bench.now_ns = 1_000 * US;
        bench.receive(&samples(0, Some(900), 10, false));
        bench.receive(&samples(1, Some(910), 10, true));
        bench.receive(&samples(2, Some(1_100), 10, true));
        let sent = told(&bench.run(2_000));
        assert_eq!(sent.iter().map(|one| one.0).collect::<Vec<_>>(), want);
        assert_eq!((sent[0].1, sent.last().unwrap().1), (1_000, 1_111));
        let counters = bench.counters.snapshot();
        assert_eq!(counters.tx_late_samples + counters.tx_skipped_samples, 20);
        assert_eq!((counters.tx_samples, counters.tx_late_packets), (10, 3 - u64::from(policy)));
    }
}

#[test]
fn a_bare_end_of_burst_is_one_sample() {
    let mut bench = bench(1 << 30);
    bench.now_ns = 1_000 * US;
    bench.receive(&samples(0, None, 100, false));
    bench.run(1_050);
    bench.receive(&samples(1, None, 1, true));
    assert_eq!(told(&bench.run(2_000)), [(BURST_ACK, 1_102)]);
    bench.receive(&samples(2, None, 100, false));
    assert_eq!(told(&bench.run(3_000)), [(UNDERRUN, 2_102)], "without one it runs dry");
}

#[test]
fn a_flush_drops_what_waits_and_data_of_no_stream_are_not_taken() {
    use millstream_wire::mgmt::Op as Hop;
    let mut bench = bench(1 << 30);
    bench.receive(&samples(0, Some(900), 10, false));
    let flush = millstream_wire::regs::sep::RESET_AND_FLUSH;
    bench.set(&[&[Hop::Nop], &[Hop::SelDest(1)]], flush, 7);
    bench.receive(&samples(1, Some(900), 10, false));
    bench.run(2_000);
    bench.device.note_losses(0);
    let counters = bench.counters.snapshot();
    assert_eq!((counters.tx_flushed_samples, counters.chdr_unexpected), (10, 1));
    assert_eq!((counters.tx_samples, counters.tx_packets), (0, 1));
}

#[test]
fn a_flush_of_the_radio_block_gives_the_room_back_and_obeys_the_commands() {
    let (mut bench, packets) = full(1 << 30);
    bench.receive(&emit(CommandOp::Ping, (0, 0)));
    let flush = millstream_wire::regs::client_zero::FLUSH;
    let block = 0x40 * u32::from(bench.device.image.index_of(0)) + 0x04;
    let request = bench.request(0, Op::Write, block, flush, None);
    let mut buffer = [0; 128];
    let length = request.emit(Width::W64, &mut buffer).unwrap();
    let answered = statuses(&bench.receive(&buffer[..length]));
    let packets = u64::from(packets);
    let bytes = packets * (HEADER_BYTES + 400) + 24;
    assert_eq!((answered[0].count_packets, answered[0].count_bytes), (packets + 1, bytes));
    bench.device.note_losses(0);
    let counters = bench.counters.snapshot();
    assert_eq!((counters.tx_flushed_samples, counters.tx_waiting_samples), (100 * packets, 0));
}

#[test]
fn times_inside_a_burst_are_not_used_and_lost_packets_move_the_rest_forward() {
    // As UHD counts at twice the rate at which it opened.
    for seqs in [[0, 1, 2], [0, 1, 3]] {
        let mut bench = bench(1 << 30);
        for (seq, time) in seqs.into_iter().zip([500, 520, 540]) {
            bench.receive(&samples(seq, Some(time), 10, time == 540));
        }
        assert_eq!(told(&bench.run(2_000)), [(BURST_ACK, 529 + 2)]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// For any packets of a host at any time, every sample is in exactly one count.
    #[test]
    fn the_counts_of_samples_balance(
        steps in prop::collection::vec(
            (0u64..3_000, prop::option::of(-500i64..4_000), 0usize..900, any::<bool>(), 0u8..40),
            1..60),
        policy in 1u32..3,
    ) {
        use millstream_wire::mgmt::Op as Hop;
        let mut bench = bench(1_000);
        bench.write(0x1044, policy, None);
        for (seq, (wait, ahead, count, eob, chance)) in steps.into_iter().enumerate() {
            let now = bench.now_ns / US;
            bench.run(now + wait);
            let time = ahead.map(|ahead| (now + wait).saturating_add_signed(ahead));
            bench.receive(&samples(seq as u16, time, count, eob));
            if chance == 0 {
                let flush = millstream_wire::regs::sep::RESET_AND_FLUSH;
                bench.set(&[&[Hop::Nop], &[Hop::SelDest(1)]], flush, 7);
                bench.receive(&emit(CommandOp::Init, (1_000, NO_PACKETS)));
            }
            bench.device.note_losses(0);
            let counters = bench.counters.snapshot();
            let accounted = counters.tx_samples
                + counters.tx_waiting_samples
                + counters.tx_late_samples
                + counters.tx_skipped_samples
                + counters.tx_flushed_samples
                + counters.tx_overflow_samples;
            prop_assert_eq!(counters.tx_bytes / 4, accounted);
        }
    }
}

/// A host that sends whenever its window allows, `one_way_ns` away from the radio.
struct DistantHost {
    bench: Bench,
    one_way_ns: u64,
    /// The packets in flight, with their arrival times.
    to_radio: VecDeque<(u64, Vec<u8>)>,
    to_host: VecDeque<(u64, Vec<u8>)>,
    sent: (u64, u16),
    acknowledged_bytes: u64,
    /// It sends nothing in this period.
    stall_ns: std::ops::Range<u64>,
}

impl DistantHost {
    const SAMPLES: usize = 1_990;
    const START_TICK: u64 = 1_000_000;

    /// Returns a host with the talk's 64k samples per channel, at the rate of its fastest radio.
    fn new(round_trip_us: u64, stall_ns: std::ops::Range<u64>) -> Self {
        let mut bench = Bench::with(250e6, 64 * 1024);
        bench.connect();
        let capacity = statuses(&bench.receive(&emit(CommandOp::Init, (0, 0))))[0].capacity_bytes;
        bench.receive(&emit(CommandOp::Init, (capacity.div_ceil(8), NO_PACKETS)));
        Self {
            bench,
            one_way_ns: round_trip_us * US / 2,
            to_radio: VecDeque::new(),
            to_host: VecDeque::new(),
            sent: (0, 0),
            acknowledged_bytes: 0,
            stall_ns,
        }
    }

    fn send(&mut self, now_ns: u64) {
        let flow_bytes = HEADER_BYTES + 4 * Self::SAMPLES as u64;
        let window = 4 * 64 * 1024 - 1;
        while !self.stall_ns.contains(&now_ns)
            && self.sent.0 + flow_bytes - self.acknowledged_bytes <= window
        {
            let time = (self.sent.1 == 0).then_some(Self::START_TICK);
            let packet = samples(self.sent.1, time, Self::SAMPLES, false);
            self.to_radio.push_back((now_ns + self.one_way_ns, packet));
            self.sent = (self.sent.0 + flow_bytes, self.sent.1 + 1);
        }
    }

    /// Runs both ends up to `until_ns`; returns the radio's messages.
    fn run(&mut self, until_ns: u64) -> Vec<(u32, u64)> {
        let (mut events, mut now_ns) = (Vec::new(), self.bench.now_ns);
        while now_ns < until_ns {
            while self.to_host.front().is_some_and(|one| one.0 <= now_ns) {
                let (_, packet) = self.to_host.pop_front().unwrap();
                let counts = statuses(&[packet]).into_iter().map(|status| status.count_bytes);
                self.acknowledged_bytes = counts.chain([self.acknowledged_bytes]).max().unwrap();
            }
            self.send(now_ns);
            while self.to_radio.front().is_some_and(|one| one.0 <= now_ns) {
                self.bench.device.receive(&self.to_radio.pop_front().unwrap().1, HOST, now_ns);
            }
            let deadline_ns = self.bench.device.advance(now_ns);
            let sent = self.bench.take_sent();
            events.extend(told(&sent));
            let arrival_ns = now_ns + self.one_way_ns;
            let is_status = |packet: &Vec<u8>| {
                Packet::parse(packet, Width::W64).unwrap().kind() == PacketType::StreamStatus
            };
            self.to_host.extend(sent.into_iter().filter(is_status).map(|one| (arrival_ns, one)));
            let next = [self.to_host.front(), self.to_radio.front()].into_iter().flatten();
            let next = next.map(|one| one.0).chain([deadline_ns, self.stall_ns.end]);
            now_ns = next.filter(|&at| at > now_ns).min().unwrap_or(until_ns).max(now_ns + 1);
        }
        self.bench.now_ns = now_ns;
        events
    }
}

/// Runs 8 ms of transmission with this round trip; returns the underflows.
fn underflows(round_trip_us: u64, stall_us: u64) -> usize {
    let begin = 6_000 * US;
    let mut host = DistantHost::new(round_trip_us, begin..begin + stall_us * US);
    let events = host.run(12_000 * US);
    assert!(host.bench.counters.snapshot().tx_samples > 1_000_000);
    events.iter().filter(|(code, _)| *code == UNDERRUN).count()
}

#[test]
fn sixty_four_thousand_samples_at_250_ms_hold_for_80_us_and_fail_for_300_us() {
    // 65 536 samples last 262 us (D35); a report may be late by an eighth of that.
    assert_eq!(underflows(80, 0), 0);
    assert_eq!(underflows(200, 0), 0);
    assert!(underflows(300, 0) > 10, "every window of it");
}

#[test]
fn a_stall_of_the_host_is_one_underflow_when_it_outlasts_the_buffer() {
    assert_eq!(underflows(20, 150), 0);
    assert_eq!(underflows(20, 400), 1);
}
