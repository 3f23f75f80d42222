//! Tests of a radio that processes four samples in a cycle, as an X410 with an image of 400 MHz:
//! lengths are whole cycles, and bursts begin with a cycle.

use std::time::Duration;

use crate::common::burst::{sample, send};
use crate::common::group::{finish_rx, receive_group};
use crate::common::{PATIENCE, args, patient, radio, radio_with, receive};
use millstream_emulator::{DeviceKind, RadioConfig, RunningRadio};
use millstream_radio::{Cause, Device, RxArgs, RxError, RxEvent, TxArgs, TxEvent, TxMetadata};

const CYCLE: u64 = 4;
const RATE_HZ: f64 = 4e6;

fn wide(rate_hz: f64) -> RadioConfig {
    let (device, master_clock_rate_hz) = (DeviceKind::X410Wide, rate_hz);
    RadioConfig { device, master_clock_rate_hz, ..patient() }
}

/// Returns a device whose cycles begin at odd times, and the remainder of these.
fn odd(config: RadioConfig) -> (RunningRadio, Device, u64) {
    let (radio, args) = radio(config);
    let device = Device::open(args).unwrap();
    assert_eq!((device.rx_channels(), device.rate_hz()), (4, RATE_HZ));
    let mut stream = device.rx_stream(args_of(0)).unwrap();
    loop {
        device.set_time_now(1_000_001).unwrap();
        stream.start_finite(CYCLE, None).unwrap();
        let phase = receive(&mut stream, u64::MAX).first_ticks.unwrap() % CYCLE;
        if phase != 0 {
            drop(stream);
            return (radio, device, phase);
        }
    }
}

fn args_of(channel: usize) -> RxArgs {
    RxArgs::new(channel)
}

#[test]
fn captures_have_whole_cycles_and_begin_with_one() {
    let (_radio, device, phase) = odd(wide(RATE_HZ));
    let mut stream = device.rx_stream(args_of(0).with_samples_per_packet(1003)).unwrap();
    assert_eq!(stream.samples_per_packet(), 1000);
    for samples in [1, 2, 5001] {
        let refused = stream.start_finite(samples, None).unwrap_err();
        assert!(matches!(refused, RxError::BadLength { multiple: 4, .. }), "{refused}");
    }
    let mut expected = 0;
    for (ahead, samples) in [(400_001, 5000), (400_003, 4), (400_000, 999_996), (400_002, 1000)] {
        let at = device.time_ticks().unwrap() + ahead;
        stream.start_finite(samples, Some(at)).unwrap();
        let brought = receive(&mut stream, u64::MAX);
        assert!(brought.ended && brought.events.is_empty(), "{brought:?}");
        let first = brought.first_ticks.unwrap();
        assert!(first - at < CYCLE && first % CYCLE == phase, "{at} {first} {phase}");
        assert_eq!(brought.samples, samples);
        expected += samples;
    }
    // Captures that follow each other.
    for _ in 0..3 {
        let at = device.time_ticks().unwrap() + 1_000_001;
        stream.queue_finite(1004, Some(at)).unwrap();
        stream.queue_finite(2000, Some(at + 40_001)).unwrap();
        for samples in [1004, 2000] {
            let brought = receive(&mut stream, u64::MAX);
            assert_eq!((brought.samples, brought.events.len()), (samples, 0));
            expected += samples;
        }
    }
    let ledger = stream.finish();
    assert_eq!((ledger.expected, ledger.delivered, ledger.lost_total()), (expected, expected, 0));
}

#[test]
fn a_stream_restarts_with_a_cycle() {
    let config = RadioConfig { rx_buffer_samples: (1 << 18) + 3, ..wide(RATE_HZ) };
    let (radio, device, _) = odd(config);
    let mut stream = device.rx_stream(args().with_recv_queue_bytes(256 << 10)).unwrap();
    stream.start_continuous(None).unwrap();
    let first = receive(&mut stream, 50_000);
    // Far longer than the capacity of the queue and of the device's buffer.
    std::thread::sleep(Duration::from_secs(1));
    let after = receive(&mut stream, 800_000);
    stream.stop().unwrap();
    while !receive(&mut stream, u64::MAX).ended {}
    let ledger = stream.finish();
    assert!(after.events.iter().any(|event| matches!(event, RxEvent::Overrun { .. })));
    assert_eq!(ledger.balance(), Ok(()));
    assert_eq!(ledger.delivered % CYCLE, 0, "{ledger}");
    assert_eq!(ledger.lost_total(), ledger.lost(Cause::DeviceOverrun), "{ledger}");
    assert!(ledger.lost_total() >= first.missing + after.missing && after.missing > 0);
    assert_eq!(ledger.lost_total() % CYCLE, 0, "{ledger}");
    assert!(radio.counters().rx_overruns >= 1);
}

