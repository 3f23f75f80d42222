//! Tests of the core of a transmit stream, by bytes and time.

use std::net::Ipv4Addr;

use millstream_wire::stream::{PACKETS_UNLIMITED, StreamPlace};
use proptest::prelude::*;

use super::*;
use crate::opening::bench::{DEVICE, HOST, OWN, path};
use crate::tx::opening::PERIOD_SEQ;
use crate::tx::window::CreditWindow;

#[path = "exchange_tests.rs"]
mod exchange;

const SPP: u64 = 100;
const FLOW: u64 = 416;
const COMMAND: u64 = 24;
const CAPACITY: u64 = 8192;

fn core() -> TxCore {
    let path = path();
    let window = CreditWindow::new(CAPACITY, PACKETS_UNLIMITED, COMMAND);
    let filling = Filling::new(path.width, SPP as usize, 1);
    TxCore::new(path, opened(window, u16::MAX), SPP, filling)
}

fn opened(window: CreditWindow, status_seq: u16) -> Opened {
    Opened { window, status_seq, tells_place: true }
}

/// Sends `packets` full packets, the first one at the device's time `ticks`.
fn send(core: &mut TxCore, packets: u64, ticks: Option<u64>) {
    for packet in 0..packets {
        core.account.accept(SPP);
        let ticks = ticks.map(|ticks| ticks + packet * SPP);
        core.account.send(FLOW, SPP, ticks, packet + 1 == packets);
    }
}

/// Returns a report of these counts, of a device that expects packet `expected`.
fn status(seq: u16, packets: u64, bytes: u64, expected: u16) -> Vec<u8> {
    status_at(seq, packets, bytes, StreamPlace { period: false, expected, command: 0 })
}

fn status_at(seq: u16, packets: u64, bytes: u64, place: StreamPlace) -> Vec<u8> {
    let status = StatusRepr {
        dst_epid: HOST,
        seq,
        src_epid: OWN,
        status: StreamCondition::Ok,
        capacity_bytes: CAPACITY,
        capacity_packets: PACKETS_UNLIMITED,
        count_packets: packets,
        count_bytes: bytes,
        error_info: place.to_info(),
        ..StatusRepr::default()
    };
    let mut out = vec![0; StatusRepr::packet_len(Width::W64)];
    status.emit(Width::W64, &mut out).expect("there is room");
    out
}

/// Returns the number of a query.
fn query(core: &mut TxCore) -> Option<u16> {
    let mut out = [0; QUERY_BYTES_MAX];
    let length = core.query(&mut out)?;
    let packet = Packet::parse(&out[..length], Width::W64).expect("a packet");
    let command = CommandRepr::parse(&packet).expect("a command");
    assert_eq!((command.dst_epid, command.src_epid, command.op), (OWN, HOST, CommandOp::Ping));
    Some(command.seq)
}

#[test]
fn a_report_gives_credit_and_answers_to_a_query_settle_the_ledger() {
    let mut core = core();
    let room = core.account.room_packets(FLOW);
    send(&mut core, 3, None);
    assert_eq!(query(&mut core), Some(0));
    // The command has credit of its own, but takes space all the same.
    assert!(core.account.room_packets(FLOW) <= room - 3);
    core.accept(&status(0, 4, 3 * FLOW + COMMAND, 3), DEVICE);
    assert_eq!((core.account.in_flight().packets, core.counters.reports), (0, 1));
    assert!(core.account.is_settled());
    let ledger = core.account.ledger();
    assert_eq!((ledger.transmitted, ledger.balance()), (3 * SPP, Ok(())));
}

#[test]
fn a_report_of_a_device_that_has_come_to_no_query_answers_none() {
    let mut core = core();
    send(&mut core, 6, None);
    assert_eq!([query(&mut core), query(&mut core)], [Some(0), Some(1)]);
    let place = StreamPlace { period: true, expected: 3, command: PERIOD_SEQ };
    core.accept(&status_at(0, 3, 3 * FLOW, place), DEVICE);
    let ledger = core.account.ledger();
    assert_eq!((ledger.in_flight, ledger.lost_total()), (3 * SPP, 0), "{ledger}");
}

#[test]
fn a_silence_is_followed_by_queries_and_then_by_an_examination() {
    let mut core = core();
    send(&mut core, 3, None);
    let begin = Instant::now();
    assert_eq!(core.recover(begin, true), None);
    let ms = |ms| core.period + Duration::from_millis(ms);
    let dues = [20, 60, 140, 300, 620].map(ms);
    for (index, due) in dues.into_iter().enumerate() {
        let before = due - Duration::from_millis(1);
        assert_eq!(core.recover(begin + before, true), None);
        let year = begin + Duration::from_secs(1 << 24);
        assert_eq!(core.sleep(begin + before, year), Duration::from_millis(1));
        let step = core.recover(begin + due, true).expect("a step");
        match index {
            0..4 => {
                assert_eq!(step, TxStep::Query);
                assert_eq!(query(&mut core), Some(index as u16));
            }
            _ => assert_eq!(step, TxStep::Examine { silent: due }),
        }
    }
    assert_eq!(core.counters.stalls, 1);
    // The device is alive: the stream is set up again.
    let window = CreditWindow::new(CAPACITY, PACKETS_UNLIMITED, COMMAND);
    core.reopen(opened(window, u16::MAX));
    assert_eq!(core.events.pop_front(), Some(TxEvent::Reestablished { samples: 3 * SPP }));
    assert_eq!(core.account.ledger().unknown.samples, 3 * SPP);
    assert_eq!((core.recover(begin + dues[4], true), core.stall.is_none()), (None, true));
    assert_eq!(query(&mut core), Some(0), "the numbers begin anew");
}

