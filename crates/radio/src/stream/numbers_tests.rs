//! Tests of the classification on hand-made sequences.

use super::*;

const SPP: u64 = 10;
const BELIEVED: u64 = JUMP_TICKS_MAX;

fn at(seq: u16, ticks: u64) -> Arrival {
    Arrival { seq, ticks: Some(ticks), samples: SPP }
}

fn numbers() -> Numbers {
    let mut numbers = Numbers::new(SPP, 1, BELIEVED);
    assert_eq!(numbers.judge(&at(0, 1000)), PacketClass::Next);
    numbers
}

fn gap(packets: u64, in_packets: u64, unsent: u64) -> PacketClass {
    PacketClass::After(PacketGap { packets, in_packets, unsent, ..PacketGap::default() })
}

fn jump(packets: u64, jump: i64) -> PacketClass {
    PacketClass::After(PacketGap {
        packets,
        in_packets: packets * SPP,
        jump,
        ..PacketGap::default()
    })
}

#[test]
fn packets_in_order_follow_each_other_past_the_wrap() {
    let mut numbers = Numbers::new(SPP, 2, BELIEVED);
    for index in 0..70_000u64 {
        assert_eq!(numbers.judge(&at(index as u16, index * 2 * SPP)), PacketClass::Next);
    }
    assert_eq!(numbers.next_ticks, Some(70_000 * 2 * SPP));
}

#[test]
fn lost_packets_are_counted_exactly() {
    let mut numbers = numbers();
    assert_eq!(numbers.judge(&at(4, 1040)), gap(3, 30, 0));
    assert_eq!(numbers.judge(&at(5, 1050)), PacketClass::Next);
}

#[test]
fn more_packets_than_sequence_numbers_are_lost_packets_still() {
    let mut numbers = numbers();
    let packets = 3 * 65_536 + 7;
    let verdict = numbers.judge(&at(8, 1010 + packets * SPP));
    assert_eq!(verdict, gap(packets, packets * SPP, 0));
    // With one packet's worth less, the device must have paused.
    let verdict = numbers.judge(&at(19, 1010 + (2 * packets + 2) * SPP));
    assert_eq!(verdict, gap(10, 10 * SPP, (packets - 9) * SPP));
}

#[test]
fn a_jump_of_time_alone_was_never_sent() {
    let mut numbers = numbers();
    assert_eq!(numbers.judge(&at(1, 1013)), gap(0, 0, 3));
    // Two packets lost and an overrun between: at most two packets' worth were sent.
    assert_eq!(numbers.judge(&at(4, 1100)), gap(2, 20, 57));
    // The end of a run was lost, in a short packet.
    numbers.set_next_start(Some(1114));
    assert_eq!(numbers.judge(&at(6, 1114)), gap(1, 4, 0));
}

#[test]
fn copies_and_late_arrivals_are_told_apart() {
    let mut numbers = numbers();
    assert_eq!(numbers.judge(&at(2, 1020)), gap(1, 10, 0));
    assert_eq!(numbers.judge(&at(2, 1020)), PacketClass::Duplicate);
    assert_eq!(numbers.judge(&at(0, 1000)), PacketClass::Duplicate);
    assert_eq!(numbers.judge(&at(1, 1010)), PacketClass::Late);
    assert_eq!(numbers.judge(&at(1, 1010)), PacketClass::Duplicate);
    assert_eq!(numbers.judge(&at(3, 1030)), PacketClass::Next);
}

#[test]
fn a_known_start_shows_what_is_missing_before_the_first_packet() {
    let mut numbers = Numbers::new(SPP, 1, BELIEVED);
    numbers.begin(Some(500));
    assert_eq!(numbers.judge(&at(2, 520)), gap(2, 20, 0));
    let mut unknown = Numbers::new(SPP, 1, BELIEVED);
    assert_eq!(unknown.judge(&at(2, 520)), gap(2, 20, 0));
}

