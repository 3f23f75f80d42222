//! Tests of packets whose time is doubtful: others confirm or replace them.

use super::*;

#[test]
fn a_jump_of_time_that_the_next_packet_confirms_costs_a_group_nothing() {
    let mut bench = Bench::running();
    bench.core.numbers.confirm_all_jumps();
    let at = |seq: u16, ahead: u64| BEGIN + SPP * u64::from(seq) + ahead;
    // The packet with number 4 alone has a wrong time.
    for (seq, ahead) in [(0, 0), (1, 777), (2, 777), (3, 777), (4, 9), (5, 777)] {
        bench.take(&packet(seq, at(seq, ahead), SPP, false));
        let mut results = bench.results();
        results.retain(|(event, _)| *event == RxEvent::None);
        let due = [&[0][..], &[], &[1, 2], &[3], &[], &[]][usize::from(seq)];
        let due = due.iter().map(|seq| samples_at(at(*seq, if *seq == 0 { 0 } else { 777 })));
        assert_eq!(results, Vec::from_iter(due), "behind packet {seq}");
    }
    // The right packet with that number might still have come.
    bench.pass_time(100);
    bench.core.look(bench.now);
    assert!(bench.core.give_up_waiting());
    assert_eq!(bench.results().last(), Some(&samples_at(at(5, 777))));
    assert_eq!(bench.core.books.ledger().lost(Cause::Malformed), SPP);
    // Each packet left the device's window once, and none was out of order.
    let counters = bench.core.books.counters();
    assert_eq!((bench.core.credit.consumed_packets(), counters.reordered), (6, 0));
    assert_eq!((counters.packets, counters.malformed), (5, 1));
}

#[test]
fn the_right_packet_behind_a_doubted_one_takes_its_place() {
    let mut bench = Bench::running();
    bench.core.numbers.confirm_all_jumps();
    bench.packet(0, SPP, false);
    bench.results();
    bench.take(&packet(1, BEGIN + SPP + 9, SPP, false));
    for seq in 1..4 {
        bench.packet(seq, SPP, false);
        bench.results();
    }
    assert!(bench.core.aside.is_empty());
    let (counters, ledger) = (bench.core.books.counters(), bench.core.books.ledger());
    assert_eq!((counters.packets, counters.malformed, counters.reordered), (4, 1, 0));
    assert_eq!((ledger.delivered, ledger.lost_total()), (4 * SPP, 0));
    assert_eq!(bench.core.credit.consumed_packets(), 4);
}

#[test]
fn the_end_of_a_run_confirms_a_jump_of_time_and_waits_for_nothing() {
    for (ahead, good) in [(777, 3), (9, 2)] {
        let mut bench = Bench::running();
        bench.core.numbers.confirm_all_jumps();
        bench.packet(0, SPP, false);
        bench.results();
        bench.take(&packet(1, BEGIN + SPP + ahead, SPP, false));
        bench.take(&packet(2, BEGIN + 2 * SPP + 777, SPP / 2, true));
        bench.results();
        assert!(bench.core.aside.is_empty());
        let (counters, ledger) = (bench.core.books.counters(), bench.core.books.ledger());
        assert_eq!((counters.packets, counters.reordered), (good, 0), "{ahead}");
        // A damaged packet and a clock that was set: two things happened in that gap.
        let cause = if good == 3 { Cause::ClockJump } else { Cause::Unknown };
        let lost = 777 + (3 - good) * SPP;
        assert_eq!((ledger.lost(cause), ledger.lost_total()), (lost, lost));
        assert_eq!(bench.core.credit.consumed_packets(), 3);
    }
}

#[test]
fn no_flipped_bit_of_a_time_moves_a_stream_by_more_than_a_second() {
    const SECOND: u64 = 1_000_000;
    for bit in 0..64 {
        let mut bench = Bench::running();
        for seq in 0..8 {
            let flipped = if seq == 3 { 1 << bit } else { 0 };
            bench.take(&packet(seq, (BEGIN + SPP * u64::from(seq)) ^ flipped, SPP, false));
            bench.results();
        }
        bench.pass_time(200);
        bench.core.look(bench.now);
        bench.core.give_up_waiting();
        bench.results();
        let ledger = bench.core.books.ledger();
        assert!(ledger.expected <= 8 * SPP + SECOND, "bit {bit}: {ledger}");
        if 1_u64 << bit > SECOND {
            assert_eq!(ledger.expected, 8 * SPP, "bit {bit}: {ledger}");
            assert_eq!((ledger.delivered, ledger.lost_total()), (7 * SPP, SPP), "bit {bit}");
        }
    }
}
