//! Tests of the schedule on a simulated clock, and of the accounting of a stream whose window loss
//! has closed.

use millstream_wire::stream::{PACKETS_UNLIMITED, StatusRepr, StreamPlace};

use super::*;
use crate::stream::StreamRate;
use crate::tx::accounting::{Opened, StatusEffect, TxAccounting};
use crate::tx::progress::Totals;
use crate::tx::window::CreditWindow;

const PERIOD: Duration = Duration::from_millis(7);
const ROUND_TRIP: Duration = Duration::from_millis(3);
const COMMAND: u64 = 24;
const FLOW: u64 = 416;
const CAPACITY: u64 = 8192;

/// Returns every moment with a step due, from the beginning of the silence.
fn schedule(step: Duration) -> Vec<(Duration, RecoveryStep)> {
    let start = Instant::now();
    let mut stall = SilentDevice::new(start, PERIOD);
    let mut found = Vec::new();
    for turn in 0.. {
        let after = step * turn;
        match stall.due(start + after) {
            RecoveryStep::Nothing => assert!(stall.next() > start + after),
            due => found.push((after, due)),
        }
        if matches!(found.last(), Some((_, RecoveryStep::Examination))) {
            break;
        }
    }
    found
}

#[test]
fn audits_are_due_as_the_bound_says() {
    let ms = |ms| PERIOD + Duration::from_millis(ms);
    let asks = [20, 60, 140, 300].map(|after| (ms(after), RecoveryStep::Query));
    let all: Vec<_> = asks.into_iter().chain([(ms(620), RecoveryStep::Examination)]).collect();
    assert_eq!(schedule(Duration::from_millis(1)), all);
    assert_eq!(all.last().unwrap().0, PERIOD + RECOVERY_MAX);
    assert_eq!(asks.len(), ASKS as usize);
}

#[test]
fn a_caller_that_comes_by_seldom_is_no_later_than_its_own_pauses() {
    let pause = Duration::from_millis(50);
    let found = schedule(pause);
    assert_eq!(found.len(), ASKS as usize + 1);
    assert!(found.last().unwrap().0 <= PERIOD + RECOVERY_MAX + pause * (ASKS + 1));
}

/// A device that lost all packets of samples, or all of whose reports were lost: it plays samples
/// at once, and answers all queries.
struct Device {
    counted: Totals,
    place: StreamPlace,
    status_seq: u16,
}

impl Device {
    fn status(&mut self) -> StatusRepr {
        let seq = self.status_seq;
        self.status_seq += 1;
        let Totals { packets, bytes } = self.counted;
        let error_info = self.place.to_info();
        let (count_packets, count_bytes) = (packets, bytes);
        StatusRepr { seq, count_packets, count_bytes, error_info, ..StatusRepr::default() }
    }
}

/// Returns the time from finding the window closed to its opening, when everything before was lost
/// and the first `lost` count queries are lost too; `None` when only the examination of the device
/// is left.
fn recovery(lost: u32, samples_arrive: bool) -> Option<Duration> {
    let window = CreditWindow::new(CAPACITY, PACKETS_UNLIMITED, COMMAND);
    let opened = Opened { window, status_seq: u16::MAX, tells_place: true };
    let mut account = TxAccounting::new(opened, 100, StreamRate::of_radio(1e6));
    let (counted, place) = (Totals::default(), StreamPlace::default());
    let mut device = Device { counted, place, status_seq: 0 };
    let mut accepted = 0;
    while account.room_packets(FLOW) > 0 {
        account.accept(100);
        account.send(FLOW, 100, None, false);
        accepted += 100;
        if samples_arrive {
            device.counted.packets += 1;
            device.counted.bytes += FLOW;
            device.place.expected += 1;
        }
    }
    let start = Instant::now();
    let mut stall = SilentDevice::new(start, PERIOD);
    loop {
        let now = stall.next();
        if stall.due(now) == RecoveryStep::Examination {
            return None;
        }
        assert!(account.has_room_for_query(0), "{stall:?}");
        let mut answers = Vec::new();
        let number = stall.asked as u16;
        account.send_query(number);
        if stall.asked > lost {
            device.counted.packets += 1;
            device.counted.bytes += COMMAND;
            device.place.command = number;
            answers.push(device.status());
        }
        let opened = answers.iter().filter(|status| {
            matches!(account.take(status), StatusEffect::Taken { news: true, .. })
        });
        if opened.count() > 0 {
            assert!(account.room_packets(FLOW) > 0);
            let arrived = if samples_arrive { accepted } else { 0 };
            let ledger = account.ledger();
            assert!(ledger.transmitted <= arrived && ledger.balance() == Ok(()), "{ledger}");
            assert!(lost > 0 || ledger.transmitted == arrived, "{ledger}");
            return Some(now - start + ROUND_TRIP);
        }
    }
}

#[test]
fn a_window_closed_by_loss_is_open_within_the_stated_bound() {
    for samples_arrive in [false, true] {
        for (lost, bound_ms) in [(0, 20), (1, 60), (2, 140), (3, 300)] {
            let bound = PERIOD + Duration::from_millis(bound_ms) + ROUND_TRIP;
            assert_eq!(recovery(lost, samples_arrive), Some(bound));
            assert!(bound < PERIOD + RECOVERY_MAX);
        }
        assert_eq!(recovery(ASKS, samples_arrive), None);
    }
}
