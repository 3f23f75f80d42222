//! A configuration in force: link strings open what the file specifies, and all settings are
//! restored.

use millstream_host::ethtool::{Ethtool, Offload};
use millstream_link::port::PortOptions;
use millstream_net::config::{Config, configure};
use millstream_net::engine::inventory;
use millstream_testkit::netns::{INTERFACE, PairOptions, VethPair};
use std::net::SocketAddrV4;
use std::path::Path;
use std::time::Duration;

/// One test, because the configuration belongs to the process.
#[test]
fn a_bare_interface_opens_as_the_file_says_until_the_configuration_ends() {
    let Some(pair) = VethPair::new(PairOptions::default()) else { return };
    let text = format!(
        "[[interface]]\nname = \"{INTERFACE}\"\nlink = \"packet\"\nmtu = 1500\n\
         offloads = {{ transmit-checksum = false }}\n\n\
         [[thread]]\nname = \"cfg\"\nwait = \"adaptive\"\ninterfaces = [\"{INTERFACE}\"]\n"
    );
    let config = Config::parse(&text, Path::new("test.toml")).unwrap();
    let there = pair.right.run(|| {
        let socket = std::net::UdpSocket::bind((pair.right.address, 0)).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        socket
    });
    pair.left.run(|| {
        let checksum = || {
            let ethtool = Ethtool::open().unwrap();
            ethtool.offload(INTERFACE, Offload::TransmitChecksum).unwrap()
        };
        let configured = configure(&config).unwrap();
        assert!(!checksum(), "switched as the file says");
        let bind = SocketAddrV4::new(pair.left.address, 0);
        let mut port = millstream_net::open(INTERFACE, bind, &PortOptions::default()).unwrap();
        let threads = inventory().threads;
        assert_eq!((threads.len(), threads[0].wait), (1, "adaptive"), "{threads:?}");
        assert!(threads[0].name.ends_with("cfg"), "{threads:?}");
        let std::net::SocketAddr::V4(to) = there.local_addr().unwrap() else { unreachable!() };
        port.tx.send(b"as configured", to).unwrap();
        let mut bytes = [0; 64];
        let (count, from) = there.recv_from(&mut bytes).unwrap();
        assert_eq!((&bytes[..count], from), (&b"as configured"[..], port.local.into()));
        drop(port);
        drop(configured);
        assert!(checksum(), "put back");
        let error = millstream_net::open(INTERFACE, bind, &PortOptions::default()).err().unwrap();
        assert!(error.to_string().contains("there is no link called"), "{error}");
        let wrong = Config::parse(&text.replace("1500", "9000"), Path::new("test.toml")).unwrap();
        let error = configure(&wrong).unwrap_err().to_string();
        assert!(error.ends_with(&format!("`ip link set {INTERFACE} mtu 9000`")), "{error}");
        assert!(checksum(), "nothing was changed");
    });
}
