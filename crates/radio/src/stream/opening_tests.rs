//! Tests of the opening of a stream to the host, by packets and time.

use millstream_link::port::Capabilities;
use millstream_wire::chdr::DataRepr;
use millstream_wire::regs::sep::STATUS_SETUP_PENDING;
use proptest::prelude::*;

use super::*;
use crate::opening::bench::{DEVICE, FakeEndpoint, HOST, WIDTH, drive, path};

fn credit() -> Credit {
    let mut queue = Capabilities::new(1000, 64);
    queue.recv_queue_bytes = 1 << 16;
    Credit::new(&queue, 1000)
}

/// Opens a stream; `loses` is asked for each packet.
fn open(
    device: &mut FakeEndpoint,
    loses: impl FnMut(usize) -> bool,
) -> (Result<u64, RadioError>, Duration, usize) {
    let (outcome, took, packets) = drive(RxOpening::new(path(), credit()), device, loses);
    if let Ok((_, credit)) = &outcome {
        assert_eq!(device.credit.map(|report| report.count_bytes), Some(0));
        let granted = device.credit.map(|report| report.capacity_bytes);
        assert_eq!(granted, Some(credit.capacity_bytes()));
    }
    (outcome.map(|(skipped, _)| skipped.whole), took, packets)
}

#[test]
fn without_a_loss_no_time_out_is_waited_for() {
    let (outcome, took, packets) = open(&mut FakeEndpoint::default(), |_| false);
    assert_eq!((outcome.unwrap(), packets), (0, 14));
    assert!(took < PAUSE, "{took:?}");
}

#[test]
fn the_loss_of_any_packet_costs_little_time() {
    for lost in 0..14 {
        let (outcome, took, _) = open(&mut FakeEndpoint::default(), |packet| packet == lost);
        assert_eq!(outcome.unwrap(), 0, "{lost}");
        assert!(took <= INIT_TIMEOUT + 2 * PAUSE, "{lost}: {took:?}");
    }
}

#[test]
fn a_device_without_an_answer_is_named_with_the_question() {
    for (from, text) in [
        (0, "did not answer an advertisement (10 attempts of 100 ms)"),
        (4, "did not answer the route to an endpoint (10 attempts of 100 ms)"),
        (6, "did not answer the reset of an endpoint (10 attempts of 100 ms)"),
        (8, "did not answer the configuration of a stream (10 attempts of 100 ms)"),
    ] {
        let (outcome, took, _) = open(&mut FakeEndpoint::default(), |packet| packet >= from);
        let error = outcome.unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
        assert!(took >= Duration::from_secs(1) && took < Duration::from_millis(1010), "{took:?}");
    }
}

#[test]
fn states_of_the_endpoint_end_the_opening_or_another_attempt() {
    let mut device = FakeEndpoint { says: Some(STATUS_SETUP_ERROR), ..FakeEndpoint::default() };
    let error = open(&mut device, |_| false).0.unwrap_err().to_string();
    assert!(error.contains("an error in the stream set-up"), "{error}");
    let mut device = FakeEndpoint { says: Some(STATUS_SETUP_PENDING), ..FakeEndpoint::default() };
    let (outcome, took, _) = open(&mut device, |_| false);
    let error = outcome.unwrap_err().to_string();
    assert!(error.contains("did not answer the opening of a stream (8 attempts"), "{error}");
    assert!(took >= TRIES * STATUS_POLLS * PAUSE, "{took:?}");
    let mut device = FakeEndpoint { is_transport: true, ..FakeEndpoint::default() };
    let error = open(&mut device, |_| false).0.unwrap_err().to_string();
    assert!(error.contains("leads to no stream endpoint"), "{error}");
}

#[test]
fn samples_that_come_meanwhile_are_counted_once_and_give_their_credit_back() {
    let (path, mut now) = (path(), Instant::now());
    let data = |seq| {
        let repr = DataRepr {
            dst_epid: HOST,
            seq,
            timestamp: Some(u64::from(seq)),
            payload_len: 400,
            ..DataRepr::default()
        };
        let mut bytes = vec![0; repr.packet_len(WIDTH)];
        repr.emit(WIDTH, &mut bytes).unwrap();
        bytes
    };
    let mut opening = RxOpening::new(path, credit());
    opening.stage = Stage::AskingState { attempt: 0, poll: 0 };
    opening.asker.ask(opening.state());
    assert!(matches!(opening.step(now, &mut [0; 4096]), Ok(OpeningStep::Send(_))));
    for seq in [0, 1, 1] {
        opening.note_datagram(&data(seq), DEVICE, &path);
    }
    opening.note_datagram(&data(2)[..24], DEVICE, &path);
    assert_eq!(opening.skipped.damaged, 1);
    now += PAUSE;
    let answer = Op::CfgReadResp { address: OSTRM_CTRL_STATUS, value: STATUS_FC_ENABLED };
    opening.note_state([0, 0], &[answer], now).unwrap();
    assert_eq!((opening.skipped.whole, matches!(opening.stage, Stage::Open)), (2, true));
    let report = opening.credit.report(path.endpoint.epid, HOST);
    assert_eq!((report.count_packets, report.count_bytes), (2, 2 * 416));
}

proptest! {
    /// Whatever is lost, an opening ends: with equal counts on both sides, or with an error.
    #[test]
    fn any_losses_end_in_time(losses in prop::collection::vec(0u8..10, 400), share in 0u8..8) {
        let (outcome, took, packets) =
            open(&mut FakeEndpoint::default(), |packet| losses[packet % 400] < share);
        prop_assert!(packets > 0 && took < Duration::from_secs(30));
        if share == 0 {
            prop_assert!(outcome.is_ok());
        }
    }

    #[test]
    fn any_bytes_are_passed_over(payload in prop::collection::vec(any::<u8>(), 0..80)) {
        let path = path();
        let mut opening = RxOpening::new(path, credit());
        let mut out = [0; 4096];
        prop_assert!(matches!(opening.step(Instant::now(), &mut out), Ok(OpeningStep::Send(_))));
        opening.note_datagram(&payload, DEVICE, &path);
    }
}
