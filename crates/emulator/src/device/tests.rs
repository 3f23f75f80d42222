//! Tests of the whole device on simulated time, with a host in the test.

use super::test_bench::*;
use super::*;
use crate::antenna::RampAntenna;
use crate::personality::{DeviceKind, ImageOptions};
use millstream_testkit::allocations;
use millstream_wire::chdr::Packet;
use millstream_wire::ctrl::ControlStatus;
use millstream_wire::regs::client_zero::index_register;
use millstream_wire::stream::{CommandOp, CommandRepr};
use proptest::prelude::*;

#[test]
fn each_packet_leaves_when_the_clock_passes_its_last_sample() {
    let mut bench = Bench::streaming(RATE_HZ);
    bench.now_ns = 1_000 * US;
    bench.write(0x1014, 2, None);
    for packet in 0..50u64 {
        let last = 1_000 + (packet + 1) * 100;
        assert_eq!(data(&bench.run(last - 1)).len(), 0, "packet {packet} is not complete");
        let sent = data(&bench.run(last));
        assert_eq!(sent.len(), 1);
        assert_eq!(sent[0].timestamp, Some(last - 100));
        assert_eq!(u64::from(sent[0].seq), packet);
    }
}

#[test]
fn packets_that_come_fast_leave_together() {
    // 20 samples in a microsecond, 10 packets in 50.
    let mut bench = Bench::streaming(20e6);
    bench.now_ns = 1_000 * US;
    bench.write(0x1014, 2, None);
    for train in 1..20 {
        let until = 1_000 + train * 50;
        assert_eq!(data(&bench.run(until - 1)).len(), 0, "train {train} is not complete");
        assert_eq!(data(&bench.run(until)).len(), 10);
    }
}

#[test]
fn the_end_of_a_burst_waits_for_nothing() {
    let mut bench = Bench::streaming(20e6);
    bench.now_ns = 1_000 * US;
    bench.write(0x101C, 0, None);
    bench.write(0x1018, 300, None);
    bench.write(0x1014, 1, None);
    assert_eq!(data(&bench.run(1_014)).len(), 0);
    let sent = data(&bench.run(1_015));
    assert_eq!((sent.len(), sent[2].eob), (3, true));
}

#[test]
fn a_short_packet_ends_its_train_and_a_longer_one_begins_another() {
    let mut bench = Bench::streaming(RATE_HZ);
    bench.write(0x101C, 0, None);
    for count in [10, 250] {
        bench.write(0x1018, count, None);
        bench.write(0x1014, 1, None);
    }
    bench.now_ns = 1_000 * US;
    let sent = data(&bench.run(1_000));
    let seen: Vec<_> = sent.iter().map(|packet| (packet.payload_len / 4, packet.eob)).collect();
    assert_eq!(seen, [(10, true), (100, false), (100, false), (50, true)]);
}

#[test]
fn a_hiccup_is_made_up_for_in_one_burst_without_a_hole() {
    let mut bench = Bench::streaming(RATE_HZ);
    bench.write(0x1014, 2, None);
    bench.run(250);
    bench.now_ns = 4_321 * US;
    let sent = data(&bench.run(4_321));
    assert_eq!(sent.len(), 41);
    assert_eq!(sent[0].timestamp, Some(200));
    assert!(sent.windows(2).all(|w| w[1].timestamp == w[0].timestamp.map(|tick| tick + 100)));
    assert_eq!(bench.counters.snapshot().rx_overruns, 0);
}

