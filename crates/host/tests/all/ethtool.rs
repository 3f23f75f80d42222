//! Device settings of a veth, compared with the output of ethtool(8).

use millstream_host::ethtool::{Channels, Ethtool, Offload};
use millstream_testkit::netns::{INTERFACE, PairOptions, VethPair};

#[test]
fn queues_are_read_and_set() {
    let Some(pair) = VethPair::new(PairOptions { queues: 4, ..Default::default() }) else { return };
    pair.left.run(|| {
        let ethtool = Ethtool::open().unwrap();
        assert_eq!(ethtool.driver(INTERFACE).unwrap(), "veth");
        let (now, max) = ethtool.channels(INTERFACE).unwrap();
        assert_eq!((max.receiving(), max.transmitting()), (4, 4));
        assert_eq!(now.receiving(), 4);
        let fewer = Channels { receive: 2, transmit: 3, combined: 0 };
        ethtool.set_channels(INTERFACE, fewer).unwrap();
        assert_eq!(ethtool.channels(INTERFACE).unwrap().0, fewer);
        let many = Channels { receive: 5, ..fewer };
        let error = ethtool.set_channels(INTERFACE, many).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput, "{error}");
    });
}

#[test]
fn offloads_and_mtu_are_read_and_set() {
    let Some(pair) = VethPair::new(PairOptions::default()) else { return };
    pair.left.run(|| {
        let ethtool = Ethtool::open().unwrap();
        for offload in [Offload::TransmitChecksum, Offload::Gro, Offload::Gso, Offload::Tso] {
            for on in [false, true] {
                ethtool.set_offload(INTERFACE, offload, on).unwrap();
                assert_eq!(ethtool.offload(INTERFACE, offload).unwrap(), on, "{offload:?}");
            }
        }
        ethtool.set_offload(INTERFACE, Offload::TransmitChecksum, false).unwrap();
        let error = ethtool.set_offload(INTERFACE, Offload::Tso, true).unwrap_err();
        assert_eq!(error.to_string(), "it stays off: it needs another offload that is off");
        ethtool.set_mtu(INTERFACE, 1400).unwrap();
        assert_eq!(ethtool.mtu(INTERFACE).unwrap(), 1400);
        assert!(ethtool.set_mtu(INTERFACE, 1).is_err());
    });
    let shown = pair.left.sh(&format!("ip link show {INTERFACE}"));
    assert!(shown.contains("mtu 1400"), "{shown}");
}
