//! Drawn streams whose packets are lost, doubled and delayed on their way to the capture, and
//! samples that the radio did not send: the account has each of them.

use millstream_watch::{CaptureAccount, Captured, LinkType, LossPlace};
use millstream_wire::Epid;
use millstream_wire::chdr::Width;
use millstream_wire::stream::{
    CommandOp, CommandRepr, PACKETS_UNLIMITED, SequenceGap, StatusRepr, StreamCondition,
};
use proptest::prelude::*;

use crate::packets::{HOST, RADIO, SAMPLES, TICKS, data, packet, status, take};

/// What becomes of a packet.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fate {
    Comes,
    IsLost,
    ComesTwice,
    /// It comes behind so many later ones.
    ComesLate(usize),
    /// The radio has stopped for so many packets' time before it.
    IsLater(u64),
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        20 => Just(Fate::Comes),
        1 => Just(Fate::IsLost),
        1 => Just(Fate::ComesTwice),
        1 => (1..5_usize).prop_map(Fate::ComesLate),
        1 => (1..1000_u64).prop_map(Fate::IsLater),
    ]
}

proptest! {
    #[test]
    fn each_loss_is_found_at_its_place_with_its_number(
        fates in proptest::collection::vec(fate(), 10..300),
        width in proptest::sample::select(Width::ALL.to_vec()),
        first in any::<u16>(),
        begin in any::<u64>(),
    ) {
        let mut account = CaptureAccount::new();
        let report = StatusRepr { capacity_bytes: 1 << 20, capacity_packets: PACKETS_UNLIMITED,
            count_packets: first.into(), ..StatusRepr::default() };
        take(&mut account, 0, &packet(HOST, RADIO, &status(width, report)));
        let (mut ticks, mut lost, mut twice, mut not_sent) = (begin, 0, 0, 0);
        let mut late: Vec<(usize, Vec<u8>)> = Vec::new();
        for n in 0..fates.len() + 6 {
            let at_ns = n as u64 * 1000;
            // The first packets show how long one lasts, and the last ones what is missing.
            let is_drawn = (3..fates.len()).contains(&n);
            let fate = if is_drawn { fates[n] } else { Fate::Comes };
            // Behind a pause, what comes late tells nothing about the time.
            let fate = match fate {
                Fate::IsLater(_) if !late.is_empty() => Fate::Comes,
                fate => fate,
            };
            if let Fate::IsLater(packets) = fate {
                ticks = ticks.wrapping_add(packets * SAMPLES * TICKS);
                not_sent += packets * SAMPLES;
            }
            let bytes = packet(RADIO, HOST, &data(width, first.wrapping_add(n as u16), ticks));
            ticks = ticks.wrapping_add(SAMPLES * TICKS);
            match fate {
                Fate::IsLost => lost += 1,
                Fate::ComesLate(by) => late.push((n + by, bytes)),
                Fate::ComesTwice => {
                    twice += 1;
                    take(&mut account, at_ns, &bytes);
                    take(&mut account, at_ns, &bytes);
                }
                Fate::Comes | Fate::IsLater(_) => take(&mut account, at_ns, &bytes),
            }
            late.retain(|(at, bytes)| {
                if *at <= n {
                    take(&mut account, at_ns, bytes);
                }
                *at > n
            });
        }
        let found: Vec<_> = account.gaps().collect();
        let sum = |place, of: fn(&millstream_watch::FlowGap) -> u64| -> u64 {
            found.iter().filter(|one| one.place == place).map(|one| of(one)).sum()
        };
        prop_assert_eq!(sum(LossPlace::Before, |one| one.packets), lost);
        prop_assert_eq!(sum(LossPlace::Before, |one| one.samples.unwrap()), lost * SAMPLES);
        prop_assert_eq!(sum(LossPlace::Sender, |one| one.samples.unwrap()), not_sent);
        prop_assert_eq!(sum(LossPlace::Behind, |one| one.packets), 0);
        let flow = &account.flows()[0];
        prop_assert_eq!((flow.lost_before(), flow.not_sent()), (lost, Some(not_sent)));
        prop_assert_eq!(flow.duplicates(), twice);
        prop_assert_eq!(flow.ticks_per_sample(), Some(TICKS));
        prop_assert!(account.is_from_radio(flow));
    }

    #[test]
    fn a_radio_tells_what_was_lost_behind_the_capture_and_not_what_came_late(
        fates in proptest::collection::vec(fate(), 10..300),
        missing in proptest::collection::btree_set(10..300_u16, 0..20),
        first in any::<u16>(),
    ) {
        let mut account = CaptureAccount::new();
        let (mut lost, mut before) = (0, 0);
        // What comes to the radio, each with its place in time.
        let mut comes = Vec::new();
        for n in 0..fates.len() as u16 + 10 {
            if missing.contains(&n) && usize::from(n) < fates.len() {
                before += 1;
                continue;
            }
            let seq = first.wrapping_add(n);
            take(&mut account, n.into(), &packet(HOST, RADIO, &data(Width::W64, seq, 0)));
            match fates.get(usize::from(n)).filter(|_| n > 0) {
                Some(Fate::IsLost) => lost += 1,
                Some(Fate::ComesLate(by)) => comes.push((usize::from(n) + by, 1, seq)),
                _ => comes.push((n.into(), 0, seq)),
            }
        }
        comes.sort();
        let mut expected = first;
        for (_, _, actual) in comes {
            if actual != expected {
                let kind = millstream_wire::chdr::PacketType::TimedData;
                let report = StatusRepr {
                    status: StreamCondition::SequenceError,
                    error_info: SequenceGap { kind, expected, actual }.to_info(),
                    ..StatusRepr::default()
                };
                take(&mut account, 900, &packet(RADIO, HOST, &status(Width::W64, report)));
            }
            expected = actual.wrapping_add(1);
        }
        let flow = &account.flows()[0];
        prop_assert_eq!((flow.lost_before(), flow.lost_behind()), (before, lost));
        let behind = account.gaps().filter(|gap| gap.place == LossPlace::Behind);
        prop_assert_eq!(behind.map(|gap| gap.packets).sum::<u64>(), lost);
    }

    #[test]
    fn trains_whose_later_headers_are_cut_off_hide_no_loss(
        trains in proptest::collection::vec((1..40_u16, 0..4_u16), 4..60),
        first in any::<u16>(),
    ) {
        let mut account = CaptureAccount::new();
        take(&mut account, 0, &packet(HOST, RADIO, &status(Width::W64, StatusRepr::default())));
        let (mut seq, mut ticks, mut lost, mut sent) = (first, 0, 0, 0);
        for (n, (packets, missing)) in trains.iter().enumerate() {
            let train: Vec<u8> = (0..*packets).flat_map(|n| {
                data(Width::W64, seq.wrapping_add(n), ticks + u64::from(n) * SAMPLES * TICKS)
            }).collect();
            take(&mut account, n as u64, &packet(RADIO, HOST, &train));
            // The first ones show how long a packet lasts, and the last one is followed by none.
            let is_drawn = (3..trains.len() - 1).contains(&n);
            let missing = if is_drawn { *missing } else { 0 };
            (lost, sent) = (lost + u64::from(missing), sent + u64::from(*packets));
            seq = seq.wrapping_add(packets + missing);
            ticks += u64::from(packets + missing) * SAMPLES * TICKS;
        }
        let found: Vec<_> = account.gaps().collect();
        prop_assert!(found.iter().all(|one| one.place == LossPlace::Before), "{found:?}");
        prop_assert_eq!(found.iter().map(|one| one.packets).sum::<u64>(), lost);
        prop_assert_eq!(found.iter().map(|one| one.samples.unwrap()).sum::<u64>(), lost * SAMPLES);
        prop_assert_eq!(account.flows()[0].packets(), sent);
    }

    #[test]
    fn any_bytes_are_taken(
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        link in 0..4_usize,
    ) {
        let link = [1, 101, 113, 276].map(|number| LinkType::of(number).unwrap())[link];
        let mut account = CaptureAccount::new();
        let (at_ns, bytes) = (None, &bytes[..]);
        account.take(&Captured { at_ns, interface: 0, is_outgoing: None, link, bytes });
        prop_assert_eq!(account.counts().frames, 1);
    }
}