#[test]
fn no_data_leaves_beyond_the_window_and_credit_lets_it_go_on() {
    let mut bench = Bench::new();
    bench.connect();
    let capacity = 5 * PACKET_BYTES as u64 + 100;
    bench.open_stream(capacity);
    bench.write(0x1014, 2, None);
    assert_eq!(data(&bench.run(2_000)).len(), 5);
    assert_eq!(bench.counters.snapshot().rx_credit_stalls, 1);
    bench.credit(capacity, 2 * PACKET_BYTES as u64, 2);
    let sent = bench.run(2_000);
    assert_eq!(data(&sent).iter().map(|packet| packet.seq).collect::<Vec<_>>(), [5, 6]);
    // The sixth packet exceeds one capacity, so a resync follows it, and is counted.
    let resync = CommandRepr::parse(&Packet::parse(&sent[1], Width::W64).unwrap()).unwrap();
    assert_eq!((resync.op, resync.seq, resync.packets), (CommandOp::Resync, 0, 6));
    bench.credit(capacity, 7 * PACKET_BYTES as u64 + 24, 8);
    assert_eq!(data(&bench.run(2_000))[0].seq, 7);
}

#[test]
fn streaming_allocates_nothing() {
    let mut bench = Bench::streaming(RATE_HZ);
    bench.write(0x1014, 2, None);
    bench.run(1_000);
    let counters = bench.counters.clone();
    bench.send_by(passing(|_, _| {}));
    let mut advance = |times| {
        for _ in 0..times {
            let deadline_ns = bench.device.advance(bench.now_ns);
            bench.now_ns = bench.now_ns.max(deadline_ns);
        }
    };
    // The port allocates its memory with the first packets.
    advance(100);
    let (before, packets) = (allocations(), counters.snapshot().rx_packets);
    advance(10_000);
    assert!(counters.snapshot().rx_packets > packets + 4_000);
    assert_eq!(allocations(), before);
}

#[test]
fn a_finite_acquisition_ends_with_eob_and_exactly_its_samples() {
    let mut bench = Bench::streaming(RATE_HZ);
    bench.write(0x1018, 1_050, None);
    bench.write(0x1014, 1, None);
    let sent = data(&bench.run(5_000));
    assert_eq!(sent.iter().map(|packet| packet.payload_len).sum::<usize>(), 4 * 1_050);
    assert_eq!(sent.len(), 11);
    assert!(sent[10].eob && sent[..10].iter().all(|packet| !packet.eob));
}

#[test]
fn a_timed_start_is_exact_and_a_late_one_is_reported() {
    let mut bench = Bench::streaming(RATE_HZ);
    bench.write(0x1018, 100, None);
    bench.write(0x1020, 7_777, None);
    bench.write(0x1014, 0x8000_0001, None);
    assert_eq!(data(&bench.run(9_000))[0].timestamp, Some(7_777));
    bench.write(0x1014, 0x8000_0001, None);
    let sent = bench.run(9_100);
    assert!(data(&sent).is_empty());
    let told = messages(&sent);
    assert_eq!(told.len(), 1);
    assert_eq!((told[0].address, told[0].data.first()), (0x1000, 1));
    assert_eq!((told[0].dst_epid, told[0].src_epid), (Epid(CONTROL), Epid(SEP)));
    assert_eq!((told[0].dst_port, told[0].timestamp), (2, Some(9_000)));
    assert_eq!(bench.counters.snapshot().rx_late_commands, 1);
}

#[test]
fn an_overrun_is_reported_closed_with_eob_and_the_stream_can_restart() {
    let mut bench = Bench::new();
    bench.connect();
    let capacity = 5 * PACKET_BYTES as u64;
    bench.open_stream(capacity);
    bench.write(0x1014, 2, None);
    let sent = bench.run(20_000);
    assert_eq!(data(&sent).len(), 5);
    let told = messages(&sent);
    assert_eq!(told.len(), 1, "told once");
    assert_eq!((told[0].address, told[0].data.first()), (0x1000, 2));
    // 500 samples were sent, 5000 are in the buffer.
    assert_eq!(told[0].timestamp, Some(5_499));
    // UHD's recovery: stop, read the buffered samples, restart slightly later.
    bench.write(0x1014, 0, None);
    bench.write(0x1020, 30_000, None);
    bench.write(0x1014, 0x8000_0002, None);
    let (mut rest, mut bytes, mut packets) = (Vec::new(), 5 * PACKET_BYTES as u64, 5);
    for step in 0..30 {
        bench.credit(capacity, bytes, packets);
        let sent = bench.run(20_001 + step);
        for packet in &sent {
            bytes += packet.len().next_multiple_of(8) as u64;
            packets += 1;
        }
        rest.extend(data(&sent));
    }
    assert_eq!(rest.len(), 50);
    assert_eq!(rest[49].timestamp, Some(5_400));
    assert!(rest[49].eob);
    let restarted = data(&bench.run(30_100));
    assert_eq!(restarted[0].timestamp, Some(30_000));
    assert_eq!(restarted[0].seq, 55, "sequence numbers continue");
}

