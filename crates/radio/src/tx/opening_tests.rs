//! Tests of the opening of a stream to the device, by packets and time.

use proptest::prelude::*;

use super::*;
use crate::opening::bench::{FakeEndpoint, drive, path};

/// Opens a stream; `loses` is asked for each packet.
fn open(
    device: &mut FakeEndpoint,
    loses: impl FnMut(usize) -> bool,
) -> (Result<Opened, RadioError>, Duration, usize) {
    let path = path();
    let outcome = drive(TxOpening::new(&path), device, loses);
    if let Ok(opened) = &outcome.0 {
        assert_eq!(device.counts, (0, 0), "both sides count from zero");
        let period = opened.window.period();
        assert_eq!(device.period, (period.packets, period.bytes));
        assert_eq!(opened.window.capacity_bytes(), 1 << 16);
    }
    outcome
}

#[test]
fn without_a_loss_no_time_out_is_waited_for() {
    let mut device = FakeEndpoint::default();
    let (outcome, took, packets) = open(&mut device, |_| false);
    assert!(outcome.is_ok());
    assert_eq!((device.inits, packets), (2, 8 + 2 + 2));
    assert!(took < Duration::from_millis(1), "{took:?}");
}

#[test]
fn the_loss_of_any_packet_costs_one_time_out() {
    for lost in 0..12 {
        let mut device = FakeEndpoint::default();
        let (outcome, took, _) = open(&mut device, |packet| packet == lost);
        assert!(outcome.is_ok(), "{lost}");
        assert!(took <= ANSWER_TIMEOUT + Duration::from_millis(1), "{lost}: {took:?}");
    }
}

#[test]
fn a_device_that_answers_no_init_ends_the_opening() {
    // The paths are made, then all is lost.
    let (outcome, took, packets) = open(&mut FakeEndpoint::default(), |packet| packet >= 8);
    let error = outcome.err().unwrap().to_string();
    assert!(error.contains("did not answer the opening of a stream (8 attempts of 200"), "{error}");
    assert_eq!(packets, 8 + 8);
    assert!(took >= 8 * ANSWER_TIMEOUT && took < 9 * ANSWER_TIMEOUT, "{took:?}");
}

proptest! {
    /// Whatever is lost, an opening ends: with equal counts on both sides, or with an error.
    #[test]
    fn any_losses_end_in_time(losses in prop::collection::vec(0u8..10, 400), share in 0u8..8) {
        let (outcome, took, packets) =
            open(&mut FakeEndpoint::default(), |packet| losses[packet % 400] < share);
        prop_assert!(packets > 0 && took < Duration::from_secs(15));
        if share == 0 {
            prop_assert!(outcome.is_ok());
        }
    }
}
