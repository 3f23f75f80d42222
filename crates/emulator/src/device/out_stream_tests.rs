use super::*;
use proptest::prelude::*;

const SEP: Epid = Epid(2);

fn status(capacity_bytes: u64, count_bytes: u64, count_packets: u64) -> StatusRepr {
    StatusRepr {
        src_epid: Epid(7),
        capacity_bytes,
        capacity_packets: 0xff_ffff,
        count_bytes,
        count_packets,
        ..StatusRepr::default()
    }
}

fn open(capacity_bytes: u64) -> OutStream {
    let mut stream = OutStream {
        dst_epid: Epid(7),
        period_bytes: capacity_bytes.div_ceil(32),
        period_packets: 0xff_ffff,
        ..OutStream::default()
    };
    let init = stream.configure(StreamCtrl::from_word(0x0B), SEP).unwrap();
    assert_eq!((init.op, init.bytes), (CommandOp::Init, capacity_bytes.div_ceil(32)));
    assert_eq!((init.dst_epid, init.src_epid, init.seq), (Epid(7), SEP, 0));
    assert_eq!(stream.status_word(), STATUS_SETUP_PENDING | 0x0A);
    assert_eq!(stream.packets_allowed(100), 0, "no data before the host's answer");
    stream.accept_status(&status(capacity_bytes, 0, 0)).unwrap();
    assert_eq!(stream.status_word(), STATUS_FC_ENABLED | 0x0A);
    stream
}

/// As in the recorded exchange 33.
#[test]
fn an_answer_that_refuses_or_is_another_ones_is_a_setup_error_and_the_numbers_go_on() {
    let mut stream = OutStream { dst_epid: Epid(7), period_bytes: 100, ..OutStream::default() };
    let begin = |stream: &mut OutStream| stream.configure(StreamCtrl::from_word(0x0B), SEP);
    for (seq, answer) in [
        (0, StatusRepr { status: StreamCondition::CommandError, ..status(1000, 0, 0) }),
        (1, StatusRepr { src_epid: Epid(9), ..status(4444, 0, 0) }),
    ] {
        assert_eq!(begin(&mut stream).map(|init| init.seq), Some(seq));
        stream.accept_status(&answer).unwrap();
        assert_eq!(stream.status_word(), STATUS_SETUP_ERROR | 0x0A);
        assert_eq!(stream.capacity(), (answer.capacity_bytes, 0xff_ffff));
        assert_eq!(stream.packets_allowed(8), 0);
    }
    assert_eq!(begin(&mut stream).map(|init| init.seq), Some(2));
    assert_eq!(stream.status_word(), STATUS_SETUP_PENDING | 0x0A);
    stream.accept_status(&status(0, 0, 0)).unwrap();
    assert_eq!((stream.status_word(), stream.packets_allowed(8)), (STATUS_FC_ENABLED | 0x0A, 0));
    assert_eq!(begin(&mut stream).map(|init| init.seq), Some(0));
}

#[test]
fn a_period_of_zero_switches_flow_control_off() {
    let mut stream = OutStream { dst_epid: Epid(7), ..OutStream::default() };
    let init = stream.configure(StreamCtrl::from_word(0x0B), SEP).unwrap();
    assert_eq!((init.bytes, init.packets), (0, 0));
    stream.accept_status(&status(0, 0, 0)).unwrap();
    assert_eq!(stream.status_word(), 0x0A);
    assert_eq!(stream.packets_allowed(8000), u64::MAX);
    assert!(!stream.resync_due());
}

#[test]
fn headroom_is_left_unused() {
    let mut stream = open(1000);
    stream.headroom_bytes = 200;
    assert_eq!(stream.packets_allowed(100), 800 / 104);
    stream.headroom_packets = 0xff;
    stream.capacity_packets = 0x100;
    assert_eq!(stream.packets_allowed(100), 1);
}

