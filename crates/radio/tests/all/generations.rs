//! Tests against radios of every generation of UHD: each is asked what it is, and streams exactly.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::block::{balance, into_nothing};
use crate::common::burst::{sample, send};
use crate::common::{PATIENCE, args, patient, radio_with};
use millstream_emulator::{DeviceKind, RadioConfig, RunningRadio, UhdGeneration};
use millstream_radio::block::{OpenAgain, RadioSource, SourceReport};
use millstream_radio::graph::StreamDirection;
use millstream_radio::noc::Replay;
use millstream_radio::{
    Complex32, Device, DeviceArgs, RxArgs, RxEvent, RxStreamer, TxArgs, TxEvent, TxMetadata,
};

/// Each with the version of MPM, and the major number of the RFNoC protocol.
const ALL: [(UhdGeneration, (u64, u64), u8); 7] = [
    (UhdGeneration::V4_0, (3, 0), 1),
    (UhdGeneration::V4_1, (4, 0), 1),
    (UhdGeneration::V4_3, (4, 2), 1),
    (UhdGeneration::V4_4, (4, 4), 1),
    (UhdGeneration::V4_9, (5, 3), 1),
    (UhdGeneration::V4_10, (6, 1), 1),
    (UhdGeneration::V4_11, (7, 0), 2),
];

/// Receives `count` samples, the first at `at`.
fn receive(stream: &mut RxStreamer, count: usize, at: u64) -> Vec<[i16; 2]> {
    let (mut heard, mut done) = (vec![[0; 2]; count], 0);
    while done < count {
        let meta = stream.recv(&mut heard[done..], PATIENCE).unwrap();
        let due = at + stream.rate().ticks(done as u64);
        assert_eq!((meta.event, meta.time_ticks), (RxEvent::None, Some(due)));
        done += meta.samples;
    }
    heard
}

/// Sends a burst through the loopback antenna at `rate_hz`, and returns what comes back.
fn loop_back(device: &Device, samples: &[[i16; 2]]) -> Vec<[i16; 2]> {
    let mut rx = device.rx_stream(RxArgs::new(0)).unwrap();
    let mut tx = device.tx_stream(TxArgs::new(0)).unwrap();
    let at = device.time_ticks().unwrap() + device.tick_rate_hz() as u64;
    let at = at - at % 64;
    rx.start_finite(samples.len() as u64, Some(at)).unwrap();
    send(&mut tx, at, samples, &[usize::MAX], Duration::from_millis(1), |_| ());
    let heard = receive(&mut rx, samples.len(), at);
    loop {
        let (_, event) = tx.next_event(PATIENCE).unwrap().expect("the burst is acknowledged");
        if matches!(event, TxEvent::BurstAck { .. }) {
            break;
        }
    }
    let ledger = tx.finish();
    assert_eq!((ledger.transmitted, ledger.lost_total()), (samples.len() as u64, 0));
    assert_eq!(rx.finish().lost_total(), 0);
    heard
}

#[test]
fn a_radio_of_every_generation_says_what_it_is_and_streams_exactly() {
    for (uhd, mpm, protocol) in ALL {
        let antenna = "loopback:0,delay=0".to_owned();
        let config = RadioConfig { uhd, rx_antennas: vec![antenna], ..patient() };
        let (_radio, args) = radio_with(config);
        let mut device = Device::open(args).unwrap_or_else(|error| panic!("{uhd:?}: {error}"));
        assert_eq!((device.info().mpm, device.info().protocol.0), (mpm, protocol));
        assert_eq!(device.control().protocol().version() >> 8, u16::from(protocol));
        device.set_rate(1e6).unwrap();
        let samples: Vec<_> = (0..20_023).map(sample).collect();
        assert!(loop_back(&device, &samples) == samples, "{uhd:?}");
    }
}