#[test]
fn what_a_radio_misses_of_a_transmission_was_lost_behind_the_capture() {
    let mut account = CaptureAccount::new();
    let sent = |seq: u16| packet(HOST, RADIO, &data(Width::W64, seq, u64::from(seq) * 1000));
    // The number 5 never reaches the capture; 9 and 10 do, and the radio misses all three.
    for seq in (0..20).filter(|seq| *seq != 5) {
        take(&mut account, seq.into(), &sent(seq));
    }
    for (expected, actual) in [(5, 6), (9, 11)] {
        let kind = millstream_wire::chdr::PacketType::TimedData;
        let report = StatusRepr {
            status: StreamCondition::SequenceError,
            error_info: SequenceGap { kind, expected, actual }.to_info(),
            ..StatusRepr::default()
        };
        take(&mut account, 30, &packet(RADIO, HOST, &status(Width::W64, report)));
    }
    let found: Vec<_> = account.gaps().map(|one| (one.place, one.packets)).collect();
    assert_eq!(found, [(LossPlace::Before, 1), (LossPlace::Behind, 2)]);
    assert!(!account.is_from_radio(&account.flows()[0]));
}

#[test]
fn reports_of_what_is_known_to_be_missing_tell_no_second_loss() {
    let mut account = CaptureAccount::new();
    // Each fourth packet is lost before the capture, and the reports about it come much later.
    let sent = |seq: u16| packet(HOST, RADIO, &data(Width::W64, seq, u64::from(seq) * 1000));
    for seq in (0..3000).filter(|seq| seq % 4 != 3) {
        take(&mut account, seq.into(), &sent(seq));
    }
    let mut report = |expected, actual| {
        let kind = millstream_wire::chdr::PacketType::TimedData;
        let report = StatusRepr {
            status: StreamCondition::SequenceError,
            error_info: SequenceGap { kind, expected, actual }.to_info(),
            ..StatusRepr::default()
        };
        take(&mut account, 5000, &packet(RADIO, HOST, &status(Width::W64, report)));
    };
    (0..700).for_each(|n| report(4 * n + 3, 4 * n + 4));
    // Of these five, 2995 was not captured.
    report(2994, 2999);
    assert_eq!((account.flows()[0].lost_before(), account.flows()[0].lost_behind()), (749, 4));
}

