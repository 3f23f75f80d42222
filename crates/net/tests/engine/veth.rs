//! Ports on real interfaces: shared and own addresses, with the kernel's sockets as peers.

use std::net::{SocketAddr, SocketAddrV4, UdpSocket};
use std::time::{Duration, Instant};

use millstream_link::port::{Port, PortOptions};
use millstream_net::engine::{inventory, set_probe};
use millstream_net::open;
use millstream_testkit::allocations;
use millstream_testkit::netns::{PairOptions, VethPair};

use crate::{PATIENCE, any, collect};

/// The links that work on an interface.
const LINKS: [&str; 4] =
    ["packet:veth0", "xdp:veth0", "packet:veth0,io=inline", "xdp:veth0,io=inline"];

fn pair() -> Option<VethPair> {
    VethPair::new(PairOptions::default())
}

fn port(pair: &VethPair, link: &str) -> Port {
    pair.left.run(|| open(link, any(), &PortOptions::default())).unwrap_or_else(|e| panic!("{e}"))
}

fn kernel(pair: &VethPair) -> (UdpSocket, SocketAddrV4) {
    let socket = pair.right.run(|| UdpSocket::bind((pair.right.address, 0)).unwrap());
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    match socket.local_addr().unwrap() {
        SocketAddr::V4(address) => (socket, address),
        SocketAddr::V6(_) => unreachable!(),
    }
}

#[test]
fn a_kernel_socket_is_a_peer_in_both_directions() {
    for link in LINKS {
        let Some(pair) = pair() else { return };
        let mut port = port(&pair, link);
        assert_eq!(*port.local.ip(), pair.left.address, "the interface's first address");
        let (socket, there) = kernel(&pair);
        for bytes in [0usize, 1, 18, 100, 1471, 1472] {
            let payload: Vec<u8> = (0..bytes).map(|at| at as u8).collect();
            port.tx.send(&payload, there).unwrap();
            let mut got = [0; 2000];
            let (count, from) =
                socket.recv_from(&mut got).unwrap_or_else(|e| panic!("{link}: {e}"));
            assert_eq!((&got[..count], from), (&payload[..], port.local.into()), "{link}");
            socket.send_to(&payload, port.local).unwrap();
            assert_eq!(collect(&mut port, 1), [(payload, there)], "{link}");
        }
        let error = port.tx.send(&[0; 1473], there).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EMSGSIZE), "{link}");
    }
}

/// The other end's kernel verifies checksums that a device has not verified.
#[test]
fn a_checksum_that_the_device_cannot_complete_is_completed_by_the_kernel() {
    for mode in ["generic", "native"] {
        let shape = PairOptions { mtu: 9000, ..PairOptions::default() };
        let Some(pair) = VethPair::new(shape) else { return };
        pair.left.sh("ethtool -K veth0 tx off");
        let mut port = port(&pair, &format!("xdp:veth0,mode={mode},udp_checksum=offload"));
        let (socket, there) = kernel(&pair);
        for bytes in [0usize, 1, 18, 1471, 3940, 5001, 8000, 8972] {
            let payload: Vec<u8> = (0..bytes).map(|at| at as u8).collect();
            port.tx.send(&payload, there).unwrap();
            let mut got = [0; 9000];
            let count = socket.recv(&mut got).unwrap_or_else(|e| panic!("{mode}, {bytes}: {e}"));
            assert_eq!(got[..count], payload, "{mode}");
        }
        let sums = pair.right.sh("cat /proc/net/snmp");
        let udp: Vec<_> = sums.lines().filter(|line| line.starts_with("Udp:")).collect();
        let column = udp[0].split(' ').position(|name| name == "InCsumErrors").unwrap();
        assert_eq!(udp[1].split(' ').nth(column), Some("0"), "{mode}: {udp:?}");
    }
}

/// With a VLAN the headers are longer, and the kernel gets other offsets.
#[test]
fn a_checksum_in_a_vlan_is_completed_by_the_kernel() {
    for mode in ["generic", "native"] {
        let shape = PairOptions { mtu: 9000, ..PairOptions::default() };
        let Some(pair) = VethPair::new(shape) else { return };
        pair.left.sh("ethtool -K veth0 tx off");
        let options = format!("mode={mode},vlan=5,address=10.99.0.60/24,udp_checksum=offload");
        let mut port = port(&pair, &format!("xdp:veth0,{options}"));
        let other = "packet:veth0,vlan=5,address=10.99.0.61/24,checksum=verify";
        let open = || open(other, any(), &PortOptions::default()).unwrap();
        let mut other = pair.right.run(open);
        for bytes in [0usize, 1, 18, 1471, 3940, 5001, 8000, 8972] {
            let payload: Vec<u8> = (0..bytes).map(|at| at as u8).collect();
            port.tx.send(&payload, other.local).unwrap();
            assert_eq!(collect(&mut other, 1), [(payload, port.local)], "{mode}, {bytes}");
        }
    }
}

