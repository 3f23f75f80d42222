//! Tests of the books on hand-made gaps.

use super::*;
use crate::stream::numbers::{Numbers, PacketClass};

fn losses(books: &Books) -> [u64; 4] {
    [Cause::NetworkLoss, Cause::HostQueueDrop, Cause::Malformed, Cause::Unknown]
        .map(|cause| books.ledger().lost(cause))
}

/// Returns what a gap adds to the losses.
fn book(books: &mut Books, gap: PacketGap, whole: Option<Cause>, drops: u64) -> [u64; 4] {
    let before = losses(books);
    books.lose_end(&gap, whole, drops);
    assert_eq!(books.ledger().balance(), Ok(()));
    let after = losses(books);
    std::array::from_fn(|cause| after[cause] - before[cause])
}

fn gap(packets: u64, in_packets: u64) -> PacketGap {
    PacketGap { packets, in_packets, ..PacketGap::default() }
}

#[test]
fn missing_packets_were_damaged_or_dropped_by_the_queue_or_else_lost_in_the_network() {
    let mut books = Books::new(10, 1);
    assert_eq!(book(&mut books, gap(3, 30), None, 0), [30, 0, 0, 0]);
    assert_eq!(book(&mut books, gap(5, 50), None, 3), [20, 30, 0, 0]);
    // The counter does not grow: these drops are used up. Earlier ones explain the gaps behind.
    assert_eq!(book(&mut books, gap(1, 10), None, 3), [10, 0, 0, 0]);
    assert_eq!(book(&mut books, gap(1, 10), None, 5), [0, 10, 0, 0]);
    assert_eq!(book(&mut books, gap(1, 10), None, 5), [0, 10, 0, 0]);
    assert_eq!(book(&mut books, gap(1, 10), None, 5), [10, 0, 0, 0]);
    // Damaged ones with a number, and without.
    books.note_malformed(1);
    let damaged = PacketGap { damaged: 1, ..gap(4, 33) };
    assert_eq!(book(&mut books, damaged, None, 6), [3, 10, 20, 0]);
    books.note_malformed(1);
    books.arrive(&Arrival { seq: 0, ticks: None, samples: 0 }, None, StreamRate::of_radio(1.0));
    assert_eq!(book(&mut books, gap(1, 10), None, 6), [10, 0, 0, 0], "it was of no packet here");
}

#[test]
fn a_dropped_train_explains_all_its_packets() {
    let mut books = Books::new(10, 8);
    assert_eq!(book(&mut books, gap(20, 200), None, 2), [40, 160, 0, 0]);
    assert_eq!(book(&mut books, gap(3, 30), None, 3), [0, 30, 0, 0]);
    assert_eq!(book(&mut books, gap(3, 30), None, 3), [30, 0, 0, 0]);
}

#[test]
fn a_gap_with_one_cause_has_that_one_and_takes_the_drops_in_it() {
    let mut books = Books::new(10, 1);
    let both = PacketGap { unsent: 70, ..gap(3, 30) };
    assert_eq!(book(&mut books, both, Some(Cause::Unknown), 3), [0, 0, 0, 100]);
    assert_eq!(book(&mut books, gap(1, 10), None, 3), [10, 0, 0, 0]);
}

#[test]
fn a_device_whose_time_runs_wild_leaves_a_ledger_that_balances() {
    let mut numbers = Numbers::new(10, 1, 1 << 48);
    let (mut books, mut ticks) = (Books::new(10, 1), 0u64);
    books.begin(None);
    for step in 0..200_000u64 {
        // Almost the longest jump that is accepted, sometimes back by as much.
        let jump = (1 << 48) - step;
        ticks = if step % 7 == 6 { ticks.wrapping_sub(jump) } else { ticks.wrapping_add(jump) };
        let seq = if step % 7 == 6 { numbers.next_seq() } else { (step * 3) as u16 };
        let arrival = Arrival { seq, ticks: Some(ticks), samples: 10 };
        let gap = match numbers.judge(&arrival) {
            PacketClass::Next => None,
            PacketClass::After(gap) => Some(gap),
            _ => continue,
        };
        books.arrive(&arrival, gap.as_ref(), StreamRate::of_radio(1.0));
        books.deliver(10);
        if let Some(gap) = gap {
            books.book(&gap, Some(Cause::Unknown), 0);
        }
        assert_eq!(books.ledger().balance(), Ok(()), "step {step}");
    }
}

fn per(ticks_per_sample: u32) -> StreamRate {
    let ticks_per_sample = ticks_per_sample.try_into().unwrap();
    StreamRate { ticks_hz: 1.0, ticks_per_sample }
}

fn at(ticks: Option<u64>) -> Arrival {
    Arrival { seq: 0, ticks, samples: 10 }
}

#[test]
fn time_is_measured_from_the_start_of_the_burst() {
    let mut expectation = Expectation::default();
    expectation.begin(Some(100));
    expectation.arrive(&at(Some(140)), Some(&gap(2, 20)), per(2));
    assert_eq!(expectation.total(), 30);
    expectation.arrive(&at(Some(160)), None, per(2));
    assert_eq!(expectation.total(), 40);
    // Another burst, whose start is unknown.
    expectation.begin(None);
    expectation.arrive(&at(Some(1000)), Some(&gap(1, 10)), per(2));
    assert_eq!(expectation.total(), 60);
    expectation.add(5);
    assert_eq!(expectation.total(), 65);
}

#[test]
fn a_clock_set_back_begins_a_new_span() {
    let mut expectation = Expectation::default();
    expectation.arrive(&at(Some(1000)), None, per(1));
    let set = |gap: PacketGap| Some(PacketGap { jump: -1005, ..gap });
    expectation.arrive(&at(Some(5)), set(gap(0, 0)).as_ref(), per(1));
    expectation.arrive(&at(Some(15)), None, per(1));
    assert_eq!(expectation.total(), 30);
    // Two packets were lost there.
    expectation.arrive(&at(Some(3)), set(gap(2, 20)).as_ref(), per(1));
    assert_eq!(expectation.total(), 60);
}

#[test]
fn packets_without_time_are_added_up_also_before_those_with_time() {
    let mut expectation = Expectation::default();
    expectation.arrive(&at(None), None, per(1));
    expectation.arrive(&at(Some(500)), Some(&gap(1, 10)), per(1));
    expectation.arrive(&at(Some(510)), None, per(1));
    assert_eq!(expectation.total(), 40);
    expectation.arrive(&at(None), Some(&gap(1, 10)), per(1));
    assert_eq!(expectation.total(), 60);
}
