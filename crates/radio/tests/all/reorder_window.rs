//! Tests of the time for which packets wait for one that the network delays, in simulated time.

use std::time::Duration;

use crate::common::simulated::{self, Host};
use crate::common::{SPP, args, receive};
use millstream_emulator::RadioConfig;
use millstream_link::fault::{FaultEffect, FaultRule, FaultSwitch, Select};
use millstream_radio::{Cause, Ledger, RxMember, RxStreamer};

/// 250 µs a packet.
const RATE_HZ: f64 = 2e6;

/// Returns the ledger of a capture in which the network sends every 200th packet `behind` later
/// ones, and how many of those waited for it.
fn capture(window: Option<Duration>, behind: u32) -> (Ledger, u64) {
    let config = RadioConfig {
        master_clock_rate_hz: RATE_HZ,
        rx_antennas: vec!["ramp".to_owned()],
        ..RadioConfig::default()
    };
    let switch = FaultSwitch::new(simulated::now_ns);
    let wrap = switch.clone();
    let host = Host::open(&config, 1 << 40, move |mut port| {
        port.rx = wrap.wrap_rx(port.rx);
        port
    });
    let mut args = args();
    args.reorder_window = window;
    let (port, path, channel) = host.rx(0, 8 << 20);
    let silence = Duration::from_millis(500);
    let mut stream = RxStreamer::one(RxMember::open(port, path, channel, &args, silence).unwrap());
    let effect = FaultEffect::Reorder { datagrams: behind };
    let select = Select { every: 200, ..Select::default() };
    switch.add(FaultRule::new(crate::common::is_data, effect).select(select)).unwrap();
    stream.start_finite(1000 * SPP, None).unwrap();
    while stream.is_running() {
        receive(&mut stream, u64::MAX);
    }
    let reordered = stream.counters().reordered;
    (stream.finish(), reordered)
}

#[test]
fn a_longer_window_keeps_packets_that_the_network_delays_for_longer() {
    // 20 ms: more than the usual 10 ms, and more than the usual 32 packets.
    let (ledger, _) = capture(None, 80);
    assert_eq!(ledger.lost(Cause::NetworkLoss), ledger.lost_total());
    assert!(ledger.lost_total() >= 4 * SPP, "{ledger}");
    for window_ms in [25, 1000, 60_000] {
        let (ledger, reordered) = capture(Some(Duration::from_millis(window_ms)), 80);
        assert_eq!((ledger.lost_total(), ledger.delivered), (0, 1000 * SPP), "{ledger}");
        assert!(reordered >= 4 * 80, "{reordered}");
    }
}

#[test]
fn a_shorter_window_keeps_a_few_packets_and_none_keeps_nothing() {
    let brief = Duration::from_micros(1);
    assert_eq!(capture(Some(brief), 2).0.lost_total(), 0, "up to four packets");
    assert!(capture(Some(brief), 20).0.lost(Cause::NetworkLoss) >= 4 * SPP);
    let (ledger, reordered) = capture(Some(Duration::ZERO), 1);
    assert_eq!((reordered, ledger.lost(Cause::NetworkLoss)), (0, ledger.lost_total()));
    assert!(ledger.lost_total() >= 4 * SPP, "{ledger}");
}
