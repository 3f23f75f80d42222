//! Tests of bursts with time: on time, late, with an underflow, far ahead.

use std::thread;
use std::time::Duration;

use crate::common::{Action, Meddler, PATIENCE, device, meddled};
use millstream_radio::{TxArgs, TxCause, TxEvent, TxMetadata, TxSent, TxStreamer};
use millstream_wire::Width;
use millstream_wire::chdr::Packet;
use millstream_wire::ctrl::CtrlRepr;

const RATE_HZ: f64 = 1e6;

/// A radio transmits, and acknowledges, so many ticks later than it was told.
const PATH_TICKS: u64 = 2;

fn zeros(count: usize) -> Vec<[i16; 2]> {
    vec![[0; 2]; count]
}

fn send(stream: &mut TxStreamer, count: usize, meta: TxMetadata) {
    let sent = stream.send(&zeros(count), meta, PATIENCE).expect("the device lives");
    assert_eq!(sent, TxSent { samples: count, end_of_burst: meta.end_of_burst });
}

fn event(stream: &mut TxStreamer) -> TxEvent {
    stream.next_event(PATIENCE).expect("the device lives").expect("there is an event").1
}

#[test]
fn a_burst_on_time_is_acknowledged_at_its_last_sample() {
    let (radio, device) = device(RATE_HZ);
    let mut stream = device.tx_stream(TxArgs::new(0)).unwrap();
    for samples in [1, 999, 30_000] {
        let at = device.time_ticks().unwrap() + 300_000;
        send(&mut stream, samples, TxMetadata::at(at).ending());
        let time_ticks = at + samples as u64 - 1 + PATH_TICKS;
        assert_eq!(event(&mut stream), TxEvent::BurstAck { time_ticks });
    }
    let ledger = stream.finish_within(Duration::MAX);
    assert_eq!((ledger.transmitted, ledger.lost_total()), (31_000, 0));
    assert_eq!(radio.counters().tx_samples, 31_000);
}

#[test]
fn late_bursts_are_counted_to_the_sample() {
    let (radio, device) = device(RATE_HZ);
    let mut stream = device.tx_stream(TxArgs::new(0).with_samples_per_packet(100)).unwrap();
    let mut lates = 0;
    for samples in [70, 100, 250, 1, 330] {
        send(&mut stream, samples, TxMetadata::at(1).ending());
        for _ in 0..samples.div_ceil(100) {
            assert!(matches!(event(&mut stream), TxEvent::Late { .. }));
            lates += 1;
        }
    }
    let at = device.time_ticks().unwrap() + 300_000;
    send(&mut stream, 150, TxMetadata::at(at).ending());
    assert_eq!(event(&mut stream), TxEvent::BurstAck { time_ticks: at + 149 + PATH_TICKS });
    assert_eq!(stream.counters().lates, lates);
    let ledger = stream.finish();
    assert_eq!((ledger.lost(TxCause::Late), ledger.transmitted), (751, 150));
    assert_eq!(ledger.balance(), Ok(()));
    assert_eq!(radio.counters().tx_late_samples, 751);
}

#[test]
fn late_packets_that_were_flushed_count_what_they_hold() {
    let (radio, device) = device(RATE_HZ);
    let mut stream = device.tx_stream(TxArgs::new(0).with_samples_per_packet(1000)).unwrap();
    for turn in 0..20 {
        send(&mut stream, 50 + turn, TxMetadata::at(1));
        stream.flush().unwrap();
    }
    let late = 20 * 50 + 190;
    for _ in 0..20 {
        assert!(matches!(event(&mut stream), TxEvent::Late { .. }));
    }
    let at = device.time_ticks().unwrap() + 300_000;
    send(&mut stream, 2000, TxMetadata::at(at).ending());
    assert_eq!(event(&mut stream), TxEvent::BurstAck { time_ticks: at + 1999 + PATH_TICKS });
    let ledger = stream.finish();
    assert_eq!(radio.counters().tx_late_samples, late);
    assert_eq!((ledger.lost(TxCause::Late), ledger.transmitted), (late, 2000));
}

/// Returns the number of an asynchronous message.
fn message_seq(packet: &[u8]) -> Option<u8> {
    let packet = Packet::parse(packet, Width::W64).ok()?;
    CtrlRepr::parse(&packet).ok().filter(|repr| !repr.is_ack).map(|repr| repr.ctrl_seq)
}

#[test]
fn reports_that_come_twice_count_once() {
    let meddler = Meddler::new(|packet| match message_seq(packet) {
        Some(_) => Action::Twice,
        None => Action::Pass,
    });
    let (radio, device) = meddled(meddler, RATE_HZ);
    let mut stream = device.tx_stream(TxArgs::new(0).with_samples_per_packet(100)).unwrap();
    for samples in [70, 100, 50, 1] {
        send(&mut stream, samples, TxMetadata::at(1).ending());
    }
    for _ in 0..4 {
        assert!(matches!(event(&mut stream), TxEvent::Late { .. }));
    }
    let at = device.time_ticks().unwrap() + 300_000;
    send(&mut stream, 150, TxMetadata::at(at).ending());
    assert_eq!(event(&mut stream), TxEvent::BurstAck { time_ticks: at + 149 + PATH_TICKS });
    assert_eq!((stream.counters().lates, stream.counters().reports_missed), (4, 0));
    assert_eq!(stream.finish().balance(), Ok(()));
    assert_eq!(radio.counters().tx_late_packets, 4);
}