#[test]
fn rate_changes_of_every_generation_keep_level_and_time() {
    let wide = [(UhdGeneration::V4_11, DeviceKind::X410Wide)];
    let stock = ALL.map(|(uhd, ..)| (uhd, DeviceKind::E320));
    for (uhd, kind) in stock.into_iter().chain(wide) {
        let antenna = "loopback:0,delay=0".to_owned();
        let config = RadioConfig { uhd, rx_antennas: vec![antenna], device: kind, ..patient() };
        let (_radio, mut args) = radio_with(RadioConfig { master_clock_rate_hz: 4e6, ..config });
        args.master_clock_hz = Some(4e6);
        let mut device = Device::open(args).unwrap_or_else(|error| panic!("{uhd:?}: {error}"));
        assert_eq!(device.set_rate(1e6).unwrap(), 1e6);
        assert_eq!(device.tick_rate_hz(), 4e6, "{uhd:?}: a DDC makes the rate");
        let heard = loop_back(&device, &vec![[8000, -4000]; 8000]);
        // The filters take their time at both ends; between them the gain is one.
        let between = &heard[1000..7000];
        let mean = |part: usize| {
            let sum: i32 = between.iter().map(|sample| i32::from(sample[part])).sum();
            sum / between.len() as i32
        };
        let away = (mean(0) - 8000).abs().max((mean(1) + 4000).abs());
        assert!(away < 80, "{uhd:?} {kind:?}: {}, {}", mean(0), mean(1));
    }
}

#[test]
fn a_caller_that_is_told_apart_is_served_one_generation() {
    let (_radio, args) = radio_with(RadioConfig { uhd: UhdGeneration::Auto, ..patient() });
    let device = Device::open(args).unwrap();
    let known = |one: &(UhdGeneration, (u64, u64), u8)| {
        (one.1, one.2) == (device.info().mpm, device.info().protocol.0)
    };
    assert!(ALL.iter().any(known), "{:?}", device.info());
}

/// Starts a radio that can be received without an end.
fn endless(uhd: UhdGeneration) -> (RunningRadio, DeviceArgs) {
    radio_with(RadioConfig { uhd, rx_antennas: vec!["ramp".to_owned()], ..patient() })
}

