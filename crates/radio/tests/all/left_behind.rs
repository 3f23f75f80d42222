//! Tests of radios as another host has left them: the logic of a radio knows no sessions, so what
//! runs goes on, what waits still waits, and what is full stays full.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::{Action, Meddler, PATIENCE, hold, kill_holder, patient, radio, receive};
use millstream_emulator::{DeviceKind, RadioConfig, RunningRadio, UhdGeneration};
use millstream_link::open;
use millstream_link::port::PortOptions;
use millstream_radio::graph::StreamDirection;
use millstream_radio::noc::NullSrcSink;
use millstream_radio::topology::{Management, discover};
use millstream_radio::{Device, DeviceArgs, RxArgs, RxEvent, TxArgs, TxMetadata};
use millstream_wire::{Epid, Width};

/// The samples of each exchange.
const SAMPLES: u64 = 20_000;

/// The id of a device that no session has named.
const POWER_ON_ID: u16 = 0;

/// Receives on both channels and transmits on both, and checks every sample.
fn exchange(radio: &RunningRadio, args: &DeviceArgs, turn: &str) {
    let device = Device::open(args.clone()).unwrap_or_else(|error| panic!("{turn}: {error}"));
    for channel in 0..2 {
        let mut stream = device.rx_stream(RxArgs::new(channel)).unwrap();
        stream.start_finite(SAMPLES, None).unwrap();
        // Each sample has the value of its time.
        let brought = receive(&mut stream, u64::MAX);
        assert_eq!((brought.samples, brought.events.len()), (SAMPLES, 0), "{turn}: {brought:?}");
        let before = radio.counters().tx_samples;
        let mut stream = device.tx_stream(TxArgs::new(channel)).unwrap();
        let samples = [[1i16, 2]; SAMPLES as usize];
        let sent = stream.send(&samples, TxMetadata::now().ending(), PATIENCE).unwrap();
        assert_eq!(sent.samples, samples.len(), "{turn}");
        let ledger = stream.finish();
        assert_eq!((ledger.transmitted, ledger.balance()), (SAMPLES, Ok(())), "{turn}: {ledger}");
        assert_eq!(radio.counters().tx_samples - before, SAMPLES, "{turn}");
    }
}

/// The variable with the device's address for the process that is killed.
const HOLD: &str = "MILLSTREAM_TEST_LEAVE";

#[test]
fn what_a_killed_host_has_left_running_does_not_reach_the_next_one() {
    if let Ok(args) = std::env::var(HOLD) {
        // This is the process that will be killed: amid a capture, amid a burst, amid test data.
        let device = Device::open(args.parse::<DeviceArgs>().unwrap()).unwrap();
        let mut rx = device.rx_stream(RxArgs::new(0)).unwrap();
        rx.start_continuous(None).unwrap();
        assert!(receive(&mut rx, 5_000).samples > 0);
        let mut tx = device.tx_stream(TxArgs::new(1)).unwrap();
        tx.send(&[[1i16, 1]; 5_000], TxMetadata::now(), PATIENCE).unwrap();
        let null = NullSrcSink::open(&device).unwrap();
        let _stream = device.block_receiver(null.place()).unwrap();
        null.start(500).unwrap();
        hold();
    }
    // A small buffer overruns at once, and its message waits for an answer of the dead.
    let sizes = [1 << 16, 1 << 26];
    let all = [DeviceKind::E320, DeviceKind::E320Radio, DeviceKind::N310];
    std::thread::scope(|scope| {
        for (device, size) in all.into_iter().flat_map(|device| sizes.map(|size| (device, size))) {
            scope.spawn(move || leave(device, size));
        }
    });
}

/// Has a process killed that uses a radio of this kind, and uses the radio then.
fn leave(device: DeviceKind, rx_buffer_samples: u64) {
    let config = RadioConfig { device, extra_blocks: true, rx_buffer_samples, ..patient() };
    let (radio, mut args) = radio(config);
    kill_holder(
        "left_behind::what_a_killed_host_has_left_running_does_not_reach_the_next_one",
        (HOLD, &args),
    );
    // The device drops the claim after 5 s of silence.
    args.claim_wait = 3 * PATIENCE;
    exchange(&radio, &args, &format!("{device:?} {rx_buffer_samples}"));
    assert_eq!(radio.counters().rpc_claims_expired, 1);
}

#[test]
fn a_block_that_a_lost_acknowledgement_has_stopped_serves_the_next_session() {
    let (radio, args) = radio(patient());
    let mut deaf = args.clone();
    let silent = Arc::new(AtomicBool::new(false));
    let is_silent = Arc::clone(&silent);
    // The host's answers to messages of blocks are the control packets that it sends as answers.
    let meddler = Meddler::new(|_| Action::Pass).sent(move |packet| {
        let is_answer = packet.len() >= 16 && packet[6] >> 5 == 4 && packet[11] & 0x80 != 0;
        if is_answer && is_silent.load(Ordering::Relaxed) { Action::Drop } else { Action::Pass }
    });
    deaf.open_port = Some(meddler.open_port());
    {
        let device = Device::open(deaf).unwrap();
        let mut stream = device.rx_stream(RxArgs::new(0)).unwrap();
        silent.store(true, Ordering::Relaxed);
        stream.start_finite(SAMPLES, Some(0)).unwrap();
        let event = stream.recv(&mut [[0i16; 2]; 4], PATIENCE).unwrap().event;
        assert_eq!(event, RxEvent::LateCommand);
    }
    exchange(&radio, &args, "the session behind it");
}

#[test]
fn a_complex_gain_that_a_session_has_set_does_not_last() {
    let config = RadioConfig { device: DeviceKind::N310, uhd: UhdGeneration::V4_11, ..patient() };
    let (radio, args) = radio(config);
    let device = Device::open(args.clone()).unwrap();
    for direction in [StreamDirection::Rx, StreamDirection::Tx] {
        device.set_complex_gain(direction, 0, (0.5, 0.5)).unwrap();
    }
    drop(device);
    exchange(&radio, &args, "the session behind it");
}

#[test]
fn seventy_sessions_follow_one_another() {
    let (radio, args) = radio(patient());
    for turn in 0..70 {
        exchange(&radio, &args, &format!("session {turn}"));
    }
}

#[test]
fn a_radio_whose_tables_are_full_of_other_hosts_is_used_like_any_other() {
    let (radio, args) = radio(patient());
    // As other programs number endpoints: 1 for control, and a further one for each stream. The
    // first are the oldest, which the next new id pushes out.
    for number in 0..64 {
        let any = "0.0.0.0:0".parse().unwrap();
        let mut port = open("udp", any, &PortOptions::default()).unwrap();
        let host = Epid(if number == 0 { 1 } else { 100 + number });
        let mut management = Management::new(&mut port, radio.chdr_addr(), Width::W64, host);
        discover(&mut management, args.addr, POWER_ON_ID, 2).unwrap();
    }
    exchange(&radio, &args, "behind 64 hosts");
}