#[test]
fn the_kernel_neither_answers_for_a_shared_port_nor_gives_it_away() {
    for link in ["packet:veth0", "xdp:veth0"] {
        let Some(pair) = pair() else { return };
        let mut port = port(&pair, link);
        let taken = pair.left.run(|| UdpSocket::bind(port.local));
        assert_eq!(taken.unwrap_err().kind(), std::io::ErrorKind::AddrInUse);
        let (socket, _) = kernel(&pair);
        socket.connect(port.local).unwrap();
        for turn in 0..50u8 {
            socket.send(&[turn]).unwrap_or_else(|e| panic!("{link}: {e}: somebody refused it"));
            assert_eq!(collect(&mut port, 1)[0].0, [turn], "{link}");
        }
        let address = port.local;
        drop(port);
        // A program that another test is starting may hold copies of descriptors for a moment.
        let until = Instant::now() + PATIENCE;
        while let Err(error) = pair.left.run(|| UdpSocket::bind(address)) {
            assert!(Instant::now() < until, "{link}: it is not given back: {error}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

#[test]
fn an_own_address_is_pinged_and_answers_arp() {
    for link in ["packet:veth0", "xdp:veth0"] {
        let Some(pair) = pair() else { return };
        let link = format!("{link},address=10.99.0.50/24");
        let mut port = port(&pair, &link);
        let (socket, there) = kernel(&pair);
        socket.send_to(b"hello", port.local).unwrap();
        assert_eq!(collect(&mut port, 1), [(b"hello".to_vec(), there)], "{link}");
        port.tx.send(b"hello back", there).unwrap();
        let mut got = [0; 20];
        assert_eq!(socket.recv_from(&mut got).unwrap(), (10, port.local.into()), "{link}");
        let ping =
            pair.right.command("ping").args("-c 3 -i 0.2 -W 5 10.99.0.50".split(' ')).output();
        match ping {
            Ok(ping) => assert!(ping.status.success(), "{link}: {ping:?}"),
            Err(error) => eprintln!("ping is left out: {error}"),
        }
    }
}

#[test]
fn an_address_that_another_station_has_is_refused() {
    let Some(pair) = pair() else { return };
    let link = format!("packet:veth0,address={}/24", pair.right.address);
    let refused = pair.left.run(|| open(&link, any(), &PortOptions::default()));
    let text = refused.err().expect("it is taken").to_string();
    assert!(text.contains("is in use by another host"), "{text}");
}

#[test]
fn an_unknown_interface_is_answered_with_those_that_there_are() {
    let Some(pair) = pair() else { return };
    for link in ["packet:nonsense", "xdp:nonsense"] {
        let refused = pair.left.run(|| open(link, any(), &PortOptions::default()));
        let text = refused.err().expect("it does not exist").to_string();
        assert!(text.contains("nonsense"), "{text}");
    }
}

#[test]
fn a_deleted_interface_ends_its_ports_with_an_error_and_can_come_again() {
    for link in LINKS {
        let Some(pair) = pair() else { return };
        let mut old = port(&pair, link);
        let waiter = std::thread::spawn(move || {
            let until = Instant::now() + PATIENCE;
            loop {
                match old.rx.recv_batch(Duration::from_millis(100)) {
                    Err(error) => break (old, error),
                    Ok(_) => assert!(Instant::now() < until, "it noticed"),
                }
            }
        });
        std::thread::sleep(Duration::from_millis(20));
        pair.left.sh("ip link del veth0");
        let (old, error) = waiter.join().unwrap_or_else(|_| panic!("{link}"));
        assert!(error.raw_os_error().is_some(), "{link}: {error}");
        drop(old);
    }
}

/// The kernel shows the trains of a sender on the same machine whole, and the link splits them
/// into buffers of its own.
#[test]
fn a_port_that_is_not_read_does_not_use_up_the_buffers_of_gso_batches() {
    for link in ["packet:veth0", "packet:veth0,io=inline"] {
        let Some(pair) = pair() else { return };
        let (slow, mut read) = (port(&pair, link), port(&pair, link));
        let there = SocketAddrV4::new(pair.right.address, 0);
        let mut sender = pair.right.run(|| open("udp", there, &PortOptions::default()).unwrap());
        assert!(sender.tx.capabilities().segmentation);
        let queue = slow.rx.capabilities().recv_queue_datagrams.unwrap();
        // Through the ring in parts, so that the ring itself does not overflow.
        for sent in 0..2 * queue / 50 {
            sender.tx.send_train(&[7; 50 * 100], 100, slow.local).unwrap();
            sender.tx.send(&[sent as u8], read.local).unwrap();
            assert_eq!(collect(&mut read, 1), [(vec![sent as u8], sender.local)], "{link}");
        }
    }
}

#[test]
fn real_links_allocate_nothing_either_and_lose_no_frame() {
    set_probe(allocations);
    for link in ["packet:veth0", "xdp:veth0"] {
        let Some(pair) = pair() else { return };
        let mut port = port(&pair, link);
        let (socket, there) = kernel(&pair);
        let name = |dir: &str| {
            let all = inventory().threads;
            let found = all.into_iter().find(|thread| {
                thread.links.iter().any(|l| l.ports.iter().any(|p| p.local == port.local))
            });
            found.unwrap_or_else(|| panic!("{link} {dir}"))
        };
        let mut turns = |count: usize, before: Option<u64>| {
            for _ in 0..count {
                let mut got = [0; 64];
                port.tx.send(&[3; 40], there).unwrap();
                socket.recv(&mut got).unwrap();
                socket.send_to(&got[..40], port.local).unwrap();
                assert_eq!(port.rx.recv_batch(PATIENCE).unwrap(), 1);
            }
            if let Some(before) = before {
                assert_eq!(allocations() - before, 0, "{link}: by the user");
            }
        };
        turns(50, None);
        let first = name("first");
        let total = first.links[0].census.total();
        turns(2000, Some(allocations()));
        let last = name("last");
        assert_eq!(last.probe, first.probe, "{link}: by the thread");
        assert_eq!(last.links[0].census.total(), total, "{link}");
    }
}
