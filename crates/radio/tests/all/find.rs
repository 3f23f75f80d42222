//! Tests of searches for emulated radios with unknown addresses.

use std::net::Ipv4Addr;
use std::time::Duration;

use millstream_emulator::{Radio, RadioConfig};
use millstream_radio::{DiscoveryTarget, discover};

#[test]
fn every_radio_on_this_machine_hears_a_broadcast() {
    let [_, _, high, low] = std::process::id().to_be_bytes();
    let addresses = [1, 2].map(|n| Ipv4Addr::new(127, 90 + n, high, low.max(1)));
    // A separate discovery port excludes radios of other tests.
    let discovery_port = 40_000 + u16::from(low);
    let radios = addresses.map(|addr| {
        let ports = RadioConfig { discovery_port, rpc_port: 0, chdr_port: 0, ..Default::default() };
        let config = RadioConfig { addr, ..ports };
        Radio::start(config).unwrap()
    });

    let found =
        discover(DiscoveryTarget::Local, discovery_port, Duration::from_millis(800)).unwrap();

    let mut heard: Vec<_> = found.iter().map(|device| device.address).collect();
    heard.sort();
    assert_eq!(heard, addresses);
    for radio in radios {
        assert!(radio.stop().discovery_requests >= 1);
    }
}
