//! Tests of finding and opening devices, and of the errors when that fails.

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::{device, hold, kill_holder, patient, radio, receive};
use millstream_emulator::RadioConfig;
use millstream_link::open;
use millstream_link::port::PortOptions;
use millstream_radio::{Device, DeviceArgs, DiscoveryTarget, RadioError, RxArgs, TxArgs, discover};

#[test]
fn a_device_is_found_opened_and_given_back() {
    let (_radio, args) = radio(RadioConfig { serial: "FIND1".into(), ..patient() });
    let find = || {
        let target = DiscoveryTarget::Address(Ipv4Addr::LOCALHOST);
        discover(target, args.discovery_port, Duration::from_secs(5)).unwrap().remove(0)
    };
    assert_eq!((find().field("serial"), find().is_claimed()), ("FIND1", false));
    let device = Device::open(args.clone()).unwrap();
    assert!(find().is_claimed());
    assert_eq!((device.info().serial(), device.info().product()), ("FIND1", "e320"));
    assert_eq!((device.frame_bytes(), device.rx_channels(), device.rate_hz()), (8016, 2, 16e6));
    assert_eq!(device.rx_stream(RxArgs::new(0)).unwrap().samples_per_packet(), 2000);
    drop(device);
    assert!(!find().is_claimed());
    Device::open(args.clone()).expect("it can be opened again at once");
}

/// The thread behind the control port does not poll where the link string makes users of ports
/// poll: it used to take half of a CPU from the streams.
#[test]
fn only_streams_poll_where_users_of_ports_poll() {
    let (_radio, mut args) = radio(patient());
    let opened = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&opened);
    args.open_port = Some(Arc::new(move |bind, options: &PortOptions| {
        let port = open("udp", bind, options)?;
        seen.lock().unwrap().push((port.local, options.patient));
        Ok(port)
    }));
    let device = Device::open(args).unwrap();
    let control = opened.lock().unwrap()[0];
    assert!(control.1, "{opened:?}");
    let stream = device.rx_stream(RxArgs::new(0)).unwrap();
    let of_stream = (stream.members()[0].local(), false);
    assert!(opened.lock().unwrap().contains(&of_stream), "{of_stream:?} of {opened:?}");
}

#[test]
fn a_device_in_use_says_whose_it_may_be() {
    let (_radio, args) = radio(patient());
    let _first = Device::open(args.clone()).unwrap();
    let text = Device::open(args).unwrap_err().to_string();
    assert!(text.contains("another program holds the device"), "{text}");
    let holder = format!("claimed by millstream (process {})", std::process::id());
    assert!(text.contains(&holder), "{text}");
}

#[test]
fn a_second_open_may_wait_for_the_first_to_end() {
    let (_radio, mut args) = radio(patient());
    let first = Device::open(args.clone()).unwrap();
    args.claim_wait = crate::common::PATIENCE;
    let second = std::thread::spawn(move || Device::open(args));
    std::thread::sleep(Duration::from_millis(300));
    assert!(!second.is_finished());
    drop(first);
    second.join().unwrap().expect("the claim was given back");
}

/// The variable with the device's address for the process that is killed.
const HOLD: &str = "MILLSTREAM_TEST_HOLD";

#[test]
fn a_killed_holder_is_named_and_its_claim_ends() {
    if let Ok(args) = std::env::var(HOLD) {
        // This is the process that will be killed, with a running stream.
        let device = Device::open(args.parse::<DeviceArgs>().unwrap()).unwrap();
        let mut stream = device.rx_stream(RxArgs::new(0)).unwrap();
        stream.start_continuous(None).unwrap();
        hold();
    }
    let (radio, mut args) = radio(patient());
    let holder = kill_holder("open::a_killed_holder_is_named_and_its_claim_ends", (HOLD, &args));
    let text = Device::open(args.clone()).unwrap_err().to_string();
    assert!(text.contains(&format!("process {holder}")), "{text}");
    // The device drops the claim after 5 s of silence.
    args.claim_wait = 3 * crate::common::PATIENCE;
    let device = Device::open(args).expect("the claim of a dead process ends");
    assert_eq!(radio.counters().rpc_claims_expired, 1);
    let mut stream = device.rx_stream(RxArgs::new(0)).unwrap();
    stream.start_finite(10_000, None).unwrap();
    assert_eq!(crate::common::receive(&mut stream, u64::MAX).samples, 10_000);
}

#[test]
fn nobody_at_the_address_is_one_clear_error() {
    let args = DeviceArgs { rpc_port: 1, ..DeviceArgs::new(Ipv4Addr::LOCALHOST) };
    let error = Device::open(args).unwrap_err();
    assert!(matches!(error, RadioError::Rpc(_)));
    assert!(error.to_string().contains("127.0.0.1:1"), "{error}");
}

#[test]
fn a_link_that_does_not_exist_is_named() {
    let (_radio, mut args) = radio(patient());
    args.link = "warp".to_owned();
    let text = Device::open(args.clone()).unwrap_err().to_string();
    assert!(text.contains("no link called \"warp\""), "{text}");
    args.link = "udp:gro=off".to_owned();
    Device::open(args).expect("the claim was given back");
}

#[test]
fn a_device_without_udp_is_told_from_one_without_rpc() {
    let (_radio, mut args) = radio(patient());
    args.discovery_port = 1;
    let text = Device::open(args).unwrap_err().to_string();
    assert!(text.contains("127.0.0.1:1 did not answer an echo"), "{text}");
}

#[test]
fn a_second_session_finds_the_device_as_new() {
    let (_radio, args) = radio(patient());
    for _ in 0..3 {
        let mut device = Device::open(args.clone()).unwrap();
        assert_eq!(device.rate_hz(), 16e6);
        device.set_rate(2e6).unwrap();
        let mut stream = device.rx_stream(RxArgs::new(1)).unwrap();
        stream.start_finite(10_000, None).unwrap();
        let brought = crate::common::receive(&mut stream, u64::MAX);
        assert_eq!((brought.samples, brought.events.len()), (10_000, 0));
    }
}

#[test]
fn more_streams_than_a_device_has_places_for_follow_each_other() {
    let (_radio, device) = device(4e6);
    for turn in 0..70 {
        let mut stream = device.rx_stream(RxArgs::new(turn % 2)).unwrap();
        stream.start_finite(2000, None).unwrap();
        let brought = receive(&mut stream, u64::MAX);
        assert_eq!((brought.samples, brought.ended), (2000, true), "stream {turn}");
        drop(stream);
        let stream = device.tx_stream(TxArgs::new(turn % 2)).unwrap();
        assert_eq!(stream.finish().balance(), Ok(()));
    }
    // The control endpoint was not forgotten.
    device.topology().control().expect("it has one");
    device.rx_stream(RxArgs::new(0)).unwrap();
}
