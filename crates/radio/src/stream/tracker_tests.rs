//! Tests of the classification on hand-made sequences.

use super::delayed::SETTLING;
use super::*;

const SPP: u64 = 10;

fn at(seq: u16, ticks: u64) -> Arrival {
    Arrival { seq, ticks: Some(ticks), samples: SPP }
}

fn tracker() -> Tracker {
    let mut tracker = Tracker::new(SPP, 1);
    assert_eq!(tracker.judge(&at(0, 1000)), PacketClass::Next);
    tracker
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

const LATE: PacketClass = PacketClass::Late { damaged: false };

#[test]
fn packets_in_order_follow_each_other_past_the_wrap() {
    let mut tracker = Tracker::new(SPP, 2);
    for index in 0..70_000u64 {
        assert_eq!(tracker.judge(&at(index as u16, index * 2 * SPP)), PacketClass::Next);
    }
    assert_eq!(tracker.next_ticks, Some(70_000 * 2 * SPP));
}

#[test]
fn lost_packets_are_counted_exactly() {
    let mut tracker = tracker();
    assert_eq!(tracker.judge(&at(4, 1040)), gap(3, 30, 0));
    assert_eq!(tracker.judge(&at(5, 1050)), PacketClass::Next);
}

#[test]
fn more_packets_than_sequence_numbers_are_lost_packets_still() {
    let mut tracker = tracker();
    let packets = 3 * 65_536 + 7;
    let verdict = tracker.judge(&at(8, 1010 + packets * SPP));
    assert_eq!(verdict, gap(packets, packets * SPP, 0));
    // With one packet's worth less, the device must have paused.
    let verdict = tracker.judge(&at(19, 1010 + (2 * packets + 2) * SPP));
    assert_eq!(verdict, gap(10, 10 * SPP, (packets - 9) * SPP));
}

#[test]
fn a_jump_of_time_alone_was_never_sent() {
    let mut tracker = tracker();
    assert_eq!(tracker.judge(&at(1, 1013)), gap(0, 0, 3));
    // Two packets lost and an overrun between: at most two packets' worth were sent.
    assert_eq!(tracker.judge(&at(4, 1100)), gap(2, 20, 57));
    // The end of a run was lost, in a short packet.
    tracker.set_interrupted(Some(1114));
    assert_eq!(tracker.judge(&at(6, 1114)), gap(1, 4, 0));
}

#[test]
fn copies_and_late_arrivals_are_told_apart() {
    let mut tracker = tracker();
    assert_eq!(tracker.judge(&at(2, 1020)), gap(1, 10, 0));
    assert_eq!(tracker.judge(&at(2, 1020)), PacketClass::Duplicate);
    assert_eq!(tracker.judge(&at(0, 1000)), PacketClass::Duplicate);
    assert_eq!(tracker.judge(&at(1, 1010)), LATE);
    assert_eq!(tracker.judge(&at(1, 1010)), PacketClass::Duplicate);
    assert_eq!(tracker.judge(&at(3, 1030)), PacketClass::Next);
}

#[test]
fn a_known_start_shows_what_is_missing_before_the_first_packet() {
    let mut tracker = Tracker::new(SPP, 1);
    tracker.begin(Some(500));
    assert_eq!(tracker.judge(&at(2, 520)), gap(2, 20, 0));
    let mut unknown = Tracker::new(SPP, 1);
    assert_eq!(unknown.judge(&at(2, 520)), gap(2, 20, 0));
}

#[test]
fn sequence_numbers_alone_serve_where_there_is_no_time() {
    let untimed = |seq| Arrival { seq, ticks: None, samples: SPP };
    let mut tracker = Tracker::new(SPP, 1);
    assert_eq!(tracker.judge(&untimed(0)), PacketClass::Next);
    assert_eq!(tracker.judge(&untimed(3)), gap(2, 20, 0));
    assert_eq!(tracker.judge(&untimed(3)), PacketClass::Duplicate);
    assert_eq!(tracker.judge(&untimed(1)), LATE);
    assert_eq!(tracker.judge(&untimed(4)), PacketClass::Next);
}

#[test]
fn a_packet_without_time_among_those_with_time_takes_its_place() {
    let mut tracker = tracker();
    let untimed = Arrival { seq: 3, ticks: None, samples: SPP };
    assert_eq!(tracker.judge(&untimed), gap(2, 20, 0));
    assert_eq!(tracker.judge(&at(4, 1040)), PacketClass::Next);
}

#[test]
fn after_a_restart_only_time_counts() {
    let mut tracker = tracker();
    tracker.restart();
    assert_eq!(tracker.judge(&at(0, 1055)), gap(5, 45, 0));
    assert_eq!(tracker.judge(&at(1, 1065)), PacketClass::Next);
}

#[test]
fn nonsense_changes_nothing_and_a_clock_set_back_is_followed() {
    let mut tracker = Tracker::new(SPP, 4);
    assert_eq!(tracker.judge(&at(0, 1 << 62)), PacketClass::Next);
    assert_eq!(tracker.judge(&at(1, (1 << 62) + 43)), PacketClass::Nonsense);
    assert_eq!(tracker.judge(&at(1, 1)), PacketClass::Nonsense);
    assert_eq!(tracker.judge(&at(1, (1 << 62) + 4 * SPP)), PacketClass::Next);
    assert_eq!(tracker.judge(&at(2, (1 << 62) - 400)), jump(0, -480));
    assert_eq!(tracker.judge(&at(3, (1 << 62) - 400 + 4 * SPP)), PacketClass::Next);
}

#[test]
fn a_clock_set_back_where_packets_are_lost_is_believed_at_the_second_packet() {
    let mut tracker = tracker();
    assert_eq!(tracker.judge(&at(3, 500)), PacketClass::Nonsense, "anybody can write that");
    assert_eq!(tracker.judge(&at(4, 777)), PacketClass::Nonsense, "and this does not confirm it");
    assert_eq!(tracker.judge(&at(5, 787)), jump(4, 787 - 1050));
    assert_eq!(tracker.judge(&at(6, 797)), PacketClass::Next);
    // From before the jump.
    assert_eq!(tracker.judge(&at(2, 1020)), LATE);
    assert_eq!(tracker.judge(&at(0, 1000)), PacketClass::Duplicate);
    // Less time than the lost packets have.
    assert_eq!(tracker.judge(&at(9, 822)), PacketClass::Nonsense);
    tracker.suspect(&at(10, 832));
    assert_eq!(tracker.judge(&at(9, 822)), jump(2, 822 - 827));
}

#[test]
fn two_packets_confirm_a_clock_set_back_though_they_are_no_neighbours() {
    for (first, second) in [(9u16, 14u16), (14, 9)] {
        let mut tracker = tracker();
        let time = |seq: u16| 500 + u64::from(seq) * SPP;
        assert_eq!(tracker.judge(&at(first, time(first))), PacketClass::Nonsense);
        assert_eq!(tracker.judge(&at(first, time(first))), PacketClass::Nonsense, "a copy of it");
        let lost = u64::from(second) - 1;
        assert_eq!(tracker.judge(&at(second, time(second))), jump(lost, -500), "{first}");
    }
    // A short packet ends a burst.
    let mut tracker = tracker();
    assert_eq!(tracker.judge(&Arrival { samples: 3, ..at(9, 590) }), PacketClass::Nonsense);
    assert_eq!(tracker.judge(&at(11, 603)), jump(10, 603 - 1110));
}

#[test]
fn a_packet_whose_time_is_due_is_next_whatever_its_number_says() {
    let mut tracker = tracker();
    let mut due = 1;
    for bit in 0..16 {
        for flip in [1u16 << bit, 0] {
            let arrival = at(due ^ flip, 1000 + u64::from(due) * SPP);
            assert_eq!(tracker.missing_before(&arrival), 0, "it does not wait");
            assert_eq!(tracker.judge(&arrival), PacketClass::Next, "bit {bit}");
            due += 1;
        }
    }
    // Behind a loss the result is the same.
    assert_eq!(tracker.judge(&at(due + 2, 1020 + u64::from(due) * SPP)), gap(2, 20, 0));
}

#[test]
fn a_number_that_goes_on_from_one_that_was_not_due_is_the_devices_own() {
    let mut tracker = tracker();
    assert_eq!(tracker.judge(&at(4, 1010)), PacketClass::Next);
    // Three packets were lost, and the clock was set back by as much meanwhile.
    assert_eq!(tracker.judge(&at(5, 1020)), jump(3, -30));
    assert_eq!(tracker.judge(&at(6, 1030)), PacketClass::Next);
    // The numbers were restarted.
    assert_eq!(tracker.judge(&at(0, 1040)), PacketClass::Next);
    assert_eq!(tracker.judge(&at(1, 1050)), PacketClass::Next);
    assert_eq!(tracker.judge(&at(3, 1070)), gap(1, 10, 0));
}

#[test]
fn a_clock_set_far_ahead_is_followed_when_a_second_packet_confirms_it() {
    let mut tracker = Tracker::new(SPP, 1);
    tracker.begin(Some(1000));
    for first in [0u16, 5] {
        let far = 1 << (50 + first);
        assert_eq!(tracker.judge(&at(first, far)), PacketClass::Nonsense);
        let PacketClass::After(gap) = tracker.judge(&at(first + 1, far + SPP)) else { panic!() };
        assert_eq!((gap.packets, gap.in_packets, gap.unsent), (1, 10, 0));
        assert!(gap.jump > 1 << 48, "{gap:?}");
        for next in 2..5 {
            let ticks = far + u64::from(next) * SPP;
            assert_eq!(tracker.judge(&at(first + next, ticks)), PacketClass::Next);
        }
    }
}

#[test]
fn damage_is_remembered_by_number() {
    let mut tracker = tracker();
    assert_eq!(tracker.damage(2), Damage::Noted);
    assert_eq!(tracker.damage(0), Damage::OfCopy);
    assert_eq!(tracker.damage(30_000), Damage::Unknown);
    let gap = PacketGap { packets: 3, damaged: 10, in_packets: 30, ..PacketGap::default() };
    assert_eq!(tracker.judge(&at(4, 1040)), PacketClass::After(gap));
    assert_eq!(tracker.damage(1), Damage::OfMissing);
    assert_eq!(tracker.judge(&at(1, 1010)), PacketClass::Late { damaged: true });
    assert_eq!(tracker.judge(&at(3, 1030)), LATE);
    assert_eq!(tracker.judge(&at(3, 1030)), PacketClass::Duplicate);
}

#[test]
fn a_clock_that_was_set_between_two_samples_is_a_jump_and_not_a_loss() {
    let mut tracker = Tracker::new(SPP, 16);
    assert_eq!(tracker.judge(&at(0, 1000)), PacketClass::Next);
    assert_eq!(tracker.judge(&at(1, 1160)), PacketClass::Next);
    // Whole samples are missing.
    assert_eq!(tracker.judge(&at(2, 1320 + 3 * 16)), gap(0, 0, 3));
    // The next packet confirms the new time.
    assert_eq!(tracker.judge(&at(3, 1528 + 5)), PacketClass::Nonsense);
    assert_eq!(tracker.judge(&at(4, 1528 + 5 + 160)), jump(1, 5));
    assert_eq!(tracker.judge(&at(5, 1528 + 5 + 320)), PacketClass::Next);
}

/// Returns a tracker whose numbers were restarted, and that is at number 100 and time 9000.
fn renumbered() -> Tracker {
    let mut tracker = tracker();
    tracker.restart();
    for index in 0..100 {
        assert!(!matches!(tracker.judge(&at(index, 8000 + 10 * u64::from(index))), LATE));
    }
    tracker
}

#[test]
fn packets_with_numbers_from_before_a_restart_set_no_clock() {
    let mut tracker = renumbered();
    // Delayed packets, of numbers that come next by chance; some follow each other.
    for (seq, ticks) in [(100, 5000), (102, 5020), (103, 5030), (104, 5040), (100, 5000)] {
        assert!(tracker.is_unconfirmed(&at(seq, ticks)));
        assert_eq!(tracker.judge(&at(seq, ticks)), PacketClass::Nonsense);
    }
    assert_eq!(tracker.judge(&at(100, 9000)), PacketClass::Next);
    // Long after the restart one packet is enough.
    for index in 101..101 + SETTLING {
        assert_eq!(tracker.judge(&at(index, 8000 + 10 * u64::from(index))), PacketClass::Next);
    }
    assert!(
        matches!(tracker.judge(&at(101 + SETTLING, 5000)), PacketClass::After(gap) if gap.jump < 0)
    );
}

#[test]
fn a_clock_set_back_after_a_restart_of_the_numbers_is_confirmed_by_the_fourth_packet() {
    let mut tracker = renumbered();
    for index in 0..3 {
        let packet = at(100 + index, 5000 + 10 * u64::from(index));
        assert_eq!(tracker.judge(&packet), PacketClass::Nonsense);
    }
    assert_eq!(tracker.judge(&at(103, 5030)), jump(3, 5030 - 9000 - 30));
    assert_eq!(tracker.judge(&at(104, 5040)), PacketClass::Next);
}

#[test]
fn a_packet_is_far_back_by_number_and_time() {
    let tracker = renumbered();
    let far = [164, 4000, 0x8000, 0xf000];
    assert!(far.iter().all(|seq| tracker.is_far_back(&at(*seq, 5000))));
    let near = [99, 100, 163, 0xfff0];
    assert!(!near.iter().any(|seq| tracker.is_far_back(&at(*seq, 5000))));
    assert!(!tracker.is_far_back(&at(164, 9000)), "its time is to come");
    assert!(!tracker.is_far_back(&Arrival { ticks: None, ..at(164, 0) }));
}

#[test]
fn earlier_starts_are_those_before_the_awaited_one_until_that_came() {
    let mut tracker = tracker();
    tracker.set_interrupted(Some(2000));
    assert!(!tracker.is_earlier_start(Some(2000)) && !tracker.is_earlier_start(None));
    tracker.set_interrupted(Some(3000));
    assert!(tracker.is_earlier_start(Some(2000)) && !tracker.is_earlier_start(Some(2001)));
    tracker.set_interrupted(None);
    assert!(!tracker.is_earlier_start(Some(2000)));
}

#[test]
fn packets_delayed_past_a_restart_of_the_numbers_do_not_set_them() {
    let mut tracker = tracker();
    tracker.restart();
    // Two old ones, then the first new one.
    assert_eq!(tracker.judge(&at(70, 1700)), gap(69, 690, 0));
    assert_eq!(tracker.judge(&at(72, 1720)), gap(1, 10, 0));
    let new = at(3, 1760);
    assert!(!tracker.disown_delayed(&at(3, 1700)), "it is old, too");
    assert!(tracker.disown_delayed(&new) && tracker.has_restarted());
    assert_eq!(tracker.judge(&new), gap(3, 30, 0));
    assert_eq!(tracker.judge(&at(4, 1770)), PacketClass::Next);
    // Far behind a restart, a packet that was delayed changes nothing.
    let mut tracker = renumbered();
    assert!(!tracker.disown_delayed(&at(50, 9100)));
}

#[test]
fn packets_that_are_passed_over_are_among_those_since_the_restart() {
    let mut passed = renumbered();
    (100..SETTLING - 1).for_each(|_| passed.note_passed_over());
    assert!(passed.is_settling());
    passed.note_passed_over();
    assert!(!passed.is_settling());
    // They are old ones for certain, and not among the first that were taken.
    let mut tracker = tracker();
    tracker.restart();
    assert_eq!(tracker.judge(&at(70, 1700)), gap(69, 690, 0));
    (0..40).for_each(|_| tracker.note_passed_over());
    assert!(tracker.disown_delayed(&at(50, 1760)));
}