#[test]
fn far_more_than_was_sent_is_invalid_and_a_little_more_is_all_of_it() {
    for (bytes, packets) in [(1105, 1), (u64::MAX, 1), (104, 0xff_ffff + 2), (104, 1 << 39)] {
        let mut stream = open(1000);
        stream.send_data(100);
        assert_eq!(stream.accept_status(&status(1 << 39, bytes, packets)), Err(InvalidStatus));
        assert_eq!(stream.bytes_in_flight(), 104);
    }
    for (bytes, packets) in [(105, 1), (104, 2), (1104, 3)] {
        let mut stream = open(1000);
        stream.send_data(100);
        let taken = stream.accept_status(&status(1000, bytes, packets));
        assert_eq!((taken, stream.bytes_in_flight()), (Ok(StatusTaken::Excess), 0));
        // Packets sent after that count in full.
        stream.send_data(100);
        assert_eq!(stream.bytes_in_flight(), 104);
    }
    let mut stream = open(1000);
    stream.send_data(100);
    stream.accept_status(&status(1000, 104, 1)).unwrap();
    assert_eq!(stream.bytes_in_flight(), 0);
}

#[test]
fn a_resync_repairs_the_counters_after_loss() {
    let mut stream = open(1040);
    let mut totals = None;
    for sent in 0..30u64 {
        if stream.resync_due() {
            let command = stream.resync(SEP).unwrap();
            totals = Some((sent, command));
            break;
        }
        assert!(stream.packets_allowed(100) > 0);
        stream.send_data(100);
        // The host consumes at once, but every packet of this stream was lost before it: a status
        // with old counts.
        let (bytes, packets) = ((sent + 1) * 104, sent + 1);
        stream.accept_status(&status(1040, bytes, packets)).unwrap();
    }
    let (sent, command) = totals.expect("a resync within one capacity and a packet");
    assert_eq!(sent, 11, "the first packet beyond the capacity of 10 packets");
    assert_eq!((command.bytes, command.packets), (11 * 104, 11), "totals before this command");
    assert!(!stream.resync_due());
    assert_eq!(stream.bytes_in_flight(), 24);
}

/// As in the recorded exchange 48.
#[test]
fn a_resync_follows_a_window_of_packets_too() {
    let mut stream = open(100_000);
    stream.accept_status(&StatusRepr { capacity_packets: 4, ..status(100_000, 0, 0) }).unwrap();
    for sent in 1..=5 {
        assert!(!stream.resync_due() && stream.packets_allowed(216) > 0);
        stream.send_data(216);
        let taken = StatusRepr { capacity_packets: 4, ..status(100_000, 216 * sent, sent) };
        stream.accept_status(&taken).unwrap();
    }
    assert!(stream.resync_due());
    let command = stream.resync(SEP).unwrap();
    assert_eq!((command.seq, command.packets, command.bytes), (0, 5, 5 * 216));
    assert!(!stream.resync_due());
}

proptest! {
    /// A host that consumes at random, and a device that sends as much as allowed: the data in
    /// flight never exceed the capacity, and the stream never stops permanently.
    #[test]
    fn the_window_is_never_exceeded(
        capacity in 9000u64..100_000,
        steps in prop::collection::vec((1usize..8000, 0.0f64..1.0), 1..200),
    ) {
        let mut stream = open(capacity);
        let (mut host_bytes, mut host_packets) = (0u64, 0u64);
        let mut in_flight = std::collections::VecDeque::new();
        let mut seq = 0u16;
        for (bytes, consume) in steps {
            while stream.packets_allowed(bytes) > 0 || stream.resync_due() {
                if stream.resync_due() {
                    if stream.resync(SEP).is_none() { break }
                    in_flight.push_back(24u64);
                } else {
                    prop_assert_eq!(stream.send_data(bytes), seq);
                    seq = seq.wrapping_add(1);
                    in_flight.push_back((bytes as u64).next_multiple_of(8));
                }
                prop_assert!(in_flight.iter().sum::<u64>() <= capacity);
                prop_assert_eq!(in_flight.iter().sum::<u64>(), stream.bytes_in_flight());
            }
            prop_assert!(!in_flight.is_empty());
            let count = 1 + (consume * in_flight.len() as f64) as usize;
            for packet in in_flight.drain(..count.min(in_flight.len())) {
                host_bytes += packet;
                host_packets += 1;
            }
            stream.accept_status(&status(capacity, host_bytes, host_packets)).unwrap();
        }
    }
}

#[test]
fn a_status_that_was_overtaken_takes_no_credit_back() {
    let mut stream = open(1000);
    (0..4).for_each(|_| _ = stream.send_data(100));
    stream.accept_status(&status(1000, 312, 3)).unwrap();
    stream.accept_status(&status(1000, 104, 1)).unwrap();
    let packets = stream.sent_packets - stream.consumed_packets;
    assert_eq!((stream.bytes_in_flight(), packets), (104, 1));
}