#[test]
fn sequence_numbers_alone_serve_where_there_is_no_time() {
    let untimed = |seq| Arrival { seq, ticks: None, samples: SPP };
    let mut numbers = Numbers::new(SPP, 1, BELIEVED);
    assert_eq!(numbers.judge(&untimed(0)), PacketClass::Next);
    assert_eq!(numbers.judge(&untimed(3)), gap(2, 20, 0));
    assert_eq!(numbers.judge(&untimed(3)), PacketClass::Duplicate);
    assert_eq!(numbers.judge(&untimed(1)), PacketClass::Late);
    assert_eq!(numbers.judge(&untimed(4)), PacketClass::Next);
}

#[test]
fn a_packet_without_time_among_those_with_time_takes_its_place() {
    let mut numbers = numbers();
    let untimed = Arrival { seq: 3, ticks: None, samples: SPP };
    assert_eq!(numbers.judge(&untimed), gap(2, 20, 0));
    assert_eq!(numbers.judge(&at(4, 1040)), PacketClass::Next);
}

#[test]
fn behind_a_restart_of_the_numbers_only_time_counts() {
    let mut numbers = numbers();
    numbers.renumber();
    let gap = PacketGap { unsent: 45, renumbered: true, ..PacketGap::default() };
    assert_eq!(numbers.judge(&at(0, 1055)), PacketClass::After(gap));
    assert_eq!(numbers.judge(&at(1, 1065)), PacketClass::Next);
}

#[test]
fn nonsense_changes_nothing_and_a_clock_set_back_is_followed() {
    let mut numbers = Numbers::new(SPP, 4, BELIEVED);
    assert_eq!(numbers.judge(&at(0, 1 << 62)), PacketClass::Next);
    assert_eq!(numbers.judge(&at(1, (1 << 62) + 43)), PacketClass::Doubtful);
    assert_eq!(numbers.judge(&at(1, 1)), PacketClass::Doubtful);
    assert_eq!(numbers.judge(&at(1, (1 << 62) + 4 * SPP)), PacketClass::Next);
    assert_eq!(numbers.judge(&at(2, (1 << 62) - 400)), jump(0, -480));
    assert_eq!(numbers.judge(&at(3, (1 << 62) - 400 + 4 * SPP)), PacketClass::Next);
}

#[test]
fn a_clock_set_back_where_packets_are_lost_is_believed_at_the_second_packet() {
    let mut numbers = numbers();
    assert_eq!(numbers.judge(&at(3, 500)), PacketClass::Doubtful, "anybody can write that");
    assert_eq!(numbers.judge(&at(4, 777)), PacketClass::Doubtful, "and this does not confirm it");
    assert_eq!(numbers.judge(&at(5, 787)), jump(4, 787 - 1050));
    assert_eq!(numbers.judge(&at(6, 797)), PacketClass::Next);
    // From before the jump.
    assert_eq!(numbers.judge(&at(2, 1020)), PacketClass::Late);
    assert_eq!(numbers.judge(&at(0, 1000)), PacketClass::Duplicate);
    // Less time than the lost packets have.
    assert_eq!(numbers.judge(&at(9, 822)), PacketClass::Doubtful);
    numbers.doubt(&at(10, 832));
    assert_eq!(numbers.judge(&at(9, 822)), jump(2, 822 - 827));
}

#[test]
fn two_packets_confirm_a_clock_set_back_though_they_are_no_neighbours() {
    for (first, second) in [(9u16, 14u16), (14, 9)] {
        let mut numbers = numbers();
        let time = |seq: u16| 500 + u64::from(seq) * SPP;
        assert_eq!(numbers.judge(&at(first, time(first))), PacketClass::Doubtful);
        assert_eq!(numbers.judge(&at(first, time(first))), PacketClass::Doubtful, "a copy of it");
        let lost = u64::from(second) - 1;
        assert_eq!(numbers.judge(&at(second, time(second))), jump(lost, -500), "{first}");
    }
    // A short packet ends a burst.
    let mut numbers = numbers();
    assert_eq!(numbers.judge(&Arrival { samples: 3, ..at(9, 590) }), PacketClass::Doubtful);
    assert_eq!(numbers.judge(&at(11, 603)), jump(10, 603 - 1110));
}