#[test]
fn stop_ends_the_stream_with_eob() {
    let mut bench = Bench::streaming(RATE_HZ);
    bench.write(0x1014, 2, None);
    bench.run(250);
    bench.write(0x1014, 0, None);
    let sent = data(&bench.run(5_000));
    assert_eq!(sent.len(), 1);
    assert_eq!((sent[0].eob, sent[0].payload_len), (true, 51 * 4), "up to the sample of the stop");
}

#[test]
fn timed_requests_wait_and_acknowledgements_keep_the_order() {
    let mut bench = Bench::new();
    bench.connect();
    assert!(bench.write(0x1040, 0xaa, Some(500)).is_some(), "registers of a channel know no time");
    assert!(bench.write(0x8_0000, 5, Some(500)).is_some(), "the front end gets it with its time");
    assert_eq!(bench.write(0x4, 0, Some(500)), None);
    assert_eq!(bench.write(0x1040, 0xbb, None), None, "behind the timed one");
    let first = bench.ctrl_seq - 1;
    assert!(bench.run(499).is_empty());
    let acks: Vec<_> = bench.run(500).iter().map(|packet| control_of(packet)).collect();
    assert_eq!(acks.iter().map(|ack| ack.ctrl_seq).collect::<Vec<_>>(), [first, first + 1]);
    let read = bench.request(2, Op::Read, 0x103C, 0, None);
    assert_eq!(bench.control(read)[0].data.first(), 0xbb);
}

#[test]
fn unknown_operations_are_command_errors_and_unknown_registers_are_0() {
    let mut bench = Bench::new();
    bench.connect();
    let poll = bench.request(2, Op::Poll, 0x1000, 7, None);
    let answer = bench.control(poll)[0];
    assert_eq!((answer.status, answer.data.first()), (ControlStatus::CommandError, 7));
    for request in
        [bench.request(0, Op::Read, 0x14, 0, None), bench.request(9, Op::Read, 0, 0, None)]
    {
        let answer = bench.control(request)[0];
        assert_eq!((answer.status, answer.data.first()), (ControlStatus::Ok, 0));
    }
    assert_eq!(bench.counters.snapshot().control_bad_registers, 2);
}

#[test]
fn a_silent_radio_block_answers_again_after_a_reset_of_control_and_data() {
    let mut bench = Bench::new();
    bench.connect();
    let alive = |bench: &mut Bench| bench.write(0x1040, 5, None).is_some();
    let reset = |bench: &mut Bench, bits| {
        for word in [0, bits, 0] {
            bench.write_block(0, 0xC4, word, None).unwrap();
        }
    };
    let unknown = |bench: &mut Bench| assert_eq!(bench.write(0x2000, 0, None), None);
    let unsolicited = |bench: &mut Bench| {
        let message = CtrlRepr { is_ack: true, ..bench.request(2, Op::Write, 0x1000, 1, None) };
        assert!(bench.control(message).is_empty());
    };
    let causes: [&dyn Fn(&mut Bench); 2] = [&unknown, &unsolicited];
    for cause in causes {
        assert!(alive(&mut bench));
        cause(&mut bench);
        assert!(!alive(&mut bench));
        reset(&mut bench, 2);
        assert!(!alive(&mut bench));
        reset(&mut bench, 6);
    }
    assert!(alive(&mut bench));
}