#[test]
fn a_radio_that_comes_back_as_another_generation_is_opened_again() {
    let (first, args_of) = endless(UhdGeneration::V4_3);
    let place = Arc::new(Mutex::new(args_of));
    let again = || -> OpenAgain {
        let place = Arc::clone(&place);
        Box::new(move || {
            let mut device = Device::open(place.lock().unwrap().clone())?;
            device.set_rate(1e6)?;
            let stream = device.rx_stream(args())?;
            Ok((device.into(), stream))
        })
    };
    let (device, stream) = again()().unwrap();
    assert_eq!(device.devices()[0].info().mpm, (4, 2));
    let (source, SourceReport { segments, .. }) =
        RadioSource::<Complex32>::new(device, stream, None);
    let (graph, plan) = into_nothing(source.reopening(again(), PATIENCE).unwrap());
    let running = graph.start(&plan).unwrap();
    let received = || running.snapshot().block("sink").unwrap().items_in;
    let wait_for = |done: &dyn Fn() -> bool| {
        while !done() {
            assert!(!running.is_finished(), "it goes on");
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    wait_for(&|| received() > 20_000);
    let (_second, other) = endless(UhdGeneration::V4_11);
    *place.lock().unwrap() = other;
    first.stop();
    wait_for(&|| running.snapshot().block("tuner").unwrap().metric("reopenings") == Some(1.0));
    let more = received() + 20_000;
    wait_for(&|| received() > more);
    running.stopper().stop();
    let snapshot = running.wait().unwrap();
    assert!(balance(snapshot.block("tuner").unwrap()) > 0, "the gap has a length");
    assert_eq!(segments.try_iter().count(), 2);
}

#[test]
fn messages_of_protocol_2_tell_the_fate_of_bursts() {
    let (_radio, args) = endless(UhdGeneration::V4_11);
    let mut device = Device::open(args).unwrap();
    device.set_rate(1e6).unwrap();
    let mut tx = device.tx_stream(TxArgs::new(0)).unwrap();
    // More messages than protocol 1.0 has numbers, and than 2.0 has; 0.2 s ahead of the radio.
    let begin = tx.time_ticks().unwrap() + 300_000;
    let samples = vec![Complex32::new(0.5, 0.0); 400];
    for burst in 0..260 {
        let at = begin + burst * 10_000;
        let sent = tx.send(&samples, TxMetadata::at(at).ending(), PATIENCE).unwrap();
        assert!(sent.end_of_burst);
        if burst >= 20 {
            let (_, event) = tx.next_event(PATIENCE).unwrap().expect("it is acknowledged");
            // The radio transmits two ticks later.
            let time_ticks = begin + (burst - 20) * 10_000 + 399 + 2;
            assert_eq!(event, TxEvent::BurstAck { time_ticks });
        }
    }
    let ledger = tx.finish();
    assert_eq!((ledger.transmitted, ledger.lost_total()), (260 * 400, 0));
    assert_eq!(ledger.unknown, Default::default());
}

#[test]
fn a_replay_of_today_plays_what_it_records_and_an_older_one_says_that_it_cannot() {
    for (uhd, follows) in [(UhdGeneration::V4_9, false), (UhdGeneration::V4_10, true)] {
        let config = RadioConfig { uhd, extra_blocks: true, ..patient() };
        let (_radio, args) = radio_with(RadioConfig { device: DeviceKind::E320, ..config });
        let device = Device::open(args).unwrap();
        let replay = Replay::open(&device, 0).unwrap();
        let wanted: Vec<[i16; 2]> = (0..20_000i16).map(|n| [n, -n]).collect();
        let mut sender = device.block_sender(replay.place()).unwrap();
        let mut stream = device.block_receiver(replay.place()).unwrap();
        replay.record(4096, 20_000).unwrap();
        let outcome = replay.follow(4096, 20_000, stream.samples_per_packet());
        if !follows {
            let text = outcome.unwrap_err().to_string();
            assert!(text.contains("is 1.2") && text.contains("from 1.3 on"), "{text}");
            continue;
        }
        outcome.unwrap();
        let (mut played, mut count) = (vec![[0i16; 2]; 20_000], 0);
        for half in [&wanted[..10_000], &wanted[10_000..]] {
            assert_eq!(sender.send(half, false, PATIENCE).unwrap(), 10_000);
            // What has been recorded comes before the rest is sent, but for a part of a packet.
            let due = count + 10_000 - stream.samples_per_packet();
            while count < due {
                count += stream.recv(&mut played[count..], PATIENCE).unwrap().samples;
            }
        }
        while count < 20_000 {
            count += stream.recv(&mut played[count..], PATIENCE).unwrap().samples;
        }
        assert!(played == wanted);
    }
}

#[test]
fn a_complex_gain_needs_an_image_that_has_one_and_a_value_in_its_range() {
    for (uhd, ..) in [ALL[4], ALL[6]] {
        let (_radio, args) = radio_with(RadioConfig { uhd, ..patient() });
        let device = Device::open(args).unwrap();
        let set = |gain| {
            let text = device.set_complex_gain(StreamDirection::Rx, 0, gain);
            text.unwrap_err().to_string()
        };
        assert!(set((1.0, 0.0)).contains("complex gain"), "{uhd:?}");
        assert!(set((0.0, 2.0)).contains("part of the complex gain"), "{uhd:?}");
    }
}

#[test]
fn a_complex_gain_is_written_where_the_image_has_it() {
    let (uhd, device) = (UhdGeneration::V4_10, DeviceKind::N310);
    let (_radio, args) = radio_with(RadioConfig { uhd, device, ..patient() });
    let device = Device::open(args).unwrap();
    for direction in [StreamDirection::Rx, StreamDirection::Tx] {
        for channel in 0..4 {
            // The radio refuses a register that it does not have.
            device.set_complex_gain(direction, channel, (0.0, -0.5)).unwrap();
        }
    }
}
