//! Tests that windows closed by loss open again.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{Action, Meddler, PATIENCE, device, is_data, meddled};
use millstream_radio::tx::RECOVERY_MAX;
use millstream_radio::{TxArgs, TxEvent, TxMetadata, TxSent, TxStreamer};

const BLACKOUT: Duration = Duration::from_millis(50);

fn samples(count: usize) -> Vec<[i16; 2]> {
    (0..count as u32).map(|n| [n as u16 as i16, (n >> 16) as u16 as i16]).collect()
}

fn is_status(packet: &[u8]) -> bool {
    packet.len() >= 8 && (packet[6] >> 5) & 7 == 1
}

fn is_init(packet: &[u8]) -> bool {
    packet.len() == 24 && (packet[6] >> 5) & 7 == 2 && packet[10] & 15 == 0
}

/// Drops all packets in either direction from the 200th data packet on, for a while.
fn blackout() -> Meddler {
    let begin = Arc::new(Mutex::new(None::<Instant>));
    let dark = {
        let begin = Arc::clone(&begin);
        move || begin.lock().unwrap().is_some_and(|at| at.elapsed() < BLACKOUT)
    };
    let received_dark = dark.clone();
    let mut count = 0;
    Meddler::new(
        move |packet| {
            if is_status(packet) && received_dark() { Action::Drop } else { Action::Pass }
        },
    )
    .sent(move |packet| {
        count += u64::from(is_data(packet));
        if count == 200 {
            begin.lock().unwrap().get_or_insert_with(Instant::now);
        }
        if dark() { Action::Drop } else { Action::Pass }
    })
}

/// Sends a burst of four million samples, call by call, with `timeout` for each.
fn send_through_blackout(timeout: Duration, pause: Duration) -> TxStreamer {
    let (radio, device) = meddled(blackout(), 4e6);
    let mut stream = device.tx_stream(TxArgs::new(0)).unwrap();
    let started = Instant::now();
    let samples = samples(4_000_000);
    let mut rest = &samples[..];
    loop {
        let sent = stream.send(rest, TxMetadata::now().ending(), timeout).unwrap();
        rest = &rest[sent.samples..];
        if sent.end_of_burst {
            break;
        }
        assert!(started.elapsed() < PATIENCE, "{stream:?}");
        thread::sleep(pause);
    }
    println!("{:?} {:?}", started.elapsed(), stream.counters());
    assert!(stream.drain(PATIENCE).unwrap());
    let (ledger, arrived) = (stream.ledger(), radio.counters().tx_bytes / 4);
    println!("{ledger}");
    let most = ledger.transmitted + ledger.unknown.samples - ledger.unknown.lost_min;
    assert!((ledger.transmitted..=most).contains(&arrived), "{arrived}");
    assert!(ledger.lost_total() + ledger.unknown.lost_max > 0);
    assert_eq!(ledger.balance(), Ok(()));
    stream
}

#[test]
fn a_window_closed_by_loss_opens_within_the_bound() {
    // Another test checks the bound of the schedule without delays of a machine; this one runs all
    // of it, where four million samples take a second and the rest is slack.
    let started = Instant::now();
    let stream = send_through_blackout(PATIENCE, Duration::ZERO);
    assert!(stream.counters().stalls >= 1);
    assert_eq!(stream.counters().reestablished, 0);
    assert!(started.elapsed() < BLACKOUT + RECOVERY_MAX + PATIENCE / 2);
}

#[test]
fn a_sender_that_never_waits_recovers_as_well() {
    let stream = send_through_blackout(Duration::ZERO, Duration::from_millis(1));
    assert!(stream.counters().stalls >= 1);
    assert_eq!(stream.counters().reestablished, 0);
}

#[test]
fn asking_again_and_again_whether_all_has_settled_takes_no_credit() {
    let (_radio, device) = device(1e6);
    let mut stream = device.tx_stream(TxArgs::new(0)).unwrap();
    let at = device.time_ticks().unwrap() + 200_000;
    stream.send(&samples(1000), TxMetadata::at(at).ending(), PATIENCE).unwrap();
    for _ in 0..100 {
        stream.drain(Duration::ZERO).unwrap();
    }
    assert!(stream.counters().queries < 10, "{:?}", stream.counters());
    assert!(stream.drain(PATIENCE).unwrap());
}

#[test]
fn a_device_that_forgot_the_stream_is_set_up_anew() {
    // No status arrives until there is another handshake.
    let armed = Arc::new(Mutex::new(false));
    let (deaf, whole) = (Arc::clone(&armed), Arc::clone(&armed));
    let meddler = Meddler::new(move |packet| {
        if is_status(packet) && *deaf.lock().unwrap() { Action::Drop } else { Action::Pass }
    })
    .sent(move |packet| {
        if is_init(packet) {
            *whole.lock().unwrap() = false;
        }
        Action::Pass
    });
    let (_radio, device) = meddled(meddler, 4e6);
    let mut stream = device.tx_stream(TxArgs::new(0)).unwrap();
    *armed.lock().unwrap() = true;
    let sent = stream.send(&samples(4_000_000), TxMetadata::now().ending(), PATIENCE);
    assert_eq!(sent.unwrap(), TxSent { samples: 4_000_000, end_of_burst: true });
    assert_eq!(stream.counters().reestablished, 1, "{stream:?}");
    let mut lost = 0;
    while let Some((_, event)) = stream.poll_event().unwrap() {
        if let TxEvent::Reestablished { samples } = event {
            lost += samples;
        }
    }
    let ledger = stream.finish();
    assert!(lost > 0);
    assert_eq!((ledger.unknown.samples, ledger.balance()), (lost, Ok(())));
}