#[test]
fn channels_of_two_radios_begin_with_the_same_cycle() {
    let (_radio, device, phase) = odd(wide(RATE_HZ));
    let mut group = device.rx_group(&[args_of(0), args_of(3)]).unwrap();
    for ahead in [400_001, 400_002, 400_003] {
        let at = device.time_ticks().unwrap() + ahead;
        group.start_finite(20_000, Some(at)).unwrap();
        let brought = receive_group(&mut group, u64::MAX);
        assert!(brought.events.is_empty() && brought.samples == 20_000, "{brought:?}");
        let first = brought.first_ticks.unwrap();
        assert!(first - at < CYCLE && first % CYCLE == phase, "{at} {first} {phase}");
    }
    assert!(finish_rx(group).iter().all(|ledger| ledger.lost_total() == 0));
}

#[test]
fn a_burst_of_any_length_in_any_calls_is_transmitted_without_a_hole() {
    let rx_antennas = vec!["loopback:0".to_owned()];
    let (radio, args) = radio_with(RadioConfig { rx_antennas, ..wide(1e6) });
    let device = Device::open(args).unwrap();
    let mut rx = device.rx_stream(args_of(0)).unwrap();
    let mut tx = device.tx_stream(TxArgs::new(0).with_samples_per_packet(503)).unwrap();
    assert_eq!(tx.samples_per_packet(), 500);
    let mut sent = 0;
    for (length, sizes) in
        [(5001, &[usize::MAX][..]), (1003, &[1, 2, 3]), (7002, &[501, 3]), (1, &[1]), (64, &[7])]
    {
        let at = (device.time_ticks().unwrap() + 300_000).next_multiple_of(CYCLE);
        let samples: Vec<_> = (0..length).map(sample).collect();
        rx.start_finite(8000, Some(at)).unwrap();
        send(&mut tx, at, &samples, sizes, PATIENCE, |tx| tx.flush().unwrap());
        let mut heard = vec![[0; 2]; 8000];
        let mut count = 0;
        while count < heard.len() {
            let meta = rx.recv(&mut heard[count..], PATIENCE).unwrap();
            assert_eq!(meta.event, RxEvent::None);
            count += meta.samples;
        }
        let start = heard.iter().position(|sample| *sample != [0; 2]).unwrap();
        assert!(start < CYCLE as usize, "{start}: only the phase of the cycles is unknown");
        assert!(heard[start..start + length] == samples, "{length} {sizes:?}");
        assert!(heard[start + length..].iter().all(|sample| *sample == [0; 2]), "{length}");
        sent += length as u64;
    }
    let padding = 3 + 1 + 2 + 3;
    assert_eq!(tx.counters().padding, padding);
    let ledger = tx.finish();
    assert_eq!((ledger.transmitted, ledger.lost_total()), (sent, 0), "{ledger:?}");
    assert_eq!(radio.counters().tx_samples, sent + padding);
}

#[test]
fn a_gap_within_a_burst_begins_behind_a_whole_cycle() {
    let (radio, args) = radio(wide(1e6));
    let device = Device::open(args).unwrap();
    let mut tx = device.tx_stream(TxArgs::new(0)).unwrap();
    let at = device.time_ticks().unwrap() + 300_000;
    tx.send(&[[1i16, 1]; 10], TxMetadata::at(at), PATIENCE).unwrap();
    tx.send(&[[2i16, 2]; 9], TxMetadata::at(at + 100).ending(), PATIENCE).unwrap();
    let events = std::iter::from_fn(|| tx.next_event(PATIENCE).unwrap());
    let acked = |event: &TxEvent| matches!(event, TxEvent::BurstAck { .. });
    assert!(events.into_iter().any(|(_, event)| acked(&event)));
    assert_eq!(tx.counters().padding, 2 + 3);
    let ledger = tx.finish();
    assert_eq!((ledger.transmitted, ledger.balance()), (19, Ok(())), "{ledger:?}");
    assert_eq!(radio.counters().tx_samples, 24);
}
