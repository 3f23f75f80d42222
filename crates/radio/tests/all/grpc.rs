//! Tests of devices whose management speaks gRPC.

use std::time::{Duration, Instant};

use crate::common::{PATIENCE, SPP, args, patient, radio, receive};
use millstream_emulator::{RadioConfig, UhdGeneration};
use millstream_radio::Device;

#[test]
fn a_device_of_uhd_4_11_is_opened_kept_and_given_back_by_grpc() {
    let (radio, open) = radio(RadioConfig { uhd: UhdGeneration::V4_11, ..patient() });
    let mut device = Device::open(open.clone()).expect("it opens");
    assert_eq!(device.set_rate(2e6).unwrap(), 2e6);
    assert_eq!((device.info().mpm, device.info().protocol), ((7, 0), (2, 0)));
    let mut stream = device.rx_stream(args()).unwrap();
    stream.start_finite(100 * SPP, None).unwrap();
    let brought = receive(&mut stream, u64::MAX);
    assert_eq!((brought.samples, brought.events.len()), (100 * SPP, 0));
    assert_eq!(stream.finish().lost_total(), 0);
    // Renewals are calls, too.
    let calls = || radio.counters().rpc_calls;
    let (before, until) = (calls(), Instant::now() + PATIENCE);
    while calls() < before + 2 {
        assert!(Instant::now() < until, "the claim is not renewed");
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(device);
    Device::open(open).expect("it was given back");
}