#[test]
fn a_set_up_begins_the_numbers_anew_and_used_up_credit_is_seen() {
    let mut account = CaptureAccount::new();
    let command = |seq| {
        let mut bytes = vec![0; CommandRepr::packet_len(Width::W128)];
        let repr = CommandRepr { dst_epid: Epid(3), src_epid: Epid(2), seq, ..Default::default() };
        repr.emit(Width::W128, &mut bytes).unwrap();
        packet(RADIO, HOST, &bytes)
    };
    let length = data(Width::W128, 0, 0).len() as u64;
    let report = |packets| {
        let repr = StatusRepr {
            capacity_bytes: 8 * length,
            capacity_packets: PACKETS_UNLIMITED,
            count_packets: packets,
            ..StatusRepr::default()
        };
        packet(HOST, RADIO, &status(Width::W128, repr))
    };
    let step = SAMPLES * TICKS;
    let mut ticks = 0;
    for round in 0..2 {
        take(&mut account, 0, &command(round));
        take(&mut account, 0, &report(0));
        for seq in 0..8 {
            take(
                &mut account,
                1_000_000 + seq,
                &packet(RADIO, HOST, &data(Width::W128, seq as u16, ticks)),
            );
            ticks += step;
        }
        ticks += 100 * step;
    }
    take(&mut account, 9_000_000, &report(8));
    take(&mut account, 9_000_001, &packet(RADIO, HOST, &data(Width::W128, 8, ticks)));
    assert_eq!(account.flows()[0].restarts(), 1);
    let [gap] = account.gaps().collect::<Vec<_>>()[..] else { panic!() };
    assert_eq!((gap.place, gap.samples), (LossPlace::Sender, Some(100 * SAMPLES)));
    assert_eq!(gap.credit.unwrap().room_packets, 0, "by the reports before the jump");
}

#[test]
fn a_receiver_that_counts_commands_besides_data_has_as_much_room() {
    let mut account = CaptureAccount::new();
    let width = Width::W64;
    let length = data(width, 0, 0).len() as u64;
    let step = SAMPLES * TICKS;
    let send = |account: &mut CaptureAccount, seq: u16, ticks: u64| {
        take(account, seq.into(), &packet(RADIO, HOST, &data(width, seq, ticks)));
    };
    for seq in 0..8u16 {
        send(&mut account, seq, u64::from(seq) * step);
        let mut bytes = vec![0; CommandRepr::packet_len(width)];
        let op = CommandOp::Resync;
        let repr =
            CommandRepr { dst_epid: Epid(3), src_epid: Epid(2), seq, op, ..Default::default() };
        repr.emit(width, &mut bytes).unwrap();
        take(&mut account, seq.into(), &packet(RADIO, HOST, &bytes));
    }
    let commands = 8 * CommandRepr::packet_len(width) as u64;
    let repr = StatusRepr {
        capacity_bytes: 8 * length,
        capacity_packets: PACKETS_UNLIMITED,
        count_packets: 16,
        count_bytes: 8 * length + commands,
        ..StatusRepr::default()
    };
    take(&mut account, 8, &packet(HOST, RADIO, &status(width, repr)));
    // The samples jump behind one packet more, and again behind three more.
    send(&mut account, 8, 8 * step);
    for seq in 9..12 {
        send(&mut account, seq, (u64::from(seq) + 100) * step);
    }
    send(&mut account, 12, 1000 * step);
    let rooms: Vec<_> = account.gaps().map(|gap| gap.credit.unwrap().room_packets).collect();
    assert_eq!(rooms, [7, 4]);
}
