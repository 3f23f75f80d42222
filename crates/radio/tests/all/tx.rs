//! Tests of transmit streams to an emulated radio over loopback.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::{Action, Meddler, PATIENCE, device, is_data, meddled};
use millstream_radio::{
    Complex32, RadioError, TxArgs, TxCause, TxError, TxMetadata, TxSent, TxStreamer,
};
use millstream_wire::stream::PACKETS_UNLIMITED;

/// Returns samples that contain their own number.
fn samples(count: usize) -> Vec<[i16; 2]> {
    (0..count as u32).map(|n| [n as u16 as i16, (n >> 16) as u16 as i16]).collect()
}

fn send_all(stream: &mut TxStreamer, samples: &[[i16; 2]], meta: TxMetadata) {
    let sent = stream.send(samples, meta, PATIENCE).expect("the device lives");
    assert_eq!(sent, TxSent { samples: samples.len(), end_of_burst: meta.end_of_burst });
}

fn is_status(packet: &[u8]) -> bool {
    packet.len() >= 8 && (packet[6] >> 5) & 7 == 1
}

#[test]
fn a_million_samples_arrive() {
    let (radio, device) = device(4e6);
    let mut stream = device.tx_stream(TxArgs::new(0)).unwrap();
    send_all(&mut stream, &samples(1_000_000), TxMetadata::now().ending());
    assert!(!stream.is_in_burst());
    let counters = stream.counters();
    println!("{counters:?}");
    assert!(counters.trains < counters.packets / 4, "trains, not packets");
    let ledger = stream.finish();
    assert_eq!(
        (ledger.accepted, ledger.transmitted, ledger.balance()),
        (1_000_000, 1_000_000, Ok(()))
    );
    drop(device);
    let counters = radio.stop();
    assert_eq!((counters.tx_bytes, counters.tx_sequence_errors), (4_000_000, 0));
}

/// Returns the data packets of a burst that is divided into calls of these sizes, with times from
/// its start.
fn packets_of(sizes: &[usize], timed: bool) -> Vec<Vec<u8>> {
    let packets = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&packets);
    let meddler = Meddler::new(|_| Action::Pass).sent(move |packet| {
        if is_data(packet) {
            heard.lock().unwrap().push(packet.to_vec());
        }
        Action::Pass
    });
    let (_radio, device) = meddled(meddler, 4e6);
    let mut stream = device.tx_stream(TxArgs::new(1).with_samples_per_packet(100)).unwrap();
    let samples = samples(20_011);
    let at = timed.then(|| device.time_ticks().unwrap() + 400_000);
    let (mut done, mut turn) = (0, 0);
    while done < samples.len() {
        let size = sizes[turn % sizes.len()].min(samples.len() - done);
        let mut meta = TxMetadata::now();
        meta.time_ticks = at.map(|at| at + done as u64).filter(|_| turn % 2 == 0);
        meta.end_of_burst = done + size == samples.len();
        send_all(&mut stream, &samples[done..][..size], meta);
        (done, turn) = (done + size, turn + 1);
    }
    assert_eq!(stream.finish().transmitted, 20_011);
    let mut packets = std::mem::take(&mut *packets.lock().unwrap());
    for packet in &mut packets {
        // Each session has ids of its own.
        packet[..2].fill(0);
    }
    if let Some(at) = at {
        for packet in &mut packets {
            let ticks: &mut [u8; 8] = (&mut packet[8..16]).try_into().unwrap();
            *ticks = (u64::from_le_bytes(*ticks) - at).to_le_bytes();
        }
    }
    packets
}

#[test]
fn the_cut_into_calls_changes_no_byte_on_the_wire() {
    for timed in [false, true] {
        let whole = packets_of(&[usize::MAX], timed);
        assert_eq!(whole.len(), 201);
        for sizes in [&[1][..], &[7, 13, 101], &[100], &[99, 1], &[5000, 3]] {
            assert!(packets_of(sizes, timed) == whole, "{sizes:?}");
        }
    }
}

#[test]
fn lost_packets_are_booked_to_the_sample_and_do_not_stall() {
    let mut count = 0u64;
    let meddler = Meddler::new(|_| Action::Pass).sent(move |packet| {
        count += u64::from(is_data(packet));
        if is_data(packet) && count % 97 == 5 { Action::Drop } else { Action::Pass }
    });
    let (radio, device) = meddled(meddler, 4e6);
    let mut stream = device.tx_stream(TxArgs::new(0).with_samples_per_packet(500)).unwrap();
    let samples = samples(4_000_123);
    send_all(&mut stream, &samples, TxMetadata::now().ending());
    assert!(stream.drain(PATIENCE).unwrap());
    let counters = stream.counters();
    println!("{counters:?}");
    assert!(counters.sequence_errors > 50);
    let ledger = stream.finish();
    let arrived = radio.counters().tx_bytes / 4;
    assert_eq!(ledger.transmitted, arrived);
    assert_eq!(ledger.lost(TxCause::NetworkLoss), samples.len() as u64 - arrived);
    assert_eq!(ledger.balance(), Ok(()));
}

