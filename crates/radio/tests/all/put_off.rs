//! Tests of credit reports that the link cannot take: reports are totals, so no sample waits for
//! one.

use std::io::ErrorKind;

use millstream_radio::{Complex32, Device, RxError};

use crate::common::{Action, Meddler, PATIENCE, args, meddled, patient, radio, receive};

/// The reports before the link fails: that of the handshake, and some of the stream.
const GOOD: u64 = 4;

/// Returns a port that applies `action` to credit reports, by their number from 0.
fn reports(mut action: impl FnMut(u64) -> Action + Send + 'static) -> Meddler {
    let mut count = 0;
    Meddler::new(|_| Action::Pass).sent(move |packet| {
        if packet.get(6).is_none_or(|byte| byte >> 5 != 1) {
            return Action::Pass;
        }
        count += 1;
        action(count - 1)
    })
}

#[test]
fn a_report_that_the_link_has_no_room_for_is_made_later_and_costs_no_sample() {
    const REFUSED: u64 = 200;
    let refused = GOOD..GOOD + REFUSED;
    let meddler = reports(move |count| {
        let error = Action::Fail(ErrorKind::WouldBlock);
        if refused.contains(&count) { error } else { Action::Pass }
    });
    let (_radio, mut args_of) = radio(patient());
    args_of.open_port = Some(meddler.open_port());
    // On a busy machine the radio's thread may rest for longer than the usual limit.
    args_of.silence_max = PATIENCE;
    let mut device = Device::open(args_of).unwrap();
    device.set_rate(1e6).unwrap();
    // About 80 packets: all of them come, and then the device waits, before the link has space.
    let mut stream = device.rx_stream(args().with_recv_queue_bytes(64 << 10)).unwrap();
    stream.start_finite(200_000, None).unwrap();
    let brought = receive(&mut stream, u64::MAX);
    let counters = stream.counters();
    assert_eq!((brought.samples, brought.events, brought.ended), (200_000, vec![], true));
    assert_eq!(counters.reports_put_off, REFUSED, "{counters:?}");
    assert!(counters.reports > GOOD, "{counters:?}");
    assert_eq!(counters.overruns + counters.stalls, 0, "{counters:?}");
    assert_eq!(stream.finish().balance(), Ok(()));
}

#[test]
fn a_link_that_is_gone_ends_the_stream_with_its_reason() {
    let meddler = reports(|count| match count {
        0..GOOD => Action::Pass,
        _ => Action::Fail(ErrorKind::NetworkDown),
    });
    let (_radio, device) = meddled(meddler, 1e6);
    let mut stream = device.rx_stream(args().with_recv_queue_bytes(64 << 10)).unwrap();
    stream.start_continuous(None).unwrap();
    let mut buffer = vec![Complex32::default(); 5000];
    let error = loop {
        if let Err(error) = stream.recv(&mut buffer, PATIENCE) {
            break error;
        }
    };
    assert!(matches!(error, RxError::Radio(_)), "{error:?}");
    let text = error.to_string();
    assert!(text.contains("send to 127.0.0.1"), "{text}");
    assert_eq!(stream.counters().reports_put_off, 0);
}