#[test]
fn a_packet_whose_time_is_due_is_next_whatever_its_number_says() {
    let mut numbers = numbers();
    let mut due = 1;
    for bit in 0..16 {
        for flip in [1u16 << bit, 0] {
            let arrival = at(due ^ flip, 1000 + u64::from(due) * SPP);
            assert_eq!(numbers.missing_before(&arrival), 0, "it does not wait");
            assert_eq!(numbers.judge(&arrival), PacketClass::Next, "bit {bit}");
            due += 1;
        }
    }
    // Behind a loss the result is the same.
    assert_eq!(numbers.judge(&at(due + 2, 1020 + u64::from(due) * SPP)), gap(2, 20, 0));
}

#[test]
fn a_number_that_goes_on_from_one_that_was_not_due_is_the_devices_own() {
    let mut numbers = numbers();
    assert_eq!(numbers.judge(&at(4, 1010)), PacketClass::Next);
    // Three packets were lost, and the clock was set back by as much meanwhile.
    assert_eq!(numbers.judge(&at(5, 1020)), jump(3, -30));
    assert_eq!(numbers.judge(&at(6, 1030)), PacketClass::Next);
    // The numbers were restarted.
    assert_eq!(numbers.judge(&at(0, 1040)), PacketClass::Next);
    assert_eq!(numbers.judge(&at(1, 1050)), PacketClass::Next);
    assert_eq!(numbers.judge(&at(3, 1070)), gap(1, 10, 0));
}

#[test]
fn a_clock_set_far_ahead_is_followed_when_a_second_packet_confirms_it() {
    let mut numbers = Numbers::new(SPP, 1, BELIEVED);
    numbers.begin(Some(1000));
    for first in [0u16, 5] {
        let far = 1 << (50 + first);
        assert_eq!(numbers.judge(&at(first, far)), PacketClass::Doubtful);
        let PacketClass::After(gap) = numbers.judge(&at(first + 1, far + SPP)) else { panic!() };
        assert_eq!((gap.packets, gap.in_packets, gap.unsent), (1, 10, 0));
        assert!(gap.jump > 1 << 48, "{gap:?}");
        for next in 2..5 {
            let ticks = far + u64::from(next) * SPP;
            assert_eq!(numbers.judge(&at(first + next, ticks)), PacketClass::Next);
        }
    }
}

#[test]
fn damage_is_remembered_by_number() {
    let mut numbers = numbers();
    assert!(numbers.damage(2) && numbers.damage(0) && !numbers.damage(30_000));
    let gap = PacketGap { packets: 3, damaged: 1, in_packets: 30, ..PacketGap::default() };
    assert_eq!(numbers.judge(&at(4, 1040)), PacketClass::After(gap));
    assert!(numbers.damage(1), "it was given up");
    assert_eq!(numbers.judge(&at(1, 1010)), PacketClass::Late);
    assert_eq!(numbers.judge(&at(3, 1030)), PacketClass::Late);
    assert_eq!(numbers.judge(&at(3, 1030)), PacketClass::Duplicate);
}

#[test]
fn a_clock_that_was_set_between_two_samples_is_a_jump_and_not_a_loss() {
    let mut numbers = Numbers::new(SPP, 16, BELIEVED);
    assert_eq!(numbers.judge(&at(0, 1000)), PacketClass::Next);
    assert_eq!(numbers.judge(&at(1, 1160)), PacketClass::Next);
    // Whole samples are missing.
    assert_eq!(numbers.judge(&at(2, 1320 + 3 * 16)), gap(0, 0, 3));
    // The next packet confirms the new time.
    assert_eq!(numbers.judge(&at(3, 1528 + 5)), PacketClass::Doubtful);
    assert_eq!(numbers.judge(&at(4, 1528 + 5 + 160)), jump(1, 5));
    assert_eq!(numbers.judge(&at(5, 1528 + 5 + 320)), PacketClass::Next);
}

/// Returns those of a stream whose numbers were restarted, at number 100 and time 9000.
fn renumbered() -> Numbers {
    let mut numbers = numbers();
    numbers.renumber();
    for index in 0..100 {
        let class = numbers.judge(&at(index, 8000 + 10 * u64::from(index)));
        assert!(matches!(class, PacketClass::Next | PacketClass::After(_)), "{class:?}");
    }
    numbers
}