#[test]
fn a_device_that_has_gone_is_one_error() {
    let (radio, device) = device(4e6);
    let mut stream = device.tx_stream(TxArgs::new(0)).unwrap();
    send_all(&mut stream, &samples(10_000), TxMetadata::now());
    drop(radio);
    let samples = samples(10_000_000);
    let error = loop {
        match stream.send(&samples, TxMetadata::now(), PATIENCE) {
            Ok(sent) => assert!(sent.samples > 0),
            Err(error) => break error,
        }
    };
    match error {
        TxError::DeviceSilent { .. } => {
            assert!(error.to_string().contains("stopped answering"), "{error}");
        }
        // The kernel may report the closed port before the host detects the silence.
        TxError::Radio(RadioError::Io { .. }) => {}
        other => panic!("{other}"),
    }
    let ledger = stream.finish();
    assert!(ledger.unknown.samples > 0 && ledger.unknown.lost_max > 0);
    assert_eq!((ledger.in_flight, ledger.balance()), (0, Ok(())));
}

/// The statuses of a handshake: the answers to two INITs.
const HANDSHAKE_STATUSES: u64 = 2;

#[test]
fn partial_sends_say_how_far_they_came() {
    let meddler = Meddler::new({
        let mut statuses = 0;
        move |packet| {
            statuses += u64::from(is_status(packet));
            if is_status(packet) && statuses > HANDSHAKE_STATUSES {
                Action::Drop
            } else {
                Action::Pass
            }
        }
    });
    let (_radio, device) = meddled(meddler, 4e6);
    let mut stream = device.tx_stream(TxArgs::new(0)).unwrap();
    let samples = vec![Complex32::new(0.5, -0.5); 10_000_000];
    let meta = TxMetadata::now().ending();
    let sent = stream.send(&samples, meta, Duration::from_millis(5)).unwrap();
    assert!(sent.samples > 0 && sent.samples < samples.len() && !sent.end_of_burst, "{sent:?}");
    assert!(stream.is_in_burst());
    assert!(stream.members()[0].in_flight_bytes() <= stream.members()[0].credit_window_bytes());
    let none = stream.send(&samples[sent.samples..], meta, Duration::ZERO).unwrap();
    assert_eq!(none, TxSent::default());
    assert_eq!(stream.ledger().accepted, sent.samples as u64);
}

#[test]
fn a_burst_can_end_without_samples() {
    let (radio, device) = device(4e6);
    let mut stream = device.tx_stream(TxArgs::new(0).with_samples_per_packet(100)).unwrap();
    // With samples that wait for their packet, and after all were sent.
    for count in [150, 200] {
        send_all(&mut stream, &samples(count), TxMetadata::now());
        send_all(&mut stream, &[], TxMetadata::now().ending());
        // No burst is open, so there is none to end.
        send_all(&mut stream, &[], TxMetadata::now().ending());
    }
    assert_eq!((stream.counters().padding, stream.counters().bursts), (1, 2));
    assert_eq!(stream.finish().transmitted, 350);
    assert_eq!(radio.counters().tx_bytes, 351 * 4);
}

/// Returns the error of opening a stream when the device advertises this window.
fn refusal(bytes: u64, packets: u32) -> String {
    let meddler = Meddler::new(move |packet| {
        if !is_status(packet) {
            return Action::Pass;
        }
        let mut status = packet.to_vec();
        status[11..16].copy_from_slice(&bytes.to_le_bytes()[..5]);
        status[16..19].copy_from_slice(&packets.to_le_bytes()[..3]);
        Action::Replace(status)
    });
    let (_radio, device) = meddled(meddler, 4e6);
    let refused = device.tx_stream(TxArgs::new(0)).map(|stream| format!("{stream:?}"));
    refused.unwrap_err().to_string()
}

#[test]
fn a_window_too_small_for_a_packet_is_named() {
    let text = refusal(100, PACKETS_UNLIMITED);
    assert!(text.contains("its transmit window of 100 bytes is too small"), "{text}");
    let text = refusal(1 << 20, 4);
    assert!(text.contains("its transmit window of 4 packets is too small"), "{text}");
}

#[test]
fn one_stream_per_channel() {
    let (_radio, device) = device(4e6);
    assert_eq!(device.tx_channels(), 2);
    let stream = device.tx_stream(TxArgs::new(1)).unwrap();
    let busy = device.tx_stream(TxArgs::new(1)).unwrap_err();
    assert!(
        busy.to_string().contains("transmit channel 1 is already in use by a stream"),
        "{busy}"
    );
    let none = device.tx_stream(TxArgs::new(2)).unwrap_err();
    assert!(none.to_string().contains("there is no transmit channel 2"), "{none}");
    drop(stream);
    device.tx_stream(TxArgs::new(1)).unwrap();
}
