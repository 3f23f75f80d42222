//! Tests of the reports of lateness.

use super::*;

/// Sends a burst of packets from `ticks` on.
fn send(lates: &mut PendingBursts, ticks: u64, packets: &[u64]) -> u64 {
    let mut next = ticks;
    for (index, samples) in packets.iter().enumerate() {
        lates.packet(*samples, Some(next), index + 1 == packets.len());
        next += samples;
    }
    next - 1
}

#[test]
fn an_acknowledgement_a_few_ticks_away_is_of_its_burst() {
    let mut lates = PendingBursts::new(100, 16);
    lates.packet(100, Some(1000), true);
    lates.packet(50, Some(9000), true);
    lates.acknowledge(1000 + 100 * 16 - 1 + 70);
    assert_eq!(lates.bursts.len(), 2, "too far away");
    lates.acknowledge(1000 + 100 * 16 - 1 + 2);
    assert_eq!(lates.bursts.len(), 1);
    lates.acknowledge(9000 + 50 * 16 - 1);
    assert!(!lates.is_unacknowledged(true));
}

#[test]
fn an_acknowledgement_of_another_time_is_of_the_only_burst() {
    let mut lates = PendingBursts::new(100, 1);
    send(&mut lates, 1000, &[100, 30]);
    assert_eq!(lates.late(), 100);
    // The clock was set meanwhile.
    assert_eq!(lates.acknowledge(77_000), 0);
    assert!(!lates.is_unacknowledged(true));
    send(&mut lates, 2000, &[100, 30]);
    send(&mut lates, 3000, &[40]);
    lates.acknowledge(77_000);
    assert_eq!((lates.bursts.len(), lates.ambiguous()), (2, 1));
}

#[test]
fn behind_a_flush_a_report_may_be_about_a_packet_of_another_length() {
    let mut lates = PendingBursts::new(100, 1);
    lates.packet(100, Some(0), false);
    lates.packet(30, Some(100), false);
    lates.packet(0, Some(130), true);
    lates.run_dry();
    assert_eq!((lates.late(), lates.ambiguous()), (100, 1));
    assert_eq!((lates.close(true), lates.unreported_samples(true)), (0, 30));
    assert_eq!(lates.ambiguous(), 2, "the short packet may have been the late one");
}

#[test]
fn a_short_packet_that_is_its_own_burst_is_known() {
    let mut lates = PendingBursts::new(100, 1);
    let first = send(&mut lates, 1000, &[30]);
    send(&mut lates, 2000, &[40]);
    let third = send(&mut lates, 3000, &[50]);
    assert_eq!(lates.acknowledge(first), 0);
    assert_eq!(lates.late(), 40);
    assert!(lates.is_waiting());
    assert_eq!(lates.acknowledge(third), 0);
    assert!(!lates.is_waiting());
}

#[test]
fn the_head_of_a_burst_is_full_packets() {
    let mut lates = PendingBursts::new(100, 1);
    let last = send(&mut lates, 1000, &[100, 100, 7]);
    assert_eq!((lates.late(), lates.late()), (100, 100));
    assert_eq!(lates.acknowledge(last), 0);
    send(&mut lates, 5000, &[100, 100, 7]);
    assert_eq!((lates.late(), lates.late(), lates.late()), (100, 100, 7));
    assert!(!lates.is_waiting());
}

#[test]
fn a_tail_that_is_late_shows_when_its_acknowledgement_does_not_come() {
    let mut lates = PendingBursts::new(100, 1);
    send(&mut lates, 1000, &[100, 100, 7]);
    let second = send(&mut lates, 5000, &[100, 9]);
    assert_eq!(lates.late(), 100, "it was the last one");
    assert_eq!(lates.acknowledge(second), 93);
    send(&mut lates, 9000, &[100, 9]);
    assert_eq!(lates.late(), 100);
    assert_eq!(lates.close(true), 91);
}

#[test]
fn short_packets_in_the_middle_of_a_burst_count_what_they_hold() {
    let mut lates = PendingBursts::new(100, 1);
    let last = send(&mut lates, 1000, &[50, 60, 100, 100, 7, 0]);
    assert_eq!((lates.late(), lates.late()), (50, 60));
    assert_eq!((lates.late(), lates.late(), lates.late()), (100, 100, 7));
    assert!(lates.is_waiting());
    assert_eq!((lates.acknowledge(last + 1), lates.is_waiting()), (0, false));
    send(&mut lates, 5000, &[50, 60]);
    let third = send(&mut lates, 9000, &[100, 9]);
    assert_eq!((lates.late(), lates.late()), (50, 60));
    assert_eq!(lates.acknowledge(third), 0);
}

#[test]
fn a_report_that_may_be_about_the_next_burst_is_counted() {
    let mut lates = PendingBursts::new(100, 1);
    send(&mut lates, 1000, &[100, 100, 7]);
    send(&mut lates, 5000, &[100, 9]);
    assert!(lates.is_waiting());
    assert_eq!((lates.late(), lates.ambiguous()), (100, 0));
    assert_eq!((lates.late(), lates.ambiguous()), (100, 1));
    assert!(lates.is_unacknowledged(true) && !lates.is_waiting(), "both ends may have been late");
}

#[test]
fn a_report_before_anything_was_sent_is_about_another_stream() {
    let mut lates = PendingBursts::new(100, 1);
    assert_eq!(lates.late(), 0);
    lates.packet(10, None, true);
    assert_eq!((lates.late(), lates.late()), (10, 100));
}

#[test]
fn behind_as_many_messages_as_a_radio_keeps_a_burst_is_bounded_by_its_samples() {
    for (lates, unreported) in [(HELD - 3, 0), (HELD - 2, 107)] {
        let mut pending = PendingBursts::new(100, 1);
        let first = send(&mut pending, 1000, &[100; 40]);
        let second = send(&mut pending, 9000, &[100, 7]);
        (0..lates).for_each(|_| assert_eq!(pending.late(), 100));
        pending.acknowledge(first);
        let of_first = pending.unreported_samples(true);
        pending.acknowledge(second);
        assert_eq!(pending.unreported_samples(true) - of_first, unreported, "{lates} reports");
    }
}

#[test]
fn bursts_without_time_are_acknowledged_in_turn() {
    let mut lates = PendingBursts::new(100, 1);
    for _ in 0..2 * BURSTS {
        lates.packet(10, None, true);
    }
    for _ in 0..BURSTS {
        assert!(lates.is_waiting());
        assert_eq!(lates.acknowledge(77), 0);
    }
    assert!(!lates.is_waiting());
    assert_eq!((lates.acknowledge(77), lates.late()), (0, 100));
}