#[test]
fn packets_with_numbers_from_before_a_restart_neither_set_clock_nor_numbers() {
    // Delayed packets, of numbers that come next by chance or lie far ahead or behind; at most
    // three of them follow each other.
    let mut numbers = renumbered();
    for (seq, ticks) in [(100, 5000), (170, 5700), (171, 5710), (172, 5720), (40_000, 8999)] {
        let packet = at(seq, ticks);
        assert!(numbers.may_be_from_before(&packet));
        assert_eq!(numbers.judge(&packet), PacketClass::Doubtful, "{seq}");
    }
    assert_eq!(numbers.judge(&at(99, 8990)), PacketClass::Duplicate);
    assert_eq!(numbers.judge(&at(100, 9000)), PacketClass::Next);
    // Before the first new one, too.
    let mut first = self::numbers();
    first.renumber();
    assert_eq!(first.judge(&at(70, 1700)), PacketClass::Doubtful);
    assert!(matches!(first.judge(&at(3, 1760)), PacketClass::After(_)));
    // Long after the restart one packet is enough.
    for index in 101..101 + SETTLING {
        assert_eq!(numbers.judge(&at(index, 8000 + 10 * u64::from(index))), PacketClass::Next);
    }
    let class = numbers.judge(&at(101 + SETTLING, 5000));
    assert!(matches!(class, PacketClass::After(gap) if gap.jump < 0));
}

#[test]
fn four_packets_in_a_row_behind_a_restart_of_the_numbers_are_believed() {
    // A clock that was set back, numbers far ahead, and numbers behind.
    for (seq, ticks) in [(100, 5000), (300, 11_005), (40_000, 12_000)] {
        let mut numbers = renumbered();
        for index in 0..3 {
            let packet = at(seq + index, ticks + 10 * u64::from(index));
            assert_eq!(numbers.judge(&packet), PacketClass::Doubtful, "{seq}");
        }
        let class = numbers.judge(&at(seq + 3, ticks + 30));
        assert!(matches!(class, PacketClass::After(_)), "{seq}: {class:?}");
        assert_eq!(numbers.judge(&at(seq + 4, ticks + 40)), PacketClass::Next, "{seq}");
    }
    // A number far ahead with the time that belongs to it needs no confirmation.
    let class = renumbered().judge(&at(300, 11_000));
    assert!(matches!(class, PacketClass::After(gap) if gap.packets == 200), "{class:?}");
    // A copy neither confirms a doubtful packet nor undoes a confirmation.
    let mut numbers = renumbered();
    for index in [0, 0, 1, 1, 2, 2] {
        let packet = at(300 + index, 11_005 + 10 * u64::from(index));
        assert_eq!(numbers.judge(&packet), PacketClass::Doubtful);
    }
    assert!(matches!(numbers.judge(&at(303, 11_035)), PacketClass::After(_)));
}

#[test]
fn the_fates_of_packets_go_round_and_are_forgotten() {
    let mut fates = Fates::default();
    let mut next = 65_000u16;
    fates.set(next.wrapping_add(2), next, PacketFate::Damaged);
    assert_eq!(fates.miss(next, 4), 1);
    next = next.wrapping_add(4);
    for _ in 0..HISTORY - 3 {
        fates.arrive(next);
        next = next.wrapping_add(1);
    }
    assert_eq!(fates.get(65_001, next), PacketFate::Missing);
    assert_eq!(fates.get(65_002, next), PacketFate::Damaged);
    assert_eq!(fates.get(65_004, next), PacketFate::Arrived);
    assert_eq!(fates.get(65_000, next), PacketFate::Unknown, "one too old");
    for _ in 0..2 * HISTORY {
        fates.arrive(next);
        next = next.wrapping_add(1);
    }
    assert_eq!(fates.get(next.wrapping_add(5), next), PacketFate::Unknown);
    assert_eq!(fates.get(next.wrapping_sub(5), next), PacketFate::Arrived);
}