#[test]
fn a_lost_report_silences_those_behind_it_and_the_stream_ends_in_time() {
    let meddler = Meddler::new(|packet| match message_seq(packet) {
        Some(2) => Action::Drop,
        _ => Action::Pass,
    });
    let (radio, device) = meddled(meddler, RATE_HZ);
    let mut stream = device.tx_stream(TxArgs::new(0).with_samples_per_packet(100)).unwrap();
    for samples in [70, 100, 50, 1] {
        send(&mut stream, samples, TxMetadata::at(1).ending());
    }
    for _ in 0..2 {
        assert!(matches!(event(&mut stream), TxEvent::Late { .. }));
    }
    let at = device.time_ticks().unwrap() + 300_000;
    send(&mut stream, 150, TxMetadata::at(at).ending());
    let ledger = stream.finish();
    assert_eq!(ledger.balance(), Ok(()));
    assert_eq!(radio.counters().tx_late_packets, 4);
    // Two were not reported: what became of them and of the last burst is open.
    let open = ledger.lost_total() + ledger.unknown.lost_max;
    assert!(ledger.lost_total() <= 221 && open >= 221, "{ledger}");
}

#[test]
fn a_burst_whose_head_is_late_goes_on_in_time() {
    let (radio, device) = device(RATE_HZ);
    let mut stream = device.tx_stream(TxArgs::new(0).with_samples_per_packet(1000)).unwrap();
    // It extends half a second into the past, and as far ahead.
    device.set_time_now(1_000_000).unwrap();
    let from = device.time_ticks().unwrap() - 50_000;
    let mut sent = 0;
    while sent < 400_000 {
        let meta = TxMetadata { time_ticks: Some(from + sent), end_of_burst: sent == 399_000 };
        send(&mut stream, 1000, meta);
        sent += 1000;
    }
    loop {
        match event(&mut stream) {
            TxEvent::BurstAck { time_ticks } => {
                assert_eq!(time_ticks, from + 399_999 + PATH_TICKS);
                break;
            }
            TxEvent::Late { .. } | TxEvent::Underflow { .. } => {}
            other => panic!("{other:?}"),
        }
    }
    let ledger = stream.finish();
    let counters = radio.counters();
    // While a message waits for its acknowledgement, late packets have none.
    let late = ledger.lost(TxCause::Late);
    assert!(counters.tx_late_samples >= 50_000);
    assert!((late..=late + ledger.unknown.lost_max).contains(&counters.tx_late_samples));
    assert!(ledger.transmitted <= counters.tx_samples && ledger.balance() == Ok(()), "{ledger}");
}

#[test]
fn a_burst_that_runs_dry_reports_an_underflow_and_goes_on() {
    let (radio, device) = device(RATE_HZ);
    let mut stream = device.tx_stream(TxArgs::new(0)).unwrap();
    for _ in 0..3 {
        send(&mut stream, 5000, TxMetadata::now());
        stream.flush().unwrap();
        assert!(matches!(event(&mut stream), TxEvent::Underflow { .. }));
    }
    send(&mut stream, 5000, TxMetadata::now().ending());
    assert!(matches!(event(&mut stream), TxEvent::BurstAck { .. }));
    assert_eq!(stream.counters().underflows, 3);
    let ledger = stream.finish();
    assert_eq!((ledger.transmitted, ledger.lost_total()), (20_000, 0), "nothing is lost by it");
    assert_eq!(radio.counters().tx_samples, 20_000);
}

#[test]
fn a_device_that_waits_for_the_time_of_a_burst_is_not_a_stall() {
    let (radio, device) = device(RATE_HZ);
    let mut stream = device.tx_stream(TxArgs::new(0)).unwrap();
    // Far more than the window, and further ahead than the time of all count queries.
    let window_samples = stream.members()[0].credit_window_bytes() as usize / 4;
    let at = device.time_ticks().unwrap() + 1_500_000;
    let samples = zeros(window_samples + 100_000);
    let meta = TxMetadata::at(at).ending();
    let early = stream.send(&samples, meta, Duration::from_millis(5)).unwrap();
    assert!(early.samples < samples.len() && early.samples > window_samples / 2);
    let rest = &samples[early.samples..];
    let sent = stream.send(rest, TxMetadata::now().ending(), PATIENCE).unwrap();
    assert_eq!(sent.samples, rest.len());
    assert!(device.time_ticks().unwrap() > at);
    println!("{:?}", stream.counters());
    assert_eq!(stream.counters().reestablished, 0);
    let ledger = stream.finish();
    assert_eq!((ledger.transmitted, ledger.lost_total()), (samples.len() as u64, 0));
    assert_eq!(radio.counters().tx_samples, samples.len() as u64);
}

#[test]
fn finishing_waits_for_a_burst_that_is_still_to_come() {
    let (radio, device) = device(RATE_HZ);
    let mut stream = device.tx_stream(TxArgs::new(0)).unwrap();
    let at = device.time_ticks().unwrap() + 1_500_000;
    send(&mut stream, 10_000, TxMetadata::at(at));
    let ledger = stream.finish();
    assert_eq!((ledger.transmitted, ledger.lost_total()), (10_000, 0));
    assert_eq!(radio.counters().tx_samples, 10_001, "and a zero sample to end it");
}

#[test]
fn a_stream_that_is_dropped_ends_its_burst() {
    let (radio, device) = device(RATE_HZ);
    let mut stream = device.tx_stream(TxArgs::new(0)).unwrap();
    send(&mut stream, 3000, TxMetadata::now());
    drop(stream);
    thread::sleep(Duration::from_millis(50));
    assert_eq!((radio.counters().tx_samples, radio.counters().tx_burst_acks), (3000, 1));
    // The next stream begins without the earlier reports.
    let mut stream = device.tx_stream(TxArgs::new(0)).unwrap();
    assert_eq!(stream.poll_event().unwrap(), None);
}