#[test]
fn after_a_power_failure_a_radio_is_silent_and_knows_nobody() {
    let mut bench = Bench::streaming(RATE_HZ);
    bench.write(0x1014, 2, None);
    assert!(!bench.run(1_000).is_empty());
    bench.device.execute(DeviceCommand::PowerCycle(bench.device.keeper));
    assert!(bench.run(9_000).is_empty());
    let request = bench.request(0, Op::Read, 0, 0, None);
    assert!(bench.control(request).is_empty(), "routes are gone");
}

proptest! {
    /// Bytes and their plausible mutations: no panic, and every datagram is counted.
    #[test]
    fn hostile_datagrams_do_no_harm(
        noise in prop::collection::vec(any::<u8>(), 0..200),
        kind in 0u8..8,
        dst in 0u16..4,
        tail in prop::collection::vec(any::<u8>(), 0..120),
    ) {
        let mut bench = Bench::new();
        bench.connect();
        bench.open_stream(1 << 20);
        bench.write(0x1014, 2, None);
        bench.receive(&noise);
        let mut packet = vec![dst as u8, 0, 0, 0, 0, 0, kind << 5, 0];
        packet.extend(&tail);
        packet[2] = packet.len() as u8;
        bench.receive(&packet);
        bench.run(1_000);
        prop_assert!(bench.counters.snapshot().chdr_datagrams >= 2);
        // The radio still answers, unless the packet was a valid command to stop that.
        if kind != 0 {
            let request = bench.request(0, Op::Read, 0x0C, 0, None);
            prop_assert_eq!(bench.control(request)[0].data.first(), 0xE320_0000);
        }
    }
}

#[test]
fn a_command_of_the_far_future_burns_no_time() {
    let mut bench = Bench::new();
    bench.connect();
    bench.now_ns = 1_000 * US;
    for at in [1 << 40, 1 << 63, (1 << 63) + 5_000, u64::MAX] {
        let read = bench.request(2, Op::Read, 0x4, 0, Some(at));
        assert!(bench.control(read).is_empty(), "it is not due");
        let deadline_ns = bench.device.advance(bench.now_ns);
        assert!(deadline_ns > bench.now_ns + 1_000_000_000, "{at:#x}: {deadline_ns}");
        bench.device.execute(DeviceCommand::PowerCycle(bench.device.keeper));
        bench.connect();
    }
}

#[test]
fn a_channel_that_lags_does_not_starve_the_other() {
    let mut bench = Bench::streaming(RATE_HZ);
    // Single samples: far more packets than one call sends.
    bench.write(0x1028, 1, None);
    bench.write(0x1014, 2, None);
    bench.now_ns = 4_000 * US;
    // A timed command for the other channel is due now.
    bench.write(0x10a0, 4_100, None);
    bench.write(0x1094, 0x8000_0002, None);
    bench.now_ns = 4_200 * US;
    let deadline_ns = bench.device.advance(bench.now_ns);
    assert_eq!(deadline_ns, bench.now_ns, "the first channel has more to send");
    assert_eq!(bench.counters.snapshot().rx_commands, 2, "the second one has started");
}

#[test]
fn every_block_of_every_device_can_be_flushed_and_reset() {
    for device in DeviceKind::ALL {
        let ramp = || AntennaSource::Signal(Box::new(RampAntenna));
        let sources = (0..device.channels()).map(|_| ramp()).collect();
        let options = ImageOptions { extra_blocks: true, ..ImageOptions::default() };
        let mut bench = Bench::with_image(device, options, sources, RATE_HZ, TX_BUFFER_SAMPLES);
        bench.connect();
        let image = bench.device.image.clone();
        for number in 0..image.blocks.len() {
            let register = index_register(image.index_of(number as u16), 4);
            for bits in [0, 1, 0, 6, 0] {
                assert!(
                    bench.write_block(0, register, bits, None).is_some(),
                    "{device:?} {number}"
                );
            }
        }
    }
}