#[test]
fn credit_ends_a_silence() {
    let mut core = core();
    send(&mut core, 3, None);
    let begin = Instant::now();
    core.recover(begin, true);
    assert!(core.stall.is_some());
    core.accept(&status(0, 1, FLOW, 1), DEVICE);
    assert!(core.stall.is_none());
}

#[test]
fn a_device_may_hold_samples_until_their_time() {
    let mut core = core();
    send(&mut core, 3, Some(1_000_000));
    let (none, day) = (Duration::ZERO, Duration::from_secs(86_400));
    let ahead = core.still_holds(none, Some(400_000));
    assert_eq!(ahead, Duration::from_millis(600) + 2 * core.period + PATIENCE);
    // Their time has come: as long as they play.
    let playing = core.still_holds(none, Some(1_000_001));
    assert_eq!(playing, Duration::from_micros(3 * SPP) + PATIENCE);
    assert_eq!(core.still_holds(day, Some(1_000_001)), Duration::ZERO);
}

#[test]
fn a_device_that_has_played_less_than_a_report_may_hold_the_next_burst() {
    // A report is due in 1024 bytes, and a packet has 416.
    for (first, holds) in [(2, true), (3, false)] {
        let mut core = core();
        send(&mut core, first, Some(1000));
        send(&mut core, 3, Some(1_000_000));
        let held = core.still_holds(Duration::ZERO, Some(400_000));
        let ahead = Duration::from_millis(600) + 2 * core.period + PATIENCE;
        assert_eq!(held == ahead, holds, "{held:?}");
    }
}

#[test]
fn the_radio_s_messages_become_events_in_their_order() {
    let mut core = core();
    send(&mut core, 2, Some(5000));
    core.note_event(Event::TxUnderrun, 5150);
    core.note_event(Event::RxOverrun, 1);
    core.note_event(Event::TxBurstAck, 5199);
    let events: Vec<_> = core.events.drain(..).collect();
    let (underflow, ack) = (5150, 5199);
    assert_eq!(
        events,
        [TxEvent::Underflow { time_ticks: underflow }, TxEvent::BurstAck { time_ticks: ack }]
    );
    assert!(!core.account.is_unacknowledged());
    for _ in 0..EVENTS_MAX + 3 {
        core.note_event(Event::TxLate, 9);
    }
    assert_eq!((core.events.len(), core.counters.events_dropped), (EVENTS_MAX, 3));
}

#[test]
fn what_is_not_of_this_stream_costs_one_counter() {
    let mut core = core();
    let whole = status(0, 0, 0, 0);
    core.accept(&whole, SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 9), 49153));
    core.accept(&whole[..9], DEVICE);
    let mut other = whole.clone();
    other[0] ^= 1;
    core.accept(&other, DEVICE);
    let counters = core.counters;
    assert_eq!((counters.foreign, counters.malformed, counters.unexpected), (1, 1, 1));
    assert_eq!((counters.reports, counters.stale_reports), (0, 0));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn whatever_comes_and_whenever_the_ledger_balances(
        turns in prop::collection::vec(
            (0u8..8, any::<u16>(), 0u64..400, 0u64..9000, 0u64..400),
            1..80,
        ),
    ) {
        let (mut core, begin) = (core(), Instant::now());
        let mut now = begin;
        for (kind, seq, packets, bytes, ms) in turns {
            now += Duration::from_millis(ms / 4);
            match kind {
                0..2 if core.account.room_packets(FLOW) > 3 => send(&mut core, 3, None),
                2 if core.account.room_packets(FLOW) > 3 => send(&mut core, 3, Some(bytes)),
                3 | 4 => {
                    core.accept(&status(seq % 20, packets % 60, bytes, seq % 77), DEVICE);
                },
                5 => core.accept(&seq.to_le_bytes(), DEVICE),
                6 => {
                    let event = [Event::TxUnderrun, Event::TxLate, Event::TxBurstAck];
                    core.note_event(event[usize::from(seq) % 3], bytes);
                }
                _ => match core.recover(now, true) {
                    Some(TxStep::Examine { silent }) => {
                        core.still_holds(silent, Some(bytes));
                        let window = CreditWindow::new(CAPACITY, PACKETS_UNLIMITED, COMMAND);
                        core.reopen(opened(window, seq));
                    }
                    Some(TxStep::Query) => _ = query(&mut core),
                    None => {}
                },
            }
            prop_assert!(core.account.in_flight().bytes <= CAPACITY);
            prop_assert_eq!(core.account.ledger().balance(), Ok(()));
        }
    }
}
